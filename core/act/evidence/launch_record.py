"""The launch record of an incident: the attempt's command line, environment and config, with secrets removed."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ...model.text.redact import HIDDEN, Redaction, is_secret_name
from ..launch.attempt_records import read_order
from .evidence_files import write_file

CONFIG_BYTES = 1 << 20
"""Most bytes of a config that are copied."""


def write_launch_record(target: AttemptTarget, spec: RunSpec, folder: Path, notes: list[str]) -> tuple[str, ...]:
    """Write ``launch.txt``, ``environment.txt`` and a copy of the config; returns their paths."""
    argv, cwd, env = _launch(target, spec, notes)
    hide = Redaction({**env, **spec.env})
    launch = [f"attempt {target.number}", f"in {cwd}", shlex.join(hide.words(argv))]
    files = {
        "launch.txt": "\n".join(launch) + "\n",
        "environment.txt": "".join(f"{line}\n" for line in shown_environment(env, hide)),
    }
    config = _config(target, spec)
    if config is not None:
        try:
            with config.open("rb") as file:
                text = file.read(CONFIG_BYTES).decode("utf-8", "replace")
        except OSError as fault:
            notes.append(f"the config {config} cannot be read: {fault.strerror}")
        else:
            files[f"config-{config.name}"] = hide.text(text)
    written = [folder / name for name, text in files.items() if write_file(folder / name, text)]
    return tuple(str(path) for path in written)


def shown_environment(env: Mapping[str, str], hide: Redaction) -> list[str]:
    """``NAME=value``, sorted; the value is hidden if the name is that of a secret."""
    return [f"{name}={HIDDEN if is_secret_name(name) else hide.text(value)}" for name, value in sorted(env.items())]


def _launch(target: AttemptTarget, spec: RunSpec, notes: list[str]) -> tuple[tuple[str, ...], str, dict[str, str]]:
    """(argv, cwd, environment) from the launch order, or for an adopted attempt from its process."""
    order = read_order(Path(target.directory))
    if order is not None:
        return order.argv, order.cwd, order.env
    root = Path(f"/proc/{target.trainer.pid}")
    try:
        argv = tuple(_split(root / "cmdline"))
        env = dict(entry.partition("=")[::2] for entry in _split(root / "environ"))
    except OSError as fault:
        notes.append(f"command line and environment of process {target.trainer.pid}: {fault.strerror}")
        return spec.command, spec.cwd, {}
    return argv, spec.cwd, env


def _split(path: Path) -> list[str]:
    return [part for part in path.read_bytes().decode("utf-8", "surrogateescape").split("\0") if part]


def _config(target: AttemptTarget, spec: RunSpec) -> Path | None:
    """The derived copy, or the user's own file if the launch used that."""
    if spec.config is None:
        return None
    derived = Path(target.directory, Path(spec.config).name)
    return derived if derived.is_file() else Path(spec.cwd, spec.config)
