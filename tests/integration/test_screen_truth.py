"""A person at a real terminal looks at real runs with real faults: the head of the screen says what is the case."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import World, world
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.tiers import SECOND_TIER

__all__ = ["world"]
pytestmark = [NO_TMUX, pytest.mark.tmux, SECOND_TIER]

NAN_TRAINER = """
import pathlib, sys, time
for step in range(1, int(sys.argv[1]) + 1):
    time.sleep(0.05)
    print(f"step {step}/{sys.argv[1]} loss {'nan' if step >= 40 else 2 / step}", flush=True)
    while step == 60 and not pathlib.Path("go").exists():
        time.sleep(0.05)
        print(f"step {step}/{sys.argv[1]} loss nan", flush=True)
"""


def head(text: str) -> str:
    """The rows of the screen above the first pane, in one line."""
    rows = text.splitlines()
    above = next((n for n, row in enumerate(rows) if "╭" in row), len(rows))
    return " ".join(" ".join(row.split()) for row in rows[:above])


def open_screen(person: Terminal) -> None:
    person.trainwatch()
    person.see("╭")


def test_a_stuck_training_is_not_shown_as_training_with_a_time_of_its_end(world: World) -> None:
    world.write("--steps", "4000", "--step-time", "0.2", "--hold-at", "80", more={"hang": {"min_s": 600, "max_s": 900}})
    assert world.do("run", "--detach").code == 0
    with terminal((100, 30), world.project, world.env) as person:
        open_screen(person)
        person.until(lambda text: "done about" in head(text), "steps and a time of the end")
        said = head(person.until(lambda text: "▲ Last step" in head(text), "the silence"))
        assert "done about" not in said


def test_nan_is_danger_through_acknowledgement_and_the_end(world: World) -> None:
    (world.project / "nan.py").write_text(NAN_TRAINER)
    assert world.do("run", "--detach", "--act", "notify", "--name", "nan", "--", "python", "nan.py", "100").code == 0
    with terminal((100, 30), world.project, world.env) as person:
        person.trainwatch("--run", "nan")
        person.until(lambda text: "✖ Loss is NaN since step 4" in head(text), "the NaN")
        person.press("c")
        person.until(
            lambda text: "✖ Loss is NaN since step 4" in head(text) and ", acknowledged" in head(text),
            "it stays after c",
        )
        (Path(world.project) / "go").touch()
        said = head(person.until(lambda text: "Finished" in head(text) or "Crashed" in head(text), "the end"))
        assert "✖" in said
        assert "Loss is NaN since step 4" in said or "loss is NaN" in said


def test_a_wait_is_shown_with_its_end(world: World) -> None:
    world.write("--steps", "4000", "--step-time", "0.1")
    assert world.do("run", "--detach").code == 0
    world.at_step(20)
    with terminal((100, 30), world.project, world.env) as person:
        open_screen(person)
        assert world.do("wait", "--yes").code == 0
        person.until(lambda text: "hang detection is off until then" in head(text), "the wait")


def test_a_dead_supervisor_is_the_first_thing_that_is_said(world: World) -> None:
    world.write("--steps", "4000", "--step-time", "0.1")
    assert world.do("run", "--detach").code == 0
    world.at_step(20)
    with terminal((100, 30), world.project, world.env) as person:
        open_screen(person)
        os.kill(world.status()["supervisor"]["pid"], signal.SIGKILL)
        person.until(lambda text: "✖ No supervisor is running" in head(text), "the missing supervisor")


def test_ctrl_z_leaves_to_the_shell_and_fg_comes_back(world: World) -> None:
    world.write("--steps", "4000", "--step-time", "0.1")
    assert world.do("run", "--detach").code == 0
    with terminal((100, 30), world.project, world.env) as person:
        person.run("set -m")
        person.run(f"{sys.executable} -m trainwatch")
        person.see("╭", "Training")
        person.press("C-z")
        person.until(lambda text: "Stopped" in text and "╭" not in text, "the shell")
        person.run("fg")
        person.see("╭", "Training")
        person.press("q")
        person.until(lambda text: "╭" not in text, "the end")


def test_the_log_opens_on_a_terminal_of_five_rows(world: World) -> None:
    world.write("--steps", "4000", "--step-time", "0.1")
    assert world.do("run", "--detach").code == 0
    with terminal((80, 5), world.project, world.env) as person:
        person.trainwatch()
        person.see("Training")
        person.press("2")
        person.see("2 log", "avr_loss", "space")
