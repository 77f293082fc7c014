"""The output folders that the trainer's command line, config or script names, for runs without ``output_dir``.

What the framework's preset says about its settings goes first, then the usual names of such settings, then the defaults
in the trainer's own script. A folder that none of them names is found when the trainer saves
(``sense/files/output_search.py``).
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from ...act.adopt.adoption import config_of
from ...act.config.derive import DeriveError
from ...act.config.trainer_settings import TrainerSettings
from ...model.checkpoints.checkpoint_suffixes import has_checkpoint_suffix
from ...model.launch.command_words import hides_trainer
from ...model.launch.output_place import OutputPlace
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...source.trainer_source import Default, read_source

CHECKPOINTS = (
    "output_dir",
    "out_dir",
    "outdir",
    "output_folder",
    "checkpoint_dir",
    "ckpt_dir",
    "save_dir",
    "save_path",
    "output_path",
    "default_root_dir",
    "work_dir",
    "run_dir",
    "exp_dir",
    "results_dir",
    "result_dir",
    "checkpoints_dir",
    "checkpoint_path",
    "checkpoint_folder",
    "save_folder",
    "save_to",
    "workdir",
    "workspace_dir",
    "training_folder",
    "output",
    "out",
    "save",
)
"""Settings that name the folder of the checkpoints, the most common first."""
LOGS = ("logging_dir", "log_dir", "logdir", "tensorboard_dir")
_ALL_ARGUMENTS = frozenset({"$@", "$*", '"$@"', '"$*"', "${@}"})
_NAME = re.compile(r"\{(\w[\w.]*)\}")
_NO_FOLDER = re.compile(r"[\d.]+|true|false|none|null|yes|no|all|best|last|epoch|steps?", re.IGNORECASE)


def output_folder(spec: RunSpec, preset: Preset) -> str | None:
    """The folder for checkpoints as the trainer has it (relative to its working folder); None if none is named."""
    named = _named(spec, preset)
    return None if named is None else named[0]


def output_hint(spec: RunSpec, preset: Preset) -> str | None:
    """The folder below which the trainer makes a new one in each launch, absolute; None if it is not known to."""
    settings = _settings(spec, preset)
    found = next(_filled(preset.output_below, spec, settings), None)
    return None if found is None else _absolute(spec.cwd, found[0])


def logging_folder(spec: RunSpec, preset: Preset) -> str | None:
    """Where the trainer writes its own logs, as its settings say; None if they say nothing."""
    found = next(_set(LOGS, spec, _settings(spec, preset)), None)
    return None if found is None else found[0]


def with_output_folder(spec: RunSpec, preset: Preset) -> RunSpec:
    """The run with its trainer's folder as ``output_dir``, if it has none."""
    if spec.output_dir is not None:
        return spec
    named, hint = _named(spec, preset), output_hint(spec, preset)
    if named is None:
        return msgspec.structs.replace(spec, output_hint=hint)
    folder = _absolute(spec.cwd, named[0])
    return msgspec.structs.replace(spec, output_dir=folder, output_why=named[1], output_hint=hint)


def output_place(spec: RunSpec) -> OutputPlace | None:
    """Where the output is, or below which folder it will be, and how that is known."""
    if spec.output_dir is not None:
        return OutputPlace(folder=spec.output_dir, why=spec.output_why or "told")
    if spec.output_hint is not None:
        return OutputPlace(folder=spec.output_hint, why="a new folder below it in each launch")
    return None


def _named(spec: RunSpec, preset: Preset) -> tuple[str, str] | None:
    """(folder, how it is known)."""
    spec = _within_shell(spec)
    settings = _settings(spec, preset)
    below = {name for template in preset.output_below for name in _NAME.findall(template)}
    keys = tuple(key for key in CHECKPOINTS if key not in below)
    found = [
        *_filled([t for t in preset.output if _NAME.search(t)], spec, settings),
        *_set(keys, spec, settings),
    ]
    if found:
        return found[0]
    if preset.output_below or not _shows_all(settings) or any(_value(settings, key) is not None for key in keys):
        return None
    defaults = [*_by_default(keys, spec), *_filled(preset.output, spec, settings)]
    return defaults[0] if defaults else None


def _within_shell(spec: RunSpec) -> RunSpec:
    """The run with the command that its shell script or shell line runs, if all words of that one are seen."""
    if not hides_trainer(spec.command):
        return spec
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str):
        return spec
    target = source.target
    words = [word for word in target.args if word not in _ALL_ARGUMENTS]
    if any("$" in word and "=" not in word and not before.startswith("-") for before, word in pairwise(["", *words])):
        return spec
    return msgspec.structs.replace(spec, command=("python", str(target.file), *words))


def _shows_all(settings: TrainerSettings) -> bool:
    """Whether a setting that was not found is certainly set nowhere, so that its default applies."""
    try:
        settings.value(None, CHECKPOINTS[0])
    except DeriveError:
        return False
    return not settings.hidden


def _settings(spec: RunSpec, preset: Preset) -> TrainerSettings:
    if spec.config is None:
        spec = msgspec.structs.replace(spec, config=config_of(spec.command, spec.cwd))
    return TrainerSettings(spec, preset)


def _value(settings: TrainerSettings, key: str) -> str | None:
    try:
        value = settings.value(None, key)
    except DeriveError:  # the launch reports what is wrong with the config
        return None
    return value if isinstance(value, str) else None


def _filled(templates: Sequence[str], spec: RunSpec, settings: TrainerSettings) -> Iterator[tuple[str, str]]:
    """Templates whose settings are all set, with their values in them."""
    for template in templates:
        names = _NAME.findall(template)
        values = {name: _value(settings, name) for name in names}
        if any(value is None or not _is_folder(spec.cwd, value) for value in values.values()):
            continue
        folder = template
        for name, value in values.items():
            folder = folder.replace(f"{{{name}}}", str(value))
        why = f"its {' and '.join(names)}" if names else f"where {spec.preset} saves"
        yield folder, why


def _set(keys: Sequence[str], spec: RunSpec, settings: TrainerSettings) -> Iterator[tuple[str, str]]:
    """What the command or the config sets."""
    for key in keys:
        value = _value(settings, key)
        folder = None if value is None else _folder(spec.cwd, value)
        if folder is not None:
            yield folder, f"its {key}"


def _by_default(keys: Sequence[str], spec: RunSpec) -> Iterator[tuple[str, str]]:
    """What the script sets if nobody else does."""
    known: dict[str, Default] = {}
    source = read_source(spec.command, spec.cwd, spec.env)
    for default in () if isinstance(source, str) else source.defaults:
        known.setdefault(default.name.lower().replace("-", "_"), default)
    for key in keys:
        found = known.get(key)
        folder = None if found is None else _folder(spec.cwd, found.value)
        if found is not None and folder is not None:
            yield folder, f"{found.name} in {found.place}"


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
