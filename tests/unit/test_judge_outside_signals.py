"""A SIGTERM or SIGHUP that did not come through trainwatch: a crash, unless the end was ordered."""

import pytest

from tests.builders import Story, World, judge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_recovery import judge_of_everything, loading, running, save
from trainwatch.core.model.decision import NotifyPeople, StartAttempt
from trainwatch.core.model.observation import Exit, LogChunk, TerminationNotice

BARE: dict[str, dict[str, object]] = {
    "earlyoom": {"signal": 15},
    "lost session": {"signal": "SIGHUP"},
    "shell around it": {"code": 143},
    "handler": {"code": 1, "text": "Received SIGTERM, shutting down"},
    "handler that saves and exits with 0": {"code": 0, "text": "SIGTERM received, checkpoint saved, bye"},
    "torchrun": {
        "code": 1,
        "text": "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15",
    },
}
ORDERED: dict[str, dict[str, object]] = {
    "timeout": {"code": 124},
    "timeout --verbose": {"signal": 15, "text": "timeout: sending signal TERM to command 'python'"},
    "scheduler": {"signal": 15, "text": "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-11-01T02:00:00 ***"},
    "spot": {"signal": 15, "text": "spot instance interruption: 2 minutes left"},
    "keyboard": {"signal": 2, "text": "KeyboardInterrupt"},
}


def trained() -> World:
    return save(running(judge_of_everything(), steps=40))


def ends(world: World, *, code: int | None = None, signal: int | str | None = None, text: str = "") -> World:
    if text:
        world.see(LogChunk(t=world.t, text=f"\n{text}\n"))
    return world.see(Exit(t=world.t + 1.0, code=code, signal=signal))


def train_on(world: World, seconds: float) -> World:
    further = Story(meta=False, period_s=15.0, step=world.of(StartAttempt)[-1].resume_step)
    world.watch(further.load(10).train(int(seconds / further.step_s)))
    assert world.word == "running"
    return save(world, f"out/step-{further.step}", further.step)


@pytest.mark.parametrize("how", BARE)
def test_signal_of_an_unknown_sender_is_a_crash_once_the_run_has_trained(how: str) -> None:
    world = ends(trained(), **BARE[how])  # type: ignore[arg-type]
    assert world.word != "stopped"
    world.wait(3.0)
    assert len(world.of(StartAttempt)) == 1  # a session that goes down ends the supervisor, too
    world.wait(5.0)
    assert [a.resume_from for a in world.of(StartAttempt)] == [None, "out/step-40"]


def test_a_timeout_of_another_command_than_the_training_is_a_crash_once_the_run_has_trained() -> None:
    """``timeout 60 rsync …`` in the script of the training held the run: "`timeout` in its command ended it"."""
    world = ends(save(running(judge(catalogue=CATALOGUE, timed=False), steps=40)), code=124).wait(8.0)
    assert [a.resume_from for a in world.of(StartAttempt)] == [None, "out/step-40"]


@pytest.mark.parametrize("how", ORDERED)
def test_end_that_was_ordered_is_told_and_not_undone(how: str) -> None:
    world = ends(trained(), **ORDERED[how])  # type: ignore[arg-type]
    assert world.word == "stopped"
    assert len(world.of(StartAttempt)) == 1
    assert "nothing is started until" in world.of(NotifyPeople)[-1].body


def test_machine_whose_end_was_announced_is_not_restarted_on() -> None:
    world = trained()
    world.see(TerminationNotice(t=world.t, text="this spot instance is ended in 2 min"))
    assert ends(world, signal=15).word == "stopped"


@pytest.mark.parametrize(("times", "apart_s", "said"), [(1, 300, "again within 10 min"), (2, 3600, "ended it 3 times")])
def test_second_signal_within_ten_minutes_and_third_of_a_night_hold(times: int, apart_s: int, said: str) -> None:
    world = trained()
    for _ in range(times):
        world = train_on(ends(world, signal=15).wait(10.0), apart_s)
    assert ends(world, signal="SIGHUP").word == "stopped"
    assert said in world.of(NotifyPeople)[-1].body


def test_signal_before_the_first_step_holds() -> None:
    assert ends(loading(judge_of_everything()), signal=15).word == "stopped"
