"""The charts of a report: loss, pace, and the run's GPUs, over the time of the run, as one SVG drawing."""

from collections.abc import Iterator, Sequence

from ....model.story import RunStory
from ....store.journal import load_story
from ....store.metrics.history import HistoryReader
from ....store.run_directory import RunDirectory
from ....views.charts.attempts import attempt_spans
from ....views.charts.axis import span_ticks
from ....views.charts.chart_files import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Drawing, LinePart, drawing, svg_text
from ....views.charts.chart_view import STEPS, ChartOptions, RunSeries, chart_view
from ....views.charts.zoom import Span
from ..unwatched import as_found

POINTS = 600
MOST_GPUS = 8
"""A report of a machine with more GPUs shows the first ones."""
TICK_COLUMNS = 12
DANGER = "#b8302a"


def charts_of(run: RunDirectory) -> str:
    """SVG text; "" without values. Raises JournalTooNew."""
    story = as_found(run, load_story(run.journal))
    with HistoryReader(run.history) as history:
        latest = history.latest()
        progress = latest.progress
        end_t = max(story.t, progress.t if progress is not None else 0.0) + 1.0
        others = {
            reading.index for reading in (latest.gpu.gpus if latest.gpu is not None else ()) if reading.own is False
        }
        own = [gpu for gpu in history.gpus() if gpu not in others][:MOST_GPUS]
        gpus = [f"gpu{gpu}.{column}" for gpu in own for column in ("util", "vram")]
        metrics = ["progress.loss", "progress.sec_per_step", *gpus]
        points = history.charts((*metrics, STEPS), 0.0, end_t, POINTS)
    series = RunSeries(name=run.id, points=points, attempts=attempt_spans(story, end_t))
    charts = [chart_view(metric, series, ChartOptions()) for metric in metrics if points[metric]]
    if not charts:
        return ""
    shown = Span(0.0, end_t)
    picture = drawing(charts, shown, _labels)
    marks = tuple(_incident_lines(story, end_t, len(charts)))
    return svg_text(Drawing(picture.width, picture.height, (*marks, *picture.parts)))


def _labels(columns: int, shown: Span) -> Sequence[tuple[float, str]]:
    return span_ticks(shown.since, shown.until, max(1, columns // TICK_COLUMNS))


def _incident_lines(story: RunStory, end_t: float, charts: int) -> Iterator[LinePart]:
    """A line through each chart at each incident."""
    for incident in story.incidents:
        if incident.severity == "info" or incident.t > end_t:
            continue
        x = LEFT + incident.t / end_t * (WIDTH - LEFT - RIGHT)
        for number in range(charts):
            top = number * HEIGHT
            yield LinePart(((x, top + TOP), (x, top + HEIGHT - BOTTOM)), DANGER, 1.0, "3 3")
