"""The output folders that the trainer's command line or config names, for runs without ``output_dir``."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...act.adopt.adoption import config_of
from ...act.config.derive import DeriveError
from ...act.config.trainer_settings import TrainerSettings
from ...model.preset import Preset
from ...model.run import RunSpec

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
)
"""Settings that name the folder of the checkpoints, the most common first."""
LOGS = ("logging_dir", "log_dir", "logdir", "tensorboard_dir")


def output_folder(spec: RunSpec, preset: Preset) -> str | None:
    """The folder for checkpoints as the trainer has it (relative to its working folder); None if none is named."""
    return _folder(spec, preset, CHECKPOINTS)


def logging_folder(spec: RunSpec, preset: Preset) -> str | None:
    """The same for its logs."""
    return _folder(spec, preset, LOGS)


def with_output_folder(spec: RunSpec, preset: Preset) -> RunSpec:
    """The run with its trainer's folder as ``output_dir``, if it has none."""
    folder = output_folder(spec, preset) if spec.output_dir is None else None
    return spec if folder is None else msgspec.structs.replace(spec, output_dir=_absolute(spec.cwd, folder))


def _folder(spec: RunSpec, preset: Preset, keys: Sequence[str]) -> str | None:
    if spec.config is None:
        spec = msgspec.structs.replace(spec, config=config_of(spec.command, spec.cwd))
    settings = TrainerSettings(spec, preset)
    for key in keys:
        try:
            value = settings.value(None, key)
        except DeriveError:  # the launch reports what is wrong with the config
            return None
        if isinstance(value, str) and _is_folder(spec.cwd, value):
            return value
    return None


def _is_folder(cwd: str, value: str) -> bool:
    """Whether it can be a folder: no placeholder, variable, URL or existing file."""
    if not value.strip() or not value.isprintable() or any(c in value for c in "{}$") or "://" in value:
        return False
    return not Path(_absolute(cwd, value)).is_file()


def _absolute(cwd: str, path: str) -> str:
    return os.path.normpath(Path(cwd) / os.path.expanduser(path))  # noqa: PTH111  Path's raises for an unknown ~name
