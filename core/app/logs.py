"""Read any log: why a run failed, and its progress. Uses the patterns of the trainwatch.toml of the working folder."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..config.location import find_project
from ..config.shipped import load_failures, load_log_shapes
from ..judge.failure.catalogue import Circumstances, CompiledCatalogue
from ..judge.progress import MetricReader, progress_of
from ..judge.recovery.ending import diagnosis_of
from ..judge.text.shapes import ShapeTable
from ..model.progress import Progress
from ..model.settings import Settings
from ..model.shipped import Diagnosis

if TYPE_CHECKING:
    from .runs.ended_attempt import EndedAttempt

Warn = Callable[[str], None]


def diagnose_log(
    blocks: Iterable[str],
    exit_code: int | None,
    warn: Warn,
    *,
    end: "EndedAttempt | None" = None,
    facts: Mapping[str, Any] | None = None,
    kernel: str = "",
) -> Diagnosis:
    """Why a run failed. ``blocks``: its log, decoded. ``exit_code`` of the trainer: negative or 128+N for a signal.

    ``end``: what a run knows of its end; ``facts``: fields of Circumstances that were given; ``kernel``: kernel lines.
    """
    project = settings_here(warn)
    about = msgspec.structs.replace(end.about if end is not None else Circumstances(), **(facts or {}))
    lines = f"{end.kernel if end is not None else ''}{kernel}"
    return diagnosis_of(
        blocks, CompiledCatalogue(load_failures(), _shapes(project), project.diagnose.patterns), exit_code, about, lines
    )


class LogMetrics(NamedTuple):
    """``values``: the newest of each name, None = NaN or infinite. ``left_out``: names beyond the bound."""

    values: Mapping[str, float | None]
    left_out: int


def progress_in_log(blocks: Iterable[str], warn: Warn) -> Progress:
    """The progress after the last line."""
    return progress_of(blocks, _shapes(settings_here(warn)))


def metrics_in_log(blocks: Iterable[str], warn: Warn) -> tuple[Progress, LogMetrics]:
    """The progress after the last line, and the numbers that the trainer prints by name."""
    reader = MetricReader()
    progress = progress_of(blocks, _shapes(settings_here(warn)), reader.read)
    return progress, LogMetrics(reader.values, reader.left_out)


def _shapes(settings: Settings) -> ShapeTable:
    return ShapeTable(load_log_shapes(), settings.progress.shapes)


def settings_here(warn: Warn) -> Settings:
    """Settings of the trainwatch.toml here or above; without one the defaults.

    Settings that have problems are left out with a warning: a log can be read without them.
    """
    try:
        path = find_project(Path.cwd())
    except FileNotFoundError:  # the working folder was deleted; the log may be elsewhere
        return Settings()
    if path is None:
        return Settings()
    from ..config.document import ConfigError
    from ..config.project import load_project

    try:
        return load_project(path).settings
    except ConfigError as error:
        warn(f"{error.problems[0]} (its patterns are not used)")
        return Settings()
