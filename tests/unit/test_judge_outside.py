"""What the world has to mend is waited for: no room on the disk, no network, a loader that the stacks convict."""

import pytest

from tests.builders import GB, Story, World, judge
from tests.unit.test_judge_recovery import crash, quick, running, save, story
from tests.unit.test_judge_remedies import mind
from tests.unit.test_judge_takeover import taken_over
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import NotifyPeople, StartAttempt
from trainwatch.core.model.fact import BudgetChanged, RemedyApplied, StateChanged
from trainwatch.core.model.observation import HostSample

FULL = "\nOSError: [Errno 28] No space left on device\n"
OFFLINE = "\nfailure in name resolution\n"


def free(world: World, bytes_: float) -> World:
    return world.see(HostSample(t=world.t, disk_free_bytes=bytes_))


def full(mind_: Judge | None = None) -> World:
    return crash(free(save(running(mind_)), 0.3 * GB), FULL)


def test_a_full_disk_holds_the_restart_until_there_is_room() -> None:
    world = full()
    assert world.word == "backing_off"
    assert "held: the disk is full; it continues when 2.0 GB are free, 0.3 GB are" in world.text()
    assert world.of(NotifyPeople)[-1].event == "warning"
    assert len(world.of(StartAttempt)) == 1
    free(world.wait(5000.0, every_s=50.0), 1.9 * GB)
    assert len(world.of(StartAttempt)) == 1
    free(world, 2.1 * GB)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    assert world.of(BudgetChanged) == []


def test_a_new_supervisor_holds_it_too() -> None:
    new = taken_over(full(), live=False)
    assert new.decisions == []
    assert free(new, 9 * GB).decisions == ["list_checkpoints", "verify_checkpoint", "list_checkpoints", "start_attempt"]


def test_a_person_may_go_on_or_stop_while_it_is_held() -> None:
    assert full().command("stop").word == "stopped"
    assert full().command("resume").word == "starting"


def test_with_room_on_the_disk_something_else_is_full_and_the_budget_counts() -> None:
    world = running(judge(quick(max_restarts=2, backoff_s=(0.0,))))
    for _ in range(3):
        crash(free(world, 50 * GB), FULL).watch(story(9))
    assert world.word == "given_up"
    assert [b.used for b in world.of(BudgetChanged)] == [1, 2]
    assert "another disk or a quota" in world.text()


def test_a_network_failure_is_waited_out_without_charge() -> None:
    world = running(judge(quick(max_restarts=1, network_wait_s=(30.0, 60.0))))
    waits = []
    for _ in range(4):
        crash(world, OFFLINE)
        waits.append([s.until_t - world.t for s in world.of(StateChanged) if s.until_t][-1])
        world.wait(61.0, every_s=5.0).watch(story(9))
    assert waits == pytest.approx([30.0, 60.0, 60.0, 60.0])
    assert world.of(BudgetChanged) == []
    assert world.word == "running"


def test_stacks_that_wait_for_data_name_the_loader() -> None:
    world = running(mind({"max_data_loader_n_workers": 4}), steps=100)
    world.answer("capture_stacks", frames={"4242": ["wait (threading.py:320)", "_try_get_data (dataloader.py:1243)"]})
    world.watch(Story(meta=False).dead(200))
    assert [i.class_ for i in world.incidents] == ["starved"]
    assert [r.name for r in world.of(RemedyApplied)] == ["fewer-workers"]
    assert world.of(StartAttempt)[-1].changes[0].after == 2


def test_unexplained_hang_is_restarted_without_a_remedy() -> None:
    world = running(mind({"max_data_loader_n_workers": 4}), steps=100).watch(Story(meta=False).dead(200))
    assert world.of(RemedyApplied) == []
    assert len(world.of(StartAttempt)) == 2
