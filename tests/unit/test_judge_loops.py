"""Busy processes in a loop: repeated looks at their stacks are evidence, and what ending the run costs decides."""

import pytest

from tests.builders import Story, World, judge
from tests.unit.test_judge_recovery import running, save
from trainwatch.core.judge.hang.pauses import LoopWatch, answered
from trainwatch.core.model.decision import LookForLoop
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.settings import Hang, Settings

SPIN = {"loops": {"7": "Trainer.spin (train.py:31)"}, "elsewhere": "", "moving": False}
OTHER_LOOP = {"loops": {"7": "Trainer.wait (train.py:52)"}, "elsewhere": "", "moving": False}
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


def test_a_look_that_reads_no_stack_takes_nothing_back() -> None:
    world = finding(unread(), SPIN, NO_STACK, SPIN).watch(busy(400))
    assert 280.0 < detected(world) < 330.0


def test_loop_that_asks_for_something_gets_more_time() -> None:
    world = finding(unread(), {**SPIN, "polls": True}).watch(busy(900))
    assert 530.0 < detected(world) < 600.0


def test_loop_of_a_run_that_makes_such_pauses_gets_twice_the_longest_of_them() -> None:
    world = unread()
    after = Story(meta=False, gpus=1)
    after.step, after.util, after.power = 100, False, False
    finding(save(world.watch(busy(240)).watch(after.train(50))), SPIN).watch(busy(900))
    assert 310.0 < detected(world) < 400.0


def test_loop_with_hours_unsaved_gets_more_time() -> None:
    story = Story(meta=False, gpus=1)
    story.util = story.power = False
    world = finding(World().begin().watch(story.load(10).train(4000)), SPIN).watch(busy(900))
    assert 400.0 < detected(world) < 600.0


@pytest.mark.parametrize("seen", [IN_A_CALL, {}], ids=["one call", "no stacks"])
def test_busy_processes_that_show_no_loop_get_the_time_that_they_had(seen: dict[str, object]) -> None:
    world = finding(unread(), seen).watch(busy(900))
    assert 800.0 < detected(world) < 850.0


def test_one_look_is_not_enough() -> None:
    world = finding(unread(), SPIN, IN_A_CALL, SPIN, IN_A_CALL).watch(busy(800))
    assert world.hangs == []


def test_loops_at_two_places_are_no_agreement() -> None:
    world = finding(unread(), SPIN, OTHER_LOOP, IN_A_CALL).watch(busy(800))
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


def test_step_ends_what_the_looks_have_shown() -> None:
    world = finding(unread(), SPIN, SPIN, IN_A_CALL).watch(busy(260))
    after = Story(meta=False, gpus=1)
    after.step = 100
    after.util = after.power = False
    world.watch(after.train(5)).watch(busy(345))
    assert world.hangs == []
    assert (len(world.of(LookForLoop)), world.state.loops.agreed) == (2, 1)


def test_loops_on_many_cores_are_found_although_compilers_use_as_many() -> None:
    world = finding(unread(cpu=4.0), SPIN).watch(busy(400, cpu=4.0))
    assert detected(world) < 300.0


def test_loop_beside_an_idle_gpu_is_found() -> None:
    world = finding(save(running(steps=100)), SPIN).watch(Story(meta=False).go(400, cpu=1.0))
    assert detected(world) < 300.0


def test_busy_processes_beside_a_gpu_at_full_load_are_not_looked_at() -> None:
    world = save(running(steps=100)).watch(Story(meta=False).spinning(300))
    assert looks(world) == []


def test_loop_in_an_announced_phase_gets_the_time_of_that_phase() -> None:
    world = finding(unread(), SPIN).watch(busy(700, logs=[(1.0, "\n***** Running Evaluation *****\n")]))
    assert 360.0 < detected(world) < 420.0


def test_training_that_is_done_is_not_looked_at() -> None:
    world = unread()
    world.watch(busy(600, logs=[(1.0, "Training complete.\n"), (1.0, "\rsteps: 100%|##| 10260/10260 [1:00<0:00]\n")]))
    assert looks(world) == []


def test_lost_look_is_asked_for_again() -> None:
    world = unread(mind=World(silent={"look_for_loop"})).watch(busy(350))
    assert len(looks(world)) >= 3
    assert world.hangs == []


def test_look_that_failed_shows_nothing() -> None:
    known = LoopWatch(since=1.0, order=5, agreed=1, places=("process 7 is in the loop f (a.py:1)",))
    failed = Outcome(t=0.0, decision=5, action="look_for_loop", ok=False, data={**SPIN, "moving": True})
    assert answered(known, failed) == LoopWatch(since=1.0)


def test_loop_on_a_machine_that_is_busy_with_other_work_is_called_spin() -> None:
    """It gets a third of a core, always wants one, and no stack can be read."""
    always = {"R": 1, "S": 8}
    world = unread().watch(busy(900, cpu=0.3, states=always))
    assert 800.0 < detected(world) < 850.0


def test_process_that_wants_a_core_and_gets_nearly_none_is_not_dead() -> None:
    always = {"R": 1, "S": 8}
    world = unread().watch(busy(500, cpu=0.05, states=always))
    assert world.hangs == []
    assert unread().watch(busy(500, cpu=0.05)).hangs[0].class_ == "idle"


def test_short_silence_on_a_machine_that_is_busy_with_other_work_is_not_dead() -> None:
    """Seen with ``hang.min_s = 6`` at a load of 46 on two cores: an evaluation was ended after 11 s."""
    mind = World(judge(Settings(hang=Hang(min_s=6.0, max_s=120.0))))
    world = unread(mind=mind, cpu=0.3).watch(busy(30, cpu=0.05, states={"R": 1}))
    assert world.hangs == []


def test_process_that_wants_a_core_now_and_then_is_dead_all_the_same() -> None:
    mind = World()
    unread(mind=mind)
    for _ in range(40):
        mind.watch(busy(5, cpu=0.05, states={"S": 9})).watch(busy(5, cpu=0.05, states={"R": 1, "S": 8}))
    assert mind.hangs[0].class_ == "idle"


def test_short_deadlines_look_early() -> None:
    mind = World(judge(Settings(hang=Hang(min_s=6.0, max_s=120.0))))
    world = finding(unread(mind=mind), SPIN).watch(busy(40))
    assert 16.0 < detected(world) < 26.0
