"""What a run measured, for other programs: the Prometheus page, a trace as a file, and a replay of a trace."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from trainwatch import __version__

from ..model.json_line import encode_line
from ..model.observation import Base, GpuSample, HostSample, ProcessSample, Start
from ..model.redact import EDGE
from ..model.run import TERMINAL_STATES
from ..model.settings import Settings
from ..model.text import did_you_mean
from ..store.history_reader import HistoryReader
from ..store.lock import is_held
from ..store.run_directory import RunDirectory
from ..store.run_lookup import unreadable_runs
from ..store.trace import TraceReading, trace_lines
from ..views.charts import STEPS
from ..views.metrics import Sample, exposition
from ..views.run_metrics import BUILD, METRICS, UNREADABLE, RunNow, run_samples
from .errors import CliError, ExitCode, ends_verb
from .runs.known_runs import all_runs, example_verb, find_run, here, home
from .runs.run_status import read_run
from .runs.waiting import turns


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise what prevents that a file is written as CliError; one that is there already is never overwritten."""
    try:
        yield
    except FileExistsError:
        raise CliError(ExitCode.USAGE, f"{target}: already exists; choose another name") from None
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED
        raise CliError(code, f"{target}: {error.strerror or error}") from None


# The page for Prometheus: the newest values of all runs of this user on this machine.

ENDED_S = 86_400.0
"""A run that is over stays on the page for a day: long enough for alerts and for a look in the morning."""
FRESH_S = 60.0
"""An older sample is not of now. Sensors read every few seconds."""


def prometheus_page(warn: Callable[[str], None]) -> str:
    """The text of the page. ``warn`` is called for each run that cannot be read; their number is on the page."""
    problems = list(unreadable_runs(home()))
    runs = []
    for run in all_runs():
        try:
            now = _run_now(run)
        except Exception as error:  # one damaged run must not hide the others
            problems.append(f"{run.id}: {error}")
            continue
        if now is not None:
            runs.append(now)
    for problem in problems:
        warn(problem)
    own = [Sample(BUILD, 1, {"version": __version__}), Sample(UNREADABLE, len(problems), {})]
    return EDGE.text(exposition(METRICS, [*own, *(sample for now in runs for sample in run_samples(now))]))


def _run_now(run: RunDirectory) -> RunNow | None:
    """The newest values of a run. None: it is over for longer than ENDED_S, or is an ended example of demo or drill."""
    watched, wall = is_held(run.lock), time.time()
    if not watched and example_verb(run.load_spec()) is not None:
        return None
    status, said, _ = read_run(run)
    if not watched and status["state"] in TERMINAL_STATES and wall - run.journal.stat().st_mtime > ENDED_S:
        return None
    with HistoryReader(run.history) as history:
        latest, highest = history.latest(), history.highest(STEPS)

    def fresh(sample: Any) -> Any:
        """A sample of now; None if it is older, or if nobody watches."""
        young = isinstance(sample, Base) and abs(wall - status["wall0"] - sample.t) <= FRESH_S
        return sample if watched and young else None

    preset = status["preset"]
    return RunNow(
        said=said,
        status=status,
        wall=wall,
        preset=preset["name"] if preset is not None else "",
        highest_step=highest,
        gpu=fresh(latest.gpu),
        host=fresh(latest.host),
        process=fresh(latest.process),
        metrics=latest.metrics,
    )


# Traces: a run's recorded observations as a file, and their replay through the judge.

WRITTEN_WITHIN_S = 3.0
"""A supervisor that does not answer is not waited for."""


def export_trace(name: str | None, target: Path, warn: Any) -> TraceReading:
    """Copy a run's trace without secrets. Never overwrites. Returns what was read of it. Raises CliError."""
    run = find_run(name, warn)
    with contextlib.suppress(OSError):  # what is written is exported
        if is_held(run.lock):  # its supervisor writes the observations that are not in the file yet
            run.trace_wanted.touch(mode=0o600)
            for _ in turns(WRITTEN_WITHIN_S, 0.05):
                if not (run.trace_wanted.exists() and is_held(run.lock)):
                    break
            run.trace_wanted.unlink(missing_ok=True)
    if not run.trace.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{run.id} has recorded nothing yet")
    with writing(target), target.open("xb") as copy:
        reading = TraceReading(trace_lines(run.trace))
        for seen in reading:
            if isinstance(seen, Start):
                seen = msgspec.structs.replace(seen, changes=tuple(c for c in seen.changes if c.where != "env"))  # noqa: PLW2901
            # samples hold numbers only
            copy.write(
                encode_line(seen if isinstance(seen, GpuSample | HostSample | ProcessSample) else EDGE.value(seen))
            )
    return reading


def replay_trace(name: str, lines: Iterable[bytes], overrides: list[str]) -> dict[str, Any]:
    """What the judge would have detected and decided (the object of ``replay --json``).

    ``name``: of the trace, for messages. ``overrides``: KEY=VALUE words. Raises CliError.
    """
    from ..config.shipped import load_failures, load_log_shapes
    from ..replay import TraceError, replay

    with ends_verb(ExitCode.USAGE, ValueError, place="--set "), ends_verb(ExitCode.USAGE, TraceError, place=f"{name}:"):
        return replay(lines, shapes=load_log_shapes(), settings=_settings(overrides), catalogue=load_failures())


def _settings(words: list[str]) -> Settings:
    if not words:  # reading a TOML value loads more than a short replay
        return Settings()
    from ..config.location import FILE_NAME
    from ..config.project import with_overrides
    from ..config.shipped import load_profiles

    with ends_verb(ExitCode.USAGE, ValueError):
        settings = with_overrides(Settings(), words)
    profile = settings.profiles.use
    known = load_profiles(here() / FILE_NAME) if profile is not None else {}
    if profile is not None and profile not in known:
        raise CliError(ExitCode.USAGE, f"--set profiles.use={profile}: unknown profile{did_you_mean(profile, known)}")
    return settings
