"""The loop: take an observation, judge it, write the journal, act. The only concurrency in core.

Everything that can block (sensors, actions, control clients) lives in threads that talk through the inbox; the judge
itself runs here, alone. A failed action is just another observation. When this process dies the trainer goes on under
its runner, and the next supervisor takes over from the journal.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import msgspec

from .inbox import BoundedInbox
from .judge.state import JudgeState
from .model.attempt import StartRecord
from .model.control_messages import Reply
from .model.decision import (
    CaptureStacks,
    Decision,
    DeleteCheckpoint,
    EndLeftovers,
    EndWatch,
    NotifyPeople,
    PlanRetention,
    StartAttempt,
    StopAttempt,
)
from .model.fact import (
    AttemptStarted,
    Fact,
    IncidentOpened,
    JudgeSnapshot,
    Note,
    StateChanged,
    SupervisorEnded,
    SupervisorStarted,
)
from .model.observation import Command, Exit, Learned, Observation, Outcome, Start, Tick
from .model.ports import Actor, AttemptTarget, Clock, Sensor
from .model.record import Entry, Record

log = logging.getLogger(__name__)

TICK_S = 0.5
"""Longest time without an observation: deadlines become due at this grain."""
SNAPSHOT_S = 300.0
"""Period of the judge's snapshot in the journal: what an adopting supervisor may have to learn again."""
LAST_LOOK_S = 0.05
"""Period of looking whether the last actions are done."""
HISTORY_COMMIT_S = 1.0
"""Period in which metric history is made visible to screens."""


class Thinker(Protocol):
    """The judge, as the loop needs it."""

    def begin(self, state: JudgeState, t: float) -> tuple[JudgeState, tuple[Entry, ...]]:
        """Say what to do about a run that a supervisor just took over."""
        ...

    def step(self, state: JudgeState, observation: Observation) -> tuple[JudgeState, tuple[Entry, ...]]:
        """Take one observation."""
        ...


class Book(Protocol):
    """The journal's writing side."""

    @property
    def seq(self) -> int:
        """Records written so far."""
        ...

    def append_all(self, t: float, wall: float, bodies: Sequence[Entry | Outcome]) -> Sequence[Record]:
        """Write and fsync. Raises OSError when the disk takes nothing or not all; ``seq`` tells how much."""
        ...

    def close(self) -> None:
        """Flush and close."""
        ...


class Memory(Protocol):
    """Metric history and trace: best effort, never a reason to stop."""

    def add(self, observation: Observation) -> None:
        """Keep one observation."""
        ...

    def commit(self, t: float, state: JudgeState) -> None:
        """Make what was added visible, with the progress as it is now."""
        ...

    def close(self) -> None:
        """Flush and close."""
        ...


class Supervisor:
    """One run's owner. Build it with wiring, then ``run()``; ``ask`` and ``end`` may be called from other threads."""

    def __init__(
        self,
        *,
        judge: Thinker,
        state: JudgeState,
        snapshot: Callable[[JudgeState], dict[str, object]],
        snapshot_version: int,
        journal: Book,
        memory: Memory,
        inbox: BoundedInbox,
        clock: Clock,
        actor: Actor,
        pid: int,
        live: AttemptTarget | None = None,
        live_order: StartAttempt | None = None,
        learned: Learned | None = None,
        on_records: Callable[[Sequence[Record]], None] = lambda _records: None,
        answer: Callable[[JudgeState, Command], Reply] = lambda _state, command: Reply(
            ok=True, message=f"{command.verb}: accepted"
        ),
    ) -> None:
        self._judge = judge
        self._state = state
        self._snapshot = snapshot
        self._snapshot_version = snapshot_version
        self._journal = journal
        self._memory = memory
        self._inbox = inbox
        self._clock = clock
        self._actor = actor
        self._sensors: Sequence[Sensor] = ()
        self._notes: deque[str] = deque()
        self._pid = pid
        self._live = live
        self._live_order = live_order
        self._learned = learned
        self._on_records = on_records
        self._answer = answer
        self._asked: dict[int, tuple[Command, Future[Reply]]] = {}
        self._exit_code: int | None = None
        self._ending = "the run is over"
        self._unwritten: list[tuple[float, float, Entry | Outcome]] = []
        self._intended: list[Decision] = []
        self._mute: str | None = None
        """Why the journal takes nothing; None when all is well."""
        self._t = 0.0
        self._next_snapshot_t = 0.0
        self._next_commit_t = 0.0
        # One hand that changes the world, in order; looking, telling and a person's kill may go on beside it.
        self._hand = ThreadPoolExecutor(max_workers=1, thread_name_prefix="act")
        self._awaited: list[Future[None]] = []
        self._aside = ThreadPoolExecutor(max_workers=3, thread_name_prefix="aside")
        self._tidying = threading.Lock()
        self._voice = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tell")  # people hear things in their order

    def ask(self, command: Command) -> Future[Reply]:
        """Hand in an operator command (thread-safe). The answer comes when it is taken and in the journal."""
        asked = msgspec.structs.replace(command, t=self._clock.now())
        reply: Future[Reply] = Future()
        self._asked[id(asked)] = (asked, reply)
        self._inbox.put(asked)
        return reply

    def sense_with(self, sensors: Sequence[Sensor]) -> None:
        """Hand in the sensors, before ``run``."""
        self._sensors = sensors

    def note(self, text: str) -> None:
        """Keep a sentence in the journal, such as what a sensor cannot see (thread-safe)."""
        self._notes.append(text)

    def end(self, exit_code: int, why: str) -> None:
        """Leave the loop soon and the trainer running (thread-safe, signal-safe)."""
        self._ending = why
        self._exit_code = exit_code

    def run(self) -> int:
        """Watch until the run is over or ``end`` was called. Returns the exit code of ``--headless``."""
        self._t = self._clock.now()
        self._write((SupervisorStarted(pid=self._pid, adopted_attempt=self._live.number if self._live else None),))
        for sensor in self._sensors:
            sensor.start()
        try:
            self._begin()
            while self._exit_code is None:
                observation = self._inbox.take(TICK_S)
                self._take(observation if observation is not None else Tick(t=self._clock.now()))
        finally:
            self._close()
        return self._exit_code

    def _begin(self) -> None:
        """The judge hears of a launched trainer first, dead or alive, so that no second one is launched."""
        if self._learned is not None:
            self._take(self._learned)
        live = self._live
        if live is not None:
            self._follow(live)
            self._take(_adopted(live, self._live_order, self._t))
        self._state, entries = self._judge.begin(self._state, self._t)
        self._carry_out(entries)

    def _take(self, observation: Observation) -> None:
        asked = self._asked.pop(id(observation), None)
        if observation.t < self._t:  # sensors read the clock before they wait for a place in the inbox
            observation = msgspec.structs.replace(observation, t=self._t)
        self._t = observation.t
        self._memory.add(observation)
        if isinstance(observation, Outcome):
            self._write((observation,))
        reply = self._answer(self._state, asked[0]) if asked is not None else None
        self._state, entries = self._judge.step(self._state, observation)
        self._carry_out(entries)
        if asked is not None and reply is not None:
            asked[1].set_result(reply)
        match observation:
            case Outcome(action="start_attempt", ok=True):
                self._attempt_started(observation)
            case Exit():
                self._follow(None)
            case _:
                pass
        while self._notes:
            self._write((Note(text=self._notes.popleft()),))
        if self._mute is not None:
            self._write(())
        if self._t >= self._next_commit_t:
            self._next_commit_t = self._t + HISTORY_COMMIT_S
            self._memory.commit(self._t, self._state)
        if self._t >= self._next_snapshot_t and self._mute is None:
            self._next_snapshot_t = self._t + SNAPSHOT_S
            self._write((self._snapshot_fact(),))

    def _carry_out(self, entries: tuple[Entry, ...]) -> None:
        """Write all that was said, then do it: intent is on disk before the act, and waits while the disk is full."""
        if not entries:
            return
        # What the judge now knows goes with every turn of the story, so that an adopting supervisor knows it, too.
        turning = any(isinstance(e, Decision | StateChanged | IncidentOpened | AttemptStarted) for e in entries)
        self._intended.extend(entry for entry in entries if isinstance(entry, Decision))
        self._write((*entries, self._snapshot_fact()) if turning else entries)

    def _act(self, intended: Iterable[Decision]) -> None:
        for entry in intended:
            if isinstance(entry, EndWatch):
                self.end(entry.exit_code, entry.reason)
            elif isinstance(entry, NotifyPeople):
                self._awaited.append(self._voice.submit(self._perform, entry))
            elif isinstance(entry, PlanRetention | DeleteCheckpoint):
                # As long as it takes, one after the other; nothing waits for it, not even the end.
                threading.Thread(target=self._tidy, args=(entry,), name="tidy", daemon=True).start()
            elif _may_overtake(entry):
                self._awaited.append(self._aside.submit(self._perform, entry))
            else:
                done = self._hand.submit(self._perform, entry)
                if isinstance(entry, StartAttempt):
                    self._awaited.append(done)
        self._awaited = [action for action in self._awaited if not action.done()]

    def _tidy(self, decision: Decision) -> None:
        with self._tidying:
            self._perform(decision)

    def _perform(self, decision: Decision) -> None:
        try:
            outcome = self._actor.perform(decision)
        except Exception as error:  # an adapter's bug must not stop the watch
            log.exception("performing %s failed", type(decision).__name__)
            outcome = Outcome(
                t=0.0, decision=decision.id, action=_tag(decision), ok=False, detail=f"internal error: {error!r}"
            )
        self._inbox.put(msgspec.structs.replace(outcome, t=self._clock.now()))

    def _attempt_started(self, outcome: Outcome) -> None:
        launched = msgspec.convert(outcome.data["start"], StartRecord)
        order = msgspec.convert(outcome.data["order"], StartAttempt)
        directory = str(outcome.data["directory"])
        target = AttemptTarget(
            number=launched.attempt,
            trainer=launched.trainer,
            runner=launched.runner,
            log=launched.log,
            directory=directory,
        )
        self._follow(target)
        self._take(
            Start(
                t=self._clock.now(),
                attempt=launched.attempt,
                pid=launched.trainer.pid,
                runner_pid=launched.runner.pid if launched.runner else None,
                log=launched.log,
                directory=directory,
                resume_from=order.resume_from,
                resume_step=order.resume_step,
                profile=order.profile,
                changes=order.changes,
            )
        )

    def _follow(self, target: AttemptTarget | None) -> None:
        """Before the judge hears of it: what it decides at once is about this attempt."""
        self._live = target
        for sensor in self._sensors:
            sensor.follow(target)
        if target is not None:
            self._actor.follow(target)

    def _write(self, bodies: Iterable[Entry | Outcome]) -> None:
        """To the journal, and then do what was intended; while the disk takes nothing, both are kept for later."""
        wall = self._clock.wall()
        self._unwritten.extend((self._t, wall, body) for body in bodies)
        while self._unwritten:
            t, wall, _ = self._unwritten[0]
            batch = [body for at, clock, body in self._unwritten if (at, clock) == (t, wall)]
            before = self._journal.seq
            try:
                self._on_records(self._journal.append_all(t, wall, batch))
            except OSError as error:
                del self._unwritten[: self._journal.seq - before]
                if self._mute is None:
                    log.warning("the journal cannot be written: %s; watching on, nothing is done until it can", error)
                self._mute = str(error)
                return
            del self._unwritten[: len(batch)]
        if self._mute is not None:
            self._mute = None
            log.warning("the journal can be written again")
        intended, self._intended = self._intended, []
        self._act(intended)

    def _snapshot_fact(self) -> Fact:
        return JudgeSnapshot(version=self._snapshot_version, state=dict(self._snapshot(self._state)))

    def _close(self) -> None:
        for sensor in self._sensors:
            sensor.stop()
        self._hand.shutdown(wait=False, cancel_futures=True)
        self._aside.shutdown(wait=False)
        self._voice.shutdown(wait=False)
        self._hear_last_outcomes()
        self._memory.commit(self._t, self._state)
        self._write((self._snapshot_fact(), SupervisorEnded(pid=self._pid, why=self._ending)))
        self._journal.close()
        self._memory.close()

    def _hear_last_outcomes(self) -> None:
        """Wait for notices and for a launch that is under way: the lock is ours until its trainer can be found."""
        while any(not action.done() for action in self._awaited):
            self._keep_outcome(self._inbox.take(LAST_LOOK_S))
        self._inbox.close()
        while (observation := self._inbox.take(0.0)) is not None:
            self._keep_outcome(observation)

    def _keep_outcome(self, observation: Observation | None) -> None:
        if isinstance(observation, Outcome):
            self._write((observation,))


def _adopted(live: AttemptTarget, order: StartAttempt | None, t: float) -> Start:
    """``order``: what it was to be, where the last supervisor did not live to write down that it began."""
    return Start(
        t=t,
        attempt=live.number,
        pid=live.trainer.pid,
        adopted=True,
        runner_pid=live.runner.pid if live.runner else None,
        log=live.log,
        directory=live.directory,
        resume_from=order.resume_from if order is not None else None,
        resume_step=order.resume_step if order is not None else None,
        profile=order.profile if order is not None else None,
    )


def _may_overtake(decision: Decision) -> bool:
    """A gentle stop takes up to its graces, the GPU gate a minute: a kill does not wait for them."""
    match decision:
        case CaptureStacks():
            return True
        case StopAttempt() | EndLeftovers():
            return decision.mode == "kill"
        case _:
            return False


def _tag(decision: Decision) -> str:
    return str(decision.__struct_config__.tag)
