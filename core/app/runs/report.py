"""The parts of a report that are read from files: charts, ends of logs, the machine."""

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from trainwatch import __version__

from ...model.redact import EDGE
from ...model.story import Situation, Summary
from ...store.history_reader import HistoryReader
from ...store.journal import JournalTooNew, fold_journal
from ...store.run_directory import RunDirectory
from ...views.charts import STEPS, attempt_spans, charts_svg
from ...views.report import LossCourse, MetricCourse, ReportSources
from ...views.report_building import build_report, short_report, summary, with_machine
from ..errors import ExitCode, ends_verb
from ..gpu_survey import GpuSurvey, surveying
from .run_usage import usage_of
from .supervisor_life import log_end, progress_in, read_situation, story_now

if TYPE_CHECKING:
    from ...views.report import Report


# The charts of a report: loss, pace, and the run's GPUs, over the time of the run, as one SVG drawing.

POINTS = 600
MOST_GPUS = 8
"""A report of a machine with more GPUs shows the first ones."""


def charts_of(run: RunDirectory) -> str:
    """SVG text; "" without values. Raises JournalTooNew."""
    story = story_now(run)
    with HistoryReader(run.history) as history:
        latest = history.latest()
        end_t = max(story.t, latest.progress.t if latest.progress is not None else 0.0) + 1.0
        others = {
            reading.index for reading in (latest.gpu.gpus if latest.gpu is not None else ()) if reading.own is False
        }
        own = [gpu for gpu in history.gpus() if gpu not in others][:MOST_GPUS]
        gpus = [f"gpu{gpu}.{column}" for gpu in own for column in ("util", "vram")]
        metrics = ["progress.loss", "progress.sec_per_step", *gpus]
        points = history.charts((*metrics, STEPS), 0.0, end_t, POINTS)
    incidents = [i.t for i in story.incidents if i.severity != "info" and i.t <= end_t]
    return charts_svg(points, attempt_spans(story, end_t), incidents, end_t)


# What the ends of logs say: the last words of a trainer, and its last step if the journal does not have it.

PLAIN_LINES = 12
"""Lines that are shown if there is no traceback."""
TRACEBACK = "Traceback (most recent call last)"
TRACEBACK_LINES = 60


def last_words(log: str, *, plain: bool = True) -> tuple[str, ...]:
    """The last traceback of a log and what follows it, else its last lines if ``plain``; none if it cannot be read."""
    lines = [line.text for line in log_end(log)]
    while lines and not lines[-1].strip():
        lines.pop()
    starts = [number for number, line in enumerate(lines) if TRACEBACK in line]
    if not starts:
        return tuple(lines[-PLAIN_LINES:]) if plain else ()
    first = lines[starts[-1]]  # a progress bar may stand before it
    shown = [first[first.index(TRACEBACK) :], *lines[starts[-1] + 1 :]]
    if len(shown) <= TRACEBACK_LINES:
        return tuple(shown)
    half = TRACEBACK_LINES // 2
    return (*shown[:half], f"… {len(shown) - 2 * half} lines …", *shown[-half:])


# Facts about this machine that a bug report needs: driver, kernel, WSL …, as they are now.


def machine_facts(gpus: GpuSurvey) -> Mapping[str, str]:
    """By their names, without unknown ones."""
    system = None
    with suppress(OSError):
        system = platform.freedesktop_os_release().get("PRETTY_NAME")
    found = {
        "driver": f"{gpus.driver}, CUDA {gpus.cuda or '–'}" if gpus.driver else None,
        "GPUs now": ", ".join(f"{g.index}: {g.name}" for g in gpus.gpus if g.name),
        "kernel": f"{platform.system()} {platform.release()}",
        "WSL": wsl(platform.release(), os.environ),
        "system": system,
        "trainwatch": f"{__version__}, Python {sys.version.split()[0]}",
    }
    return {name: value for name, value in found.items() if value}


def wsl(release: str, environ: Mapping[str, str]) -> str | None:
    """The kernel's name tells WSL1 from WSL2; None outside Windows."""
    if "microsoft" not in release.lower():
        return None
    generation = "WSL2" if "wsl2" in release.lower() or "WSL_INTEROP" in environ else "WSL1"
    return f"{generation}, distribution {environ.get('WSL_DISTRO_NAME', 'unknown')}"


# The sources of a report: the run's journal, history and logs.

LOSS_POINTS = 400
"""The first and last loss are each the mean of a stretch, so that one outlier does not decide them."""
EVIDENCED = frozenset({"crashed", "lost", "ended_early"})
"""Ends of an attempt that its last words explain."""


def short_report_of(run: RunDirectory) -> str:
    """The report in a few lines. Raises CliError if a newer trainwatch wrote its journal."""
    with ends_verb(ExitCode.FAILED, JournalTooNew):
        return short_report(EDGE.value(build_report(*gather(run))))


def summary_of(run: RunDirectory, since_wall: float | None = None) -> Summary:
    """The report in a few lines. ``since_wall``: when a person last looked, epoch seconds.

    Raises JournalTooNew, RunUnreadable, OSError.
    """
    return summary(EDGE.value(build_report(*gather(run, since_wall), since_wall)))


def gather(
    run: RunDirectory, since_wall: float | None = None, *, log_ends: bool = False
) -> tuple[Situation, ReportSources]:
    """Read all but facts about the machine; no supervisor is needed. ``since_wall``: the loss is of the time since.

    ``log_ends``: the last words of attempts that failed, and the last traceback of those that finished, too.
    Raises JournalTooNew, RunUnreadable.
    """
    spec = run.load_spec()
    stored = fold_journal(run.journal)
    now, _ = read_situation(run, stored.story, ask=True, disks=True)
    story = now.story
    with HistoryReader(run.history) as history:
        latest = history.latest()
        end_t = max(story.t, latest.progress.t if latest.progress is not None else 0.0) + 1.0
        since_t = 0.0 if since_wall is None else max(0.0, since_wall - story.wall0)
        losses = history.series("progress.loss", since_t, end_t, LOSS_POINTS)
        metrics = tuple(metric_courses(history, end_t, {} if latest.metrics is None else latest.metrics.values))
        usage = usage_of(history, story, latest.gpu, latest.host)
    # The last step in the log of each attempt of which the journal does not contain it.
    over = story.attempts[:-1] if now.supervisor_alive else story.attempts
    steps = [
        (a.number, progress_in(a.log, spec.settings.progress.shapes, resumed=a.resume_from is not None).any_step)
        for a in over
        if a.log and a.last_step is None
    ]
    told = story.attempts if log_ends else ()
    ended = [a for a in told if a.how in {*EVIDENCED, "finished"}]
    ends = [(a.number, last_words(a.log, plain=a.how in EVIDENCED)) for a in ended if a.log]
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
        log_ends={number: words for number, words in ends if words},
        log_steps={number: step for number, step in steps if step is not None},
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


# The whole report of a run, with facts about this machine: the driver is asked while the rest is loaded and read.


def report_of(run: RunDirectory) -> "Report":
    """The report of a run. Raises CliError if a newer trainwatch wrote its journal."""
    with surveying() as gpus_now, ends_verb(ExitCode.FAILED, JournalTooNew):
        now, sources = gather(run, log_ends=True)
        return with_machine(build_report(now, sources), machine_facts(gpus_now()), sources.spec)
