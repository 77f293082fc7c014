"""Adopting the trainer of a run that is known: what the command line says differently now is taken over, or refused."""

import argparse
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...act.adopt.log_place import LogPlace
from ...act.launch.launching import read_start
from ...config.problem import ConfigError
from ...config.project import FILE_NAME
from ...config.shipped import load_presets, load_profiles
from ...config.spec import Overrides, settings_with, spec_for_command
from ...model.run import RunSpec
from ...store.atomic import write_atomically
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..runs.known_runs import here
from ..start.output_owner import require_own_output

OF_THE_RUN = {
    "output_dir": "output directory",
    "preset": "preset",
    "config": "config",
    "command": "command",
    "logs": "logs",
}
"""Field of a spec → its name for people."""


def take_over_options(run: RunDirectory, args: argparse.Namespace, place: LogPlace | None) -> tuple[str, ...]:
    """Write what is said differently into the run; sentences that tell each difference.

    ``place``: the log that was named. Nobody watches the run. Raises CliError (exit code 2) for a difference that
    cannot be taken over: another name, or any where a trainwatch.toml says what the run is.
    """
    known = run.load_spec()
    if args.name is not None and args.name != known.name:
        raise CliError(
            ExitCode.USAGE,
            f"run {run.id} has the name {known.name}, and --name {args.name} cannot change it: leave it out",
        )
    wanted = _wanted(run, known, args, place)
    differences = tuple(_differences(known, wanted))
    if not differences:
        return ()
    if known.project is not None:
        raise CliError(
            ExitCode.USAGE,
            f"run {run.id} is described by {known.project}, and the command line differs: {'; '.join(differences)}; "
            "change it there, then `trainwatch --headless`",
        )
    require_own_output(wanted)
    write_atomically(run.spec, msgspec.json.encode(wanted))
    return differences


def _wanted(run: RunDirectory, known: RunSpec, args: argparse.Namespace, place: LogPlace | None) -> RunSpec:
    cwd = Path(known.cwd)
    said = Overrides(interval_s=args.interval, max_restarts=args.max_restarts)
    try:
        spec = spec_for_command(
            tuple(args.command_after_dashes or known.command),
            identify=lambda _: known.id,
            created_wall=known.created_wall,
            cwd=cwd,
            presets=load_presets(cwd / FILE_NAME),
            profiles=load_profiles(cwd / FILE_NAME),
            overrides=msgspec.structs.replace(
                said,
                name=known.name,
                preset=args.preset or known.preset,
                config=str(here() / args.config) if args.config else known.config,
                output_dir=str(here() / args.output_dir),
            ),
        )
    except ConfigError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    return msgspec.structs.replace(
        known,
        command=spec.command,
        preset=spec.preset,
        config=spec.config,
        output_dir=known.output_dir if _same(known.output_dir, spec.output_dir) else spec.output_dir,
        logs=(*known.logs, *(log for log in _named(place) if log not in _read_already(run, known))),
        settings=settings_with(known.settings, said),
    )


def _same(a: str | None, b: str | None) -> bool:
    return a is not None and b is not None and os.path.realpath(a) == os.path.realpath(b)


def _named(place: LogPlace | None) -> Iterator[str]:
    if place is not None and place.log is not None:
        yield place.log


def _read_already(run: RunDirectory, known: RunSpec) -> set[str]:
    folders = sorted(run.attempts.iterdir(), reverse=True) if run.attempts.is_dir() else []
    start = next((s for s in map(read_start, folders) if s is not None), None)
    return {*known.logs, *([start.log] if start is not None and start.log else [])}


def _differences(known: RunSpec, wanted: RunSpec) -> Iterator[str]:
    for field, name in OF_THE_RUN.items():
        before, after = getattr(known, field), getattr(wanted, field)
        if before != after:
            yield f"{name} {_text(after)} (was {_text(before)})"
    for option, before, after in (
        ("--max-restarts", known.settings.restart.max_restarts, wanted.settings.restart.max_restarts),
        ("--interval", known.settings.watch.summary_s, wanted.settings.watch.summary_s),
    ):
        if before != after:
            yield f"{option} {after:g} (was {before:g})"


def _text(value: str | tuple[str, ...] | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else shlex.join(value) or "none"
