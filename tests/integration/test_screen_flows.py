"""A night at the screen by keys alone, in real terminals: launch, attach, come back, a hang, why, another profile, an
older checkpoint, the minutes around the hang, leave."""

import re
import sys
import time
from collections.abc import Iterator

import pytest

from tests.fakes.e2e_world import HASTY, World, until
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.tiers import SECOND_TIER

pytestmark = [pytest.mark.tmux, NO_TMUX]


@pytest.fixture(params=[(200, 50), (80, 24)], ids=["200x50", "80x24"])
def person(world: World, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """Sits at a terminal of this size, in the project."""
    profiles = world.project / "profiles"
    profiles.mkdir()
    (profiles / "calm.toml").write_text('title = "Calm"\nflags = ["--step-time", "0.06"]\n')
    (profiles / "brisk.toml").write_text('title = "Brisk"\nflags = ["--step-time", "0.04"]\n')
    world.write(
        "--steps", "5000", "--step-time", "0.05", "--save-every", "40", "--hang-at", "90", "--busy",
        more=HASTY | {"tmux": {"enabled": True}, "profiles": {"ladder": ["calm", "brisk"]}},
    )  # fmt: skip
    with terminal(request.param, world.project, world.env) as made:
        yield made


def step_back(person: Terminal, before: str) -> str:
    """Move the cursor of the timeline, and see where it is: keys pressed ahead pass by what is looked for."""

    def place(text: str) -> str:
        found = re.search(r"╭─ (\d\d:\d\d:\d\d · .+?) ─", text)
        return found[1] if found else before

    person.press("Left")
    return place(person.until(lambda text: place(text) != before, "the event before"))


def confirm(person: Terminal, question: str) -> None:
    """Answer it; a typed yes where it is not known how much is lost, which may change while the question is open."""

    def answered(text: str) -> bool:
        if question not in text:
            return True
        person.press(*(["y", "e", "s"] if "Type yes" in text else []), "Enter")
        time.sleep(1.0)
        return False

    person.see(question)
    person.until(answered, f"the end of {question!r}")


@SECOND_TIER
def test_a_run_is_operated_by_keys_from_launch_to_finish(world: World, person: Terminal) -> None:
    person.trainwatch()
    person.see("plan · job", "preset", "command")
    person.press("Enter")  # waits for the checks; on a busy machine it asks whether to go without the last ones

    def training(text: str) -> bool:
        if "Start it all the same?" in text:
            person.press("y")
        return "● Training" in text

    person.until(training, "it trains")

    person.see("a attach")
    person.press("a")
    person.see("1:trainer", "steps:")
    person.press("C-b", "d")
    person.see("Back. The training was not touched.")

    person.see("◼ hang", "recovered", "attempt 2")
    person.press("3")
    person.see("no step and no sign of life", "step 90", "Enter what to do")
    person.press("Enter")
    card = person.until(lambda text: "see the stacks" in text, "the card of the hang")
    person.press(card.partition("] see the stacks")[0][-1])
    person.see("first look", "hang", "e2e_trainer.py")
    person.press("Escape")
    person.see("Enter what to do")
    person.press("Escape")
    person.see("a attach")

    person.see("steps/s · done")  # until the pace is known, a question about lost work asks for a typed yes
    person.press_until("p", "ladder · safest first", "Brisk")
    person.press("Down", "n")
    confirm(person, "Switch to the profile brisk?")
    person.see("brisk, rung 2 of 2")
    person.press_until("1", "a attach", "attempt 3")
    assert until(lambda: world.story().profile == "brisk", "the profile")

    until(lambda: sum(c.verdict == "complete" for c in world.story().checkpoints) >= 3, "checkpoints to choose from")
    until(lambda: world.story().state == "running" and len(world.story().attempts) == 3, "the third attempt trains")
    person.see("steps/s · done")
    person.press_until("r", "Which checkpoint?")
    person.press("Down", "Enter")
    confirm(person, "Starts from")
    person.see("attempt 4")
    story = world.in_state("running")
    older = story.attempts[-1].resume_step
    assert older is not None
    assert any((c.step or 0) > older for c in story.checkpoints), "it is not the newest"

    at = ""
    while "· hang ·" not in at:
        at = step_back(person, at)
    person.press("[")
    person.until(lambda text: re.search(r"60 s about \d\d:", text) and "◼" in text, "the minute around the hang")
    person.press("Escape", "Escape")
    person.see("a attach")
    person.press_until("q", "training and supervisor continue")  # right behind Escape it may arrive as Alt+q
    person.until(lambda _: person.ended, "it ends")
    assert world.alive(4)


def test_the_screen_has_the_size_of_its_terminal_and_attach_inside_a_users_tmux_switches_there_and_back(
    world: World,
) -> None:
    """Exported LINES and COLUMNS do not count."""
    world.write("--steps", "5000", "--step-time", "0.05", more={"tmux": {"enabled": True}})
    world.headless()
    world.at_step(1)
    with terminal((120, 40), world.project, world.env) as person:
        person.run("export COLUMNS=60 LINES=15")
        person.run(f"{sys.executable} -m trainwatch")  # no exec: the shell goes on
        text = person.see("● Training", "a attach")
        assert max(map(len, text.splitlines())) > 100
        assert len(text.rstrip().splitlines()) == 40
        for size in ((45, 30), (200, 50), (20, 5), (80, 24)):
            person.tmux("resize-window", "-x", str(size[0]), "-y", str(size[1]))
        person.until(lambda t: max(map(len, t.splitlines())) == 80 and "a attach" in t, "the last of many sizes")
        person.press("X", "F9", "C-g", "q")
        person.see("training and supervisor continue")
        person.tmux("resize-window", "-x", "120", "-y", "40")
        person.run("clear; tmux -f /dev/null new-session")
        person.until(lambda text: re.search(r"^\[\d+\] 0:", text, re.MULTILINE), "a tmux of one's own")
        person.run(f"{sys.executable} -m trainwatch")
        person.see("● Training", "a attach")
        person.press("a")
        person.see("1:trainer", "steps:")
        person.press("C-b", "d")
        person.see("Back. The training was not touched.", "● Training")
        person.press("q")
        person.see("training and supervisor continue")
