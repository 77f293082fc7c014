"""A trainer that chooses its checkpoint by itself, and a torn or non-finite file that is newer than the resume point."""

from typing import Any

import msgspec
import pytest

from tests.builders import World, judge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_branches import GENERIC, NOWHERE, at_step, saved
from tests.unit.test_judge_kept_copies import cut
from tests.unit.test_judge_nan import told
from tests.unit.test_judge_recovery import crash, quick, running
from tests.unit.test_judge_resume_doubt import UNREADABLE
from tests.unit.test_loss_divergence import PLAIN, falling, train
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import NotifyPeople, StartAttempt, VerifyCheckpoint
from trainwatch.core.model.fact import AttemptStarted
from trainwatch.core.model.observation import CheckpointEvent, CheckpointValues
from trainwatch.core.model.preset import ResumeStyle, resume_support
from trainwatch.core.model.progress import Why
from trainwatch.core.model.settings import LossSettings

GOOD, NEW = "out/model_30.pt", "out/model_60.pt"
MOVE = f"`mv -- {NEW} {NEW}.torn`"


def chooser(style: ResumeStyle, **settings: Any) -> Judge:
    preset = msgspec.structs.replace(GENERIC, resume_file=style, resume_directory=style)
    return judge(
        msgspec.structs.replace(quick(), **settings),
        preset,
        catalogue=CATALOGUE,
        resume_support=resume_support(preset, NOWHERE),
    )


def torn_run(style: ResumeStyle) -> World:
    world = saved(at_step(running(chooser(style)), 30), GOOD, 30)
    return crash(cut(at_step(world, 60), NEW)).wait(1.0)


def is_held(world: World) -> bool:
    return world.why == Why("bad_in_front")


ITSELF = ResumeStyle(by_itself=True)
CUT = """Traceback (most recent call last):
  File "/w/train.py", line 37, in <module>
    state = torch.load(found[-1])
"""


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (ITSELF, UNREADABLE),
        (ResumeStyle(args=("--resume",)), UNREADABLE),
        (ITSELF, f"{CUT}OSError: [Errno 22] Invalid argument\n"),  # torch 2.13, a file of 56 kB cut to 16 kB
        (ITSELF, f"{CUT}EOFError\n"),  # one of 0 bytes
        (ITSELF, f"{CUT}KeyError: 'optimizer'\n"),
    ],
)
def test_a_torn_file_that_the_trainer_took_is_not_started_into_again(style: ResumeStyle, text: str) -> None:
    """It was started three times "from" the whole one, opened the torn one each time, and was given up."""
    world = torn_run(style)
    start = world.of(StartAttempt)[-1]
    assert "as the trainer chooses: the newest whole one is model_30.pt (step 30); model_60.pt is torn" in start.reason
    assert (world.of(AttemptStarted)[-1].resume_step, world.of(AttemptStarted)[-1].may_take) == (None, "model_60.pt")

    crash(world, text)

    assert is_held(world)
    (torn,) = (i for i in world.incidents if i.kind == "checkpoint")
    assert torn.ending == "the trainer may take it"
    assert MOVE in world.of(NotifyPeople)[-1].body
    assert len(world.of(StartAttempt)) == 2
    world.see(CheckpointEvent(t=world.t, path=NEW, event="removed")).command("resume")
    assert "from model_30.pt (step 30)" in world.of(StartAttempt)[-1].reason


@pytest.mark.parametrize(("steps", "newest", "held"), [(0, NEW, True), (0, GOOD, False), (40, NEW, False)])
def test_a_torn_file_from_before_the_run_is_not_started_into_again(steps: int, newest: str, held: bool) -> None:
    """It was started four times into it and given up. One that an attempt trained beside, or an older one, is none."""
    world = World(chooser(ITSELF)).begin()
    for path in (GOOD, NEW):
        event = CheckpointEvent(t=1.0, path=path, event="complete", mtime=0.5 if path == newest else 0.2, made="before")
        world.see(msgspec.structs.replace(event, verdict="torn" if path == NEW else None))
    crash(world, "Segmentation fault (core dumped)\n").wait(60.0)  # it may pass, and shows nothing of the file
    crash(at_step(world, 1, steps) if steps else world, f"{CUT}EOFError\n").wait(600.0)
    assert (is_held(world), len(world.of(StartAttempt))) == (held, 2 if held else 3)
    assert not held or f"and it starts from what else it finds: {MOVE}" in world.of(NotifyPeople)[-1].body


def test_a_trainer_that_skips_the_torn_file_or_is_told_its_checkpoint_goes_on() -> None:
    world = at_step(torn_run(ITSELF), 31)
    assert world.word == "running"
    assert not [i for i in world.incidents if i.open]
    world = crash(torn_run(ITSELF), UNREADABLE.replace("zip archive", "/data/shard-7.tar"))
    assert not is_held(world)
    world = crash(torn_run(ITSELF), "", code=137)
    assert not is_held(world)
    world = crash(torn_run(ResumeStyle(args=("--resume", "{path}"))), UNREADABLE)
    assert not is_held(world)
    assert "start attempt 2 from model_30.pt (step 30)" in world.of(StartAttempt)[1].reason


def test_going_back_before_a_nan_is_not_ordered_over_files_with_it() -> None:
    """ "back to model_100.pt" was said, and the trainer loaded the NaN."""
    world = saved(at_step(running(chooser(ITSELF)), 30), GOOD, 30)
    told(world, *["nan"] * 30, start=41)
    told(saved(world, NEW, 60), *["nan"] * 20)
    assert is_held(world)
    assert "it starts from model_30.pt (step 30)" in world.text()
    assert len(world.of(StartAttempt)) == 1
    world.command("resume")
    assert (is_held(world), len(world.of(StartAttempt))) == (True, 1)


def test_nothing_is_recovered_by_an_attempt_whose_first_losses_are_nan() -> None:
    world = saved(at_step(running(chooser(ITSELF)), 30), GOOD, 30)
    told(crash(world), *["nan"] * 5, start=31)
    assert [i.class_ for i in world.incidents if i.open and i.kind == "crash"] != []
    told(world, "0.5", "0.4", "0.3", start=36)
    assert not [i for i in world.incidents if i.open]


@pytest.mark.parametrize(("read", "nonfinite"), [("already", ()), ("at the launch", ()), ("at the launch", ("w",))])
def test_what_the_trainer_may_take_is_read_before_it_is_held_for(read: str, nonfinite: tuple[str, ...]) -> None:
    """One bad batch makes the losses NaN, not the weights. Values that were still to be read held the run for a night."""
    world = saved(at_step(running(chooser(ITSELF)), 30), GOOD, 30)
    told(world, *["nan"] * 30, start=41)
    written = world.t
    saved(world, NEW, 60)
    if read == "already":
        world.see(CheckpointValues(t=world.t, path=NEW, mtime=written))
    verdict = "nonfinite" if nonfinite else "complete"
    world.answer("verify_checkpoint", ok=not nonfinite, verdict=verdict, nonfinite=nonfinite, nan=nonfinite)
    told(world, *["nan"] * 20)
    assert world.of(VerifyCheckpoint)[0].path == (GOOD if read == "already" else NEW)
    assert (is_held(world), len(world.of(StartAttempt))) == ((True, 1) if nonfinite else (False, 2))


def test_finite_values_say_nothing_of_what_was_saved_after_the_loss_diverged() -> None:
    good = falling(100)
    mind = chooser(ITSELF, loss=LossSettings(diverged="rollback"))
    world = saved(train(World(mind).begin(), PLAIN, good), GOOD, 100)
    train(world, PLAIN, [good[-1] * 1e5] * 4)
    written = world.t
    saved(world, NEW, 104).see(CheckpointValues(t=world.t, path=NEW, mtime=written))
    assert is_held(train(world, PLAIN, [good[-1] * 1e5] * 30))
