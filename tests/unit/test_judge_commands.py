"""What a person may ask for, in every state of a run."""

from typing import Any

import pytest

from tests.builders import Story, World, judge
from tests.unit.test_judge_recovery import crash, quick, running, save, story
from trainwatch.core.model import decision as decisions
from trainwatch.core.model.fact import AttemptEnded, BudgetChanged, CommandReceived, Note, ProfileChanged
from trainwatch.core.model.observation import Command, Exit, HostSample, LogChunk, Outcome, Start
from trainwatch.core.model.settings import Profiles, Restart, Settings


def test_stop_is_gentle_and_holds() -> None:
    world = running().command("stop").wait(700.0, every_s=5.0)
    assert [s.mode for s in world.of(decisions.StopAttempt)] == ["gentle"]
    assert world.word == "stopped"
    assert world.why.kind == "person"
    assert world.of(AttemptEnded)[0].how == "stopped"
    assert not world.of(decisions.EndWatch)
    assert world.incidents == []


def test_kill_overrides_a_slow_stop() -> None:
    world = running()
    world.silent = {"stop_attempt"}
    world.command("stop").command("kill").command("kill")
    assert [s.mode for s in world.of(decisions.StopAttempt)] == ["gentle", "kill"]
    order = world.of(decisions.StopAttempt)[-1].id
    world.see(Exit(t=world.t, signal=9), Outcome(t=world.t, decision=order, action="stop_attempt", ok=True))
    assert world.word == "stopped"


def test_stop_while_a_crash_is_being_recovered_from_holds() -> None:
    world = running()
    world.silent = {"clear_gpu"}
    crash(world)
    assert world.word == "cleaning"
    world.command("stop").wait(100.0)
    assert world.word == "stopped"
    assert len(world.of(decisions.StartAttempt)) == 1


def test_stop_while_it_is_being_launched_ends_it_when_it_is_there() -> None:
    world = World(silent={"start_attempt"}).begin().command("stop")
    assert world.word == "starting"
    world.see(Start(t=1.0, attempt=1, pid=7))
    assert [s.mode for s in world.of(decisions.StopAttempt)] == ["gentle"]
    world.wait(5.0)
    assert world.word == "stopped"


def test_restart_goes_through_the_whole_order_uncharged() -> None:
    world = save(running()).command("restart")
    assert world.decisions == [
        "start_attempt",
        "stop_attempt",
        "clear_gpu",
        "list_checkpoints",
        "verify_checkpoint",
        "list_checkpoints",
        "start_attempt",
    ]
    assert world.of(BudgetChanged) == []
    assert world.of(decisions.StartAttempt)[-1].resume_from == "out/step-40"


def restart_notices(world: World) -> list[tuple[str, str]]:
    return [(n.title, n.body) for n in world.of(decisions.NotifyPeople) if n.event == "restart"]


def test_every_attempt_after_the_first_is_notified_with_its_reason_and_checkpoint() -> None:
    world = save(running())
    assert restart_notices(world) == []
    world.command("restart", by="ann")
    assert restart_notices(world) == [("run: attempt 2 started", "restart by ann: from step-40 (step 40)")]


def test_restart_while_it_is_being_launched_ends_it_when_it_is_there_and_starts_the_next_one() -> None:
    world = World(silent={"start_attempt"}).begin().command("restart", fresh=True, by="ann")
    assert world.word == "starting"
    assert world.of(decisions.StopAttempt) == []
    world.see(Start(t=1.0, attempt=1, pid=7))
    assert [s.mode for s in world.of(decisions.StopAttempt)] == ["gentle"]
    world.wait(5.0)
    first, second = world.of(decisions.StartAttempt)
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.reason == "restart by ann: start attempt 2 from the beginning"
    assert world.of(BudgetChanged) == []


def test_the_last_word_while_it_is_being_launched_counts() -> None:
    stopped = World(silent={"start_attempt"}).begin().command("restart").command("stop")
    assert stopped.see(Start(t=1.0, attempt=1, pid=7)).wait(5.0).word == "stopped"
    restarted = World(silent={"start_attempt"}).begin().command("stop").command("restart")
    restarted.see(Start(t=1.0, attempt=1, pid=7)).wait(5.0)
    assert [each.attempt for each in restarted.of(decisions.StartAttempt)] == [1, 2]


def test_restart_while_a_launch_is_under_way_that_then_fails_is_what_is_started_next() -> None:
    world = save(running(judge(quick(backoff_s=(0.0,)))), "out/step-20", 20)
    world.silent = {"start_attempt"}
    world.command("restart").command("restart", checkpoint="out/step-20", by="ann")
    order = world.of(decisions.StartAttempt)[-1].id
    world.see(Outcome(t=world.t, decision=order, action="start_attempt", ok=False, detail="the disk is slow")).wait(3.0)
    assert world.of(decisions.StartAttempt)[-1].id != order
    assert world.of(decisions.StartAttempt)[-1].resume_from == "out/step-20"


@pytest.mark.parametrize("verb", ["resume", "restart"])
def test_from_the_beginning_passes_every_checkpoint_by(verb: str) -> None:
    world = save(running())
    if verb == "resume":
        world.command("stop")
    world.command(verb, fresh=True)
    assert world.of(decisions.StartAttempt)[-1].resume_from is None
    assert world.of(decisions.VerifyCheckpoint) == []
    assert "from the beginning" in [c.detail for c in world.of(CommandReceived)]


def test_resume_from_a_bad_one_is_refused_and_nothing_else_is_taken() -> None:
    world = save(running()).command("stop").answer("verify_checkpoint", verdict="corrupt", reason="bad CRC")
    world.command("resume", checkpoint="elsewhere/broken")
    assert world.word == "stopped"
    assert [v.path for v in world.of(decisions.VerifyCheckpoint)] == ["elsewhere/broken"]
    assert len(world.of(decisions.StartAttempt)) == 1


def test_resume_resets_a_used_budget() -> None:
    world = running(judge(quick(max_restarts=1, backoff_s=(0.0,))))
    crash(world).watch(story(5))
    crash(world)
    world.command("resume")
    assert [b.used for b in world.of(BudgetChanged)] == [1, 0]


@pytest.mark.parametrize(
    ("verb", "more", "last"),
    [
        ("resume", {}, "start_attempt"),
        ("restart", {}, "start_attempt"),
        ("shutdown", {"stop_trainer": True}, "end_watch"),
    ],
)
def test_what_is_asked_for_while_it_stops_follows_the_stop(verb: str, more: dict[str, Any], last: str) -> None:
    world = running()
    world.silent = {"stop_attempt"}
    world.command("stop").command(verb, **more)
    order = world.of(decisions.StopAttempt)[-1].id
    world.see(Exit(t=world.t, code=0), Outcome(t=world.t, decision=order, action="stop_attempt", ok=True)).wait(3.0)
    assert world.decisions[-1] == last
    assert [end.exit_code for end in world.of(decisions.EndWatch)] == [0] * (verb == "shutdown")


def test_resume_before_the_first_launch_starts() -> None:
    assert World().command("resume").decisions == ["list_checkpoints", "start_attempt"]


def test_a_pause_that_fails_is_no_pause() -> None:
    world = running().answer("pause_attempt", ok=False, detail="no such process").command("pause")
    assert world.word == "running"


def test_pause_and_its_end_need_something_to_pause() -> None:
    world = World().command("pause").command("unpause")
    assert "pause: nothing is running" in world.text()
    assert "unpause: the run is not paused" in world.text()


def test_resume_continues_what_was_stopped_from_outside() -> None:
    world = running().watch(Story(meta=False).go(10, states={"T": 9}, cpu=0.0)).command("resume")
    assert len(world.of(decisions.UnpauseAttempt)) == 1


def test_profile_waits_for_the_next_checkpoint() -> None:
    world = running(judge(profiles=("safe", "fast"))).command("profile", profile="safe")
    assert world.of(ProfileChanged)[0].pending
    assert world.word == "running"
    save(world)
    assert world.of(decisions.StartAttempt)[-1].profile == "safe"
    assert [p.pending for p in world.of(ProfileChanged)] == [True, False]


def test_profile_now_restarts_at_once() -> None:
    world = running().command("profile", profile="safe", now=True)
    assert world.of(decisions.StartAttempt)[-1].profile == "safe"


def test_ack_of_one_incident_leaves_the_others() -> None:
    world = running()
    for t in (500.0, 520.0):
        world.see(HostSample(t=t, disk_free_bytes=1.0, ram_used_bytes=99.0, ram_total_bytes=100.0))
        world.see(HostSample(t=t + 11.0, disk_free_bytes=1.0, ram_used_bytes=99.0, ram_total_bytes=100.0))
    crash(world, code=3)
    first, *others = [i for i in world.incidents if i.open]
    assert others
    world.command("ack", incident=99).command("ack", incident=first.id)
    assert [i.id for i in world.incidents if i.acknowledged] == [first.id]
    world.command("ack").command("ack")
    assert all(i.acknowledged for i in world.incidents if i.open)


def test_wait_puts_a_hang_off() -> None:
    world = running(steps=100)
    world.silent = {"capture_stacks"}
    world.watch(Story(meta=False).dead(150))
    assert world.word == "hung"
    world.command("snooze")
    assert world.word == "running"
    world.watch(Story(meta=False).dead(500))
    assert world.word == "running"
    assert len(world.hangs) == 1
    world.watch(Story(meta=False).dead(140))
    assert len(world.hangs) == 2


def test_shutdown_leaves_the_trainer() -> None:
    world = running().command("shutdown")
    assert world.of(decisions.StopAttempt) == []
    assert world.of(decisions.EndWatch)[0].exit_code == 0


@pytest.mark.parametrize(
    ("before", "verb", "more", "ok", "said"),
    [
        ("running", "stop", {}, True, "accepted"),
        ("stopped", "stop", {}, True, "nothing is running: it is stopped already"),
        ("stopped", "kill", {}, True, "nothing is running: it is stopped already"),
        ("given_up", "stop", {}, True, "it is given up already"),
        ("running", "resume", {}, False, "it is running (attempt 1); `trainwatch restart`"),
        ("paused", "resume", {}, True, "accepted"),
        ("paused", "resume", {"fresh": True}, False, "`trainwatch resume` lets it go on, `trainwatch restart` begins"),
        ("paused", "resume", {"checkpoint": "/o/a.pt"}, False, "it is paused (attempt 1), and its process lives"),
        ("stopped", "resume", {}, True, "accepted"),
        ("given_up", "resume", {}, True, "accepted"),
        ("running", "restart", {}, True, "accepted"),
        ("running", "restart", {"remedies": ["magic"]}, False, "no remedy 'magic'; known: none"),
        ("running", "pause", {}, True, "accepted"),
        ("paused", "pause", {}, True, "paused already"),
        ("stopped", "pause", {}, False, "it is stopped; `trainwatch resume` starts it"),
        ("finished", "pause", {}, False, "it is finished"),
        ("ended_early", "pause", {}, False, "`trainwatch resume` starts it"),
        ("ended_early", "stop", {}, True, "nothing is running: it is ended early already"),
        ("paused", "unpause", {}, True, "accepted"),
        ("running", "unpause", {}, False, "the run is not paused: it is running"),
        ("finished", "unpause", {}, False, "it is finished"),
        ("running", "profile", {"profile": "fats"}, False, "known: safe, fast"),
        ("running", "profile", {"profile": "fast"}, True, "it trains with fast already"),
        ("stopped", "profile", {"profile": "fast"}, True, "accepted"),
        ("finished", "profile", {"profile": "safe"}, False, "the run is finished"),
        ("running", "ack", {}, True, "no open incident waits"),
        ("running", "ack", {"incident": 4}, False, "no open incident 4; open: none"),
        ("running", "snooze", {}, True, "accepted"),
        ("stopped", "snooze", {}, False, "it is stopped"),
        ("stopped", "shutdown", {}, True, "accepted"),
    ],
)
def test_the_answer_says_what_becomes_of_a_command(
    before: str, verb: str, more: dict[str, Any], ok: bool, said: str
) -> None:
    restart = Restart(max_restarts=0 if before == "given_up" else 3)
    mind = judge(Settings(profiles=Profiles(use="fast"), restart=restart), profiles=("safe", "fast"))
    world = running(mind)
    if before == "stopped":
        world.command("stop")
    elif before == "paused":
        world.command("pause")
    elif before == "finished":
        world.see(LogChunk(t=world.t, text=Story(meta=False).bar(10260)), Exit(t=world.t, code=0))
    elif before == "ended_early":
        world.see(Exit(t=world.t, code=0))
    elif before == "given_up":
        crash(world, "\nAttributeError: no such thing\n")
    assert world.word == before
    entries = len(world.entries)
    command = Command(t=world.t, verb=verb, **more)  # type: ignore[arg-type]

    reply = mind.answer(world.state, command)

    assert (reply.ok, said in reply.message) == (ok, True), reply
    if "accepted" not in said:
        state = world.word
        world.see(command)
        assert [type(entry) for _, entry in world.entries[entries:]] == [CommandReceived, Note]
        assert world.word == state
