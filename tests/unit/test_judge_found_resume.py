"""A way to resume that was only found in the trainer's source: copied aside before, proved by its steps, else taken back."""

import msgspec
import pytest

from tests.builders import World, judge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_branches import GENERIC, at_step, notes, saved
from tests.unit.test_judge_recovery import crash, quick, running
from trainwatch.core.model.decision import CopyAside, GiveUp, StartAttempt, StopAttempt
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk
from trainwatch.core.model.preset import Preset, ResumeStyle, ResumeWay, SecondStart, resume_support, with_way

STYLE = ResumeStyle(args=("--resume", "{path}"), found="train.py:41")
FOUND = with_way(GENERIC, ResumeWay(will="yes", source="script", file=STYLE, directory=STYLE))


def found_run(preset: Preset = FOUND) -> World:
    support = resume_support(preset, ("python", "train.py"))
    return running(judge(quick(), preset, catalogue=CATALOGUE, resume_support=support))


def with_checkpoint(world: World) -> World:
    return at_step(saved(at_step(world, 200), "out/step-00200.pt", 200), 230)


def test_the_resume_point_is_copied_aside_before_the_first_resume_and_not_after_it_was_proved() -> None:
    world = with_checkpoint(found_run()).answer("copy_aside", folder="out.kept/1")

    world = crash(world)

    assert world.of(CopyAside)[0].paths == ("out/step-00200.pt",)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-00200.pt"
    world = at_step(world, 201)
    assert "the way to resume is proved" in notes(world)

    world = crash(at_step(saved(at_step(world, 300), "out/step-00300.pt", 300), 310))

    assert len(world.of(CopyAside)) == 1
    assert world.of(StartAttempt)[-1].resume_from == "out/step-00300.pt"


def test_a_run_whose_resume_point_cannot_be_copied_is_held_until_a_person_names_it() -> None:
    world = with_checkpoint(found_run()).answer("copy_aside", ok=False, detail="the disk has 0.01 GB free")

    world = crash(world)

    assert world.word == "stopped"
    assert len(world.of(StartAttempt)) == 1
    world.answer("copy_aside", ok=False, detail="the disk has 0.01 GB free")
    world = world.command("resume", checkpoint="out/step-00200.pt").wait(1.0)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-00200.pt"


def test_a_copy_that_finds_no_room_is_attempted_again_when_there_may_be_some() -> None:
    """A disk that was full has room for the next save first, and for a copy a little later."""
    no_room = "the disk has 2.84 MB free, and the copies and one more save need 67.2 MB"
    world = with_checkpoint(found_run()).answer("copy_aside", ok=False, detail=no_room, no_room=True)

    world = crash(world)

    assert world.word == "backing_off"
    assert len(world.of(StartAttempt)) == 1
    world.answer("copy_aside", folder="out.kept/1")
    world = world.wait(60.0)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-00200.pt"


def test_an_attempt_that_counts_from_the_beginning_trains_on_beside_the_copy() -> None:
    world = with_checkpoint(found_run()).answer("copy_aside", folder="out.kept/1")
    world = at_step(crash(world), 1)

    assert not world.of(StopAttempt)
    assert len(world.of(CopyAside)) == 1
    assert "out.kept/1" in notes(world)


def failed_start(text: str, code: int = 1) -> World:
    world = crash(with_checkpoint(found_run())).wait(1.0)
    return world.see(LogChunk(t=world.t, text=text), Exit(t=world.t, code=code)).wait(30.0)


TRACED = 'Traceback (most recent call last):\n  File "/w/train.py", line 4, in <module>\n    {}\n    ~~~^^^\n{}\n'
READS = 'R = sys.argv[sys.argv.index("--resume")+1] if "--resume" in sys.argv else ""'
LOADS = 'c = torch.load(a.resume); model.load_state_dict(c["model"])'
SYNTAX = (
    '  File "/w/train.py", line 21\n    for x in (1,2:\n             ^\nSyntaxError: closing parenthesis expected\n'
)
SHAPES_DIFFER = (
    "RuntimeError: Error(s) in loading state_dict for Sequential:\n\tsize mismatch for 0.weight: copying a param\n"
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --resume out/step-00200.pt\n", 2),
        ("usage: train.py [-h]\ntrain.py: error: argument --resume: expected one argument\n", 2),
        ("Usage: train.py [OPTIONS]\n\nError: No such option: --resume\n", 2),
        (TRACED.format(READS, "IndexError: list index out of range"), 1),
        (TRACED.format("c = open(a.resume)", "FileNotFoundError: No such file: 'out/out/step-00200.pt'"), 1),
    ],
)
def test_an_option_is_taken_back_if_the_failure_speaks_against_it(text: str, code: int) -> None:
    world = failed_start(text, code)

    assert "taken back" in world.of(GiveUp)[0].reason
    assert len(world.of(StartAttempt)) == 2


@pytest.mark.parametrize(
    "text",
    [
        SYNTAX,
        TRACED.format(LOADS, SHAPES_DIFFER),
        TRACED.format("import apex", "ModuleNotFoundError: No module named 'apex'"),
        "usage: train.py [-h] [--resume RESUME] --data D\ntrain.py: error: argument --data: expected one argument\n",
        "RuntimeError: something else\n",
        "",
    ],
)
def test_a_failure_of_another_kind_is_not_blamed_on_the_option(text: str) -> None:
    world = failed_start(text)
    while not world.of(GiveUp):
        world = world.wait(1.0).see(LogChunk(t=world.t, text=text), Exit(t=world.t, code=1)).wait(300.0, every_s=5.0)

    assert "taken back" not in world.of(GiveUp)[0].reason
    assert "seems wrong" not in notes(world)
    assert "no resume by the option (train.py:41) has been proved yet" in notes(world)
    assert len(world.of(StartAttempt)) >= 3


def test_a_known_way_is_not_copied() -> None:
    known = msgspec.structs.replace(STYLE, found="")
    preset = msgspec.structs.replace(GENERIC, resume_file=known, resume_directory=known)

    world = crash(with_checkpoint(found_run(preset)))

    assert not world.of(CopyAside)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-00200.pt"


def deleting_run(why: str) -> World:
    support = resume_support(FOUND, ("python", "train.py"), SecondStart(left=why))
    return running(judge(quick(), FOUND, catalogue=CATALOGUE, resume_support=support))


def test_before_a_start_that_deletes_all_checkpoints_are_linked_and_one_of_the_links_is_resumed_from() -> None:
    world = at_step(
        saved(with_checkpoint(deleting_run("train.py:7 deletes out at the start")), "out/step-00240.pt", 240), 250
    )
    places = {f"out/step-00{step}.pt": f"out.kept/1/step-00{step}.pt" for step in (200, 240)}
    world = world.answer("copy_aside", folder="out.kept/1", places=places)

    world = crash(world)

    (order,) = world.of(CopyAside)
    assert set(order.paths) == set(places)
    assert order.link
    assert world.of(StartAttempt)[-1].resume_from == "out.kept/1/step-00240.pt"
    for path in places:
        world = world.see(CheckpointEvent(t=world.t, path=path, event="removed"))
    told = [i for i in world.incidents if i.class_ == "vanished"]
    assert [i.reason for i in told] == ["step-00240.pt was deleted as attempt 2 began; copies are in out.kept/1"]

    world = crash(world)

    assert world.of(StartAttempt)[-1].resume_from == "out.kept/1/step-00240.pt"
    assert len(world.of(CopyAside)) == 1, "a copy is not copied again"
