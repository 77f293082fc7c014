"""Adopting the trainer of a known run again: options that differ now are stored in the run, or refused."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...act.adopt.log_place import LogPlace
from ...act.launch.attempt_records import read_start
from ...config.project import FILE_NAME
from ...config.spec import Overrides, settings_with, spec_for_command
from ...model.run import RunSpec
from ...model.text.suggestion import typed
from ...source.trainer_source import source_facts
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode, config_errors
from ..plan.definitions import read_definitions
from ..runs.known_runs import here
from ..runs.output_owner import require_own_output

OF_THE_RUN = {
    "output_dir": "output directory",
    "preset": "preset",
    "config": "config",
    "command": "command",
    "logs": "logs",
    "save_signal": "--save-signal",
    "save_file": "--save-file",
}
"""Field of a spec → its name for people."""


def take_over_options(
    run: RunDirectory, options: Overrides, command: tuple[str, ...], place: LogPlace | None
) -> tuple[str, ...]:
    """Store the options that differ in the run; returns a sentence for each difference.

    ``place``: the log that was named. No supervisor holds the run. Raises CliError (exit code 2) for a difference that
    cannot be stored: another name, or any if a trainwatch.toml describes the run.
    """
    known = run.load_spec()
    if options.name is not None and options.name != known.name:
        raise CliError(
            ExitCode.USAGE,
            f"run {run.id} has the name {known.name}, and --name {options.name} cannot change it: leave it out",
        )
    wanted = _wanted(run, known, options, command, place)
    differences = tuple(_differences(known, wanted))
    if not differences:
        return ()
    if known.project is not None:
        raise CliError(
            ExitCode.USAGE,
            f"run {run.id} is described by {known.project}, and the command line differs: {'; '.join(differences)}; "
            f"change it there, then `{typed('--headless', '--run', known.name)}`",
        )
    require_own_output(wanted)
    run.save_spec(wanted)
    return differences


def _wanted(
    run: RunDirectory, known: RunSpec, options: Overrides, command: tuple[str, ...], place: LogPlace | None
) -> RunSpec:
    cwd = Path(known.cwd)
    definitions = read_definitions(cwd / FILE_NAME)
    with config_errors():
        spec = spec_for_command(
            command or known.command,
            identify=lambda _: known.id,
            created_wall=known.created_wall,
            cwd=cwd,
            presets=definitions.presets,
            look=source_facts,
            profiles=definitions.profiles,
            overrides=msgspec.structs.replace(
                options,
                name=known.name,
                preset=options.preset or known.preset,
                config=str(here() / options.config) if options.config else known.config,
                output_dir=known.output_dir if options.output_dir is None else str(here() / options.output_dir),
            ),
        )
    return msgspec.structs.replace(
        known,
        command=spec.command,
        preset=spec.preset,
        config=spec.config,
        output_dir=known.output_dir if _same(known.output_dir, spec.output_dir) else spec.output_dir,
        logs=(*known.logs, *(log for log in _named(place) if log not in _read_already(run, known))),
        save_signal=spec.save_signal or known.save_signal,
        save_file=spec.save_file or known.save_file,
        settings=settings_with(known.settings, options),
    )


def _same(a: str | None, b: str | None) -> bool:
    return a == b or (a is not None and b is not None and os.path.realpath(a) == os.path.realpath(b))


def _named(place: LogPlace | None) -> Iterator[str]:
    if place is not None and place.log is not None:
        yield place.log


def _read_already(run: RunDirectory, known: RunSpec) -> set[str]:
    start = next((s for s in map(read_start, run.attempt_folders()) if s is not None), None)
    return {*known.logs, *([start.log] if start is not None and start.log else [])}


def _differences(known: RunSpec, wanted: RunSpec) -> Iterator[str]:
    for field, name in OF_THE_RUN.items():
        before, after = getattr(known, field), getattr(wanted, field)
        if before != after:
            yield f"{name} {_text(after)} (was {_text(before)})"
    for option, before, after in (
        ("--act", known.settings.restart.act, wanted.settings.restart.act),
        ("--max-restarts", known.settings.restart.max_restarts, wanted.settings.restart.max_restarts),
        ("--end-by", known.settings.end.end_by or "none", wanted.settings.end.end_by or "none"),
        ("--at-finish", _text(known.settings.end.at_finish), _text(wanted.settings.end.at_finish)),
        ("--at-give-up", _text(known.settings.end.at_give_up), _text(wanted.settings.end.at_give_up)),
        ("--progress-shape", _text(known.settings.progress.shapes), _text(wanted.settings.progress.shapes)),
        ("--interval", known.settings.watch.summary_s, wanted.settings.watch.summary_s),
    ):
        if before != after:
            yield f"{option} {_value(after)} (was {_value(before)})"


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _text(value: str | tuple[str, ...] | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else shlex.join(value) or "none"
