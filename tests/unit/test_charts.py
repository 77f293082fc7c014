"""Charts as values: points on any grid, axes, attempts over steps, units, and the visible part of the axis."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.fakes.feed import StoryTeller, created, started, training
from tests.shipped import SHAPES
from trainwatch.core.judge.metric_reader import MetricReader
from trainwatch.core.model.attempt import Incident
from trainwatch.core.model.fact import IncidentOpened, IncidentUpdated, StateChanged
from trainwatch.core.model.observation import GpuReading, GpuSample, MetricValues
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.screen_ports import Point
from trainwatch.core.store.history import HistoryReader, HistoryWriter, ProgressPoint
from trainwatch.core.views import quantity
from trainwatch.core.views.chart_view import (
    ChartOptions,
    RunRows,
    RunSeries,
    chart_view,
    marks_on,
    seconds_in,
    series_rows,
    x_bounds,
)
from trainwatch.core.views.charts import (
    AttemptSpan,
    Span,
    StepOf,
    at_end,
    attempt_spans,
    by_step,
    dotted,
    joined,
    last_step_t,
    log_ticks,
    moved,
    nearest,
    round_step,
    showing,
    silences,
    smoothed,
    span_ticks,
    step_label,
    ticks,
    until_last_step,
    value_range,
    zoomed,
)
from trainwatch.core.views.metrics import (
    axis_unit,
    in_order,
    matching,
    shown_points,
    stored_unit,
    tick_text,
    unit_of,
    value_text,
    without_doubles,
    words_of,
)
from trainwatch.core.views.timeline import Mark


def flat(*pairs: tuple[float, float]) -> tuple[Point, ...]:
    return tuple((x, v, v, v) for x, v in pairs)


# ── points on a grid ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_dots_between_two_points_lie_on_their_line() -> None:
    values = dotted(flat((0.5, 1.0), (3.5, 4.0)), 0.0, 4.0, 4)
    assert values == pytest.approx((1.0, 2.0, 3.0, 4.0))


def test_points_that_are_far_apart_are_not_joined() -> None:
    values = dotted(flat((0.5, 1.0), (1.5, 1.0), (8.5, 1.0)), 0.0, 10.0, 10, gap=3.0)
    assert [v is None for v in values] == [False, False] + [True] * 6 + [False, True]


def test_a_line_enters_and_leaves_at_the_edges_of_what_is_visible() -> None:
    values = dotted(flat((0.0, 0.0), (100.0, 100.0)), 40.0, 60.0, 4)
    assert values == pytest.approx((42.5, 47.5, 52.5, 57.5))


def test_one_spike_among_thousands_of_points_is_visible() -> None:
    points = [(float(t), 1.0, 1.0, 1.0) for t in range(5000)]
    points[2345] = (2345.0, 1.0, 1.0, 9.0)
    assert max(v for v in dotted(points, 0, 5000, 100) if v is not None) == 9.0


@given(
    st.lists(st.tuples(st.floats(0, 1000), st.floats(-1e6, 1e6)), max_size=60).map(sorted),
    st.floats(-100, 900), st.floats(0.1, 1000), st.integers(0, 200),
)  # fmt: skip
def test_any_points_fit_any_grid_and_stay_within_their_values(
    pairs: list[tuple[float, float]], since: float, length: float, dots: int
) -> None:
    values = dotted(flat(*pairs), since, since + length, dots)
    assert len(values) == dots
    known = [v for v in values if v is not None]
    if known:
        low, high = min(v for _, v in pairs), max(v for _, v in pairs)
        assert low - 1e-6 * max(1, abs(low)) <= min(known) <= max(known) <= high + 1e-6 * max(1, abs(high))


def test_the_value_under_the_cursor_is_that_of_the_nearest_point() -> None:
    points = flat((0.0, 1.0), (10.0, 2.0))
    assert nearest(points, 6.0) == (10.0, 2.0, 2.0, 2.0)
    assert nearest(points, 30.0, within=5.0) is None
    assert nearest((), 1.0) is None


def test_a_constant_lies_in_the_middle_and_a_log_scale_leaves_out_zeros() -> None:
    assert value_range([5.0, 5.0]) == pytest.approx((4.75, 5.25))
    assert value_range([0.0, 1.0, 100.0], log=True) == (1.0, 100.0)
    assert value_range([None, math.nan]) is None


def test_smoothing_begins_at_the_first_value_and_keeps_a_constant() -> None:
    points = smoothed(flat((0, 4.0), (1, 4.0), (2, 0.0)), 0.9)
    assert [p[2] for p in points[:2]] == pytest.approx([4.0, 4.0])
    assert 0.0 < points[2][2] < 4.0
    assert smoothed(flat((0, 4.0)), 0.0) == flat((0, 4.0))


# ── axes and units ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_ticks_are_round_numbers_inside_the_axis() -> None:
    assert ticks(0.083, 0.347, 4) == pytest.approx((0.1, 0.2, 0.3))
    assert ticks(0, 7300, 5) == pytest.approx((0, 2000, 4000, 6000))
    assert ticks(5, 5, 3) == ()
    assert round_step(10, 4) == 2.5


def test_ticks_of_a_log_axis_are_decades_or_parts_of_one() -> None:
    assert log_ticks(0.02, 300, 10) == pytest.approx((0.1, 1, 10, 100))
    assert log_ticks(1e-9, 1e3, 4) == pytest.approx((1e-9, 1e-5, 0.1, 1e3))
    assert log_ticks(1.5, 9, 5) == pytest.approx((2, 5))
    assert log_ticks(2.1, 4, 4) == pytest.approx((2.5, 3.0, 3.5, 4.0))
    assert log_ticks(0, 1, 3) == ()


def test_ticks_of_durations_have_units() -> None:
    assert span_ticks(0, 7200, 4) == ((0, "0"), (1800, "30 min"), (3600, "1 h"), (5400, "1:30 h"), (7200, "2 h"))
    assert [label for _, label in span_ticks(0, 90, 3)] == ["0", "30 s", "1 min", "1:30 min"]
    assert step_label(800) == "800"
    assert step_label(12_000) == "12k"
    assert step_label(1_250_000) == "1.25M"


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [(0.05, 0.025, "0.050"), (2.5, 0.5, "2.5"), (1200, 200, "1,200"), (1e-5, 5e-6, "1e-5"), (0, 0.1, "0"),
     (0.2, 0.0, "0.200"), (0.3, 0.1, "0.3")],
)  # fmt: skip
def test_ticks_have_the_decimals_of_their_distance(value: float, step: float, text: str) -> None:
    assert tick_text(value, step) == text


def test_the_pace_has_one_unit_in_texts_and_charts() -> None:
    slow, fast = flat((0, 0.5), (1, 2.5)), flat((0, 2.0), (1, 0.25))
    assert unit_of("progress.sec_per_step", slow) == "s/step" == quantity.pace(2.5).partition(" ")[2]
    assert unit_of("progress.sec_per_step", fast) == "steps/s" == quantity.pace(0.25).partition(" ")[2]
    assert [p[2] for p in shown_points("progress.sec_per_step", fast, "steps/s")] == [0.5, 4.0]
    assert shown_points("progress.sec_per_step", [(0, 0.2, 0.25, 0.5)], "steps/s") == ((0, 2.0, 4.0, 5.0),)


def test_series_have_titles_units_and_an_order() -> None:
    assert words_of("gpu3.vram").title == "GPU 3 VRAM"
    assert words_of("metric.train/tokens_per_sec").unit == "tokens/s"
    assert words_of("metric.num_input_tokens_seen").unit == ""
    assert words_of("gpu0.some_new_column").title == "GPU 0 some new column"
    assert in_order(["host.cpu", "gpu0.util", "metric.a", "progress.step", "progress.loss"]) == (
        "progress.loss", "metric.a", "gpu0.util", "host.cpu", "progress.step",
    )  # fmt: skip
    assert value_text(15.2e9, "bytes") == quantity.size(15.2e9)
    assert value_text(None, "W") == "–"
    assert value_text(0.0, words_of("process.cpu").unit) == "0.00 cores", "a trainer that sleeps"
    assert value_text(0.02, words_of("process.cpu").unit) == "0.02 cores"
    assert value_text(2.5e-6, "") == "2.5e-6"
    assert value_text(15.2 * 2**30, "memory") == "15.2 GiB"
    assert value_text(2.6, words_of("process.procs").unit) == "3", "the mean of a count"
    assert axis_unit(words_of("process.procs").unit, 0, 4) == (1.0, "")
    assert stored_unit("process.procs") == stored_unit("progress.step") == ""
    assert axis_unit("bytes", 0, 3e9) == (1e9, "GB")
    assert axis_unit("memory", 0, 3 * 2**30) == (2**30, "GiB")


@pytest.mark.parametrize(
    ("sought", "found"),
    [("NORM", ["metric.grad_norm"]), ("vram|loss", ["progress.loss", "gpu1.vram"]), ("GPU 1", ["gpu1.vram"]),
     ("a(", ["metric.a(b"]), ("", ["progress.loss", "metric.grad_norm", "metric.a(b", "gpu1.vram"])],
)  # fmt: skip
def test_metrics_are_found_by_text_or_pattern_in_name_or_title(sought: str, found: list[str]) -> None:
    assert list(matching(["progress.loss", "metric.grad_norm", "metric.a(b", "gpu1.vram"], sought)) == found


def test_bytes_written_are_shown_as_a_rate_that_survives_a_restart() -> None:
    points = flat((0, 0.0), (10, 1000.0), (20, 50.0), (30, 150.0))
    assert shown_points("process.write_bytes", points, "bytes/s") == flat((5.0, 100.0), (25.0, 10.0))


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

STEPS = flat((10, 0.0), (20, 10.0), (30, 20.0), (40, 20.0), (50, 20.0))


def test_a_curve_ends_at_the_last_step_not_at_its_repetitions() -> None:
    assert last_step_t(STEPS) == 30
    assert until_last_step(flat((10, 1.0), (30, 2.0), (50, 2.0)), STEPS) == flat((10, 1.0), (30, 2.0))
    assert until_last_step(flat((10, 1.0)), ()) == flat((10, 1.0))


def test_the_silence_before_a_restart_begins_at_the_last_step() -> None:
    steps = [(float(t), float(min(t, 40))) for t in range(0, 101, 10)]
    attempts = (AttemptSpan(1, 0, 100), AttemptSpan(2, 120, 200))
    assert silences(steps, attempts) == ((40.0, 120),)
    assert silences([], attempts) == ((100, 120),), "without steps its end counts"
    assert silences(steps, attempts[:1]) == ()
    ended = (AttemptSpan(1, 0, 100, ended=True),)
    assert silences(steps, ended) == ((40.0, math.inf),), "the restart waits"
    assert silences(steps, ended, 41.5) == silences(steps, ended, 40.0) == ((40.0, math.inf),)
    assert silences(steps, attempts[:1], 40.0) == ((40.0, math.inf),), "it stands still now"


def test_a_stretch_without_steps_that_is_over_is_a_silence_and_splits_the_curve() -> None:
    span = AttemptSpan(1, 0, 100, still=((20.0, 60.0),))
    assert silences([(float(t), float(t)) for t in range(0, 101, 10)], (span,)) == ((20.0, 60.0),)
    points = flat((10, 1.0), (20, 2.0), (30, 2.0), (50, 2.0), (60, 3.0), (70, 4.0))
    run = RunSeries(name="luca", points={"progress.loss": points, "progress.step": points}, attempts=(span,))
    for options in (ChartOptions(), ChartOptions(overlaid=True)):
        (curve,) = chart_view("progress.loss", run, options).curves
        assert curve.parts == (flat((10, 1.0), (20, 2.0)), flat((60, 3.0), (70, 4.0)))
    (curve,) = chart_view("progress.loss", run, ChartOptions(x="step")).curves
    assert len(curve.parts) == 1


def test_pauses_and_silences_after_which_an_attempt_went_on_are_stretches_without_steps() -> None:
    quiet = Incident(id=1, t=330.0, wall=330.0, attempt=1, kind="quiet", class_="no step", reason="", detect_s=30.0)
    told = (
        StoryTeller()
        .tell(0, *created())
        .tell(5, *started(1))
        .tell(90, *training(1, 1), StateChanged(state="running", reason=""))
        .tell(100, StateChanged(state="suspended", reason=""))
        .tell(200, StateChanged(state="running", reason=""))
        .tell(330, IncidentOpened(incident=quiet))
        .tell(340, IncidentUpdated(incident=structs.replace(quiet, open=False, closed_t=340.0)))
        .tell(400, StateChanged(state="paused", reason=""))
    )
    (span,) = attempt_spans(told.story, 500)
    assert span.still == ((100, 200), (300.0, 340.0)), "what goes on is told apart"


def test_points_are_placed_at_their_steps() -> None:
    step_of = StepOf(STEPS)
    assert step_of(15) == 5.0
    assert step_of(5) is None
    assert step_of(45) is None
    assert step_of(45, slack_s=20) == 20.0
    assert by_step(flat((15, 1.0), (25, 2.0), (45, 9.0)), step_of) == flat((5.0, 1.0), (15.0, 2.0))
    assert StepOf(())(1.0) is None


def test_a_later_attempt_replaces_the_steps_that_it_repeats() -> None:
    assert joined([flat((1, 1.0), (5, 5.0), (9, 9.0)), (), flat((4, 40.0), (10, 100.0))]) == flat(
        (1, 1.0), (4, 40.0), (10, 100.0)
    )


def test_an_attempt_lasts_until_its_end_or_the_next_one() -> None:
    told = StoryTeller().tell(0, *created()).tell(5, *started(1)).tell(90, *training(1, 1)).tell(200, *started(2, 1))
    assert attempt_spans(told.story, 500) == (AttemptSpan(1, 5, 200, ended=True), AttemptSpan(2, 200, 500))
    assert attempt_spans(StoryTeller().story, 5) == ()


RUN = RunSeries(
    name="luca",
    points={
        "progress.step": flat((0, 0.0), (100, 100.0), (110, 100.0), (200, 60.0), (300, 160.0)),
        "progress.loss": flat((0, 5.0), (50, 4.0), (100, 3.0), (110, 3.0), (200, 3.5), (300, 2.0)),
        "gpu0.util": flat((0, 90.0), (150, 0.0), (300, 95.0)),
    },
    attempts=(AttemptSpan(1, 0, 120), AttemptSpan(2, 190, 300)),
    marks=(Mark(t=110, kind="crash"), Mark(t=250, kind="checkpoint")),
)


def test_attempts_over_time_are_apart_and_the_machine_is_one_curve() -> None:
    loss = chart_view("progress.loss", RUN, ChartOptions())
    (curve,) = loss.curves
    assert [[p[0] for p in part] for part in curve.parts] == [[0, 50, 100], [200, 300]]
    (util,) = chart_view("gpu0.util", RUN, ChartOptions()).curves
    assert len(util.parts) == 1


OVERLAID = ChartOptions(overlaid=True)
BY_STEP = ChartOptions(x="step")


@pytest.mark.parametrize(
    ("zoom", "options", "seconds"),
    [
        (None, BY_STEP, None),
        (Span(20, 80), ChartOptions(), (20, 80)),
        (Span(20, 80), OVERLAID, (20, 270)),  # of each attempt, from its own begin
        (Span(20, 110), OVERLAID, (20, 300)),
        (Span(70, 120), BY_STEP, (0, 300)),  # both attempts, with the lines around the part
        (Span(120, 140), BY_STEP, (200, 300)),  # between two lines of the second attempt
        (Span(200, 240), BY_STEP, None),
    ],
)
def test_a_zoomed_part_of_the_axis_in_seconds_of_the_run(
    zoom: Span | None, options: ChartOptions, seconds: tuple[float, float] | None
) -> None:
    assert seconds_in(zoom, options, RUN.points["progress.step"], RUN.attempts) == seconds


def test_attempts_over_steps_are_one_curve_and_its_marks_stand_at_steps() -> None:
    options = ChartOptions(x="step")
    (curve,) = chart_view("progress.loss", RUN, options).curves
    assert [p[0] for p in curve.parts[0]] == [0.0, 50.0, 60.0, 160.0]
    assert [(x, m.kind) for x, m in marks_on(RUN, options)] == [(100.0, "crash"), (110.0, "checkpoint")]
    assert x_bounds(RUN, options, 300) == (0.0, 160.0)


def test_attempts_are_laid_over_each_other_from_their_starts() -> None:
    options = ChartOptions(overlaid=True)
    old, new = chart_view("progress.loss", RUN, options).curves
    assert (old.name, old.look, new.name, new.look) == ("attempt 1", 1, "attempt 2", 0)
    assert [p[0] for p in new.parts[0]] == [10.0, 110.0]
    assert x_bounds(RUN, options, 300) == (0.0, 120.0)
    assert [x for x, _ in marks_on(RUN, options)] == [110.0, 60.0]


def test_smoothed_curves_keep_their_values_behind_them() -> None:
    view = chart_view("gpu0.util", RUN, ChartOptions(smooth=0.9))
    assert [c.faint for c in view.curves] == [True, False]
    assert len(view.named) == 1


# ── the visible part ─────────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = Span(0, 1000)


def test_zooming_keeps_the_place_that_is_zoomed_about() -> None:
    closer = zoomed(WHOLE, WHOLE, 0.5, 800)
    assert closer == Span(400, 900)
    assert zoomed(closer, WHOLE, 2.0, 800) is None
    assert zoomed(Span(0, 10), WHOLE, 0.5) == Span(1, 9)


def test_moving_stops_at_the_ends() -> None:
    assert moved(Span(100, 200), WHOLE, 0.25) == Span(125, 225)
    assert moved(Span(900, 1000), WHOLE, 1) == Span(900, 1000)
    assert moved(Span(50, 150), WHOLE, -1) == Span(0, 100)
    assert at_end(Span(900, 1000), WHOLE)
    assert not at_end(Span(100, 200), WHOLE)
    assert showing(Span(100, 200), WHOLE, 250) == Span(155, 255)


# ── the store ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_charts_that_are_read_together_equal_those_that_are_read_one_by_one(tmp_path: Path) -> None:
    with_names = {"a": 1.0, "b": 2.0}
    writer = HistoryWriter(tmp_path / "history.sqlite")
    for t in range(0, 20_000, 7):
        gpus = tuple(GpuReading(index=i, util_pct=float(t % 97 + i), power_w=None) for i in range(2))
        writer.add(GpuSample(t=t, gpus=gpus))
        writer.add(ProgressPoint(t=t, progress=Progress(step=t // 7, loss=1 / (t + 1))))
        if t % 70 == 0:
            writer.add(MetricValues(t=t, values={k: v * t for k, v in with_names.items()}))
        if t % 3500 == 0:
            writer.commit()
    writer.close()
    with HistoryReader(tmp_path / "history.sqlite") as reader:
        metrics = ["gpu0.util", "gpu1.util", "gpu1.power", "progress.loss", "progress.step", "metric.a", "metric.b",
                   "metric.never", "host.cpu"]  # fmt: skip
        for since, until, points in ((0, 20_000, 300), (15_000, 20_000, 80), (-50, 900, 7), (5, 5, 3)):
            found = reader.charts(metrics, since, until, points)
            assert list(found) == metrics
            for metric in metrics:
                alone = reader.series(metric, since, until, points)
                assert len(found[metric]) == len(alone)
                for one, two in zip(found[metric], alone, strict=True):
                    assert one == pytest.approx(two)
        assert set(metrics) - {"metric.never"} <= set(reader.series_names())
        with pytest.raises(ValueError, match="no metric"):
            reader.charts(["nonsense"], 0, 1, 1)


@pytest.mark.parametrize(
    ("log", "left"),
    [
        ("accelerate", set()),
        ("ultralytics", set()),
        ("hf", {"grad_norm", "eval_loss", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second"}),
        ("diffusers-lora", set()),
        ("nanogpt", {"val loss", "time", "mfu"}),
        ("keras", {"accuracy"}),
        ("trl", {"grad_norm", "entropy", "mean_token_accuracy", "num_tokens", "train_runtime"}),
    ],
)
def test_what_the_progress_shows_is_not_listed_again_under_the_name_of_the_log(log: str, left: set[str]) -> None:
    """Before: avr_loss stood beside the loss, it/s beside the speed."""
    reader = MetricReader(SHAPES)
    reader.read((Path(__file__).parent.parent / "fixtures" / "frameworks" / f"{log}.log").read_text())
    series = ("progress.loss", "progress.lr", "progress.sec_per_step", "progress.step", "progress.epoch")
    found = without_doubles((*series, *(f"metric.{name}" for name in reader.values)))
    names = {metric.removeprefix("metric.") for metric in found if metric.startswith("metric.")}
    assert left <= names
    assert not names & {"loss", "avr_loss", "Loss", "step_loss", "it/s", "lr", "learning_rate", "step", "iter", "Epoch"}


def test_a_loss_and_its_average_are_two_charts() -> None:
    metrics = ("progress.loss", "metric.loss", "metric.avg_loss", "metric.total_loss")
    assert without_doubles(metrics) == ("progress.loss", "metric.avg_loss", "metric.total_loss")


def test_the_newest_points_of_an_attempt_that_runs_are_its_own() -> None:
    run = RunRows(name="a", points={}, attempts=(AttemptSpan(1, 0.0, 5.0, ended=True), AttemptSpan(2, 8.0, 20.3)))
    rows = series_rows(run, "loss", [(t, 1.0, 1.0, 1.0) for t in (4.5, 6.5, 8.5, 20.5)])
    assert [row.attempt for row in rows] == [1, None, 2, 2]
