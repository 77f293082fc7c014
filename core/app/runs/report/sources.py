"""The sources of a report: the run's journal, history and logs."""

import time
from collections.abc import Iterator, Mapping

import msgspec

from ....model.progress import Outlook
from ....model.run import RunSpec
from ....model.situation import Situation
from ....model.story import RunStory
from ....model.summary import Summary
from ....model.text.edge import EDGE
from ....store.journal import JournalTooNew, fold_journal
from ....store.metrics.history import HistoryReader
from ....store.run_directory import RunDirectory, RunUnreadable
from ....views.report.report import LossCourse, MetricCourse, ReportSources
from ....views.report.report_building import build_report
from ....views.report.short_report import short_report, summary
from ....views.state.troubles import frozen_text
from ...errors import CliError, ExitCode
from ..supervisor_life import supervisor_life
from ..unwatched import as_found
from ..usage import usage_of
from .log_ends import last_step, last_words

LOSS_POINTS = 400
"""The first and last loss are each the mean of a stretch, so that one outlier does not decide them."""
EVIDENCED = frozenset({"crashed", "lost", "ended_early"})
"""Ends of an attempt that its last words explain."""


def short_report_of(run: RunDirectory) -> str:
    """The report in a few lines. Raises CliError if a newer trainwatch wrote its journal."""
    try:
        return short_report(EDGE.value(build_report(*gather(run))))
    except JournalTooNew as error:
        raise CliError(ExitCode.FAILED, str(error)) from None


def summary_of(run: RunDirectory, since_wall: float | None = None) -> Summary:
    """The report in a few lines. ``since_wall``: when a person last looked, epoch seconds.

    Raises JournalTooNew, RunUnreadable, OSError.
    """
    return summary(EDGE.value(build_report(*gather(run, since_wall), since_wall)))


def end_in_words(run: RunDirectory) -> str:
    """What a notice at the end of a run says beside its reason; empty if the run cannot be read."""
    try:
        return short_report(EDGE.value(build_report(*gather(run))))
    except (JournalTooNew, RunUnreadable, OSError, ValueError):
        return ""


def gather(
    run: RunDirectory, since_wall: float | None = None, *, log_ends: bool = False
) -> tuple[Situation, ReportSources]:
    """Read all but facts about the machine; no supervisor is needed. ``since_wall``: the loss is of the time since.

    ``log_ends``: the last words of attempts that failed, too.
    Raises JournalTooNew, RunUnreadable.
    """
    spec = run.load_spec()
    stored = fold_journal(run.journal)
    story = stored.story
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
        metrics = tuple(metric_courses(history, end_t, {} if latest.metrics is None else latest.metrics.values))
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
        particulars=stored.particulars(),
        loss=LossCourse(
            first=losses[0][2] if losses else None,
            last=losses[-1][2] if losses else None,
            lowest=min((p[1] for p in losses), default=None),
        ),
        metrics=metrics,
        usage=usage,
        log_ends=dict(_last_words(story)) if log_ends else {},
        log_steps=dict(_log_steps(spec, story, watched=now.supervisor_alive is True)),
    )
    return now, sources


def metric_courses(history: HistoryReader, end_t: float, newest: Mapping[str, float]) -> Iterator[MetricCourse]:
    """``newest``: the last value of each name; the points of the history are means of a second or more."""
    for name in history.metrics():
        points = history.series(f"metric.{name}", 0.0, end_t, LOSS_POINTS)
        if points:
            yield MetricCourse(
                name=name,
                first=points[0][2],
                last=newest.get(name, points[-1][2]),
                lowest=min(low for _, low, _, _ in points),
                highest=max(high for _, _, _, high in points),
            )


def _last_words(story: RunStory) -> Iterator[tuple[int, tuple[str, ...]]]:
    for a in story.attempts:
        if a.log and a.how in EVIDENCED:
            yield a.number, last_words(a.log)


def _log_steps(spec: RunSpec, story: RunStory, *, watched: bool) -> Iterator[tuple[int, int]]:
    """Attempt → the last step in its log, if the journal does not contain it."""
    for a in story.attempts:
        live = watched and a is story.attempts[-1]
        if a.log and a.last_step is None and not live:
            step = last_step(a.log, spec.settings.progress.shapes, resumed=a.resume_from is not None)
            if step is not None:
                yield a.number, step
