"""The page for Prometheus: the newest values of all runs of this user on this machine."""

import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch import __version__

from ...model.observation import Base
from ...model.run import TERMINAL_STATES
from ...model.text.edge import EDGE
from ..errors import CliError, ExitCode

if TYPE_CHECKING:
    from ...store.run_directory import RunDirectory
    from ...views.metrics_out.run_metrics import RunNow

ENDED_S = 86_400.0
"""A run that is over stays on the page for a day: long enough for alerts and for a look in the morning."""
FRESH_S = 60.0
"""An older sample is not of now. Sensors read every few seconds."""


def prometheus_page(warn: Callable[[str], None]) -> str:
    """The text of the page. ``warn`` is called for each run that cannot be read; their number is on the page."""
    from ...store.run_lookup import unreadable_runs
    from ...views.metrics_out.run_metrics import BUILD, METRICS, UNREADABLE, run_samples
    from ...views.metrics_out.text_format import Sample, exposition
    from ..runs.known_runs import all_runs, home

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
    from ...store.atomic import write_atomically

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
    from ...store.lock import is_held
    from ...store.metrics.history import HistoryReader
    from ...views.charts.chart_view import STEPS
    from ...views.metrics_out.run_metrics import RunNow
    from ..runs.known_runs import example_verb
    from ..runs.run_status import read_status

    watched, wall = is_held(run.lock), time.time()
    if not watched and example_verb(run.load_spec()) is not None:
        return None
    status = read_status(run)
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
        status=status,
        wall=wall,
        preset=preset["name"] if preset is not None else "",
        highest_step=highest,
        gpu=fresh(latest.gpu),
        host=fresh(latest.host),
        process=fresh(latest.process),
        metrics=latest.metrics,
    )
