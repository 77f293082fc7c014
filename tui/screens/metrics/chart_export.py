"""Saves the numbers of charts as CSV; never over an existing file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from textual.app import App

from ....core.model.ports.screen import Feed
from ....core.views import quantity
from ....core.views.charts.attempts import AttemptSpan
from ....core.views.charts.chart_files import RunRows, csv_text
from ....core.views.charts.chart_view import STEPS
from ...background import Show, TaskQueue
from ...dialogs.choose import Choice
from ...dialogs.dialog import Ask


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """What of a run can be saved: ``since_t`` to ``until_t`` in run seconds, of the chosen chart or of all."""

    name: str
    feed: Feed
    attempts: tuple[AttemptSpan, ...]
    wall0: float
    since_t: float
    until_t: float
    chosen: str
    metrics: tuple[str, ...]


def ask_export(app: App[Any], tasks: TaskQueue, export: Export, say: Callable[[str], None]) -> None:
    """Ask what and where, then write it in a thread."""
    title = export.chosen.partition(".")[2]
    rows = [("", f"{title} as CSV"), ("all", f"all {len(export.metrics)} charts as CSV")]

    def chosen(what: str | None) -> None:
        if what is None:
            return
        stem = export.name if what else f"{export.name}-{title}"
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in stem) + ".csv"

        def named(path: str | None) -> None:
            if path:
                _write(tasks, export, export.metrics if what else (export.chosen,), Path(path).expanduser(), say)

        app.push_screen(
            Ask("Export", f"Save in which file? (in {Path.cwd()})", "[Enter] save   [Esc] cancel", before=name), named
        )

    body = "What is visible, in the whole resolution of the history."
    app.push_screen(Choice("Export", body, rows, "[Enter] choose   [Esc] cancel"), chosen)


def _write(tasks: TaskQueue, export: Export, metrics: Sequence[str], path: Path, say: Callable[[str], None]) -> None:
    def task() -> Show:
        try:
            data = "".join(csv_text(_rows(export, metrics))).encode()
            with path.open("xb") as file:
                file.write(data)
            sentence = f"Saved: {path.absolute()} ({quantity.size(len(data))})"
        except FileExistsError:
            sentence = f"{path} exists: nothing was written; choose another name"
        except OSError as error:
            sentence = f"{path}: {error.strerror or error}"
        return lambda: say(sentence)

    tasks.submit(task)


def _rows(run: Export, metrics: Sequence[str]) -> RunRows:
    """Every point that the history keeps: one a second is its finest."""
    seconds = max(1, round(run.until_t - run.since_t))
    points = run.feed.charts(tuple(dict.fromkeys((*metrics, STEPS))), run.since_t, run.until_t, seconds)
    return RunRows(
        name=run.name,
        points={m: points.get(m, ()) for m in metrics} | ({} if STEPS in metrics else {STEPS: points.get(STEPS, ())}),
        attempts=run.attempts,
        wall0=run.wall0,
    )
