"""A checkpoint is asked for before a stop that a person orders, and at danger signs."""

from typing import Any

from tests.builders import Story, World, judge
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.model.decision import RequestSave, StartAttempt
from trainwatch.core.model.fact import ActionWithheld, Note
from trainwatch.core.model.observation import CheckpointEvent, Exit, HostSample, LogChunk, TerminationNotice
from trainwatch.core.model.settings import Restart, Settings

GB = 1e9


def asking(settings: Settings | None = None, **more: Any) -> World:
    return save(running(judge(settings, can_ask_to_save=True, **more), steps=60), "out/step-20", 20).wait(5)


def notes(world: World) -> str:
    return " | ".join(note.text for note in world.of(Note))


def test_a_stop_waits_for_the_checkpoint_that_was_asked_for() -> None:
    world = asking().command("stop")
    assert world.decisions[-1] == "request_save"
    assert world.word == "stopping"
    world.wait(10)
    save(world, "out/step-61", 61)
    assert world.decisions[-2:] == ["request_save", "stop_attempt"]
    assert world.word == "stopped"


def test_a_restart_goes_on_from_the_checkpoint_that_was_asked_for() -> None:
    world = asking().command("restart").wait(3)
    save(world, "out/step-61", 61)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-61"
    assert world.decisions.count("stop_attempt") == 1


def test_without_a_checkpoint_the_stop_follows_after_the_deadline() -> None:
    world = asking().command("stop").wait(119)
    assert world.decisions[-1] == "request_save"
    world.wait(2)
    assert world.decisions[-1] == "stop_attempt"
    assert "no complete checkpoint came in time" in notes(world)


def test_a_checkpoint_that_grows_is_waited_for_beyond_the_deadline() -> None:
    world = asking().command("stop")
    for size in range(1, 6):
        world.wait(80)
        world.see(CheckpointEvent(t=world.t, path="out/big", event="growing", size_bytes=size * GB))
    assert world.decisions[-1] == "request_save"
    world.see(CheckpointEvent(t=world.t, path="out/big", event="complete", size_bytes=5 * GB, step=60))
    assert world.decisions[-1] == "stop_attempt"


def test_a_periodic_save_that_ends_first_does_not_end_the_wait_for_the_one_that_is_being_written() -> None:
    world = asking().command("stop").wait(1)
    world.see(CheckpointEvent(t=world.t, path="out/asked", event="created", size_bytes=0))
    save(world, "out/step-60", 60)
    assert world.decisions[-1] == "request_save"
    save(world, "out/asked", 61)
    assert world.decisions[-1] == "stop_attempt"


def test_a_trainer_that_cannot_be_asked_is_stopped_at_once() -> None:
    world = asking().answer("request_save", ok=False, detail="no process catches it").command("stop")
    assert world.decisions[-2:] == ["request_save", "stop_attempt"]
    assert "it was not asked for a checkpoint: no process catches it" in notes(world)


def test_a_trainer_that_ends_after_its_save_is_not_waited_for() -> None:
    world = asking().command("restart").wait(2)
    save(world, "out/step-61", 61, "created")
    world.see(Exit(t=world.t, code=0))
    assert "it ended by itself after it was asked for a checkpoint" in notes(world)
    assert world.of(StartAttempt)[-1].attempt == 2


def test_kill_and_a_second_stop_do_not_wait() -> None:
    for verb in ("kill", "stop"):
        world = asking().command("stop").command(verb)
        assert world.decisions[-2:] == ["request_save", "stop_attempt"]
        assert world.word == "stopped"
    world = asking().command("kill")
    assert "request_save" not in world.decisions


def test_a_shutdown_with_the_trainer_saves_first() -> None:
    world = asking().command("shutdown", stop_trainer=True).wait(1)
    save(world, "out/step-61", 61)
    assert world.decisions[-2:] == ["stop_attempt", "end_watch"]


def test_nothing_is_asked_if_nothing_would_be_gained_or_harm_could_be_done() -> None:
    saved = asking()
    save(saved, "out/step-60", 60)
    hung = asking().watch(Story(meta=False).dead(200))
    nan = asking()
    nan.see(LogChunk(t=nan.t, text="\rsteps: 1%| | 61/10260 [00:10<10:00, 1.00s/it, avr_loss=nan]"))
    plain = save(running(steps=60), "out/step-20", 20)
    starting = World(judge(can_ask_to_save=True)).begin()
    for world in (saved, hung, nan, plain, starting):
        world.command("stop")
        assert "request_save" not in world.decisions
    over = crash(asking())
    over.watch(Story(meta=False).load(5).train(3))  # counts from 1 after a resume at 20: not yet judged
    over.command("stop")
    assert "request_save" not in over.decisions


def tight(world: World, available: float = 1.0, seconds: int = 30) -> World:
    for _ in range(seconds):
        world.see(
            HostSample(
                t=world.t + 1,
                ram_used_bytes=(32 - available) * GB,
                ram_total_bytes=32 * GB,
                ram_available_bytes=available * GB,
                swap_used_bytes=0,
                disk_free_bytes=200 * GB,
            )
        )
    return world


def test_a_danger_sign_asks_once_and_training_goes_on() -> None:
    world = tight(asking())
    (order,) = world.of(RequestSave)
    assert "RAM nearly full" in order.reason
    assert world.word == "running"
    tight(tight(world, 19.0), 1.0)
    assert len(world.of(RequestSave)) == 1
    world.watch(Story(meta=False, step=60).train(800))
    tight(world)
    assert len(world.of(RequestSave)) == 2


def test_a_danger_sign_asks_for_nothing_unless_act_is_all() -> None:
    world = tight(asking(Settings(restart=Restart(act="notify"))))
    assert world.of(RequestSave) == []
    assert [w.sentence for w in world.of(ActionWithheld)] == ["asked the trainer for a checkpoint"]


def test_a_notice_that_the_machine_ends_asks_at_once_and_is_told_once() -> None:
    world = tight(asking())
    before = len(world.of(RequestSave))
    world.see(TerminationNotice(t=world.t, text="AWS will terminate this spot instance at 03:41"))
    world.see(TerminationNotice(t=world.t, text="AWS will terminate this spot instance at 03:41"))
    assert len(world.of(RequestSave)) == before + 1
    (told,) = [i for i in world.incidents if i.class_ == "termination"]
    assert told.open
    crash(world)
    (told,) = [i for i in world.incidents if i.class_ == "termination"]
    assert not told.open
