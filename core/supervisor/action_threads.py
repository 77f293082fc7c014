"""The threads in which decisions are performed. The outcome of each comes back as an observation in the inbox."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from time import monotonic
from typing import ParamSpec

import msgspec

from ..model.decision import (
    BackUpCheckpoint,
    CaptureStacks,
    CopyAside,
    Decision,
    DeleteCheckpoint,
    EndEvaluation,
    EndLeftovers,
    EvaluateCheckpoint,
    ListCheckpoints,
    LookForLoop,
    NotifyPeople,
    PlanRetention,
    RunAtEnd,
    StartAttempt,
    StopAttempt,
)
from ..model.observation import GpuSample, HostSample, LogChunk, Observation, Outcome, ProcessSample
from ..model.supervision_ports import Actor, Clock, Inbox

log = logging.getLogger(__name__)


class ActionThreads:
    """Performs decisions in their order, one at a time, except for those that need not wait.

    - notices have a thread of their own, and stay in order among themselves; the user's command at the end follows
      the last of them, since it may end the machine;
    - stacks, and stops in mode "kill", start at once;
    - retention runs beside everything, one at a time, and may be cut off at the end;
    - an evaluation of a checkpoint runs beside everything;
    - a list of the output folder may wait for a disk that does not answer: beside everything, too.

    ``gives_way``: whether this supervisor is to be replaced by one of another version. Asked before a launch, after one
    that failed (its runner is started from files that may just be replaced) and after a bug; the decision then has no
    outcome, and the next supervisor does it.
    """

    def __init__(self, actor: Actor, inbox: Inbox, clock: Clock, gives_way: Callable[[], bool] = lambda: False) -> None:
        self._actor = actor
        self._gives_way = gives_way
        self._inbox = inbox
        self._clock = clock
        self._in_order = PassingThreads(1, "act")
        self._at_once = PassingThreads(3, "act-at-once")
        self._notices = PassingThreads(1, "notify")
        self._retention_lock = threading.Lock()
        self._awaited: list[Future[None]] = []
        self._copies: list[Future[None]] = []

    @property
    def unfinished(self) -> bool:
        """Whether a launch, a notice or an action at once still runs. The supervisor waits for them at its end."""
        return any(not action.done() for action in self._awaited)

    def submit(self, decision: Decision) -> None:
        """Perform a decision. Returns at once."""
        match decision:
            case BackUpCheckpoint():
                # In threads of their own: a copy may take an hour; the end of the run waits for it.
                copying = self._copy(decision)
                self._copies = [copy for copy in (*self._copies, copying) if not copy.done()]
            case RunAtEnd():
                self._awaited.append(self._notices.submit(self._perform_after, tuple(self._copies), decision))
            case NotifyPeople():
                self._awaited.append(self._notices.submit(self._perform, decision))
            case PlanRetention() | DeleteCheckpoint():
                # A daemon thread: a verification of many GB must not delay the end of the supervisor.
                threading.Thread(target=self._retain, args=(decision,), name="retention", daemon=True).start()
            case ListCheckpoints() | CopyAside():
                threading.Thread(target=self._perform, args=(decision,), name="files", daemon=True).start()
            case EvaluateCheckpoint():
                # A daemon thread: it may take an hour, and its process ends with the supervisor.
                threading.Thread(target=self._perform, args=(decision,), name="evaluate", daemon=True).start()
            case EndEvaluation():
                self._awaited.append(self._at_once.submit(self._perform, decision))
            case CaptureStacks() | LookForLoop() | StopAttempt(mode="kill") | EndLeftovers(mode="kill"):
                # A gentle stop takes up to its graces, the GPU memory gate a minute.
                self._awaited.append(self._at_once.submit(self._perform, decision))
            case StartAttempt():
                self._awaited.append(self._in_order.submit(self._perform, decision))
            case _:
                self._in_order.submit(self._perform, decision)
        self._awaited = [action for action in self._awaited if not action.done()]

    def await_copies(self) -> None:
        """Let the supervisor wait at its end for what is being copied now."""
        self._awaited.extend(self._copies)

    def close(self) -> None:
        """Accept no more decisions and cancel those in order that have not begun."""
        self._in_order.close(cancel=True)
        self._at_once.close()
        self._notices.close()

    def _copy(self, decision: Decision) -> Future[None]:
        """A daemon thread: a copy must not delay the end of a supervisor that is only replaced."""
        done: Future[None] = Future()

        def copy() -> None:
            try:
                self._perform(decision)
            finally:
                done.set_result(None)

        threading.Thread(target=copy, name="backup", daemon=True).start()
        return done

    def _perform_after(self, copies: Sequence[Future[None]], decision: Decision) -> None:
        """After what is being copied: the command may end the machine."""
        wait(copies)
        self._perform(decision)

    def _retain(self, decision: Decision) -> None:
        with self._retention_lock:
            self._perform(decision)

    def _perform(self, decision: Decision) -> None:
        if isinstance(decision, StartAttempt) and self._gives_way():
            return
        try:
            outcome = self._actor.perform(decision)
        except Exception as error:  # a bug of an action must not end the supervisor
            if self._gives_way():
                return
            log.exception("performing %s failed", type(decision).__name__)
            outcome = Outcome(
                t=0.0,
                decision=decision.id,
                action=str(decision.__struct_config__.tag),
                ok=False,
                detail=f"internal error: {error!r}",
            )
        if isinstance(decision, StartAttempt) and not outcome.ok and self._gives_way():
            return
        self._inbox.put(msgspec.structs.replace(outcome, t=self._clock.now()))


# Threads that end when there is nothing to do: actions are rare, and an idle thread keeps its stack.

P = ParamSpec("P")


class PassingThreads:
    """Calls functions in the order of ``submit``, at most ``most`` at once.

    The program waits at its end for calls that have begun.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[None], Callable[[], None]]] = deque()
        self._running = 0
        self._closed = False

    def submit(self, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
        """Call it in a thread. Raises RuntimeError after ``close``."""
        done: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name}: nothing is begun after the end")
            self._waiting.append((done, lambda: function(*args, **kwargs)))
            if self._running < self._most:
                self._running += 1
                threading.Thread(target=self._run, name=self._name).start()
        return done

    def close(self, *, cancel: bool = False) -> None:
        """Accept nothing more. ``cancel``: do not begin what waits."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiting) if cancel else []
            if cancel:
                self._waiting.clear()
        for done, _ in waiting:
            done.cancel()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                done, call = self._waiting.popleft()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                call()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)


# The bounded queue between sensors and the supervisor.

CAPACITY = 2048
"""Observations that may wait before ``put`` blocks its sensor. A burst of log then waits in its file."""

REPLACEABLE = (GpuSample, HostSample, ProcessSample)
PATIENT = frozenset({*REPLACEABLE, LogChunk})
LITTLE_TEXT = 4096
"""Characters of log text that may wait for the next turn; more of it wakes the supervisor."""


class BoundedInbox:
    """Implements ``model.ports.Inbox``: a sample replaces an older one of its kind; all else is kept in order.

    ``patient``: samples and a little text of the log do not wake the supervisor, which takes them at its next turn:
    when something else comes, or at the end of the time that it waits. To wake a thread costs as much CPU time as to
    judge a sample. The first of each kind wakes it in any case: a launch waits for the first reading of the GPUs.
    """

    def __init__(self, capacity: int = CAPACITY, *, patient: bool = False) -> None:
        self._capacity = capacity
        self._patient = patient
        self._known: set[type[Observation]] = set()
        self._queue: deque[Observation] = deque()
        self._samples: dict[type[Observation], Observation] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._unread = 0

    def put(self, observation: Observation) -> None:
        """Add; blocks while full. After ``close`` observations are dropped, so that sensors can end."""
        with self._changed:
            if isinstance(observation, REPLACEABLE):
                self._samples[type(observation)] = observation
            else:
                self._changed.wait_for(lambda: self._closed or len(self._queue) < self._capacity)
                if self._closed:
                    return
                self._queue.append(observation)
                if isinstance(observation, LogChunk):
                    self._unread += len(observation.text)
            if not self._can_wait(observation):
                self._changed.notify_all()

    def _can_wait(self, observation: Observation) -> bool:
        kind = type(observation)
        if not self._patient or kind not in PATIENT:
            return False
        if kind not in self._known:
            self._known.add(kind)
            return False
        return self._unread < LITTLE_TEXT

    def take(self, timeout_s: float) -> Observation | None:
        """The next observation, or None after ``timeout_s``. Samples go first: there are at most three."""
        deadline = monotonic() + timeout_s
        with self._changed:
            while not self._samples and not self._queue:
                remaining = deadline - monotonic()
                if remaining <= 0 or not self._changed.wait(remaining):
                    break
            if self._samples:
                return self._samples.pop(next(iter(self._samples)))
            if not self._queue:
                return None
            taken = self._queue.popleft()
            if isinstance(taken, LogChunk):
                self._unread -= len(taken.text)
            self._changed.notify_all()
            return taken

    def unread(self) -> int:
        """Characters of log text that wait."""
        return self._unread

    def close(self) -> None:
        """Release every sensor that waits in ``put``."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
