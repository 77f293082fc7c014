"""A person at a real terminal looks at the charts of a real run that crashed after a silence."""

import re
from collections.abc import Iterator

import pytest

from tests.fakes.e2e_world import World
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.tiers import SECOND_TIER

pytestmark = [NO_TMUX, pytest.mark.tmux, SECOND_TIER]

TRAINER = """
import pathlib, sys, time
saved = pathlib.Path("out"); saved.mkdir(exist_ok=True)
first = not (saved / "silent").exists()
for step in range(1, 200):
    time.sleep(0.1)
    print(f"step {step}/200 | loss {2 / step:.4f} | grad_norm {1 + step % 7 / 10:.3f} | tokens_per_sec {900 + step}", flush=True)
    if first and step == 40:
        (saved / "silent").touch()
        time.sleep(14)
        raise RuntimeError("CUDA error: unknown error")
while not pathlib.Path("go").exists():
    time.sleep(0.1)
"""
HATCH = "╱"


@pytest.fixture
def person(world: World) -> Iterator[Terminal]:
    """Sits before the run in its second attempt."""
    (world.project / "train.py").write_text(TRAINER)
    done = world.asks("run", "--detach", "--name", "charts", "--set", "hang.min_s=60", "--", "python", "train.py")
    assert done.code == 0, done.err
    with terminal((120, 40), world.project, world.env) as made:
        made.trainwatch("--run", "charts")
        made.until(lambda text: "attempt 2" in text and "Training" in text, "the second attempt")
        yield made
    (world.project / "go").touch()


def braille(text: str) -> int:
    return sum("⠀" < c <= "⣿" for c in text)


def test_the_silence_before_a_restart_is_hatched_and_the_curve_ends_there(person: Terminal) -> None:
    text = person.until(lambda text: HATCH in text and braille(text) > 10, "the hatched silence")
    loss = next(row for row in text.splitlines() if row.startswith("│ loss"))
    assert re.search(rf"[⠁-⣿ ]+{HATCH}+", loss), loss
    hatched = [row.index(HATCH) for row in text.splitlines() if HATCH in row]
    assert max(hatched) - min(hatched) <= 1, "one band through phases and curves"


def test_the_charts_of_what_a_trainer_logs_can_be_read_and_saved(world: World, person: Terminal) -> None:
    person.press("7")
    text = person.until(
        lambda text: all(t in text for t in ("loss", "grad_norm", "tokens_per_sec", "speed")) and braille(text) > 100,
        "the charts",
    )
    assert "steps/s" in text
    assert HATCH in text
    person.press("Enter")
    person.until(lambda text: "grad_norm" not in text and braille(text) > 100, "a single chart")
    person.press("Escape")
    person.press("/")
    person.see("Show the metrics")
    person.press("norm")
    person.press("Enter")
    person.until(lambda text: "metrics · 1 · with" in text, "the filter")
