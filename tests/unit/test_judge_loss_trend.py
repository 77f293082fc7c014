"""The trend of the loss over thousands of steps."""

from collections.abc import Iterable

from tests.builders import World
from trainwatch.core.judge.findings import loss
from trainwatch.core.judge.findings import loss as loss_trend
from trainwatch.core.judge.findings.loss import Finding, LossTrend
from trainwatch.core.model.observation import LogChunk


def told(values: Iterable[float]) -> list[tuple[int, Finding | None, str]]:
    """(number of the loss, finding, sentence) of each finding."""
    trend = LossTrend()
    found = []
    for n, value in enumerate(values):
        trend = loss_trend.with_value(trend, value)
        if trend.fresh:
            found.append((n, trend.finding, loss_trend.describe_trend(trend)))
    return found


def test_slowly_falling_loss_is_not_reported() -> None:
    assert told(2.0 - n / 20000 for n in range(20000)) == []


def test_loss_that_never_fell_is_no_plateau() -> None:
    assert told(0.1 + 0.02 * (n % 7) for n in range(9000)) == []


def test_loss_plateau_is_reported_once() -> None:
    found = told([*(2.0 - n / 1000 for n in range(1500)), *(0.5 for _ in range(9000))])
    assert [finding for _, finding, _ in found] == ["plateau"]
    assert found[0][2] == "the loss has not fallen below 0.5 for 3000 lines"


def test_rising_loss_is_reported_again_after_it_recovered() -> None:
    rise = [*(0.5 for _ in range(300)), *(0.5 + n / 400 for n in range(800))]
    found = told([*rise, *(0.4 for _ in range(300)), *rise])
    assert [finding for _, finding, _ in found] == ["diverging", "diverging"]
    assert found[0][2].startswith("the loss keeps rising: 1.")


def test_rising_loss_is_in_the_journal_and_stops_nothing() -> None:
    world = World().begin()
    line = "\rsteps: 1%| | {}/9000 [01:00<1:00:00, 1.0s/it, avr_loss={:.4f}]"
    for n in range(1, 1000):
        world.see(LogChunk(t=float(n), text=line.format(n, 0.5 if n < 250 else 0.5 + (n - 250) / 300)))
    assert [(i.kind, i.class_, i.severity, i.open) for i in world.incidents] == [
        ("loss", "diverging", "warning", False)
    ]
    assert world.decisions == ["start_attempt"]


def test_loss_trend_continues_through_spikes() -> None:
    seen = loss.Loss()
    for n in range(250):
        seen = loss.with_loss(seen, 9.0 if n == 200 else 0.1)
    assert seen.long.count == 50
