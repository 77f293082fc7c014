"""The page for Prometheus: the newest values of all runs of this user on this machine."""

import stat
from collections.abc import Callable
from pathlib import Path

from trainwatch import __version__

from ...model.text.edge import EDGE
from ..errors import CliError, ExitCode
from .newest_values import run_now


def prometheus_page(warn: Callable[[str], None]) -> str:
    """The text of the page. ``warn`` is called for each run that cannot be read; their number is on the page."""
    from ...store.run_lookup import unreadable_runs
    from ...views.metrics_out.metric import Sample
    from ...views.metrics_out.run_metrics import BUILD, METRICS, UNREADABLE, run_samples
    from ...views.metrics_out.text_format import exposition
    from ..runs.known_runs import all_runs, home

    problems = list(unreadable_runs(home()))
    runs = []
    for run in all_runs():
        try:
            now = run_now(run)
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
