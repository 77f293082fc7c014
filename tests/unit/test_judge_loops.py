"""Busy processes in a loop: repeated looks at their stacks are evidence, and what ending the run costs decides."""

import pytest

from tests.builders import Story, World, judge
from tests.unit.test_judge_recovery import running, save
from trainwatch.core.model.decision import LookForLoop
from trainwatch.core.model.settings import Hang, Restart, Settings

SPIN = {"loops": {"7": "Trainer.spin (train.py:31)"}, "elsewhere": "", "moving": False}
IN_A_CALL = {"loops": {}, "elsewhere": "thread 7 of process 7 is busy in no such loop: svd", "moving": False}
NO_STACK = {"loops": {}, "elsewhere": "process 7 (python) shows no Python stack", "moving": False, "unread": True}
WORKS = {"loops": {}, "elsewhere": "thread 7 of process 7 is busy in no such loop: forward", "moving": True}


def unread(steps: int = 100, mind: World | None = None, cpu: float = 1.0) -> World:
    """A run without GPU readings that has just saved."""
    world = mind if mind is not None else World()
    story = Story(meta=False, gpus=1)
    story.util = story.power = False
    return save(world.begin().watch(story.load(10).train(steps, cpu=cpu)))


def busy(seconds: float, cpu: float = 1.0, **fields: object) -> Story:
    """Cores are busy, nothing else is seen."""
    story = Story(meta=False, gpus=1)
    story.util = story.power = False
    return story.go(seconds, cpu=cpu, **fields)  # type: ignore[arg-type]


def finding(world: World, *found: dict[str, object]) -> World:
    """Answer the next looks; the last answer is that of all later ones, too."""
    for data in (*found, *found[-1:] * 60):
        world.answer("look_for_loop", **data)  # type: ignore[arg-type]
    return world


def looks(world: World) -> list[float]:
    """The silence at each look."""
    beat = world.state.attempt.beat_t or 0.0
    return [t - beat for t, entry in world.entries if isinstance(entry, LookForLoop)]


def detected(world: World) -> float:
    """The silence at which the one hang was declared."""
    (hang,) = world.hangs
    assert hang.class_ == "spin"
    return hang.detect_s or 0.0


def test_loop_without_gpu_readings_is_ended_soon_after_a_save() -> None:
    world = finding(unread(), SPIN).watch(busy(400))
    assert 250.0 < detected(world) < 300.0
    assert any("Trainer.spin (train.py:31)" in e.what for e in world.hangs[0].evidence)
    assert [i.kind for i in world.incidents][:2] == ["quiet", "hang"]


@pytest.mark.parametrize(
    ("seen", "least", "most"),
    [
        ((SPIN, NO_STACK, SPIN), 280.0, 330.0),
        (({**SPIN, "polls": True},), 530.0, 600.0),
        ((IN_A_CALL,), 800.0, 850.0),
        (({},), 800.0, 850.0),
    ],
    ids=["a look without a stack", "it asks for something", "one call", "no stacks"],
)
def test_what_looks_show_gives_busy_processes_more_time(
    seen: tuple[dict[str, object], ...], least: float, most: float
) -> None:
    assert least < detected(finding(unread(), *seen).watch(busy(most + 70.0))) < most


def test_loop_with_hours_unsaved_gets_more_time() -> None:
    story = Story(meta=False, gpus=1)
    story.util = story.power = False
    world = finding(World().begin().watch(story.load(10).train(4000)), SPIN).watch(busy(900))
    assert 400.0 < detected(world) < 600.0


def test_one_look_is_not_enough() -> None:
    world = finding(unread(), SPIN, IN_A_CALL, SPIN, IN_A_CALL).watch(busy(800))
    assert world.hangs == []


def test_agreeing_looks_are_some_time_apart() -> None:
    world = finding(unread(), SPIN).watch(busy(400))
    assert 25.0 <= looks(world)[1] - looks(world)[0] <= 40.0


def test_work_is_looked_at_less_often_the_longer_it_lasts() -> None:
    world = finding(unread(), WORKS).watch(busy(2400))
    assert 5 <= len(looks(world)) <= 8


def test_first_silent_evaluation_that_moves_through_its_functions_is_not_ended() -> None:
    world = finding(unread(), WORKS, IN_A_CALL).watch(busy(2400))
    assert world.hangs == []
    assert [i.kind for i in world.incidents] == ["quiet", "stall"]


def test_loop_beside_an_idle_gpu_is_found() -> None:
    world = finding(save(running(steps=100)), SPIN).watch(Story(meta=False).go(400, cpu=1.0))
    assert detected(world) < 300.0


def test_loop_in_an_announced_phase_gets_the_time_of_that_phase() -> None:
    world = finding(unread(), SPIN).watch(busy(700, logs=[(1.0, "\n***** Running Evaluation *****\n")]))
    assert 360.0 < detected(world) < 420.0


def test_loop_whose_end_waits_for_an_answer_is_not_over() -> None:
    mind = World(judge(Settings(restart=Restart(act="ask"))))
    world = finding(unread(mind=mind), SPIN).watch(busy(300))
    assert world.hangs[0].open
    assert "stop_attempt" not in world.decisions
    world.command("restart")
    assert "stop_attempt" in world.decisions


def test_lost_look_is_asked_for_again() -> None:
    world = unread(mind=World(silent={"look_for_loop"})).watch(busy(350))
    assert len(looks(world)) >= 3
    assert world.hangs == []


def test_short_silence_on_a_machine_that_is_busy_with_other_work_is_not_dead() -> None:
    """Seen with ``hang.min_s = 6`` at a load of 46 on two cores: an evaluation was ended after 11 s."""
    mind = World(judge(Settings(hang=Hang(min_s=6.0, max_s=120.0))))
    world = unread(mind=mind, cpu=0.3).watch(busy(30, cpu=0.05, states={"R": 1}))
    assert world.hangs == []
