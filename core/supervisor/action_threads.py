"""The threads in which decisions are performed. The outcome of each comes back as an observation in the inbox."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from time import monotonic

import msgspec

from ..model import decision as decisions
from ..model.observation import GpuSample, HostSample, LogChunk, Observation, Outcome, ProcessSample
from ..model.ports import Actor, Clock, Inbox

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
        self._in_order = ThreadPoolExecutor(1, "act")
        self._at_once = ThreadPoolExecutor(3, "act-at-once")
        self._notices = ThreadPoolExecutor(1, "notify")
        self._retention_lock = threading.Lock()
        self._awaited: list[Future[None]] = []
        self._copies: list[Future[None]] = []
        self._capture: list[Future[None]] = []
        """The newest capture of stacks, if there was one."""

    @property
    def unfinished(self) -> bool:
        """Whether a launch, a notice or an action at once still runs. The supervisor waits for them at its end."""
        return any(not action.done() for action in self._awaited)

    def submit(self, decision: decisions.Decision) -> None:
        """Perform a decision. Returns at once."""
        match decision:
            case decisions.BackUpCheckpoint():
                # A copy may take an hour; the end of the run waits for it, that of a replaced supervisor does not.
                self._copies = [copy for copy in (*self._copies, self._beside(decision)) if not copy.done()]
            case decisions.RunAtEnd():
                self._awaited.append(self._notices.submit(self._perform_after, tuple(self._copies), decision))
            case decisions.NotifyPeople():
                self._awaited.append(self._notices.submit(self._perform, decision))
            case decisions.PlanRetention() | decisions.DeleteCheckpoint():
                self._beside(decision, self._retention_lock)
            case decisions.ListCheckpoints() | decisions.CopyAside() | decisions.EvaluateCheckpoint():
                self._beside(decision)
            case (
                decisions.EndEvaluation()
                | decisions.CaptureStacks()
                | decisions.LookForLoop()
                | decisions.StopAttempt(mode="kill")
                | decisions.EndLeftovers(mode="kill")
            ):
                # A gentle stop takes up to its graces, the GPU memory gate a minute.
                self._awaited.append(self._at_once.submit(self._perform, decision))
                if isinstance(decision, decisions.CaptureStacks):
                    self._capture = self._awaited[-1:]
            case decisions.StopAttempt(incident=int()):
                self._in_order.submit(self._perform_after, tuple(self._capture), decision)
            case decisions.StartAttempt():
                self._awaited.append(self._in_order.submit(self._perform, decision))
            case _:
                self._in_order.submit(self._perform, decision)
        self._awaited = [action for action in self._awaited if not action.done()]

    @property
    def copying(self) -> bool:
        """Whether a checkpoint is being copied."""
        return any(not copy.done() for copy in self._copies)

    def await_copies(self) -> None:
        """Let the supervisor wait at its end for what is being copied now."""
        self._awaited.extend(self._copies)

    def close(self) -> None:
        """Accept no more decisions and cancel those in order that have not begun."""
        self._in_order.shutdown(wait=False, cancel_futures=True)
        self._at_once.shutdown(wait=False)
        self._notices.shutdown(wait=False)

    def _beside(
        self, decision: decisions.Decision, within: AbstractContextManager[object] | None = None
    ) -> Future[None]:
        """In a daemon thread: what may take an hour must not delay the end of the supervisor."""
        done: Future[None] = Future()

        def perform() -> None:
            try:
                with within or nullcontext():
                    self._perform(decision)
            finally:
                done.set_result(None)

        threading.Thread(target=perform, name=type(decision).__name__, daemon=True).start()
        return done

    def _perform_after(self, others: Sequence[Future[None]], decision: decisions.Decision) -> None:
        """After what is being copied, as the command may end the machine; or after the stacks of what is ended."""
        wait(others)
        self._perform(decision)

    def _perform(self, decision: decisions.Decision) -> None:
        if isinstance(decision, decisions.StartAttempt) and self._gives_way():
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
        if isinstance(decision, decisions.StartAttempt) and not outcome.ok and self._gives_way():
            return
        self._inbox.put(msgspec.structs.replace(outcome, t=self._clock.now()))


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
