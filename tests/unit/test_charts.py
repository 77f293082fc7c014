"""Charts as values: points on any grid, axes, attempts over steps, units, and the visible part of the axis."""

from pathlib import Path

import pytest
from msgspec import structs

from tests.fakes.feed import StoryTeller, created, started, training
from tests.shipped import Metrics
from trainwatch.core.model.fact import IncidentOpened, IncidentUpdated, StateChanged
from trainwatch.core.model.observation import GpuReading, GpuSample, MetricValues
from trainwatch.core.model.ports import Point
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import Incident
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.views import quantity
from trainwatch.core.views.charts import AttemptSpan, attempt_spans, charts_svg, silences, spiked
from trainwatch.core.views.metrics import (
    axis_unit,
    in_order,
    matching,
    shown_points,
    unit_of,
    value_text,
    without_doubles,
    words_of,
)


def flat(*pairs: tuple[float, float]) -> tuple[Point, ...]:
    return tuple((x, v, v, v) for x, v in pairs)


# ── points ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_spike_among_thousands_of_points_is_visible() -> None:
    points = [(float(t), 1.0, 1.0, 1.0) for t in range(5000)]
    points[2345] = (2345.0, 1.0, 1.0, 9.0)
    assert max(spiked(points)) == 9.0


# ── axes and units ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_pace_has_one_unit_in_texts_and_charts() -> None:
    slow, fast = flat((0, 0.5), (1, 2.5)), flat((0, 2.0), (1, 0.25))
    assert unit_of("progress.sec_per_step", slow) == "s/step" == quantity.pace(2.5).partition(" ")[2]
    assert unit_of("progress.sec_per_step", fast) == "steps/s" == quantity.pace(0.25).partition(" ")[2]
    assert [p[2] for p in shown_points("progress.sec_per_step", fast, "steps/s")] == [0.5, 4.0]
    assert shown_points("progress.sec_per_step", [(0, 0.2, 0.25, 0.5)], "steps/s") == ((0, 2.0, 4.0, 5.0),)


def test_a_few_slow_steps_after_a_restart_do_not_change_the_unit_of_the_pace() -> None:
    restarted = flat(*((t, 0.25) for t in range(100)), (100, 1.9), (101, 1.6))
    assert unit_of("progress.sec_per_step", restarted) == "steps/s"
    assert quantity.pace(1.6, "steps/s") == "0.625 steps/s"


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


def test_a_stretch_without_steps_that_is_over_is_a_silence_and_splits_the_curve() -> None:
    span = AttemptSpan(1, 0, 100, still=((20.0, 60.0),))
    assert silences([(float(t), float(t)) for t in range(0, 101, 10)], (span,)) == ((20.0, 60.0),)
    points = flat((10, 1.0), (20, 2.0), (30, 2.0), (50, 2.0), (60, 3.0), (70, 4.0))
    assert curves_of("progress.loss", {"progress.loss": points, "progress.step": points}, (span,)) == 2


def curves_of(metric: str, points: dict[str, tuple[Point, ...]], attempts: tuple[AttemptSpan, ...]) -> int:
    picture = charts_svg({m: points[m] for m in (metric, "progress.step")}, attempts, (), 300.0)
    return picture.count('stroke-width="1.6"')


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


def test_attempts_over_time_are_apart_and_the_machine_is_one_curve() -> None:
    points = {
        "progress.step": flat((0, 0.0), (100, 100.0), (110, 100.0), (200, 60.0), (300, 160.0)),
        "progress.loss": flat((0, 5.0), (50, 4.0), (100, 3.0), (110, 3.0), (200, 3.5), (300, 2.0)),
        "gpu0.util": flat((0, 90.0), (150, 0.0), (300, 95.0)),
    }
    attempts = (AttemptSpan(1, 0, 120), AttemptSpan(2, 190, 300))
    assert curves_of("progress.loss", points, attempts) == 2
    assert curves_of("gpu0.util", points, attempts) == 1


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
    reader = Metrics()
    reader.read_text((Path(__file__).parent.parent / "fixtures" / "frameworks" / f"{log}.log").read_text())
    series = ("progress.loss", "progress.lr", "progress.sec_per_step", "progress.step", "progress.epoch")
    found = without_doubles((*series, *(f"metric.{name}" for name in reader.values)))
    names = {metric.removeprefix("metric.") for metric in found if metric.startswith("metric.")}
    assert left <= names
    assert not names & {"loss", "avr_loss", "Loss", "step_loss", "it/s", "lr", "learning_rate", "step", "iter", "Epoch"}
