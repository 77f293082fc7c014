"""Builds the RunSpec of a run from a config or a bare command, with the options of the command line."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..model.command_words import lone_config
from ..model.preset import Preset
from ..model.resume_way import Recognition, SourceFacts
from ..model.run import PLACEHOLDERS, RunSpec
from ..model.settings import Act, Settings
from .bounds import complaint
from .detection import NOTHING, recognise
from .document import ConfigError, Problem, did_you_mean, show
from .project import AUTO, Origin, Project, RunSection, absolute

Look = Callable[[Sequence[str], str], SourceFacts]
"""Command, working folder → what the trainer's script shows."""
Identify = Callable[[str], str]
"""Returns the id of a run for its name (``new_run_id`` of the store)."""

_LAUNCHERS = frozenset(
    {"accelerate", "torchrun", "deepspeed", "uv", "poetry", "pipenv", "conda", "env", "nohup", "nice"}
)
_SCRIPTS = frozenset({".py", ".sh", ".bash", ".ipynb"})


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command line; None = not given. Paths are relative to the working folder.

    ``interval_s`` is ``--interval``, the period of the health line.
    """

    name: str | None = None
    preset: str | None = None
    profile: str | None = None
    config: str | None = None
    output_dir: str | None = None
    interval_s: float | None = None
    max_restarts: int | None = None
    act: str | None = None
    save_signal: str | None = None
    save_file: str | None = None
    end_by: str | None = None
    at_finish: tuple[str, ...] | None = None
    at_give_up: tuple[str, ...] | None = None
    shapes: tuple[str, ...] | None = None


OPTIONS: dict[str, tuple[str, str]] = {
    "name": ("--name", "run.name"),
    "preset": ("--preset", "run.preset"),
    "profile": ("--profile", "profiles.use"),
    "config": ("--config", "run.config"),
    "output_dir": ("--output-dir", "run.output_dir"),
    "interval_s": ("--interval", "watch.summary_s"),
    "max_restarts": ("--max-restarts", "restart.max_restarts"),
    "act": ("--act", "restart.act"),
    "save_signal": ("--save-signal", "run.save_signal"),
    "save_file": ("--save-file", "run.save_file"),
    "end_by": ("--end-by", "end.end_by"),
    "at_finish": ("--at-finish", "end.at_finish"),
    "at_give_up": ("--at-give-up", "end.at_give_up"),
    "shapes": ("--progress-shape", "progress.shapes"),
}
"""Field → (option, its key in the file)."""


def spec_for_run(
    project: Project,
    run: RunSection,
    *,
    identify: Identify,
    created_wall: float,
    cwd: Path,
    presets: Mapping[str, Preset],
    profiles: Collection[str] | None = None,
    overrides: Overrides = Overrides(),  # noqa: B008  frozen
    look: Look = lambda _command, _cwd: NOTHING,
) -> RunSpec:
    """Return the spec of a project's run. ``cwd``: the working folder of the command line, for paths given there.

    Raises ConfigError with all problems: bad options, a missing config or working folder, a placeholder without
    a value.
    """
    section = _with_overrides(run, overrides, cwd)
    problems = _option_problems(overrides, presets, profiles)
    problems += _launch_problems(section, lambda key: str(origins(project, run, overrides)[f"{run.key}.{key}"]))
    if problems:
        raise ConfigError(problems)
    end = msgspec.structs.replace(project.settings.end, **section.end)
    settings = settings_with(msgspec.structs.replace(project.settings, end=end), overrides)
    spec = _spec(section, settings, presets, (identify, look), created_wall, project=str(project.path))
    given = [key for name, (_, key) in OPTIONS.items() if getattr(overrides, name) is not None]
    typed = tuple(key.removeprefix("run.") for key in given if key.startswith("run."))
    return msgspec.structs.replace(spec, section=run.key, typed=typed)


def spec_for_command(
    argv: Sequence[str],
    *,
    identify: Identify,
    created_wall: float,
    cwd: Path,
    presets: Mapping[str, Preset],
    profiles: Collection[str] | None = None,
    overrides: Overrides = Overrides(),  # noqa: B008  frozen
    look: Look = lambda _command, _cwd: NOTHING,
) -> RunSpec:
    """Return the spec of a bare command (``trainwatch run -- COMMAND``), with default settings. Raises ConfigError."""
    problems = _option_problems(overrides, presets, profiles)
    if not argv or not argv[0].strip():
        problems.append(
            Problem("run", None, "no command; write it after --, as in `trainwatch run -- python train.py`")
        )
        raise ConfigError(problems)
    base = RunSection(key="run", name=name_of_command(argv), command=tuple(argv), cwd=str(cwd.absolute()))
    section = _with_overrides(base, overrides, cwd)
    options = {key.removeprefix("run."): option for option, key in OPTIONS.values()}
    problems += _launch_problems(section, lambda key: options.get(key, "run"))
    if problems:
        raise ConfigError(problems)
    return _spec(section, settings_with(Settings(), overrides), presets, (identify, look), created_wall, project=None)


def origins(project: Project, run: RunSection, overrides: Overrides) -> dict[str, Origin]:
    """Return the project's provenance with the options of the command line."""
    found = dict(project.provenance)
    for field, (option, key) in OPTIONS.items():
        if getattr(overrides, field) is not None:
            found[key.replace("run.", f"{run.key}.", 1) if key.startswith("run.") else key] = Origin(
                "command line", option
            )
    return found


def name_of_command(argv: Sequence[str]) -> str:
    """Return a name for a bare command: its script, its module, else its program."""
    words = list(argv)
    for number, word in enumerate(words):
        if Path(word).suffix in _SCRIPTS:
            return Path(word).stem
        if word == "-c":
            break
        if word == "-m" and number + 1 < len(words):
            return words[number + 1].rpartition(".")[2]
    programs = [w for w in words if not w.startswith("-") and "=" not in w and Path(w).name not in _LAUNCHERS]
    return Path((programs or words)[0]).name or "run"


def _with_overrides(run: RunSection, overrides: Overrides, cwd: Path) -> RunSection:
    changes: dict[str, Any] = {}
    for field in ("config", "output_dir"):
        if getattr(overrides, field) is not None:
            changes[field] = absolute(cwd.absolute(), getattr(overrides, field))
    for field in ("name", "save_signal", "save_file"):
        if getattr(overrides, field) is not None:
            changes[field] = getattr(overrides, field)
    if overrides.preset is not None:
        changes["preset"] = None if overrides.preset == AUTO else overrides.preset
    return msgspec.structs.replace(run, **changes)


def settings_with(settings: Settings, overrides: Overrides) -> Settings:
    """The settings with the options of the command line; checked before (``setting_problems``)."""
    replace = msgspec.structs.replace
    if overrides.profile is not None:
        settings = replace(settings, profiles=replace(settings.profiles, use=overrides.profile))
    if overrides.interval_s is not None:
        settings = replace(settings, watch=replace(settings.watch, summary_s=float(overrides.interval_s)))
    if overrides.max_restarts is not None:
        settings = replace(settings, restart=replace(settings.restart, max_restarts=overrides.max_restarts))
    for key in ("end_by", "at_finish", "at_give_up"):
        if getattr(overrides, key) is not None:
            settings = replace(settings, end=replace(settings.end, **{key: getattr(overrides, key)}))
    if overrides.shapes is not None:
        settings = replace(settings, progress=replace(settings.progress, shapes=overrides.shapes))
    if overrides.act is not None:
        settings = replace(settings, restart=replace(settings.restart, act=msgspec.convert(overrides.act, Act)))
    return settings


def _option_problems(overrides: Overrides, presets: Collection[str], profiles: Collection[str] | None) -> list[Problem]:
    problems: list[Problem] = []
    if overrides.name is not None and not overrides.name.strip():
        problems.append(Problem("--name", None, "must not be empty"))
    if overrides.preset is not None and overrides.preset not in {*presets, AUTO}:
        text = f'unknown preset "{overrides.preset}"{did_you_mean(overrides.preset, presets)}'
        problems.append(Problem("--preset", None, text))
    if overrides.profile is not None and profiles is not None and overrides.profile not in profiles:
        text = f'unknown profile "{overrides.profile}"{did_you_mean(overrides.profile, profiles)}'
        problems.append(Problem("--profile", None, text))
    return [*problems, *setting_problems(overrides)]


def setting_problems(overrides: Overrides) -> list[Problem]:
    """Problems of options whose setting does not accept the value."""
    problems = []
    for field, (option, key) in OPTIONS.items():
        section, _, name = key.partition(".")
        value = getattr(overrides, field)
        wrong = complaint(section, name, value) if value is not None and section != "run" else None
        if wrong is not None:
            problems.append(Problem(option, None, f"{wrong}, got {show(value)}"))
    return problems


def _launch_problems(run: RunSection, place: Callable[[str], str]) -> list[Problem]:
    """Problems that make every launch fail. ``place``: where a key was written."""
    problems: list[Problem] = []
    if not Path(run.cwd).is_dir():
        problems.append(Problem(place("cwd"), None, f'"cwd" is no folder: {run.cwd}'))
    if run.config is not None and not Path(run.config).is_file():
        problems.append(Problem(place("config"), None, f'"config" is no file: {run.config}'))
    if run.output_dir is not None and Path(run.output_dir).exists() and not Path(run.output_dir).is_dir():
        problems.append(Problem(place("output_dir"), None, f'"output_dir" is no folder: {run.output_dir}'))
    problems += [Problem(place("command"), None, text) for text in misspelt(run.command)]
    for placeholder, value in (("config", run.config), ("output_dir", run.output_dir)):
        if value is None and any(f"{{{placeholder}}}" in word for word in run.command):
            option = OPTIONS[placeholder][0]
            text = (
                f'the command uses {{{placeholder}}}, but "{placeholder}" is not set; set it in the file or by {option}'
            )
            problems.append(Problem(place("command"), None, text))
    return problems


def _spec(
    run: RunSection,
    settings: Settings,
    presets: Mapping[str, Preset],
    by: tuple[Identify, Look],
    created_wall: float,
    *,
    project: str | None,
) -> RunSpec:
    identify, look = by
    config = Path(run.config) if run.config else None
    found = (
        Recognition(preset=run.preset, why="told by [run] preset or --preset")
        if run.preset is not None
        else recognise(run.command, config or _lone_config(run), presets, look(run.command, run.cwd))
    )
    return RunSpec(
        id=identify(run.name),
        name=run.name,
        command=run.command,
        cwd=run.cwd,
        created_wall=created_wall,
        env=run.env,
        preset=found.preset,
        preset_why=found.why,
        preset_resumes=found.resumes,
        config=run.config,
        output_dir=run.output_dir,
        logs=run.logs,
        gpus=run.gpus,
        terminal=run.terminal,
        save_signal=run.save_signal,
        save_file=run.save_file,
        engine=run.engine,
        project=project,
        settings=settings,
    )


def _lone_config(run: RunSection) -> Path | None:
    """The trainer's config that is the only argument of its command."""
    named = lone_config(run.command)
    path = None if named is None else Path(run.cwd, named)
    return path if path is not None and path.is_file() else None


# ``{word}`` in a command: a placeholder, a misspelt one, or braces of the trainer.

_BRACED = re.compile(r"(?<![$\w{])\{([A-Za-z_]\w*)\}(?!\})")
"""Not ``${VARIABLE}``, not ``{{literal}}``."""
_FORMATTED = re.compile(r"""\b[rR]?[fF][rR]?["']""")
"""Python code with f-strings: its braces are not placeholders."""
_PROSE = re.compile(r"[\s\"'()\[\]]")
"""An argument with one of these is a line of code or JSON: braces are usual there."""
NEAR = 0.7
NEAR_IN_PROSE = 0.8
"""Similarity from which a word counts as a misspelt placeholder; in code, ``{result}`` does not."""


def misspelt(command: Sequence[str]) -> Iterator[str]:
    """A sentence for each unknown placeholder: a misspelt one, or one that is a whole argument."""
    for word in command:
        if _FORMATTED.search(word):
            continue
        cutoff = NEAR_IN_PROSE if _PROSE.search(word) else NEAR
        for found in _BRACED.finditer(word):
            name = found[1]
            if name in PLACEHOLDERS:
                continue
            from difflib import get_close_matches  # loaded for a misspelt word only

            near = get_close_matches(name.lower(), PLACEHOLDERS, n=1, cutoff=cutoff)
            if near:
                yield f'the command uses the unknown placeholder {{{name}}}; did you mean "{{{near[0]}}}"?'
            elif found[0] == word:
                known = " ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
                yield f"the command uses the unknown placeholder {{{name}}}; there are: {known}"
