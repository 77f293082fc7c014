"""Metrics for other programs: the Prometheus page, and series as files."""

import contextlib
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from trainwatch import __version__

from ..model.edge import EDGE
from ..model.observation import Base
from ..model.run import TERMINAL_STATES
from .errors import CliError, ExitCode

if TYPE_CHECKING:
    from ..store.run_directory import RunDirectory
    from ..views.charts import ExportRow
    from ..views.run_metrics import RunNow


# The page for Prometheus: the newest values of all runs of this user on this machine.

ENDED_S = 86_400.0
"""A run that is over stays on the page for a day: long enough for alerts and for a look in the morning."""
FRESH_S = 60.0
"""An older sample is not of now. Sensors read every few seconds."""


def prometheus_page(warn: Callable[[str], None]) -> str:
    """The text of the page. ``warn`` is called for each run that cannot be read; their number is on the page."""
    from ..store.run_lookup import unreadable_runs
    from ..views.metrics import Sample, exposition
    from ..views.run_metrics import BUILD, METRICS, UNREADABLE, run_samples
    from .runs.known_runs import all_runs, home

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


def write_textfile(target: Path, warn: Callable[[str], None]) -> None:
    """Replace ``target`` by the page, for the textfile collector of node_exporter. Raises CliError.

    A file that is no such page is left alone.
    """
    from ..store.home import write_atomically

    if not _is_page(target):
        raise CliError(ExitCode.USAGE, f"{target}: is there already and was not written by trainwatch; name another")
    if target.suffix != ".prom":
        warn(f"{target}: the textfile collector reads only files that end in .prom")
    try:
        write_atomically(target, prometheus_page(warn).encode(), mode=0o644)
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED
        raise CliError(code, f"{target}: {error.strerror or error}") from None


def _is_page(target: Path) -> bool:
    """Whether there is no file, or one that begins as a page of trainwatch does."""
    try:
        if not stat.S_ISREG(target.lstat().st_mode):
            return False
        with target.open("rb") as file:
            return file.read(18) == b"# HELP trainwatch_"
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _run_now(run: "RunDirectory") -> "RunNow | None":
    """The newest values of a run. None: it is over for longer than ENDED_S, or is an ended example of demo or drill."""
    from ..store.history_reader import HistoryReader
    from ..store.lock import is_held
    from ..views.charts import STEPS
    from ..views.run_metrics import RunNow
    from .runs.known_runs import example_verb
    from .runs.run_status import read_summary

    watched, wall = is_held(run.lock), time.time()
    if not watched and example_verb(run.load_spec()) is not None:
        return None
    status, said = read_summary(run)
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


# All series of a run's history as CSV, JSON lines or Parquet. One series is in memory at a time.

Format = Literal["csv", "jsonl", "parquet"]
BATCH = 10_000
"""Rows that are written at once."""
PARQUET_EXTRA = "trainwatch-tui[parquet]"


def export_series(name: str | None, form: Format, out: IO[bytes] | Path, warn: Callable[[str], None]) -> int:
    """Write every series of a run. Returns the number of rows; never overwrites a file. Raises CliError.

    ``out``: an open binary stream, or the path of a new file, which is removed if it cannot be written whole.
    """
    from .runs.known_runs import find_run_to_read

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
    from ..store.history_reader import HistoryReader
    from ..store.journal import JournalTooNew, load_story
    from ..store.run_directory import RunUnreadable
    from ..views.charts import STEPS, attempt_spans, series_rows

    try:
        spec, story = run.load_spec(), load_story(run.journal)
    except (JournalTooNew, RunUnreadable, OSError) as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    wall0 = story.wall0 or spec.created_wall
    with HistoryReader(run.history) as history:
        steps = history.rows(STEPS)
        attempts, name = attempt_spans(story, time.time() - wall0), EDGE.text(run.id)
        for metric in history.series_names():
            points = steps if metric == STEPS else history.rows(metric)
            shown = EDGE.text(metric)
            rows = series_rows(shown, points, run=name, wall0=wall0, attempts=attempts, steps=steps)
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
    from ..views.charts import ExportRow, csv_lines

    file.write(csv_lines((ExportRow._fields,)).encode(errors="replace"))
    count = 0
    for some in rows:
        file.write(csv_lines(some).encode(errors="replace"))
        count += len(some)
    return count


def _write_jsonl(file: IO[bytes], rows: Iterator[Sequence["ExportRow"]]) -> int:
    from ..model.json_line import encode_line

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
