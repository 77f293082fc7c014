"""A new supervisor takes a run over: adopts, goes on, or waits."""

from typing import Any

import msgspec
import pytest

from tests.builders import Story, World, judge, story_of
from tests.unit.test_judge_nan import told
from tests.unit.test_judge_recovery import crash, quick, running, save
from trainwatch.core.judge.run_states import BackingOff, Machine, RestartPlan, Starting
from trainwatch.core.judge.state import JudgeState, from_snapshot, to_snapshot
from trainwatch.core.model.decision import ClearGpu, StartAttempt, StopAttempt
from trainwatch.core.model.fact import AttemptEnded, AttemptStarted, BudgetChanged, RunCreated, StateChanged
from trainwatch.core.model.observation import Exit, LogChunk, Outcome, Start
from trainwatch.core.model.story import RunStory

RESUMES = ["end_leftovers", "clear_gpu", "list_checkpoints", "verify_checkpoint", "list_checkpoints", "start_attempt"]


def taken_over(world: World, *, live: bool) -> World:
    """The supervisor dies and another one comes, with the journal's snapshot."""
    known = from_snapshot(to_snapshot(world.state))
    assert known is not None
    new = World(world.judge)
    new.state, new.t = known, world.t + 60.0
    if live:
        new.live = world.live
        new.see(Start(t=new.t, attempt=world.state.attempt.number, pid=world.state.attempt.pid, adopted=True))
    return new.begin()


@pytest.mark.parametrize(
    ("stored", "state"),
    [
        ({"is": "starting", "order": 7, "then": "hold"}, Starting(order=7, then="hold")),
        (
            {"is": "backing_off", "need_bytes": 2e9, "plan": {"reason": "disk_full"}},
            BackingOff(need_bytes=2e9, plan=RestartPlan(reason="disk_full")),
        ),
    ],
)
def test_names_in_a_snapshot_are_those_of_older_versions(stored: dict[str, Any], state: Machine) -> None:
    assert msgspec.convert(stored, Machine) == state
    assert msgspec.to_builtins(state) == stored


def test_a_live_trainer_is_adopted_and_nothing_is_launched() -> None:
    new = taken_over(running(), live=True)
    assert new.decisions == []
    assert new.word == "running"
    assert new.of(AttemptStarted) == []


def test_a_vanished_trainer_is_resumed_uncharged() -> None:
    new = taken_over(save(running()), live=False)
    assert new.of(AttemptEnded)[0].how == "lost"
    assert new.decisions == RESUMES
    assert new.of(StartAttempt)[0].attempt == 2
    assert new.state.policy.budget.used == 0


def test_what_was_saved_after_a_nan_is_not_resumed_from_though_nobody_saw_the_end() -> None:
    world = save(told(save(running()), *["nan"] * 10, start=41), "out/step-60", 60)
    assert taken_over(world, live=False).of(StartAttempt)[0].resume_from == "out/step-40"


def test_what_the_last_supervisor_waited_for_is_taken_up_again() -> None:
    for waiting in ("clear_gpu", "verify_checkpoint"):
        world = save(running())
        world.silent = {waiting}
        crash(world)
        new = taken_over(world, live=False)
        assert new.decisions == RESUMES, waiting
    backing = crash(running(judge(quick(backoff_s=(60.0,)))))
    assert (backing.word, len(taken_over(backing, live=False).of(ClearGpu))) == ("backing_off", 1)


@pytest.mark.parametrize("verb", ["stop", "kill"])
def test_an_unfinished_stop_is_finished(verb: str) -> None:
    world = running()
    world.silent = {"stop_attempt"}
    world.command(verb, by="ann")
    new = taken_over(world, live=True)
    assert [s.mode for s in new.of(StopAttempt)] == ["kill" if verb == "kill" else "gentle"]
    assert new.word == "stopped"
    for dead in (taken_over(world, live=False), from_journal(world, to_snapshot(world.state)).begin()):
        assert dead.of(StateChanged)[-1].reason.startswith("stopped by ann")


def test_a_stop_during_a_launch_that_fails_starts_nothing() -> None:
    """The launch was tried again although a person had said stop; to a new supervisor "a person" had ordered it."""
    world = World(silent={"start_attempt"}).begin().command("stop", by="ann")
    assert taken_over(world, live=False).of(StateChanged)[-1].reason.startswith("stopped by ann")
    world.see(Outcome(t=world.t, decision=world.of(StartAttempt)[0].id, action="start_attempt", ok=False, detail="no"))
    assert (world.word, len(world.of(StartAttempt))) == ("stopped", 1)


def test_an_unfinished_restart_goes_on() -> None:
    world = running()
    world.silent = {"stop_attempt"}
    world.command("restart")
    assert taken_over(world, live=False).decisions == [
        "end_leftovers",
        "clear_gpu",
        "list_checkpoints",
        "start_attempt",
    ]


def test_a_hang_is_looked_at_again() -> None:
    world = running(steps=100)
    world.silent = {"capture_stacks"}
    world.watch(Story(meta=False).dead(144))
    assert world.word == "hung"
    new = taken_over(world, live=True)
    assert new.word == "running"
    new.watch(Story(meta=False).dead(170))
    assert [i.class_ for i in new.incidents if i.open] == ["idle"]


def test_a_paused_one_stays_paused() -> None:
    new = taken_over(running().command("pause"), live=True)
    assert new.word == "paused"
    assert new.command("resume").word == "running"


def test_a_trainer_that_ended_while_nobody_watched_is_judged_by_its_status() -> None:
    world = save(running())
    state = from_snapshot(to_snapshot(world.state))
    assert state is not None
    state, said = world.judge.begin(state, world.t + 60.0, ended=Exit(t=world.t + 60.0, code=0))
    assert state.machine.__struct_config__.tag == "ended_early"
    assert said


DONE = "".join(f"step {n}/60 loss: 0.25\n" for n in range(41, 61))


@pytest.mark.parametrize(
    ("later_s", "exit_", "state"),
    [
        (5.0, {"code": 0}, "starting"),
        (5.0, {"signal": 15}, "starting"),
        pytest.param(300.0, {}, "starting", id="the power was cut"),
        pytest.param(300.0, {"unsaved": 1500}, "starting", id="the power was cut an hour before a save"),
        pytest.param(300.0, {"said": DONE}, "finished", id="the power was cut after the end"),
        (5.0, {"code": 0, "rebooted": False}, "finished"),
        (4000.0, {"code": 0}, "finished"),
    ],
)
def test_a_trainer_that_the_machine_ended_goes_on_after_a_reboot(
    later_s: float, exit_: dict[str, Any], state: str
) -> None:
    exit_ = dict(exit_)
    world = running(steps=steps) if (steps := exit_.pop("unsaved", 0)) else save(running())
    ended_t, new = world.t + later_s, World(world.judge)
    new.state, new.t, new.live = world.state, world.t + 9000.0, world.live
    new.see(Start(t=new.t, attempt=1, pid=world.state.attempt.pid, adopted=True))
    new.see(LogChunk(t=new.t, text=exit_.pop("said", "")))
    new.see(Exit(t=new.t, died_t=ended_t, **{"rebooted": True, **exit_}))
    assert (new.word, new.of(BudgetChanged)) == (state, [])


# --- from the journal alone -----------------------------------------------------------------------------------------


def journal_of(world: World) -> RunStory:
    first = RunCreated(run="r", name="r", command=("x",), cwd="/", preset="generic", max_restarts=3)
    return story_of([(0.0, first), *world.entries])


def from_journal(world: World, snapshot: Any = None, newest_folder: int | None = None) -> World:
    told = journal_of(world)
    new = World(world.judge)
    new.state = world.judge.start(told, snapshot, newest_folder)
    new.t = world.t + 60.0
    return new


def launching() -> World:
    """The supervisor dies after it decided the launch of attempt 2."""
    world = save(running())
    world.silent = {"start_attempt"}
    return crash(world)


@pytest.mark.parametrize(
    ("newest_folder", "number"),
    [
        pytest.param(1, 2, id="nothing of it was begun"),
        pytest.param(2, 3, id="it has a folder"),
        pytest.param(None, 3, id="not known"),
    ],
)
def test_a_launch_that_was_decided_and_not_begun_takes_no_number(newest_folder: int | None, number: int) -> None:
    world = launching()
    new = from_journal(world, to_snapshot(world.state), newest_folder).begin()
    assert [start.attempt for start in new.of(StartAttempt)] == [number]


@pytest.mark.parametrize("launching", [False, True])
def test_a_launch_that_was_decided_goes_where_a_person_sent_it(launching: bool) -> None:
    world = save(running())
    world.silent = {"start_attempt"}
    if launching:
        world.command("restart")
    world.command("restart", checkpoint="elsewhere/step-10", by="ann").wait(5.0)
    new = from_journal(world, to_snapshot(world.state), 1).begin()
    (start,) = new.of(StartAttempt)
    assert (start.attempt, start.resume_from) == (2, "elsewhere/step-10")


@pytest.mark.parametrize("snapshot", [{"version": 999}, {**to_snapshot(JudgeState()), "attempts": "many"}])
def test_without_a_snapshot_the_journal_says_where_the_run_stands(snapshot: dict[str, Any]) -> None:
    new = from_journal(save(running()), snapshot).begin()
    assert new.decisions == RESUMES
    assert [ended.attempt for ended in new.of(AttemptEnded)] == [1]
    start = new.of(StartAttempt)[0]
    assert (start.attempt, start.resume_from, start.resume_step, start.id > 3) == (2, "out/step-40", 40, True)


@pytest.mark.parametrize(("end", "word"), [("stop", "stopped"), ("kill", "stopped"), ("crash", "given_up")])
def test_a_run_that_is_over_stays_over(end: str, word: str) -> None:
    world = running(judge(quick(max_restarts=0)))
    if end == "crash":
        crash(world)
    else:
        world.command(end).wait(3.0)
    new = from_journal(world).begin()
    assert (new.word, new.decisions) == (word, [])


def test_a_run_in_recovery_goes_on() -> None:
    world = save(running(judge(quick(backoff_s=(60.0,)))))
    new = from_journal(crash(world)).begin()
    assert new.decisions[-1] == "start_attempt"
    assert new.state.policy.budget.used == 1


def test_a_run_that_was_about_to_start_is_started() -> None:
    assert from_journal(World(silent={"start_attempt"}).begin()).begin().decisions[-1] == "start_attempt"


def test_steps_of_a_log_that_a_new_supervisor_reads_again_keep_their_time() -> None:
    world = running(steps=40)
    seen_t = world.state.attempt.beat_t
    assert seen_t is not None
    new = taken_over(world, live=True)
    bars = [f"steps: {step}/10260 [00:10<00:10, 2.50s/it, avr_loss=0.09]\r" for step in (1, 20, 40)]
    new.see(*(LogChunk(t=new.t, text=bar) for bar in bars))
    assert (new.state.attempt.step, new.state.attempt.beat_t) == (40, seen_t)
    new.see(LogChunk(t=new.t + 5.0, text="steps: 41/10260 [00:10<00:10, 2.50s/it, avr_loss=0.09]\r"))
    assert new.state.attempt.beat_t == new.t


def test_a_run_that_was_told_where_to_begin_verifies_that_checkpoint_and_resumes_from_it() -> None:
    world = World(judge(begin_from="/out/step20.safetensors")).begin()
    assert "verify_checkpoint" in world.decisions
    assert world.decisions[-1] == "start_attempt"
    assert world.of(AttemptStarted)[0].resume_from == "/out/step20.safetensors"


def test_a_run_whose_named_checkpoint_turns_out_bad_is_held_and_does_not_begin_anew() -> None:
    world = World(judge(begin_from="/out/step20.safetensors"))
    world.answers["verify_checkpoint"] = [(False, "corrupt", {"verdict": "corrupt"})]
    world.begin()
    assert world.word == "stopped"
    assert world.of(AttemptStarted) == []
