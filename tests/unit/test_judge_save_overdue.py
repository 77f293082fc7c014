"""A checkpoint that is overdue while the training goes on."""

from tests.builders import World, judge
from tests.unit.test_judge_recovery import running
from trainwatch.core.judge import slow
from trainwatch.core.judge.slow import SaveClock
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk

LINE = "\rsteps: 1%| | {}/9000 [01:00<9:00:00, 20s/it, avr_loss=0.1]"


def after(*saves_s: float) -> SaveClock:
    clock = SaveClock()
    for now in saves_s:
        clock = slow.with_save(clock, now, 0.0)
    return clock


def test_no_save_is_overdue_within_three_hours_if_no_distance_is_known() -> None:
    assert slow.overdue(SaveClock(), 10700.0, 0.0) is None
    assert slow.overdue(SaveClock(), 10900.0, 0.0) == "no checkpoint for 3.0 h of training"
    assert slow.overdue(after(5.0), 10700.0, 0.0) is None
    assert slow.overdue(after(7200.0), 7200.0 + 10900.0, 0.0) is None


def test_save_is_overdue_after_three_usual_distances_and_half_an_hour() -> None:
    clock = after(600.0, 1200.0, 1800.0)
    assert slow.overdue(clock, 1800.0 + 1799.0, 0.0) is None
    assert slow.overdue(clock, 1800.0 + 1800.0, 0.0) == "no checkpoint for 30 min, usually one every 10 min"
    seldom = after(4200.0, 8400.0)
    assert slow.overdue(seldom, 8400.0 + 3 * 4190.0, 0.0) is None
    assert slow.overdue(seldom, 8400.0 + 3 * 4210.0, 0.0) == "no checkpoint for 3.5 h, usually one every 70 min"


def test_old_distances_are_forgotten() -> None:
    clock = after(*[3 * 3600.0 * n for n in range(1, 6)], *[15 * 3600.0 + 1800.0 * n for n in range(1, 10)])
    now = 15 * 3600.0 + 9 * 1800.0
    assert slow.overdue(clock, now + 5500.0, 0.0) == "no checkpoint for 92 min, usually one every 30 min"


def test_shards_written_one_after_another_are_one_save() -> None:
    clock = after(*[hour * 3600.0 + 20.0 * shard for hour in (3, 6, 9) for shard in range(4)])
    assert slow.overdue(clock, 14 * 3600.0, 0.0) is None


def test_files_of_one_save_and_a_save_at_step_0_teach_no_distance() -> None:
    assert after(1.0, 2.0, 3.0).gaps == ()
    pairs = after(2.0, 4.0, 2400.0, 2402.0)
    assert slow.overdue(pairs, 2400.0 + 7000.0, 0.0) is None


def test_time_before_an_attempt_does_not_count() -> None:
    clock = after(600.0, 1200.0)
    assert slow.overdue(clock, 9000.0, 8000.0) is None
    assert slow.with_save(clock, 8100.0, 8000.0).gaps[-1] == 100.0


def train(world: World, seconds: float) -> World:
    for _ in range(int(seconds / 20.0)):
        step = (world.state.attempt.step or 0) + 1
        world.see(LogChunk(t=world.t + 20.0, text=LINE.format(step)))
    return world


def save(world: World, step: int) -> World:
    return world.see(CheckpointEvent(t=world.t, path=f"out/step-{step}", event="complete", step=step, size_bytes=1e6))


def told(world: World) -> list[str]:
    return [n.title for n in world.of(NotifyPeople) if n.event == "warning"]


def test_overdue_save_is_reported_once_until_one_comes() -> None:
    world = running(steps=3)
    for n in range(1, 4):
        save(train(world, 600.0), n)
    train(world, 5000.0)
    assert [(i.kind, i.class_, i.severity, i.open) for i in world.incidents] == [
        ("checkpoint", "missing", "warning", True)
    ]
    assert len(told(world)) == 1
    assert "no checkpoint for 30 min, usually one every 10 min" in told(world)[0]
    save(world, 4)
    assert [(i.open, i.ending) for i in world.incidents] == [(False, "a checkpoint came")]


def test_overdue_save_is_closed_when_the_attempt_ends() -> None:
    world = train(save(train(save(train(running(steps=3), 600.0), 1), 600.0), 2), 3000.0)
    world.see(Exit(t=world.t, code=0))
    assert [i.class_ for i in world.incidents if i.open] == []


def test_no_save_is_overdue_without_an_output_directory() -> None:
    mind = judge()
    assert mind.knowledge.output_dir is None
    assert train(running(mind, steps=3), 12000.0).incidents == []
