"""Traces: export a run's recorded observations, and replay them through the judge."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..model.edge import EDGE
from ..model.observation import GpuSample, HostSample, Observation, ProcessSample, Start
from ..model.settings import Settings
from .errors import CliError, ExitCode, did_you_mean

if TYPE_CHECKING:
    from ..store.run_directory import RunDirectory

WRITTEN_WITHIN_S = 3.0
"""A supervisor that does not answer is not waited for."""
SAMPLES = GpuSample | HostSample | ProcessSample
"""Observations of numbers only."""


class Exported(NamedTuple):
    """What was written. ``skipped``: lines that could not be read, and ``problem`` with the first of them."""

    path: Path
    skipped: int
    problem: str | None


def export_trace(name: str | None, target: Path, warn: Any) -> Exported:
    """Copy a run's trace without secrets. Never overwrites. Raises CliError."""
    from ..model.json_line import encode_line
    from ..store.trace import TraceReading, run_trace_lines
    from .runs.known_runs import find_run_to_read

    run = find_run_to_read(name, warn)
    _have_it_written(run)
    if not run.trace.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{run.id} has recorded nothing yet")
    if target.exists():
        raise CliError(ExitCode.USAGE, f"{target}: already exists; choose another name")
    try:
        with target.open("xb") as copy:
            reading = TraceReading(run_trace_lines(run))
            for seen in reading:
                copy.write(encode_line(_shareable(seen)))
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED
        raise CliError(code, f"{target}: {error.strerror or error}") from None
    return Exported(target, reading.skipped, reading.problem)


def _have_it_written(run: "RunDirectory") -> None:
    """Ask a live supervisor for the observations that are not in the file yet, and wait for them."""
    from ..store.lock import is_held

    until = time.monotonic() + WRITTEN_WITHIN_S
    try:
        if is_held(run.lock):
            run.trace_wanted.touch(mode=0o600)
            while run.trace_wanted.exists() and is_held(run.lock) and time.monotonic() < until:
                time.sleep(0.05)
            run.trace_wanted.unlink(missing_ok=True)
    except OSError:
        return  # what is written is exported


def replay_trace(name: str, lines: Iterable[bytes], overrides: list[str]) -> dict[str, Any]:
    """What the judge would have detected and decided (the object of ``replay --json``).

    ``name``: of the trace, for messages. ``overrides``: KEY=VALUE words. Raises CliError.
    """
    from ..config.shipped import load_failures, load_log_shapes
    from ..replay import TraceError, replay

    try:
        return replay(lines, shapes=load_log_shapes(), settings=_settings(overrides), catalogue=load_failures())
    except TraceError as error:
        raise CliError(ExitCode.USAGE, f"{name}:{error}") from None
    except ValueError as error:
        raise CliError(ExitCode.USAGE, f"--set {error}") from None


def _settings(words: list[str]) -> Settings:
    if not words:  # reading a TOML value loads more than a short replay
        return Settings()
    from ..config.location import FILE_NAME
    from ..config.project import with_overrides
    from ..config.shipped import load_profiles
    from .runs.known_runs import here

    try:
        settings = with_overrides(Settings(), words)
    except ValueError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    profile = settings.profiles.use
    known = load_profiles(here() / FILE_NAME) if profile is not None else {}
    if profile is not None and profile not in known:
        raise CliError(ExitCode.USAGE, f"--set profiles.use={profile}: unknown profile{did_you_mean(profile, known)}")
    return settings


def _shareable(seen: Observation) -> Observation:
    """The same without secrets."""
    if isinstance(seen, SAMPLES):
        return seen
    if isinstance(seen, Start):
        seen = msgspec.structs.replace(seen, changes=tuple(c for c in seen.changes if c.where != "env"))
    shown: Observation = EDGE.value(seen)
    return shown
