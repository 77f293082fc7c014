"""Saves charts: their numbers as CSV, or a drawing of them as SVG or PNG; never over an existing file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from textual.app import App

from ....core.model.ports.screen import Feed
from ....core.views import quantity
from ....core.views.charts.attempts import AttemptSpan
from ....core.views.charts.chart_files import Drawing, RunRows, csv_text, svg_text
from ....core.views.charts.chart_view import STEPS
from ...background import Show, TaskQueue
from ...dialogs.choose import Choice
from ...dialogs.dialog import Ask
from ...ui.picture_file import EXTRA
from ...ui.png import can_write_png, png_bytes


class ExportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is exported: ``since_t`` to ``until_t`` in run seconds."""

    name: str
    feed: Feed
    attempts: tuple[AttemptSpan, ...]
    wall0: float
    since_t: float
    until_t: float


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """What can be saved: the chosen chart, or all charts of the page. ``drawn(all)``: the drawing."""

    runs: tuple[ExportedRun, ...]
    chosen: str
    metrics: tuple[str, ...]
    drawn: Callable[[bool], Drawing]


def ask_export(app: App[Any], tasks: TaskQueue, export: Export, say: Callable[[str], None]) -> None:
    """Ask what and where, then write it in a thread."""
    title = export.chosen.partition(".")[2]
    rows = [("csv", f"{title} as CSV"), ("svg", f"{title} as SVG")]
    if can_write_png():
        rows.append(("png", f"{title} as PNG"))
    count = len(export.metrics)
    rows += [("csv all", f"all {count} charts as CSV"), ("svg all", f"all {count} charts as SVG")]
    if can_write_png():
        rows.append(("png all", f"all {count} charts as PNG"))
    body = "What is visible, in the whole resolution of the history." + (
        "" if can_write_png() else f" PNG needs an extra: pip install '{EXTRA}'"
    )

    def chosen(what: str | None) -> None:
        if what is None:
            return
        kind, _, everything = what.partition(" ")
        stem = export.runs[0].name + ("" if everything else f"-{title}")
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in stem) + f".{kind}"

        def named(path: str | None) -> None:
            if path:
                _write(tasks, export, kind, all_charts=bool(everything), path=Path(path).expanduser(), say=say)

        app.push_screen(
            Ask("Export", f"Save in which file? (in {Path.cwd()})", "[Enter] save   [Esc] cancel", before=name), named
        )

    app.push_screen(Choice("Export", body, rows, "[Enter] choose   [Esc] cancel"), chosen)


def _write(
    tasks: TaskQueue, export: Export, kind: str, *, all_charts: bool, path: Path, say: Callable[[str], None]
) -> None:
    picture = export.drawn(all_charts) if kind != "csv" else None
    metrics = export.metrics if all_charts else (export.chosen,)

    def task() -> Show:
        try:
            if picture is None:
                data = "".join(csv_text([_rows(run, metrics) for run in export.runs])).encode()
            elif kind == "png":
                data = png_bytes(picture)
            else:
                data = svg_text(picture).encode()
            with path.open("xb") as file:
                file.write(data)
            sentence = f"Saved: {path.absolute()} ({quantity.size(len(data))})"
        except FileExistsError:
            sentence = f"{path} exists: nothing was written; choose another name"
        except OSError as error:
            sentence = f"{path}: {error.strerror or error}"
        return lambda: say(sentence)

    tasks.submit(task)


def _rows(run: ExportedRun, metrics: Sequence[str]) -> RunRows:
    """Every point that the history keeps: one a second is its finest."""
    seconds = max(1, round(run.until_t - run.since_t))
    points = run.feed.charts(tuple(dict.fromkeys((*metrics, STEPS))), run.since_t, run.until_t, seconds)
    return RunRows(
        name=run.name,
        points={m: points.get(m, ()) for m in metrics} | ({} if STEPS in metrics else {STEPS: points.get(STEPS, ())}),
        attempts=run.attempts,
        wall0=run.wall0,
    )
