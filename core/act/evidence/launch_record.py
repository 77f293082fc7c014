"""What an attempt was started with, for an incident's folder: command line, environment, config; secrets taken out."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from ...model.ports import AttemptTarget
from ...model.redact import HIDDEN, Redaction, is_secret_name
from ...model.run import RunSpec
from ..launch.launching import read_order
from .stack_probe import keep

CONFIG_BYTES = 1 << 20
"""A config is text of some kilobytes; more than this is something else."""


def keep_papers(target: AttemptTarget, spec: RunSpec, folder: Path, notes: list[str]) -> tuple[str, ...]:
    """Write ``launch.txt``, ``environment.txt`` and a copy of the config in use; returns their paths."""
    argv, cwd, env = _launch(target, spec, notes)
    hide = Redaction({**env, **spec.env})
    said = [f"attempt {target.number}", f"in {cwd}", shlex.join(hide.words(argv))]
    papers = {
        "launch.txt": "\n".join(said) + "\n",
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
            papers[f"config-{config.name}"] = hide.text(text)
    kept = [folder / name for name, text in papers.items() if keep(folder / name, text)]
    return tuple(str(path) for path in kept)


def shown_environment(env: Mapping[str, str], hide: Redaction) -> list[str]:
    """``NAME=value``, sorted; the value withheld where the name says that it is a secret."""
    return [f"{name}={HIDDEN if is_secret_name(name) else hide.text(value)}" for name, value in sorted(env.items())]


def _launch(target: AttemptTarget, spec: RunSpec, notes: list[str]) -> tuple[tuple[str, ...], str, dict[str, str]]:
    """(argv, cwd, environment): by the order that was given, else (adopted) by what the process itself shows."""
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
    """The derived copy, else the user's own file where the launch used that."""
    if spec.config is None:
        return None
    derived = Path(target.directory, Path(spec.config).name)
    return derived if derived.is_file() else Path(spec.cwd, spec.config)
