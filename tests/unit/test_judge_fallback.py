"""A profile whose start dies before its first step: back to the settings that ran, at once, uncharged, remembered."""

import msgspec
import pytest

from tests.builders import World, knowledge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_ramp import on, profiles, saves
from tests.unit.test_judge_recovery import crash, save, story
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import StartAttempt
from trainwatch.core.model.fact import BudgetChanged, Note, RampMoved, RemediesDropped, RemedyApplied
from trainwatch.core.model.observation import Start
from trainwatch.core.model.preset import Change, Preset
from trainwatch.core.model.settings import Profiles, Restart, Settings

ARGPARSE = "usage: train.py [-h] [--steps STEPS]\ntrain.py: error: unrecognized arguments: --safe_mode\n"
BUG = "Traceback (most recent call last):\nAttributeError: 'Namespace' object has no attribute 'fused'\n"
OOM = "\ntorch.cuda.OutOfMemoryError: CUDA out of memory\n"
NETWORK = "\nsocket.gaierror: [Errno -3] Temporary failure in name resolution\n"


def mind(settings: Settings | None = None, **fields: object) -> Judge:
    """A judge with the shipped catalogue."""
    return Judge(msgspec.structs.replace(knowledge(settings, **fields), catalogue=CATALOGUE))  # type: ignore[arg-type]


def switched(use: str | None = None, to: str = "safe_mode") -> World:
    """A run that trained, and was switched to another profile by a person."""
    settings = Settings(
        profiles=Profiles(use=use),
        restart=Restart(backoff_s=(0.0,)),
    )
    world = World(mind(settings)).begin().watch(story(40))
    return save(world).command("profile", profile=to, now=True)


@pytest.mark.parametrize(("text", "code"), [(ARGPARSE, 2), (BUG, 1), ("", 1)])
@pytest.mark.parametrize("use", [None, "careful"])
def test_a_profile_that_does_not_start_gives_way_to_what_ran(text: str, code: int, use: str | None) -> None:
    world = crash(switched(use), text, code)
    assert profiles(world) == [use, "safe_mode", use]
    last = world.of(StartAttempt)[-1]
    assert last.resume_from == "out/step-40"
    assert "profile safe_mode does not start here: back to" in last.reason
    assert world.of(BudgetChanged) == []
    assert any("profile safe_mode does not start here: back to" in n.text for n in world.of(Note))
    assert [r.profile for r in world.state.policy.ramp.failed] == ["safe_mode"]
    on(world)
    assert world.word == "running"


def test_the_world_outside_is_not_the_profile() -> None:
    world = crash(switched(), NETWORK).wait(60.0)
    assert profiles(world) == [None, "safe_mode", "safe_mode"]


def test_a_first_start_with_a_profile_goes_back_to_the_own_settings_of_the_user() -> None:
    world = World(mind(Settings(profiles=Profiles(use="safe_mode"))))
    crash(world.begin(), ARGPARSE, 2)
    assert profiles(world) == ["safe_mode", None]
    assert "profile safe_mode does not start here: back to your own config as it stands" in world.text()
    assert world.of(BudgetChanged) == []
    crash(world, ARGPARSE, 2)
    assert world.word == "given_up", "without any change of ours it is the user's own"


def test_a_profile_that_is_measured_is_not_left() -> None:
    """A trial of a profile that does not start went on without it, and its pace was shown as the profile's."""
    world = World(mind(Settings(profiles=Profiles(use="safe_mode"), restart=Restart(max_restarts=0))))
    crash(world.begin(), ARGPARSE, 2)
    assert profiles(world) == ["safe_mode"]
    assert world.word == "given_up"


@pytest.mark.parametrize("text", [OOM, NETWORK, ""])
def test_a_first_start_that_fails_for_something_else_keeps_its_profile(text: str) -> None:
    world = World(mind(Settings(profiles=Profiles(use="safe_mode"))))
    crash(world.begin(), text).wait(31.0)
    assert set(profiles(world)) == {"safe_mode"}


def test_a_remedy_that_does_not_start_is_taken_back_and_not_taken_again() -> None:
    settings = Settings(restart=Restart(backoff_s=(0.0,)))
    knows = mind(settings, remedies=load_remedies(), values={"": {"train_batch_size": 4}}, preset=Preset(name="kohya"))
    world = save(World(knows).begin().watch(story(40)))
    crash(world, OOM)
    (remedy,) = world.of(RemedyApplied)
    crash(world, ARGPARSE, 2)
    assert world.of(StartAttempt)[-1].changes == ()
    assert f"trainwatch's own change ({remedy.name}) does not start here: it is taken back" in world.text()
    assert world.of(RemediesDropped)[0].names == (remedy.name,)
    assert [b.used for b in world.of(BudgetChanged)] == [1]
    crash(on(world), OOM)
    assert remedy.name not in [r.name for r in world.of(RemedyApplied)[1:]]


def test_a_start_with_changes_of_ours_that_is_given_up_names_them() -> None:
    change = Change(where="flag", key="--resume", before=None, after="out/step-40")
    world = World(mind(Settings(restart=Restart(max_restarts=0)))).begin()
    world.see(Start(t=world.t, attempt=1, pid=9, changes=(change,)))
    crash(world, ARGPARSE, 2)
    assert (
        "changes that trainwatch made, which may be what does not start: --resume None -> out/step-40" in world.text()
    )


def test_a_launch_that_the_settings_made_impossible() -> None:
    world = World(mind()).begin().watch(story(40))
    save(world).answer("start_attempt", ok=False, detail="a shell line", retryable=False, settings=True)
    world.command("profile", profile="safe_mode", now=True)
    assert profiles(world) == [None, "safe_mode", None]
    on(world)
    assert world.word == "running"


def test_a_rung_that_the_ramp_climbed_to_and_that_does_not_start_is_not_climbed_to_again() -> None:
    settings = Settings(
        profiles=Profiles(use="low", ladder=("low", "high"), ramp=("1 checkpoint",)), restart=Restart(backoff_s=(0.0,))
    )
    world = World(mind(settings)).begin().watch(story(5))
    saves(world, 5)
    assert profiles(world) == ["low", "high"]
    crash(world, ARGPARSE, 2)
    assert profiles(world) == ["low", "high", "low"]
    assert [(m.direction, m.before, m.after) for m in world.of(RampMoved)] == [
        ("up", "low", "high"),
        ("back", "high", "low"),
    ]
    saves(on(world), 7, 9)
    assert profiles(world) == ["low", "high", "low"]
    assert world.of(BudgetChanged) == []


def test_a_beginning_from_scratch_stays_one() -> None:
    world = World(mind()).begin().watch(story(40))
    save(world)
    world.command("profile", profile="safe_mode").command("restart", fresh=True)
    crash(world, ARGPARSE, 2)
    assert [s.resume_from for s in world.of(StartAttempt)] == [None, None, None]


def test_asked_for_by_name_it_is_tried_again() -> None:
    world = on(crash(switched(), ARGPARSE, 2)).command("profile", profile="safe_mode", now=True)
    assert profiles(world)[-1] == "safe_mode"
    assert world.state.policy.ramp.failed == ()


def test_remedies_that_ran_come_back_with_the_settings() -> None:
    settings = Settings(restart=Restart(backoff_s=(0.0,)))
    world = save(World(mind(settings, remedies=load_remedies())).begin().watch(story(40)))
    on(world.command("restart", remedies=["expandable-segments"]))
    before = world.state.policy.applied
    world.command("profile", profile="safe_mode", now=True)
    assert world.of(StartAttempt)[-1].changes == ()
    crash(world, ARGPARSE, 2)
    assert world.state.policy.applied == before
    assert before


def test_what_a_person_chose_meanwhile_goes_before_what_ran() -> None:
    world = crash(switched().command("profile", profile="third"), ARGPARSE, 2)
    assert profiles(world) == [None, "safe_mode", "third"]
    assert any("profile safe_mode does not start here: back to" in n.text for n in world.of(Note))
