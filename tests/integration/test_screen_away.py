"""A person comes back to a real run: the card that greets them, on a real terminal."""

import json
import time

import pytest

from tests.fakes.e2e_world import World
from tests.fakes.tmux_terminal import NO_TMUX, terminal
from tests.tiers import SECOND_TIER

pytestmark = [NO_TMUX, pytest.mark.tmux, SECOND_TIER]


def test_a_night_with_a_crash_is_told_in_the_morning_once(world: World) -> None:
    world.write("--steps", "4000", "--step-time", "0.05", "--crash-at", "50")
    assert world.asks("run", "--detach").code == 0
    world.at_step(90, 2)
    assert world.asks("status").code == 0
    looked = world.run.last_look
    kept = json.loads(looked.read_bytes())
    assert abs(kept["wall"] - time.time()) < 30
    looked.write_text(json.dumps(kept | {"wall": time.time() - 8 * 3600 - 120}))
    with terminal((100, 30), world.project, world.env) as person:
        person.trainwatch()
        text = person.see("away 8 h 02 m, trained", "(1 restart)", "crash: ", "recovered", "Nothing needs you.")
        short = world.asks("report", "--short").out
        crash = next(line.strip() for line in short.splitlines() if "crash: " in line)
        assert crash[:40] in text
        person.press("Escape")
        person.until(lambda text: "away 8 h" not in text and "Training" in text, "the dashboard")
        person.press("q")
        person.until(lambda text: "╭" not in text, "the end")
    with terminal((100, 30), world.project, world.env) as person:
        person.trainwatch()
        person.see("Training", "attempt 2")
        person.until(lambda text: "s/step" in head_of(text) or "steps/s" in head_of(text), "a poll")
        assert "away" not in person.text
        person.press("m")
        person.see("in all, trained", "Nothing needs you.")


def head_of(text: str) -> str:
    return " ".join(text.splitlines()[:3])


def test_what_needs_a_person_has_a_key_that_does_it(world: World) -> None:
    world.write("--fail-at-once", "import")
    assert world.headless().ends() == 1
    with terminal((80, 24), world.project, world.env) as person:
        person.trainwatch()
        person.see("What needs you", "[1] No further attempt is made", "bitsandbytes")
        person.press("1")
        person.see("Which checkpoint?")
        person.press("Escape")
        person.until(lambda text: "Which checkpoint?" not in text and "Given up" in text, "the dashboard")
