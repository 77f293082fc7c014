"""Read any log: why a run failed, and its progress. Uses the patterns of the trainwatch.toml of the working folder."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..config.location import find_project
from ..config.shipped import FILE_NAME, load_failures, load_log_shapes, read_patterns, text_with, with_learned
from ..judge.failure.catalogue import CompiledCatalogue
from ..judge.failure.circumstances import Circumstances, last_line, pattern_of
from ..judge.progress import MetricReader, progress_of
from ..judge.recovery.ending import diagnosis_of
from ..judge.text.shapes import ShapeTable
from ..model.progress import Progress
from ..model.settings import Settings
from ..model.shipped import Diagnosis
from ..store.home import write_atomically

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
    folder, project = project_here(warn)
    own = with_learned(project.diagnose.patterns, folder if end is None else end.folder)
    about = msgspec.structs.replace(end.about if end is not None else Circumstances(), **(facts or {}))
    lines = f"{end.kernel if end is not None else ''}{kernel}"
    return diagnosis_of(blocks, CompiledCatalogue(load_failures(), _shapes(project), own), exit_code, about, lines)


def teach(failure: str, found: Diagnosis, tail: str, folder: Path) -> tuple[Path, str]:
    """Write a pattern of the line that ended the log into the folder's file; return the file and the pattern.

    It is the cause of ``found``, or the last line of ``tail`` if nothing is known.
    Raises ValueError (one line) for an unknown class, a line without words, or a file that is damaged.
    """
    from ..config.bounds import failure_patterns

    cause = None if found.failure == "unknown" else found.cause
    line = last_line(tail) if cause is None else cause.text
    pattern = pattern_of(line)
    if not line:
        raise ValueError("the log has no line to learn from")
    if (wrong := failure_patterns({failure: (pattern,)})) is not None:
        raise ValueError(f"--teach {failure}: {wrong}")
    path = folder / FILE_NAME
    known = read_patterns(path) if path.exists() else {}
    write_atomically(path, text_with(known, failure, pattern).encode(), mode=0o644)
    return path, pattern


class LogMetrics(NamedTuple):
    """``values``: the newest of each name, None = NaN or infinite. ``left_out``: names beyond the bound."""

    values: Mapping[str, float | None]
    left_out: int


def progress_in_log(blocks: Iterable[str], warn: Warn) -> Progress:
    """The progress after the last line."""
    return progress_of(blocks, _shapes(project_here(warn)[1]))


def metrics_in_log(blocks: Iterable[str], warn: Warn) -> tuple[Progress, LogMetrics]:
    """The progress after the last line, and the numbers that the trainer prints by name."""
    shapes = _shapes(project_here(warn)[1])
    reader = MetricReader(shapes)

    def passed() -> Iterator[str]:
        for block in blocks:
            reader.read(block)
            yield block

    progress = progress_of(passed(), shapes)
    reader.read("\n")
    return progress, LogMetrics(reader.values, reader.left_out)


def _shapes(settings: Settings) -> ShapeTable:
    return ShapeTable(load_log_shapes(), settings.progress.shapes)


def project_here(warn: Warn) -> tuple[Path, Settings]:
    """Folder and settings of the trainwatch.toml here or above; without one the working folder and defaults.

    Settings that have problems are left out with a warning: a log can be read without them.
    """
    try:
        path = find_project(Path.cwd())
    except FileNotFoundError:  # the working folder was deleted; the log may be elsewhere
        return Path(), Settings()
    if path is None:
        return Path.cwd(), Settings()
    from ..config.document import ConfigError
    from ..config.project import load_project

    try:
        return path.parent, load_project(path).settings
    except ConfigError as error:
        warn(f"{error.problems[0]} (its patterns are not used)")
        return path.parent, Settings()
