"""The trend of the loss over thousands of steps."""

from tests.builders import World
from trainwatch.core.model.observation import LogChunk


def test_rising_loss_is_in_the_journal_and_stops_nothing() -> None:
    world = World().begin()
    line = "\rsteps: 1%| | {}/9000 [01:00<1:00:00, 1.0s/it, avr_loss={:.4f}]"
    for n in range(1, 1000):
        world.see(LogChunk(t=float(n), text=line.format(n, 0.5 if n < 250 else 0.5 + (n - 250) / 300)))
    assert [(i.kind, i.class_, i.severity, i.open) for i in world.incidents] == [
        ("loss", "diverging", "warning", False)
    ]
    assert world.decisions == ["start_attempt"]
