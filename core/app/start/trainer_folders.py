"""Where the trainer itself says that it writes: its command line, else its config. For runs of which nobody told us."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...act.adopt.adoption import config_of
from ...act.config.derive import DeriveError, effective
from ...model.profile import Preset
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
"""Settings that name the folder of the checkpoints, the plainest first."""
LOGS = ("logging_dir", "log_dir", "logdir", "tensorboard_dir")


def output_folder(spec: RunSpec, presets: Mapping[str, Preset]) -> str | None:
    """The folder for checkpoints as the trainer was told it (relative to its working folder); None: not said."""
    return _folder(spec, presets, CHECKPOINTS)


def logging_folder(spec: RunSpec, presets: Mapping[str, Preset]) -> str | None:
    """The same for its logs."""
    return _folder(spec, presets, LOGS)


def with_output_folder(spec: RunSpec, presets: Mapping[str, Preset]) -> RunSpec:
    """The run with the folder that its trainer was told, where nobody said one to us."""
    folder = output_folder(spec, presets) if spec.output_dir is None else None
    return spec if folder is None else msgspec.structs.replace(spec, output_dir=_absolute(spec.cwd, folder))


def _folder(spec: RunSpec, presets: Mapping[str, Preset], keys: Sequence[str]) -> str | None:
    preset = presets.get(spec.preset, Preset(name="generic"))
    if spec.config is None:
        spec = msgspec.structs.replace(spec, config=config_of(spec.command, spec.cwd))
    for key in keys:
        try:
            value = effective(spec, preset, None, key)
        except DeriveError:  # the launch tells what is wrong with the config
            value = None
        if isinstance(value, str) and _is_folder(spec.cwd, value):
            return value
    return None


def _is_folder(cwd: str, value: str) -> bool:
    """Whether it can be one: no placeholder or variable that somebody else fills in, no address, no file."""
    if not value.strip() or not value.isprintable() or any(c in value for c in "{}$") or "://" in value:
        return False
    return not Path(_absolute(cwd, value)).is_file()


def _absolute(cwd: str, path: str) -> str:
    return os.path.normpath(Path(cwd) / os.path.expanduser(path))  # noqa: PTH111  Path's raises for an unknown ~name
