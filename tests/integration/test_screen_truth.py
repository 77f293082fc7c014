"""A person at a real terminal looks at real runs with real faults: the head of the screen says what is the case."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import HASTY, World, until
from tests.fakes.repeated_facts import lines_of, repeated
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.tiers import SECOND_TIER

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


NAN_SAVER = """
import json, pathlib, struct, sys, time
shape = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
text = json.dumps(shape).encode()
for step in range(1, int(sys.argv[1]) + 1):
    time.sleep(0.05)
    print(f"step {step}/{sys.argv[1]} loss {'nan' if step >= 40 else 2 / step}", flush=True)
    if step % 20 == 0:
        folder = pathlib.Path(f"out/checkpoint-{step}")
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<2f", 1, 2))
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    while step == 60:
        time.sleep(0.05)
        print(f"step {step}/{sys.argv[1]} loss nan", flush=True)
"""
FLOOD = """
import pathlib, sys, time
step = 0
while True:
    lines = 20 if pathlib.Path("enough").exists() else 4000
    sys.stdout.write("".join(f"step {step + n}/10000000 loss 0.5 lr 1e-4 grad_norm 0.1\\n" for n in range(lines)))
    sys.stdout.flush()
    step += lines
    time.sleep(0.05)
"""


def head(text: str) -> str:
    """The rows of the screen above the first pane, in one line."""
    rows = text.splitlines()
    above = next((n for n, row in enumerate(rows) if "╭" in row), len(rows))
    return " ".join(" ".join(row.split()) for row in rows[:above])


@contextlib.contextmanager
def training(
    world: World, words: str, *, more: Any = None, size: tuple[int, int] = (100, 30), at_step: int = 0
) -> Iterator[Terminal]:
    """A person at a terminal beside a run that was started there."""
    world.write(*words.split(), more=more)
    assert world.asks("run", "--detach").code == 0
    if at_step:
        world.at_step(at_step)
    with terminal(size, world.project, world.env) as person:
        yield person


def open_screen(person: Terminal, *words: str) -> None:
    """To whom a key was pressed already, the screen shows no card of what needs somebody by itself."""
    person.trainwatch(*words)
    person.see("╭")
    person.press("Escape")


def test_a_stuck_training_is_not_shown_as_training_with_a_time_of_its_end(world: World) -> None:
    with training(
        world, "--steps 4000 --step-time 0.2 --hold-at 80", more={"hang": {"min_s": 600, "max_s": 900}}
    ) as person:
        open_screen(person)
        person.until(lambda text: "done about" in head(text), "steps and a time of the end")
        said = head(person.until(lambda text: "▲ Last step" in head(text), "the silence"))
        assert "done about" not in said


def test_nan_is_danger_through_acknowledgement_and_the_end(world: World) -> None:
    (world.project / "nan.py").write_text(NAN_TRAINER)
    assert world.asks("run", "--detach", "--act", "notify", "--name", "nan", "--", "python", "nan.py", "100").code == 0
    with terminal((100, 30), world.project, world.env) as person:
        open_screen(person, "--run", "nan")
        person.until(lambda text: "✖ Loss is NaN since step 4" in head(text), "the NaN")
        first = world.asks("status", "nan").out.splitlines()[0]
        assert not repeated(lines_of(world.asks("report", "nan", "--short")))
        assert re.fullmatch(r"nan: running \((last step .* · )?Loss is NaN since step 4\d\)", first), first
        person.press("c")
        person.until(
            lambda text: "✖ Loss is NaN since step 4" in head(text) and ", acknowledged" in head(text),
            "it stays after c",
        )
        (Path(world.project) / "go").touch()
        said = head(person.until(lambda text: "Finished" in head(text) or "Crashed" in head(text), "the end"))
        assert "✖" in said
        assert "Loss is NaN since step 4" in said or "loss is NaN" in said
        assert "Loss is NaN since step 4" in world.asks("status", "nan").out.splitlines()[0]


def test_a_wait_is_shown_with_its_end(world: World) -> None:
    with training(world, "--steps 4000 --step-time 0.1", at_step=20) as person:
        open_screen(person)
        assert world.asks("snooze", "--yes").code == 0
        person.until(lambda text: "hang detection is off until then" in head(text), "the wait")


def test_a_dead_supervisor_is_the_first_thing_that_is_said(world: World) -> None:
    with training(world, "--steps 4000 --step-time 0.1", at_step=20) as person:
        open_screen(person)
        os.kill(world.status()["supervisor"]["pid"], signal.SIGKILL)
        person.until(lambda text: "✖ No supervisor is running" in head(text), "the missing supervisor")


def test_what_is_asked_of_a_frozen_supervisor_waits_and_what_it_was_to_kill_is_not_restarted(world: World) -> None:
    with training(world, "--steps 4000 --step-time 0.1", at_step=20) as person:
        open_screen(person)
        pid = world.status()["supervisor"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            person.until(lambda text: "✖ The supervisor (pid" in head(text), "the frozen supervisor")
            person.see("last seen running", "s ago")
            for key, shown in {
                "P": "Pause the",
                "Enter": "Pause asked",
                "s": "Refused: pause",
                "z": "taken back",
            }.items():
                person.press(key)
                person.see(shown)
            os.kill(pid, signal.SIGCONT)
            person.until(lambda text: "● Training" in head(text), "it goes on, and is not paused")
            os.kill(pid, signal.SIGSTOP)
            person.until(lambda text: "✖ The supervisor (pid" in head(text), "it is frozen again")
            for keys, shown in ((("K",), "type yes"), (("y", "e", "s", "Enter"), "without its supervisor?")):
                person.press(*keys)
                person.see(shown)
            person.press("Enter")
            person.see("ended by SIGKILL")
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: world.status()["state"] == "stopped", "the order is carried out")
        assert len(world.story().attempts) == 1


def test_a_given_up_run_is_not_said_to_be_watched(world: World) -> None:
    world.write("--fail-at-once", "import")
    assert world.headless().ends() == 1
    with terminal((100, 30), world.project, world.env) as person:
        person.trainwatch()
        person.see("needs you")
        person.press("Escape")
        person.until(lambda text: "✖ Given up" in head(text) and "needs you" not in text, "the sentence")
        assert "S supervise" not in person.text
        person.press("S")
        person.see("The run was given up: e shows why, r resumes it.")
        assert "supervisor is running" not in person.text


def test_a_restart_by_a_person_is_not_told_as_the_hang_of_an_hour_ago(world: World) -> None:
    with training(world, "--steps 4000 --step-time 0.05 --hang-at 30 --deaf", more=HASTY) as person:
        person.trainwatch()
        person.until(lambda text: "● Training" in head(text) and "attempt 2" in head(text), "the recovery")
        until(lambda: not world.story().open_incidents, "the end of the incident")
        assert world.do("restart", "--yes").code == 0
        seen: list[str] = []

        def again(text: str) -> bool:
            seen.append(head(text))
            return "attempt 3" in seen[-1]

        person.until(again, "the next attempt")
        assert not any("Hung" in each or "Crashed" in each for each in seen)


def test_a_hang_is_told_with_what_is_done_about_it_and_the_number_of_the_next_attempt(world: World) -> None:
    with training(
        world, "--steps 4000 --step-time 0.05 --hang-at 60", more={"hang": HASTY["hang"] | {"min_s": 6}}
    ) as person:
        open_screen(person)
        seen: list[str] = []

        def again(text: str) -> bool:
            seen.append(head(text))
            return "● Training" in seen[-1] and "attempt 2" in seen[-1]

        person.until(again, "the next attempt")
        assert not repeated(lines_of(world.asks("status")))
        assert not repeated(lines_of(world.asks("report", "--short")))
        assert any("✖ Seems to hang: no step for" in each and "will be ended and restarted" in each for each in seen)
        assert not any("Starting attempt 1" in each and "hung" in each for each in seen)


@pytest.mark.parametrize("size", [(100, 30), (40, 10)], ids=["100x30", "40x10"])
def test_a_silence_counts_down_to_the_restart(world: World, size: tuple[int, int]) -> None:
    with training(
        world, "--steps 4000 --step-time 0.05 --hang-at 60", more={"hang": {"min_s": 25, "max_s": 60}}, size=size
    ) as person:
        open_screen(person)
        counting = re.compile(
            r"Last step \d+ s ago, usually [\d.]+ steps/s; the trainer will be ended and restarted within 0:\d\d \(\[w\] wait\)"
        )
        person.until(lambda text: counting.search(head(text)), "the countdown")


def test_checkpoints_that_were_saved_after_the_nan_are_marked(world: World) -> None:
    (world.project / "nan.py").write_text(NAN_SAVER)
    words = ("run", "--detach", "--act", "notify", "--name", "nan", "--output-dir", "out", "--")
    assert world.do(*words, "python", "nan.py", "100").code == 0
    with terminal((120, 30), world.project, world.env) as person:
        open_screen(person, "--run", "nan")
        person.until(lambda text: "✖ Loss is NaN since step 4" in head(text), "the NaN")
        person.press("4")
        text = person.see("saved after the loss became NaN", "checkpoint-20", "checkpoint-60")
        row = next(line for line in text.splitlines() if "checkpoint-20" in line)
        assert "NaN" not in row


def test_a_person_is_offered_the_newest_checkpoint_of_before_the_nan(world: World) -> None:
    (world.project / "nan.py").write_text(NAN_SAVER)
    words = ("run", "--detach", "--act", "notify", "--name", "nan", "--output-dir", "out", "--")
    assert world.do(*words, "python", "nan.py", "100", "--resume", "{resume}").code == 0
    with terminal((120, 30), world.project, world.env) as person:
        open_screen(person, "--run", "nan")
        person.until(lambda text: "✖ Loss is NaN since step 4" in head(text) and "· step 60 ·" in text, "the NaN")
        person.press("r")
        rows = person.see("Which checkpoint?", "newest verified").splitlines()
        (offered,) = [row for row in rows if "newest verified" in row]
        assert "step 60 " not in offered
        assert any("step 60 " in row and "saved after the loss became NaN" in row for row in rows)
        person.press("Enter")
        person.see("Starts from checkpoint-", re.findall(r"step \d+", offered)[0])


def test_while_nothing_moves_no_checkpoint_and_no_end_are_promised(world: World) -> None:
    with training(
        world, "--steps 400 --step-time 0.2 --hold-at 80", more={"hang": {"min_s": 600, "max_s": 900}}
    ) as person:
        open_screen(person)
        person.see("◇")
        person.until(lambda text: "▲ Last step" in head(text), "the silence")
        person.until(lambda text: "◇" not in text, "no promise")


def test_a_log_that_is_faster_than_its_reader_is_said_to_be_behind(world: World) -> None:
    (world.project / "flood.py").write_text(FLOOD)
    assert world.asks("run", "--detach", "--name", "flood", "--", "python", "flood.py").code == 0
    with terminal((100, 30), world.project, world.env) as person:
        open_screen(person, "--run", "flood")
        person.until(lambda text: re.search(r"[Rr]eading [\d,]+ lines behind", head(text)), "the backlog")
        (world.project / "enough").touch()
        person.until(lambda text: "● " in head(text) and "lines behind" not in head(text), "it has caught up")


def test_several_troubles_are_counted_and_the_worst_comes_first(world: World) -> None:
    (world.project / "nan.py").write_text(NAN_TRAINER)
    assert world.asks("run", "--detach", "--act", "notify", "--name", "nan", "--", "python", "nan.py", "100").code == 0
    with terminal((100, 30), world.project, world.env) as person:
        open_screen(person, "--run", "nan")
        person.until(lambda text: "✖ Loss is NaN since step 4" in head(text), "the NaN")
        assert world.asks("snooze", "nan", "--yes").code == 0
        person.until(
            lambda text: re.search(r"✖ Loss is NaN since step \d+ .*\(\+\d+ more\)", head(text)), "two troubles"
        )


def test_ctrl_z_leaves_to_the_shell_and_fg_comes_back(world: World) -> None:
    with training(world, "--steps 4000 --step-time 0.1") as person:
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
    with training(world, "--steps 4000 --step-time 0.1", size=(80, 5)) as person:
        person.trainwatch()
        person.see("Training")
        person.press("2")
        person.see("2 log", "avr_loss", "space")


def test_a_run_that_a_person_killed_is_not_said_to_have_got_stuck(world: World) -> None:
    world.write(
        "--steps", "4000", "--step-time", "0.05", "--hang-at", "60", "--deaf",
        more={"hang": HASTY["hang"] | {"min_s": 6}, "restart": HASTY["restart"] | {"act": "notify"}},
    )  # fmt: skip
    assert world.asks("run", "--detach").code == 0
    with terminal((100, 30), world.project, world.env) as person:
        open_screen(person)
        person.until(lambda text: "Seems to hang" in head(text), "the hang")
        assert world.asks("kill", "--yes").code == 0
        text = person.until(lambda text: "You killed it at" in head(text), "who ended it")
        assert not re.search(r"[Gg]ot stuck|Hung|Crashed", head(text)), head(text)


def test_a_recovered_run_has_one_number_of_restarts(world: World) -> None:
    """Before: 1 restart beside 0 of 3 used."""
    with training(world, "--steps 40000 --step-time 0.05 --crash-at 60", size=(140, 30)) as person:
        open_screen(person)
        person.until(lambda text: "attempt 2" in head(text), "the next attempt")
        said = head(person.until(lambda text: "1 restart" in head(text) and "recovered" in head(text), "the restart"))
        assert re.search(r"attempt 2 · [23] restarts left", said)
        assert " used" not in said


def test_the_age_of_the_last_step_is_told_before_it_is_late(world: World) -> None:
    """From three times the usual distance on, and a warning from ten times on."""
    with training(
        world, "--steps 400 --step-time 1 --hold-at 12", more={"hang": {"min_s": 600, "max_s": 900}}
    ) as person:
        open_screen(person)
        seen: list[str] = []

        def late(text: str) -> bool:
            seen.append(head(text))
            return "▲ Last step" in seen[-1]

        person.until(late, "the warning")
        told = [said for said in seen if re.search(r"●.* last step \d+ s ago", said)]
        assert told, seen[-1]


def band_after(text: str, word: str, mark: str) -> str:
    """What the row that begins with ``word`` shows to the right of the column of a mark of the timeline."""
    rows = text.splitlines()
    column = next(row.index(mark) for row in rows if mark in row and "┃" in row)
    now = next(row.index("┃") for row in rows if mark in row and "┃" in row)
    row = next(row for row in rows if row.lstrip("│ ").startswith(word))
    return row[column + 3 : now - 1]


@pytest.mark.parametrize("size", [(120, 40), (200, 50)], ids=["120x40", "200x50"])
def test_no_curve_goes_on_while_a_restart_is_held(world: World, size: tuple[int, int]) -> None:
    """Before: the loss ran on flat until the restart, as if it were measured."""
    with training(
        world, "--steps 4000 --step-time 0.05 --crash-at 200", more={"restart": {"backoff_s": [900]}}, size=size
    ) as person:
        open_screen(person)
        person.until(lambda text: "restarting in" in head(text), "the wait")

        def has_waited(text: str) -> bool:
            return "restarting in" in head(text) and len(band_after(text, "phase", "✖").strip()) >= 6

        text = person.until(has_waited, "some seconds of it")
        assert set(band_after(text, "phase", "✖")) == {"╱"}
        for curve in ("loss", "steps/s"):
            assert set(band_after(text, curve, "✖")) == {"╱"}, text
        person.press("7")
        person.until(lambda text: "metrics ·" in text and "╱" in text, "the hatched charts")
