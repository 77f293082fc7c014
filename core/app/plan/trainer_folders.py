"""The output folders that the trainer's command line, config or script names, for runs without ``output_dir``.

What the framework's preset says about its settings goes first, then the usual names of such settings, then the defaults
in the trainer's own script. A folder that none of them names is found when the trainer saves
(``sense/files/output_search.py``).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ...act.config.derive import DeriveError
from ...act.config.trainer_config import TrainerSettings
from ...config.document import ConfigError, Document, display_path
from ...config.location import find_project
from ...config.project import load_project
from ...model.checkpoint_suffixes import has_checkpoint_suffix
from ...model.preset import Preset, Profile
from ...model.run import RunSpec, is_below
from ...model.shipped import UNKNOWN as SHIPPED_UNKNOWN
from ...model.shipped import Remedy
from ...model.wrappers import hides_trainer
from ...source.launch_target import ALL_ARGUMENTS
from ...source.trainer_source import LONGEST, Default, read_source, source_of
from ...source.values import UNKNOWN
from ..runs.known_runs import here
from .resume_plan import config_settings, defaults_of_options, rehearsed

CHECKPOINTS = (
    "output_dir", "out_dir", "outdir", "output_folder", "checkpoint_dir", "ckpt_dir", "save_dir", "save_path",
    "output_path", "default_root_dir", "work_dir", "run_dir", "exp_dir", "results_dir", "result_dir",
    "checkpoints_dir", "checkpoint_path", "checkpoint_folder", "save_folder", "save_to", "workdir", "workspace_dir",
    "training_folder", "output", "out", "save",
)  # fmt: skip
"""Settings that name the folder of the checkpoints, the most common first."""
LOGS = ("logging_dir", "log_dir", "logdir", "tensorboard_dir")
_NAME = re.compile(r"\{(\w[\w.]*)\}")
_NO_FOLDER = re.compile(r"[\d.]+|true|false|none|null|yes|no|all|best|last|epoch|steps?", re.IGNORECASE)


def output_folder(spec: RunSpec, preset: Preset) -> str | None:
    """The folder for checkpoints as the trainer has it (relative to its working folder); None if none is named."""
    named = _named(spec, preset)
    return None if named is None else named[0]


def output_hint(spec: RunSpec, preset: Preset) -> str | None:
    """The folder below which the trainer makes a new one in each launch, absolute; None if it is not known to."""
    found = _filled(preset.output_below, spec, TrainerSettings(spec, preset))
    return next((_absolute(spec.cwd, folder) for folder, _ in found), None)


def logging_folder(spec: RunSpec, preset: Preset) -> str | None:
    """Where the trainer writes its own logs, as its settings say; None if they say nothing."""
    return next((folder for folder, _ in _set(LOGS, spec, TrainerSettings(spec, preset))), None)


def with_output_folder(spec: RunSpec, preset: Preset) -> RunSpec:
    """The run with its trainer's folder as ``output_dir``, if it has none."""
    if spec.output_dir is not None:
        return spec
    named, hint = _named(spec, preset), output_hint(spec, preset)
    found = rehearsed(spec) if named is None and hint is None else None
    # a trainer that found its checkpoint again has one folder; that of a single launch is not there
    if found is not None and found.safe and found.will == "self" and found.saved_in and Path(found.saved_in).is_dir():
        named = found.saved_in, "where its rehearsal saved"
    if named is None:
        return msgspec.structs.replace(spec, output_hint=hint)
    folder = _absolute(spec.cwd, named[0])
    return msgspec.structs.replace(spec, output_dir=folder, output_why=named[1], output_hint=hint)


def _named(spec: RunSpec, preset: Preset) -> tuple[str, str] | None:
    """(folder, how it is known), as the source uses the value.

    ``join(BASE, args.out)`` saves below BASE, not in the working folder.
    """
    named = _by_settings(spec, preset)
    if named is None:
        return None
    folder, why = named
    target = source_of(spec).target
    plain = target.word.endswith(".py") and "$" not in target.word
    if plain and not folder.startswith(("/", "~")) and _absolute(spec.cwd, target.word) != str(target.file):
        return None  # a shell goes to another folder before
    part, absolute = os.path.normpath(folder), _absolute(spec.cwd, folder)
    if os.path.isabs(folder) or part.startswith((".", "~")):  # noqa: PTH117  as it is written
        return named
    saved = saved_places(spec, {})
    if any(path == absolute or is_below(path, absolute) for path in saved):
        return named
    for path, place in saved.items():
        before, found, _ = f"{path}/".partition(f"/{part}/")
        if found:
            return f"{before}/{part}", f"{why}, which {place} completes"
    return named


def _by_settings(spec: RunSpec, preset: Preset) -> tuple[str, str] | None:
    spec = _within_shell(spec)
    settings = TrainerSettings(spec, preset)
    below = {name for template in preset.output_below for name in _NAME.findall(template)}
    keys = tuple(key for key in CHECKPOINTS if key not in below)
    own = [template for template in preset.output if _NAME.search(template)]
    found = [*_filled(own, spec, settings), *_set(keys, spec, settings)]
    if found:
        return found[0]
    try:  # a setting that was not found must certainly be set nowhere, so that its default applies
        settings.value(None, CHECKPOINTS[0])
    except DeriveError:
        return None
    if settings.hidden:
        return None
    env, config, source = {**os.environ, **spec.env}, config_settings(spec, preset)[0], source_of(spec)
    saved = source.saved_below(env, config, told_only=bool(preset.output_below))
    if saved is not None and "$" not in saved[0]:
        return saved[0], f"where {saved[1]} saves"
    if preset.output_below or any(_value(settings, key) is not None for key in keys):
        return None
    known: dict[str, Default] = {}
    for default in source.defaults:
        known.setdefault(default.name.lower().replace("-", "_"), default)
    for each in (known[key] for key in keys if key in known and known[key].name not in env):
        if (folder := _folder(spec.cwd, each.value)) is not None:
            return folder, f"{each.name} in {each.place}"
    return next(_filled(preset.output, spec, settings), None)


_IF_SET = re.compile(r"""^\$\{\w+:?\+(-[\w-]+)[ =]"?(\$\{?\w+\}?)"?\}$""")
"""``${LAST:+--resume $LAST}``: one option with a value that is not known, or nothing."""


def _within_shell(spec: RunSpec) -> RunSpec:
    """The run with the command that its shell script or shell line runs, if all words of that one are seen."""
    source = source_of(spec)
    if not hides_trainer(spec.command) or source.unread:
        return spec
    target = source.target
    args = [word for word in target.args if not ALL_ARGUMENTS.fullmatch(word)]
    words = [part for word in args for part in _IF_SET.split(word) if part or not word]
    if any("$" in word and "=" not in word and not before.startswith("-") for before, word in pairwise(["", *words])):
        return spec
    return msgspec.structs.replace(spec, command=("python", str(target.file), *words), env=spec.env | dict(target.env))


def _value(settings: TrainerSettings, key: str) -> str | None:
    try:
        value = settings.value(None, key)
    except DeriveError:  # the launch reports what is wrong with the config
        return None
    return value if isinstance(value, str) else None


def _filled(templates: Sequence[str], spec: RunSpec, settings: TrainerSettings) -> Iterator[tuple[str, str]]:
    for template in templates:
        names = _NAME.findall(template)
        values = {name: _value(settings, name) or "" for name in names}
        if all(_is_folder(spec.cwd, value) for value in values.values()):
            folder = _NAME.sub(lambda found: values[found[1]], template)  # noqa: B023
            yield folder, f"its {' and '.join(names)}" if names else f"where {spec.preset} saves"


def _set(keys: Sequence[str], spec: RunSpec, settings: TrainerSettings) -> Iterator[tuple[str, str]]:
    for key in keys:
        if (value := _value(settings, key)) is not None and (folder := _folder(spec.cwd, value)) is not None:
            yield folder, f"its {key}"


def _folder(cwd: str, value: str) -> str | None:
    """The folder that a value names; that of the file, if it names a checkpoint."""
    if has_checkpoint_suffix(value):
        value = os.path.dirname(value)  # noqa: PTH120  as it is written
    return value if _is_folder(cwd, value) and not _NO_FOLDER.fullmatch(value) else None


def _is_folder(cwd: str, value: str) -> bool:
    """Whether it can be a folder: no placeholder, variable, URL or existing file."""
    if not value.strip() or not value.isprintable() or any(c in value for c in "{}$%") or "://" in value:
        return False
    return not Path(_absolute(cwd, value)).is_file()


def _absolute(cwd: str, path: str) -> str:
    return os.path.normpath(Path(cwd) / os.path.expanduser(path))  # noqa: PTH111  Path's raises for an unknown ~name


# The places that a trainer's command, environment, config or source names, wherever on the machine they are.
#
# A search for what it saved must look there; whose a file there is they do not tell. Only a path that the source
# itself saves to does, built from constants and the options of this command.

MOST = 4096
MOST_FOLDERS = 64
"""Folders outside the working folder that are watched for it."""
CONFIG_BYTES = 1 << 18
_WORDS = re.compile(r"""[^\s"'`,;=()\[\]{}<>|&]+""")


def saved_places(spec: RunSpec, env: Mapping[str, str]) -> dict[str, str]:
    """Absolute path of a checkpoint or its folder → the place of the source that saves there (``train.py:12``)."""
    source = read_source(spec.command, spec.cwd, {**env, **spec.env})
    if not source.is_own:
        return {}
    found: dict[str, str] = {}
    for text, place in source.saves({**env, **spec.env}):
        known, unknown, _ = text.partition(UNKNOWN)
        path = _path(f"{known}{{" if unknown else known, spec.cwd)
        is_path = "/" in known or has_checkpoint_suffix(text)
        if is_path and path is not None and path != spec.cwd and len(found) < MOST:
            found.setdefault(os.path.realpath(path), place)
    return found


def folders_elsewhere(spec: RunSpec, env: Mapping[str, str]) -> tuple[str, ...]:
    """Folders outside the working folder below which the trainer may save, as far as they are written out."""
    source = source_of(spec)
    script = str(source.target.file.parent) if source.is_own else spec.cwd
    found = {} if script == spec.cwd else {script: None}
    for text in _texts(spec, env):
        path = _path(text, spec.cwd) if text.startswith(("/", "~", "..")) else None
        if path is not None:
            folder = os.path.dirname(path) if Path(path).is_file() else path  # noqa: PTH120
            if _is_place(folder, spec.cwd):
                found.setdefault(folder)
    return tuple(found)[:MOST_FOLDERS]


def _is_place(folder: str, cwd: str) -> bool:
    """Whether a search there is one for output: not the whole disk, what is installed, or the working folder itself."""
    parts = Path(folder).parts
    if len(parts) <= 2 or parts[1] in {"usr", "proc", "sys", "dev", "etc", "bin", "lib", "opt", "boot", "sbin"}:
        return False
    return not any(each == folder or is_below(each, folder) for each in (str(Path.home()), cwd))


def _path(text: str, base: str) -> str | None:
    """The absolute path that a text may be; a text with a placeholder counts up to the folder before it."""
    if not text or len(text) > LONGEST or not text.isprintable() or "://" in text or text.startswith("-"):
        return None
    before, placeholder, _ = text.partition("{")
    if placeholder or "%" in text:
        text, slash, _ = before.partition("%")[0].rpartition("/")
        text = text if slash else ""
    return _absolute(base, text) if text.strip("./~") else None


def _texts(spec: RunSpec, env: Mapping[str, str]) -> Iterator[str]:
    """All that may be a path, the command first."""
    for word in spec.command:
        yield from {word, word.partition("=")[2]}
        yield from _of_config(Path(spec.cwd, word))
    if spec.config is not None:
        yield from _of_config(Path(spec.cwd, spec.config))
    yield from spec.env.values()
    source = source_of(spec)
    if not source.is_own:
        return
    for _, text in source.target.shells:
        yield from _WORDS.findall(text)
    known = {**env, **spec.env}
    for text, _ in source.texts:
        yield text
        if text.isidentifier() and text in known:
            yield known[text]


def _of_config(path: Path) -> Iterator[str]:
    try:
        if path.suffix in {".py", ".sh", ""} or not path.is_file() or path.stat().st_size > CONFIG_BYTES:
            return
        text = path.read_text()
    except (OSError, ValueError):
        return
    for word in _WORDS.findall(text):
        if "/" in word:
            yield word.partition(":")[2] if word.startswith(":") else word


# The trainer's settings that the table of remedies refers to: profile over command line over config.


def trainer_values(
    spec: RunSpec, preset: Preset, profiles: Mapping[str, Profile], table: Sequence[Remedy], environ: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Profile ("" = none) → key → value; ``$NAME``: environment. Values that are unset are absent.

    ``SHIPPED_UNKNOWN``: it cannot be told whether a setting is set, so the framework's default must not be assumed. The
    default of an option that remedies may change is that of the script.
    """
    rows = [r for r in table if not r.presets or set(preset.kin) & set(r.presets)]
    keys = {c.key for r in rows for c in r.when}
    keys |= {f"${c.key}" if c.where == "env" else c.key for r in rows for c in r.changes}
    settings = TrainerSettings(spec, preset)
    declared = defaults_of_options(spec, {c.key for r in rows for c in r.changes if c.where == "flag"})
    found: dict[str, dict[str, Any]] = {}
    for name, profile in {"": None, **profiles}.items():
        variables = {**preset.environment, **environ, **spec.env, **(profile.env if profile is not None else {})}
        values = {}
        for key in sorted(keys):
            try:
                value = variables.get(key[1:]) if key.startswith("$") else settings.value(profile, key)
                hides = value is None and settings.hidden and not key.startswith("$")
            except DeriveError:  # check and launch report a config that cannot be read
                hides = True
            value = SHIPPED_UNKNOWN if hides else value
            value = declared.get(key) if value is None else value
            if value is not None:
                values[key] = value
        found[name] = values
    return found


# What the trainwatch.toml of a folder means for a training that it does not describe.

OF_RUNS = frozenset({"run", "runs", "hosts"})
"""Sections without settings."""


def not_used_for_a_command(use: str = "start that with `trainwatch run`") -> str | None:
    """A sentence about this folder's trainwatch.toml, whose settings a run of a command does not have.

    None without such a file, and if it names other machines only. ``use``: how a run of the file is used instead.
    """
    path = find_project(here())
    if path is None:
        return None
    where = f"{display_path(path)} is not used for this command"
    try:
        sections = _sections(path)
        if sections is None:
            return None
        load_project(path)
    except ConfigError as error:
        problems = "; ".join(map(str, error.problems))
        return f"{where}, and `trainwatch run` without a command refuses it: {problems}"
    what = f"{sections} and all else in it do" if sections else "it does"
    return f"{where}: {what} not apply. To use it, write the command into its [run] and {use}, without a command"


def partly_used_when_adopted() -> str | None:
    """The same of a training that is adopted: it has the settings of the file, and is no run of it.

    Raises ConfigError.
    """
    path = find_project(here())
    sections = None if path is None else _sections(path)
    if path is None or sections is None:
        return None
    where, what = display_path(path), "command, folders and environment are those of the process"
    if not sections:
        return f"{where} is not used for an adopted training: {what}"
    ladder = "; of [profiles] the ladder alone applies" if "[profiles]" in sections else ""
    applies = "apply" if "," in sections else "applies"
    return f"{where}: {sections} {applies} to the adopted training{ladder}; its runs do not: {what}"


def _sections(path: Path) -> str | None:
    """The sections with settings, as ``[a], [b]``; None if the file names other machines only. Raises ConfigError."""
    written = set(Document.read(path).data)
    if written <= {"hosts"}:
        return None
    return ", ".join(f"[{name}]" for name in sorted(written - OF_RUNS))
