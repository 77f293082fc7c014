"""All series of a run's history as CSV, JSON lines or Parquet. One series is in memory at a time."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from ...model.text.edge import EDGE
from ..errors import CliError, ExitCode

if TYPE_CHECKING:
    from ...store.run_directory import RunDirectory
    from ...views.charts.chart_files import ExportRow

Format = Literal["csv", "jsonl", "parquet"]
BATCH = 10_000
"""Rows that are written at once."""
PARQUET_EXTRA = "trainwatch-tui[parquet]"


def export_series(name: str | None, form: Format, out: IO[bytes] | Path, warn: Callable[[str], None]) -> int:
    """Write every series of a run. Returns the number of rows; never overwrites a file. Raises CliError.

    ``out``: an open binary stream, or the path of a new file, which is removed if it cannot be written whole.
    """
    from ..runs.known_runs import find_run_to_read

    write = _writer(form)
    run = find_run_to_read(name, warn)
    rows = _rows(run)
    first = next(rows, None)
    if first is None:
        raise CliError(ExitCode.NOT_FOUND, _nothing(run))
    if not isinstance(out, Path):
        return write(out, _after(first, rows))
    try:
        with out.open("xb") as file:
            try:
                return write(file, _after(first, rows))
            except BaseException:
                with contextlib.suppress(OSError):
                    out.unlink()
                raise
    except FileExistsError:
        raise CliError(ExitCode.USAGE, f"{out}: already exists; choose another name") from None
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED
        raise CliError(code, f"{out}: {error.strerror or error}") from None


def _nothing(run: "RunDirectory") -> str:
    if run.history.exists():
        return f"{run.id}: no reading can be read from {run.history}; it is empty, damaged or of a newer trainwatch"
    return f"{run.id} has recorded no readings yet"


def _after(first: Sequence["ExportRow"], rest: Iterator[Sequence["ExportRow"]]) -> Iterator[Sequence["ExportRow"]]:
    yield first
    yield from rest


def _rows(run: "RunDirectory") -> Iterator[Sequence["ExportRow"]]:
    """The rows of all series, series after series, some at a time."""
    from ...store.journal import JournalTooNew, load_story
    from ...store.metrics.history import HistoryReader
    from ...store.run_directory import RunUnreadable
    from ...views.charts.attempts import attempt_spans
    from ...views.charts.chart_files import RunRows, series_rows
    from ...views.charts.chart_view import STEPS

    try:
        spec, story = run.load_spec(), load_story(run.journal)
    except (JournalTooNew, RunUnreadable, OSError) as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    wall0 = story.wall0 or spec.created_wall
    with HistoryReader(run.history) as history:
        steps = history.rows(STEPS)
        about = RunRows(
            name=EDGE.text(run.id),
            points={STEPS: steps},
            attempts=attempt_spans(story, time.time() - wall0),
            wall0=wall0,
        )
        for metric in history.series_names():
            points = steps if metric == STEPS else history.rows(metric)
            rows = series_rows(about, EDGE.text(metric), points)
            while some := tuple(islice(rows, BATCH)):
                yield some


Write = Callable[[IO[bytes], Iterator[Sequence["ExportRow"]]], int]


def _writer(form: Format) -> Write:
    """What writes this format. Raises CliError if a library is missing."""
    if form == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise CliError(
                ExitCode.USAGE, f"Parquet needs an extra: pip install '{PARQUET_EXTRA}' (or use --csv, --jsonl)"
            ) from None
        return _write_parquet
    return _write_csv if form == "csv" else _write_jsonl


def _write_csv(file: IO[bytes], rows: Iterator[Sequence["ExportRow"]]) -> int:
    from ...views.charts.chart_files import ExportRow, csv_lines

    file.write(csv_lines((ExportRow._fields,)).encode(errors="replace"))
    count = 0
    for some in rows:
        file.write(csv_lines(some).encode(errors="replace"))
        count += len(some)
    return count


def _write_jsonl(file: IO[bytes], rows: Iterator[Sequence["ExportRow"]]) -> int:
    from ...model.text.json_line import encode_line

    count = 0
    for some in rows:
        file.write(b"".join(encode_line(row._asdict()) for row in some))
        count += len(some)
    return count


def _write_parquet(file: IO[bytes], rows: Iterator[Sequence["ExportRow"]]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "run": pa.string(), "metric": pa.string(), "seconds": pa.float64(), "time_utc": pa.timestamp("s", tz="UTC"),
        "attempt": pa.int64(), "step": pa.int64(), "mean": pa.float64(), "min": pa.float64(), "max": pa.float64(),
        "unit": pa.string(),
    }  # fmt: skip
    schema = pa.schema(list(kinds.items()))
    texts = pa.schema([(name, pa.string() if name == "time_utc" else kind) for name, kind in kinds.items()])
    count = 0
    with pq.ParquetWriter(file, schema) as table:
        for some in rows:
            columns = dict(zip(kinds, zip(*some, strict=True), strict=True))
            table.write_table(pa.table({k: list(v) for k, v in columns.items()}, schema=texts).cast(schema))
            count += len(some)
    return count
