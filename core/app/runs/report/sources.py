"""The sources of a report: the run's journal, history and logs, and facts about this machine."""

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from trainwatch import __version__

from ....config.shipped import load_log_shapes
from ....judge.progress.log_progress import START, read_progress
from ....judge.text.shapes.shape_table import ShapeTable
from ....model.fact import CheckpointKnown, HealthChanged, JudgeSnapshot, PhaseChanged, ProgressMade
from ....model.progress import Outlook
from ....model.record import Record
from ....model.run import RunSpec
from ....model.situation import Situation
from ....model.story import RunStory
from ....model.summary import Summary
from ....model.text.edge import EDGE
from ....model.text.log_lines import LogLine
from ....sense.log.log_browser import FileLogBrowser
from ....store.journal import JournalTooNew, load_story, read_journal
from ....store.metrics.history import HistoryReader
from ....store.run_directory import RunDirectory, RunUnreadable
from ....views.report.report import LossCourse, MetricCourse, Report, ReportSources
from ....views.report.report_building import build_report
from ....views.report.short_report import short_report, summary
from ....views.state.troubles import frozen_text
from ...errors import CliError, ExitCode
from ...gpu_survey import survey
from ..supervisor_life import supervisor_life
from ..unwatched import as_found
from ..usage import usage_of

MANY = frozenset({"progress", "phase", "health", "checkpoint", "snapshot"})
"""Kinds of facts that a long run has by the thousand, which the story sums up."""
LOSS_POINTS = 400
"""The first and last loss are each the mean of a stretch, so that one outlier does not decide them."""
LOG_LINES = 400
"""Lines at the end of a log that are searched for the last traceback."""
PLAIN_LINES = 12
"""Lines that are shown if there is no traceback."""
TRACEBACK = "Traceback (most recent call last)"
TRACEBACK_LINES = 60


def report_of(run: RunDirectory) -> Report:
    """The report of a run. Raises CliError if a newer trainwatch wrote its journal."""
    try:
        return build_report(*gather(run))
    except JournalTooNew as error:
        raise CliError(ExitCode.FAILED, str(error)) from None


def summary_of(run: RunDirectory, since_wall: float | None = None) -> Summary:
    """The report in a few lines. ``since_wall``: when a person last looked, epoch seconds.

    Raises JournalTooNew, RunUnreadable, OSError.
    """
    return summary(EDGE.value(build_report(*gather(run, since_wall, of_machine=False), since_wall)))


def end_in_words(run: RunDirectory) -> str:
    """What a notice at the end of a run says beside its reason; empty if the run cannot be read."""
    try:
        return short_report(EDGE.value(build_report(*gather(run, of_machine=False))))
    except (JournalTooNew, RunUnreadable, OSError, ValueError):
        return ""


def gather(
    run: RunDirectory, since_wall: float | None = None, *, of_machine: bool = True
) -> tuple[Situation, ReportSources]:
    """Read all of it; no supervisor is needed. ``since_wall``: the loss is that of the time since then.

    ``of_machine``: facts about the machine, too, which takes seconds. Raises JournalTooNew, RunUnreadable.
    """
    spec = run.load_spec()
    story = load_story(run.journal)
    records = tuple(record for record in read_journal(run.journal, without=MANY) if _is_for_report(record))
    found = as_found(run, story)
    if found is not story:  # no supervisor saw its end: the time of the last record is all that is known
        story = msgspec.structs.replace(found, state_t=story.t)
    wall, life = time.time(), supervisor_life(run)
    now_t = max(story.t, wall - story.wall0) if story.run is not None else 0.0
    with HistoryReader(run.history) as history:
        latest = history.latest()
        progress = latest.progress
        end_t = max(story.t, progress.t if progress is not None else 0.0) + 1.0
        since_t = 0.0 if since_wall is None else max(0.0, since_wall - story.wall0)
        losses = history.series("progress.loss", since_t, end_t, LOSS_POINTS)
        metrics = tuple(_courses(history, end_t))
        usage = usage_of(history, story, latest.gpu, latest.host)
    now = Situation(
        story=story,
        gpu=latest.gpu,
        host=latest.host,
        process=latest.process,
        progress=progress.progress if progress is not None else None,
        progress_t=progress.t if progress is not None else 0.0,
        now_t=now_t,
        now_wall=wall,
        supervisor_alive=life.alive,
        frozen=frozen_text(life) if life.frozen else "",
        step_t=progress.step_t if progress is not None else None,
        outlook=progress.outlook if progress is not None and life.alive else Outlook(),
        health=spec.settings.health,
    )
    sources = ReportSources(
        spec=spec,
        records=records,
        loss=LossCourse(
            first=losses[0][2] if losses else None,
            last=losses[-1][2] if losses else None,
            lowest=min((p[1] for p in losses), default=None),
        ),
        metrics=metrics,
        usage=usage,
        machine=machine() if of_machine else {},
        log_ends={
            a.number: last_words(a.log) for a in story.attempts if a.log and a.how in {"crashed", "lost", "ended_early"}
        },
        log_steps=dict(_log_steps(spec, story, watched=now.supervisor_alive is True)),
    )
    return now, sources


def _is_for_report(record: Record) -> bool:
    """All but MANY, of which a journal may have lines of another form."""
    return not isinstance(record.fact, ProgressMade | PhaseChanged | HealthChanged | CheckpointKnown | JudgeSnapshot)


def _courses(history: HistoryReader, end_t: float) -> Iterator[MetricCourse]:
    for name in history.metrics():
        points = history.series(f"metric.{name}", 0.0, end_t, LOSS_POINTS)
        if points:
            yield MetricCourse(
                name=name,
                first=points[0][2],
                last=points[-1][2],
                lowest=min(low for _, low, _, _ in points),
                highest=max(high for _, _, _, high in points),
            )


def _log_steps(spec: RunSpec, story: RunStory, *, watched: bool) -> Iterator[tuple[int, int]]:
    """Attempt → the last step in its log, if the journal does not contain it."""
    for a in story.attempts:
        live = watched and a is story.attempts[-1]
        if a.log and a.last_step is None and not live:
            step = last_step(a.log, spec.settings.progress.shapes)
            if step is not None:
                yield a.number, step


def last_step(log: str, shapes: Sequence[str] = ()) -> int | None:
    """The last step that the end of a log shows; None if it shows none, or cannot be read."""
    try:
        lines = _log_end(log)
    except OSError:
        return None
    text = "".join(line.text if line.open else f"{line.text}\n" for line in lines)
    return read_progress(START, text, ShapeTable(load_log_shapes(), shapes)).progress.any_step


def _log_end(log: str) -> tuple[LogLine, ...]:
    """The last lines of a log. Raises OSError."""
    browser = FileLogBrowser()
    return browser.before(log, browser.size(log), LOG_LINES).lines


def machine() -> Mapping[str, str]:
    """Driver, kernel, WSL2 … as they are now; unknown values are left out."""
    gpus = survey()
    found = {
        "driver": f"{gpus.driver}, CUDA {gpus.cuda or '–'}" if gpus.driver else None,
        "GPUs now": ", ".join(f"{g.index}: {g.name}" for g in gpus.gpus if g.name),
        "kernel": f"{platform.system()} {platform.release()}",
        "WSL": wsl(platform.release(), os.environ),
        "system": _system(),
        "trainwatch": f"{__version__}, Python {sys.version.split()[0]}",
    }
    return {name: value for name, value in found.items() if value}


def wsl(release: str, environ: Mapping[str, str]) -> str | None:
    """The kernel's name tells WSL1 from WSL2; None outside Windows."""
    if "microsoft" not in release.lower():
        return None
    generation = "WSL2" if "wsl2" in release.lower() or "WSL_INTEROP" in environ else "WSL1"
    return f"{generation}, distribution {environ.get('WSL_DISTRO_NAME', 'unknown')}"


def last_words(log: str) -> tuple[str, ...]:
    """The last traceback of a log and what follows it, else its last lines; none if it cannot be read."""
    try:
        lines = [line.text for line in _log_end(log)]
    except OSError:
        return ()
    while lines and not lines[-1].strip():
        lines.pop()
    starts = [number for number, line in enumerate(lines) if TRACEBACK in line]
    if not starts:
        return tuple(lines[-PLAIN_LINES:])
    first = lines[starts[-1]]  # a progress bar may stand before it
    shown = [first[first.index(TRACEBACK) :], *lines[starts[-1] + 1 :]]
    if len(shown) <= TRACEBACK_LINES:
        return tuple(shown)
    half = TRACEBACK_LINES // 2
    return (*shown[:half], f"… {len(shown) - 2 * half} lines …", *shown[-half:])


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME") if Path("/etc").is_dir() else None
    except OSError:
        return None
