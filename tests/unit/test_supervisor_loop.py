"""The loop between judge, journal and hands: what is written before what is done, and what may overtake what."""

import errno
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import pytest

from trainwatch.core.judge.memory import EndOfWatch, OperatorMemory, Saved
from trainwatch.core.judge.run_states import GivenUp
from trainwatch.core.judge.state import JudgeState
from trainwatch.core.model.decision import BackUpCheckpoint, Decision, EndWatch, Entry, Record, StopAttempt
from trainwatch.core.model.fact import (
    CommandReceived,
    JudgeSnapshot,
    Note,
    StateChanged,
    SupervisorEnded,
    SupervisorStarted,
)
from trainwatch.core.model.observation import Command, Exit, LogChunk, Observation, Outcome, Reply, Start, Tick
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ProcessIdentity
from trainwatch.core.supervisor import loop
from trainwatch.core.supervisor.action_threads import REPLACEABLE, BoundedInbox
from trainwatch.core.supervisor.loop import Supervisor

if TYPE_CHECKING:
    from trainwatch.core.judge.memory import Waiting

END = EndWatch(id=99, reason="told to", exit_code=7)


class ScriptedJudge:
    """Answers each observation by the script; remembers what it was told."""

    def __init__(self, begin: tuple[Entry, ...], answer: Callable[[Observation], tuple[Entry, ...]]) -> None:
        self._begin, self._answer = begin, answer
        self.told: list[Observation] = []

    def begin(self, state: JudgeState, t: float) -> tuple[JudgeState, tuple[Entry, ...]]:
        return state, self._begin

    def step(self, state: JudgeState, observation: Observation) -> tuple[JudgeState, tuple[Entry, ...]]:
        self.told.append(observation)
        return state, self._answer(observation)


class MemoryJournal:
    """Keeps bodies in their order, and lets actions look at what was on disk when they ran."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.room: int | None = None
        """How many more records fit on the disk; None = any number."""

    @property
    def seq(self) -> int:
        return len(self.bodies)

    def append_all(self, t: float, wall: float, bodies: Sequence[Entry | Outcome]) -> Sequence[Record]:
        fitting = bodies if self.room is None else bodies[: self.room]
        self.bodies += fitting
        if self.room is not None:
            self.room -= len(fitting)
        if len(fitting) < len(bodies):
            raise OSError(errno.ENOSPC, "No space left on device")
        return ()

    def close(self) -> None:
        self.bodies.append("closed")


class NoRecorder:
    def draw(self, written_t: float, state: JudgeState) -> None: ...
    def add(self, observation: Observation) -> None: ...
    def commit(self, t: float, state: JudgeState, *, whole: bool = False) -> None: ...
    def close(self) -> None: ...


class CallingActor:
    """Performs by calling a function."""

    def __init__(self, act: Callable[[Decision], None]) -> None:
        self._act = act

    def perform(self, decision: Decision) -> Outcome:
        self._act(decision)
        return Outcome(t=0.0, decision=decision.id, action=str(decision.__struct_config__.tag), ok=True)

    def follow(self, target: AttemptTarget | None) -> None: ...


class Clock:
    """Each look is so many seconds later."""

    def __init__(self, step_s: float = 0.0, t: float = 0.0) -> None:
        self._step_s, self._t = step_s, t

    def now(self) -> float:
        self._t += self._step_s
        return self._t

    def wall(self) -> float:
        return 1005.0


def supervisor(
    judge: ScriptedJudge, journal: MemoryJournal, act: Callable[[Decision], None] = lambda _d: None, **parts: Any
) -> Supervisor:
    """``parts``: others than the usual ones."""
    usual = {
        "judge": judge, "state": JudgeState(), "snapshot": lambda _state: {"known": True}, "snapshot_version": 1,
        "journal": journal, "recorder": NoRecorder(), "inbox": BoundedInbox(), "clock": Clock(t=5.0),
        "actor": CallingActor(act), "pid": 1,
    }  # fmt: skip
    return Supervisor(**(usual | parts))  # type: ignore[arg-type]


def test_a_line_that_takes_too_long_to_read_is_passed_over_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CHUNK_CPU_S", 0.2)
    monkeypatch.setattr(loop, "LINE_CPU_S", 0.1)
    journal, slow = MemoryJournal(), "a" * 40 + "!"
    read: list[str] = []

    def answer(seen: Observation) -> tuple[Entry, ...]:
        if not isinstance(seen, LogChunk):
            return ()
        for line in seen.text.splitlines():
            re.match(r"(a+)+$", line)  # tries 2^40 ways
        read.append(seen.text)
        return (END,) if "RuntimeError" in seen.text else ()

    watching = supervisor(ScriptedJudge((), answer), journal)
    watching.inbox.put(LogChunk(t=5.0, text=f"step 1\n{slow}\nRuntimeError: out\n"))
    assert watching.run() == 7
    assert read == ["step 1\n", "", "RuntimeError: out\n"]
    assert next(b.text for b in journal.bodies if isinstance(b, Note)).startswith("a line of the log was passed over")


def when_outcome_of(number: int) -> Callable[[Observation], tuple[Entry, ...]]:
    return lambda o: (END,) if isinstance(o, Outcome) and o.decision == number else ()


def test_decision_is_written_before_its_action_and_the_outcome_is_judged() -> None:
    journal = MemoryJournal()
    seen_on_disk: list[bool] = []
    stop = StopAttempt(id=1, reason="hang", attempt=1)
    judge = ScriptedJudge((Note(text="why"), stop), when_outcome_of(1))

    code = supervisor(judge, journal, lambda _d: seen_on_disk.append(stop in journal.bodies)).run()

    assert code == 7
    assert seen_on_disk == [True]
    kinds = [type(body) for body in journal.bodies]
    assert kinds[:4] == [SupervisorStarted, Note, StopAttempt, JudgeSnapshot]
    assert kinds.index(Outcome) < kinds.index(EndWatch) < kinds.index(SupervisorEnded)
    assert journal.bodies[-1] == "closed"


def test_a_command_is_written_with_what_it_changed() -> None:
    """A stop that was ordered while the judge's own was under way was forgotten if the supervisor died then."""
    journal, ordered = MemoryJournal(), CommandReceived(verb="stop", by="ann")
    assert supervisor(ScriptedJudge((ordered,), lambda _o: (END,)), journal).run() == 7
    assert isinstance(journal.bodies[journal.bodies.index(ordered) + 1], JudgeSnapshot)


def test_exception_of_an_action_becomes_a_failed_outcome() -> None:
    def broken(_decision: Decision) -> None:
        raise ZeroDivisionError

    judge = ScriptedJudge((StopAttempt(id=1, reason="r", attempt=1),), when_outcome_of(1))
    assert supervisor(judge, MemoryJournal(), broken).run() == 7
    outcome = next(o for o in judge.told if isinstance(o, Outcome))
    assert not outcome.ok
    assert "ZeroDivisionError" in outcome.detail


def test_a_kill_does_not_wait_for_a_gentle_stop() -> None:
    killed = threading.Event()
    killed_during_gentle_stop: list[bool] = []

    def act(decision: Decision) -> None:
        match decision:
            case StopAttempt(mode="gentle"):
                killed_during_gentle_stop.append(killed.wait(60.0))
            case StopAttempt(mode="kill"):
                killed.set()

    both = (
        StopAttempt(id=1, reason="stop", attempt=1),
        StopAttempt(id=2, reason="kill", attempt=1, mode="kill"),
    )
    assert supervisor(ScriptedJudge(both, when_outcome_of(1)), MemoryJournal(), act).run() == 7
    assert killed_during_gentle_stop == [True]


def test_full_disk_delays_actions_but_not_the_judge() -> None:
    journal = MemoryJournal()
    acted: list[int] = []
    stop = StopAttempt(id=1, reason="hang", attempt=1)

    def answer(o: Observation) -> tuple[Entry, ...]:
        if isinstance(o, Command) and o.verb == "ack":
            journal.room = 1
            return (Note(text="why"), stop)
        if isinstance(o, Command):
            assert acted == []
            journal.room = None
        return when_outcome_of(1)(o)

    watch = supervisor(ScriptedJudge((), answer), journal, lambda d: acted.append(d.id))
    watch.ask(Command(t=0.0, verb="ack"))
    watch.ask(Command(t=0.0, verb="snooze"))
    assert watch.run() == 7
    assert acted == [1]
    kinds = [type(body) for body in journal.bodies]
    assert kinds[:4] == [SupervisorStarted, Note, StopAttempt, JudgeSnapshot]
    assert kinds.count(Note) == 1


def test_supervisor_survives_a_disk_that_stays_full(caplog: pytest.LogCaptureFixture) -> None:
    journal = MemoryJournal()
    journal.room = 0
    watch = supervisor(ScriptedJudge((Note(text="why"),), lambda _o: ()), journal)
    watch.end(0, "asked by SIGTERM")
    assert watch.run() == 0
    assert journal.bodies == ["closed"]
    assert [r.message for r in caplog.records] == [
        "the journal cannot be written: [Errno 28] No space left on device; decisions wait until it can"
    ]


@pytest.mark.parametrize("waits", ["", "for an answer", "for a score", "for a copy"])
def test_the_supervisor_of_a_stopped_run_ends_unless_something_is_left_to_be_done(waits: str) -> None:
    stopped = StateChanged(state="stopped", reason="as requested")
    copy, copied = BackUpCheckpoint(id=3, reason="copy it", path="a", mtime=1.0), threading.Event()

    def act(_copy: Decision) -> None:
        copied.wait()

    def answer(o: Observation) -> tuple[Entry, ...]:
        if o.t > 1200:
            copied.set()
            return (END,)
        return ()

    journal, state = MemoryJournal(), JudgeState()
    if waits == "for an answer":
        state = JudgeState(operator=OperatorMemory(withheld=cast("Waiting", object())))
    elif waits == "for a score":
        state = JudgeState(saved=Saved(end=EndOfWatch(event="finish", reason="done", exit_code=0)))
    begin = (stopped, copy) if waits == "for a copy" else (stopped,)
    judge = ScriptedJudge(begin, answer)
    watch = supervisor(judge, journal, act, state=state, clock=Clock(200.0))
    assert watch.run() == (7 if waits else 6)
    ended = next(body for body in journal.bodies if isinstance(body, SupervisorEnded))
    assert ("stopped" in ended.why) is not bool(waits)


def at_rest(journal: MemoryJournal, clock: Clock, rests: list[bool]) -> Supervisor:
    """The supervisor of a run that was given up before it came."""
    judge, over = ScriptedJudge((), lambda _o: ()), JudgeState(machine=GivenUp())
    return supervisor(judge, journal, state=over, clock=clock, resting=lambda: rests.append(True))


def test_the_supervisor_of_a_run_that_was_over_when_it_came_gives_its_locks_away_and_ends() -> None:
    journal, rests = MemoryJournal(), list[bool]()
    assert at_rest(journal, Clock(200.0), rests).run() == 1
    assert rests == [True]
    ended = next(body for body in journal.bodies if isinstance(body, SupervisorEnded))
    assert "the run is given up" in ended.why


@pytest.mark.parametrize("verb", ["stop", "kill"])
def test_stop_ends_a_supervisor_that_has_nothing_left_to_end(verb: str) -> None:
    journal = MemoryJournal()
    watch = at_rest(journal, Clock(t=5.0), [])
    reply = watch.ask(Command(t=0.0, verb=verb, by="ann"))  # type: ignore[arg-type]
    assert watch.run() == 1
    assert reply.result().message.endswith("its supervisor ends")
    ended = next(body for body in journal.bodies if isinstance(body, SupervisorEnded))
    assert f"{verb} by ann" in ended.why


@pytest.mark.parametrize("ended", [False, True])
def test_a_command_that_a_supervisor_at_its_end_does_not_judge_is_refused(ended: bool) -> None:
    """Before: it was "received", and nothing of it was ever done."""

    def answer(o: Observation) -> tuple[Entry, ...]:
        if isinstance(o, Command):
            replies.append(watch.ask(Command(t=0.0, verb="resume", by="bob")))
            if ended:
                raise RuntimeError("a bug")
        return (END,)

    replies, journal = list["Future[Reply]"](), MemoryJournal()
    watch = supervisor(ScriptedJudge((), answer), journal)
    watch.ask(Command(t=0.0, verb="ack", by="ann"))
    with pytest.raises(RuntimeError) if ended else nullcontext():
        watch.run()
    replies.append(watch.ask(Command(t=0.0, verb="resume", by="eve")))
    assert [(r.result(0.0).ok, "give it again" in r.result(0.0).message) for r in replies] == [(False, True)] * 2
    why = next(body.why for body in journal.bodies if isinstance(body, SupervisorEnded))
    assert why == ("a fault of its own, see supervisor.log" if ended else "told to")


FOUND = AttemptTarget(
    number=1, trainer=ProcessIdentity(boot_id="b", pid=3, start_ticks=1), runner=None, log=None, directory="/nowhere"
)


class NotedSensor:
    """Notes what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self) -> None:
        self.told.append("start")

    def follow(self, target: AttemptTarget | None) -> None:
        self.told.append(target)

    def stop(self) -> None:
        self.told.append("stop")


SENSOR = NotedSensor()


def test_a_command_to_begin_with_is_judged_before_a_sample_lets_the_end_of_the_run_go_on() -> None:
    judge, inbox = ScriptedJudge((), lambda o: (END,) if isinstance(o, REPLACEABLE) else ()), BoundedInbox()
    watch, sensor = supervisor(judge, MemoryJournal(), inbox=inbox), NotedSensor()
    watch.sensors = (sensor,)
    sensor.start = lambda: inbox.put(REPLACEABLE[0](t=5.0))  # type: ignore[method-assign]
    watch.ask(Command(t=0.0, verb="resume", by="ann"))
    assert watch.run() == 7
    assert [type(o) for o in judge.told] == [Command, REPLACEABLE[0]]


def found_dead(journal: MemoryJournal, ends: tuple[Entry, ...], resumed: tuple[Entry, ...]) -> tuple[Any, ...]:
    """A supervisor that adopts a dead attempt with ``resume`` as its first command: its code, what was judged, reply."""
    inbox = BoundedInbox()

    def answer(o: Observation) -> tuple[Entry, ...]:
        match o:
            case Start():
                inbox.put(Exit(t=6.0, code=None, signal=None))
            case Exit():
                return ends
            case Command():
                return resumed
            case Tick(t=t) if t > 8:
                return (END,)
            case _:
                pass
        return ()

    judge = ScriptedJudge((), answer)
    watch = supervisor(judge, journal, inbox=inbox, clock=Clock(1.0), live=FOUND)
    watch.found_dead, watch.sensors, SENSOR.told = True, (SENSOR,), []
    reply = watch.ask(Command(t=0.0, verb="resume", by="ann"))
    code = watch.run()
    return code, [type(o) for o in judge.told if isinstance(o, Start | Exit | Command)], reply.result(0.0)


def test_a_resume_waits_for_the_end_of_an_attempt_that_was_found_dead() -> None:
    """Before: it was refused, since "the run is going already", and the run was resumed all the same."""
    _, told, reply = found_dead(MemoryJournal(), (), ())
    assert told == [Start, Exit, Command]
    assert reply.ok
    assert SENSOR.told[:2] == [FOUND, "start"], "else the first look takes its processes for those of another"


def test_the_supervisor_stays_if_a_resume_goes_on_after_the_end_that_was_found() -> None:
    given_up = (StateChanged(state="given_up", reason="no restart is left"), EndWatch(id=1, reason="over", exit_code=1))
    code, told, _ = found_dead(MemoryJournal(), given_up, (StateChanged(state="stopping", reason="resume by ann"),))
    assert (code, told[-1]) == (7, Command)
    code, told, _ = found_dead(MemoryJournal(), given_up, ())
    assert (code, told[-1]) == (1, Command)


def test_a_resume_of_a_training_that_had_finished_unseen_starts_nothing() -> None:
    journal = MemoryJournal()
    done = (StateChanged(state="finished", reason="done"), EndWatch(id=1, reason="over", exit_code=0))
    code, told, reply = found_dead(journal, done, (StateChanged(state="stopping", reason="resume by ann"),))
    assert (code, told) == (0, [Start, Exit])
    assert reply.ok
    assert "nothing to resume" in reply.message
    assert any(isinstance(body, CommandReceived) for body in journal.bodies)
    assert [body.about for body in journal.bodies if isinstance(body, Note)] == ["refusal"]  # a report tells no change
