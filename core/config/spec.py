"""The options of the command line over a run's section, and what makes every launch of it fail."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..model.run import PLACEHOLDERS
from ..model.settings import Settings
from .bounds import complaint
from .document import Problem, did_you_mean, show
from .project import AUTO, RunSection, absolute

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


def with_options(run: RunSection, overrides: Overrides, cwd: Path) -> RunSection:
    """The run with the options of the command line. ``cwd``: the working folder, for paths given there."""
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
    for section, name, value in _set(overrides):
        changed = msgspec.structs.replace(getattr(settings, section), **{name: value})
        settings = msgspec.structs.replace(settings, **{section: changed})
    return settings


def _set(overrides: Overrides) -> Iterator[tuple[str, str, Any]]:
    """(section, key, value) of each setting that is given."""
    for field, (_, key) in OPTIONS.items():
        section, _, name = key.partition(".")
        if section != "run" and (value := getattr(overrides, field)) is not None:
            yield section, name, value


def option_problems(overrides: Overrides, presets: Collection[str], profiles: Collection[str] | None) -> list[Problem]:
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
    options = {key: option for option, key in OPTIONS.values()}
    return [
        Problem(options[f"{section}.{name}"], None, f"{wrong}, got {show(value)}")
        for section, name, value in _set(overrides)
        if (wrong := complaint(section, name, value)) is not None
    ]


def launch_problems(run: RunSection, place: Callable[[str], str]) -> list[Problem]:
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
