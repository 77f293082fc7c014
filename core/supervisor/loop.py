"""The supervisor's loop. It owns one run; threads for sensors, actions and clients exchange data with it by the inbox.

Each turn:

1. takes an observation from the inbox, or a Tick after TICK_S without one;
2. adds it to metric history and trace;
3. writes it to the journal if it is the outcome of an action;
4. passes it to the judge, which returns its new state and entries;
5. writes the entries to the journal, and then starts to perform the decisions among them;
6. answers the operator whose command it was;
7. lets sensors and actor follow the attempt that it started or ended;
8. writes the notes of sensors to the journal;
9. tries again to write records that are waiting for disk space;
10. commits the metric history, and every SNAPSHOT_S writes the judge's state to the journal;
11. gives the run's locks away if the run is over (stopped, given up …), and ends STOPPED_S later.

If this process dies, the trainer goes on under its runner, and the next supervisor continues from the journal.
"""

import contextlib
import logging
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from ..judge.run_states import WORDS, is_live, name_of
from ..judge.state import JudgeState
from ..model import fact as facts
from ..model.decision import Decision, EndWatch, Entry, NotifyPeople, Record, StartAttempt
from ..model.observation import ENDING, Command, Exit, Learned, LogChunk, Observation, Outcome, Reply, Start, Tick
from ..model.ports import Actor, AttemptTarget, Clock, JournalWriter, Judge, Recorder, Sensor
from ..model.preset import ScriptChange
from ..model.run import TERMINAL_STATES, RunState, StartRecord
from ..model.text import next_round
from .action_threads import ActionThreads, BoundedInbox

TICK_S = 0.5
"""Longest time without an observation. Deadlines of the judge become due at this interval."""
LATE_S = 5.0
"""Text of the log that waited longer is of the time at which it was read, not of now: it shows no pace."""
AFTER_SAMPLES_S = 0.02
"""The wait for an observation ends this long after the sensors take their samples, so that it finds them."""
SNAPSHOT_S = 300.0
"""Period of the judge's snapshot in the journal. The next supervisor loses at most what was learned since."""
CHANGES_RUN = (
    facts.StateChanged | facts.IncidentOpened | facts.AttemptStarted | facts.AttemptEnded | facts.CommandReceived
)
"""Facts, beside all decisions, after which the state is written: a command may change only what follows a stop."""
LAST_POLL_S = 0.05
"""At the end: period of checking whether the last actions are done."""
NEEDS_YOU = 6
"""Exit code of a supervisor whose run waits for a person."""
HELD_S = 60.0
"""Longest wait of a `resume` for the end of an attempt that was found dead. It is seen within seconds, and until then
the run seems to go on."""
STOPPED_S = 60.0
"""A run that is over, or held without a question, needs no process: `trainwatch resume` starts one."""
ENDS: frozenset[str] = frozenset({"stop", "kill"})
"""Commands that end the supervisor itself if nothing of the run is left to end."""
HISTORY_COMMIT_S = 1.0
"""Period in which metric history becomes visible to screens."""
CHUNK_CPU_S, LINE_CPU_S = 10.0, 2.0
"""CPU seconds of this process in which a chunk of the log has to be read, else it is read line by line, and a line.
Why: a pattern, shipped or the project's own, that tries each way to divide a line would stop the whole supervision."""


class _ReadingTooLongError(Exception):
    """Raised by a signal, also within a match of a regular expression."""


def _stop_reading(_signal: int, _frame: object) -> None:
    raise _ReadingTooLongError


@dataclass(kw_only=True, eq=False)
class Supervisor:
    """The owner of one run, built by wiring. Other threads may call ``ask``, ``note``, ``end`` and ``give_way``.

    ``live``: an attempt to adopt; ``live_order``: its launch decision, if the last supervisor died before it wrote
    that the attempt began. ``learned``: habits of earlier runs of the command. ``notes``: where others leave sentences
    for the journal. ``on_records``: each is called with the records that were written. ``answer``: the reply to an
    operator command in a state of the judge.
    ``turning``: called at each turn, to show that the loop goes on. ``resting``: called when the run is over while the
    supervisor stays: its locks may go to another run. ``starts_again``: what starts it then, for a person.
    ``gives_way``: whether another version is to go on, because the files of this one were replaced.
    """

    judge: Judge[JudgeState]
    state: JudgeState
    snapshot: Callable[[JudgeState], dict[str, object]]
    snapshot_version: int
    journal: JournalWriter
    recorder: Recorder[JudgeState]
    inbox: BoundedInbox
    clock: Clock
    actor: Actor
    pid: int
    live: AttemptTarget | None = None
    live_order: StartAttempt | None = None
    learned: Learned | None = None
    notes: deque[str] = field(default_factory=deque)
    on_records: Sequence[Callable[[Sequence[Record]], None]] = ()
    turning: Callable[[], None] = lambda: None
    starts_again: str = "`trainwatch resume` starts it again"
    resting: Callable[[], None] = lambda: None
    gives_way: Callable[[], bool] = lambda: False
    answer: Callable[[JudgeState, Command], Reply] = lambda _state, command: Reply(
        ok=True, message=f"{command.verb}: accepted"
    )

    left: Callable[[], Command | None] = lambda: None
    """Takes away the command that was left while the supervisor did not answer, if there is one."""

    def __post_init__(self) -> None:
        self._actions = ActionThreads(self.actor, self.inbox, self.clock, self.give_way)
        self._journal = WriteAhead(self.journal, self.clock, self._perform, self.on_records)
        self.sensors: Sequence[Sensor] = ()
        self._commands: dict[int, tuple[Command, Future[Reply]]] = {}
        self.found_dead = False
        """The attempt to adopt is dead already. The sensors see its end soon."""
        self._held: deque[Command] = deque()
        self._held_end: EndWatch | None = None
        self._exit_code: int | None = None
        self._end_reason = "a fault of its own, see supervisor.log"
        self._t = 0.0
        self._next_snapshot_t = 0.0
        self._next_commit_t = 0.0
        self._word: RunState = WORDS[name_of(self.state.machine)]
        self._rests_since: float | None = None
        self.gave_way = False
        """Whether the loop ended because another version goes on."""

    def ask(self, command: Command) -> Future[Reply]:
        """Add an operator command to the inbox. The reply is set once the command is in the journal."""
        timed = msgspec.structs.replace(command, t=self.clock.now())
        reply: Future[Reply] = Future()
        self._commands[id(timed)] = (timed, reply)
        if self._exit_code is not None:
            self._refuse_commands()
        elif self.found_dead and command.verb == "resume":
            self._held.append(timed)
        else:
            self.inbox.put(timed)
        return reply

    def _refuse_commands(self) -> None:
        """Answer those that nobody judges any more: the loop has ended, or is about to."""
        with contextlib.suppress(KeyError):  # none is left; several threads may call this
            while True:
                _, (command, reply) = self._commands.popitem()
                said = f"{command.verb}: nothing was done, its supervisor is just ending: give it again"
                reply.set_result(Reply(ok=False, message=said, data={ENDING: True}))

    def note(self, text: str) -> None:
        """Write a sentence to the journal in the next turn, such as what a sensor cannot read."""
        self.notes.append(text)

    def end(self, exit_code: int, why: str) -> None:
        """End the loop within TICK_S; the trainer goes on. May be called in a signal handler."""
        self._end_reason = why
        self._exit_code = exit_code

    def give_way(self) -> bool:
        """End the loop if another version is to go on. May take a minute: for threads of actions and of what prints."""
        if not self.gives_way():
            return False
        if self._exit_code is None:
            self.end(0, "trainwatch's files were replaced: the new version goes on")
            self.gave_way = True
        return True

    def run(self) -> int:
        """Supervise until the run is over or ``end`` was called. Returns the exit code of ``--headless``."""
        self._t = self.clock.now()
        self._write((facts.SupervisorStarted(pid=self.pid, adopted_attempt=self.live.number if self.live else None),))
        if self.live is not None:  # before they look: each process of its training would be one beside it
            self._follow(self.live)
        first = self.inbox.take(0.0)  # a command to begin with, before what the last supervisor left to be done
        for sensor in self.sensors:
            sensor.start()
        try:
            self._begin()
            if first is not None:
                self._turn(first)
            while self._exit_code is None:
                now = monotonic()
                observation = self.inbox.take(next_round(now, TICK_S) + AFTER_SAMPLES_S - now)
                self._turn(observation if observation is not None else Tick(t=self.clock.now()))
        finally:
            self._close()
        return self._exit_code

    def _begin(self) -> None:
        """Pass a live attempt to the judge first, so that it does not launch a second one."""
        if self.learned is not None:
            self._turn(self.learned)
        live = self.live
        if live is not None:
            found = _start(live, self.live_order, self._t)
            self._turn(msgspec.structs.replace(found, adopted=True, changes=()))
        self.state, entries = self.judge.begin(self.state, self._t)
        self._write_entries(entries)

    def _turn(self, observation: Observation) -> None:
        """Take one observation: record and judge it, and write what follows to the journal, which starts actions.

        What a person left comes first: the end of a trainer that was to be killed is no crash.
        """
        self.turning()
        if (left := self.left()) is not None:
            self._turn(msgspec.structs.replace(left, t=self.clock.now()))
        command = self._commands.pop(id(observation), None)
        if observation.t < self._t:  # a sensor reads the clock before it waits for space in the inbox
            if isinstance(observation, LogChunk) and observation.written_t is None and self._t - observation.t > LATE_S:
                observation = msgspec.structs.replace(observation, written_t=observation.t)
            observation = msgspec.structs.replace(observation, t=self._t)
        self._t = observation.t
        self.recorder.add(observation)
        self._write_outcome(observation)
        reply = self.answer(self.state, command[0]) if command is not None else None
        rested = self.at_rest
        self._write_entries(self._judged(observation))
        if isinstance(observation, LogChunk) and observation.written_t is not None:
            self.recorder.draw(observation.written_t, self.state)
        if command is not None and reply is not None:
            if command[0].verb in ENDS and rested and self.at_rest:
                reply = msgspec.structs.replace(reply, message=f"{reply.message}; its supervisor ends")
                self.end(1, f"{command[0].verb} by {command[0].by}: nothing of the run is running")
            command[1].set_result(reply)
        self._follow_attempt(observation)
        self._pass_held(observation)
        while self.notes:
            self._write((facts.Note(text=self.notes.popleft()),))
        if self._journal.blocked:
            self._write(())
        self._save_state()
        self._end_if_at_rest()

    def _judged(self, observation: Observation) -> tuple[Entry, ...]:
        """What the judge says to it. A line of a log that takes too long to read is passed over, and told."""
        if not isinstance(observation, LogChunk) or threading.current_thread() is not threading.main_thread():
            self.state, entries = self.judge.step(self.state, observation)
            return entries
        said = self._read(observation, CHUNK_CPU_S)
        if said is not None:
            return said
        entries = ()
        for line in observation.text.splitlines(keepends=True):
            part = msgspec.structs.replace(observation, text=line)
            if (said := self._read(part, LINE_CPU_S)) is None:
                self.note(f"a line of the log was passed over, it takes {LINE_CPU_S:g} s to read: {line[:80]!r} …")
                size = len(line.encode(errors="surrogatepass"))
                skipped = msgspec.structs.replace(part, text="", skipped_bytes=size, skipped_lines=1)
                self.state, said = self.judge.step(self.state, skipped)
            entries += said
            observation = msgspec.structs.replace(observation, skipped_bytes=0, skipped_lines=0)
        return entries

    def _read(self, chunk: LogChunk, cpu_s: float) -> tuple[Entry, ...] | None:
        """What the judge says to a chunk; None, and nothing changed, if it takes longer."""
        before = signal.signal(signal.SIGVTALRM, _stop_reading)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
            try:
                self.state, entries = self.judge.step(self.state, chunk)
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except _ReadingTooLongError:
            return None
        finally:
            signal.signal(signal.SIGVTALRM, before)
        return entries

    def _pass_held(self, observation: Observation) -> None:
        """Judge the commands that waited for the end of a dead attempt. Its supervisor ends only if it then rests."""
        late = bool(self._held) and self._t - self._held[0].t >= HELD_S
        self.found_dead = self.found_dead and not late and not isinstance(observation, Exit)
        while self._held and not self.found_dead:
            held = self._held.popleft()
            if self._word == "finished" and held.checkpoint is None and not held.fresh:
                said = f"{held.verb}: the training has finished: nothing to {held.verb}"
                self._write((facts.CommandReceived(verb=held.verb, by=held.by), facts.Note(text=said, about="refusal")))
                _, reply = self._commands.pop(id(held))
                reply.set_result(Reply(ok=True, message=said))
            else:
                self._turn(held)
        if not self._held and self._held_end is not None:
            end, self._held_end = self._held_end, None
            if self._word in TERMINAL_STATES:
                self._end_watch(end)

    @property
    def at_rest(self) -> bool:
        """Whether nothing of the run is running, and nothing follows without a person."""
        operator = self.state.operator
        waits = (operator.withheld, operator.ends, self.state.saved.end) != (None, None, None)
        return self._word in TERMINAL_STATES and self.live is None and not waits and not self._actions.unfinished

    @property
    def nothing_runs(self) -> bool:
        """Whether the run has no trainer, and none is being started; one may be started later."""
        return not is_live(self.state.machine) and self._word != "starting"

    def _end_if_at_rest(self) -> None:
        if not self.at_rest:
            self._rests_since = None
        elif self._rests_since is None:
            self._rests_since = self._t
            self.resting()
        elif self._t - self._rests_since >= STOPPED_S and self._exit_code is None and not self._actions.copying:
            code = NEEDS_YOU if self._word == "stopped" else 1
            self.end(code, f"the run is {self._word.replace('_', ' ')}; {self.starts_again}")

    def _write(self, bodies: Iterable[Entry | Outcome]) -> None:
        self._journal.write(self._t, bodies)

    def _write_outcome(self, observation: Observation | None) -> None:
        if isinstance(observation, Outcome):
            self._write((observation,))

    def _write_entries(self, entries: tuple[Entry, ...]) -> None:
        """Write the judge's entries, with a snapshot of its state if they change the run."""
        if not entries:
            return
        for entry in entries:
            if isinstance(entry, facts.StateChanged):
                self._word = entry.state
                if entry.state in TERMINAL_STATES:  # the notice of the end, and what is run then, read all of it
                    self.recorder.commit(self._t, self.state, whole=True)
        changes_run = any(isinstance(e, Decision | CHANGES_RUN) for e in entries)
        self._write((*entries, self._snapshot_fact()) if changes_run else entries)

    def _save_state(self) -> None:
        if self._t >= self._next_commit_t:
            self._next_commit_t = self._t + HISTORY_COMMIT_S
            self.recorder.commit(self._t, self.state)
        if self._t >= self._next_snapshot_t and not self._journal.blocked:
            self._next_snapshot_t = self._t + SNAPSHOT_S
            self._write((self._snapshot_fact(),))

    def _perform(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            if not isinstance(decision, EndWatch):
                self._actions.submit(decision)
            elif self._held:
                self._held_end = decision
            else:
                self._end_watch(decision)

    def _end_watch(self, decision: EndWatch) -> None:
        if not is_live(self.state.machine):  # the run is over: what is being copied is copied to its end
            self._actions.await_copies()
        self.end(decision.exit_code, decision.reason)

    def _follow_attempt(self, observation: Observation) -> None:
        if isinstance(observation, Exit):
            self._follow(None)
        elif isinstance(observation, Outcome) and observation.action == "start_attempt" and observation.ok:
            target, start = _started(observation, self.clock.now())
            self._follow(target)
            self._turn(start)

    def _follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt of sensors and actor, before the judge's next decision about it."""
        self.live = target
        for sensor in self.sensors:
            sensor.follow(target)
        if target is not None:
            self.actor.follow(target)

    def _snapshot_fact(self) -> facts.Fact:
        return facts.JudgeSnapshot(version=self.snapshot_version, state=dict(self.snapshot(self.state)))

    def _close(self) -> None:
        self._exit_code = self._exit_code or 0  # an exception set none: no command is taken from now on
        self._refuse_commands()
        for sensor in self.sensors:
            sensor.stop()
        self._actions.close()
        while self._actions.unfinished:  # notices, and a launch: the run's lock is held until its trainer can be found
            self.turning()
            self._write_outcome(self.inbox.take(LAST_POLL_S))
        self.inbox.close()
        while (observation := self.inbox.take(0.0)) is not None:
            self._write_outcome(observation)
        self.recorder.commit(self._t, self.state)
        self._write((self._snapshot_fact(), facts.SupervisorEnded(pid=self.pid, why=self._end_reason)))
        self.journal.close()
        self.recorder.close()


def _started(outcome: Outcome, t: float) -> tuple[AttemptTarget, Start]:
    """The attempt that an outcome of ``start_attempt`` reports."""
    launched = msgspec.convert(outcome.data["start"], StartRecord)
    order = msgspec.convert(outcome.data["order"], StartAttempt)
    target = AttemptTarget(
        number=launched.attempt,
        trainer=launched.trainer,
        runner=launched.runner,
        log=launched.log,
        directory=str(outcome.data["directory"]),
    )
    changed = msgspec.convert(outcome.data.get("script_changed"), ScriptChange | None)
    return target, msgspec.structs.replace(_start(target, order, t), script=changed)


def _start(target: AttemptTarget, order: StartAttempt | None, t: float) -> Start:
    start = Start(
        t=t,
        attempt=target.number,
        pid=target.trainer.pid,
        runner_pid=target.runner.pid if target.runner else None,
        log=target.log,
        directory=target.directory,
    )
    ordered = ("resume_from", "resume_step", "profile", "changes")
    return start if order is None else msgspec.structs.replace(start, **{n: getattr(order, n) for n in ordered})


# The journal's writing side in the supervisor: records are on disk before the decisions among them are performed.

log = logging.getLogger(__name__)


@dataclass(eq=False)
class WriteAhead:
    """Writes records to the journal, then passes the decisions among them to ``perform``.

    While the journal cannot be written (a full disk), records and decisions are kept, and nothing is performed but
    notices, which say so.
    """

    journal: JournalWriter
    clock: Clock
    perform: Callable[[Sequence[Decision]], None]
    on_records: Sequence[Callable[[Sequence[Record]], None]]

    def __post_init__(self) -> None:
        self._unwritten: list[tuple[float, float, Entry | Outcome]] = []
        self._decisions: list[Decision] = []
        self._trouble = ""
        self.blocked = False
        """Whether the journal could not be written the last time."""

    def write(self, t: float, bodies: Iterable[Entry | Outcome] = ()) -> None:
        """Write records that are waiting and these, then perform all decisions among them.

        ``t``: run seconds of ``bodies``.
        """
        wall = self.clock.wall()
        new = tuple(bodies)
        self._unwritten += [(t, wall, body) for body in new]
        self._decisions += [body for body in new if isinstance(body, Decision)]
        if self._write_all():
            decisions, self._decisions = self._decisions, []
        else:
            decisions = [_unwritten(d, self._trouble) for d in self._decisions if isinstance(d, NotifyPeople)]
            self._decisions = [d for d in self._decisions if not isinstance(d, NotifyPeople)]
        self.perform(decisions)

    def _write_all(self) -> bool:
        while self._unwritten:
            t, wall, _ = self._unwritten[0]
            batch = [body for at, clock, body in self._unwritten if (at, clock) == (t, wall)]
            before = self.journal.seq
            try:
                written = self.journal.append_all(t, wall, batch)
                for take in self.on_records:
                    take(written)
            except OSError as error:
                del self._unwritten[: self.journal.seq - before]
                if not self.blocked:
                    log.warning("the journal cannot be written: %s; decisions wait until it can", error)
                self.blocked = True
                self._trouble = error.strerror or str(error)
                return False
            del self._unwritten[: len(batch)]
        if self.blocked:
            self.blocked = False
            log.warning("the journal can be written again")
        return True


def _unwritten(notice: NotifyPeople, trouble: str) -> NotifyPeople:
    """The notice with a sentence about the journal."""
    said = f"{notice.body}\n(the journal cannot be written: {trouble}; nothing is started or ended until it can)"
    return msgspec.structs.replace(notice, body=said)
