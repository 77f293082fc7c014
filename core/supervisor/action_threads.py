"""The threads in which decisions are performed. The outcome of each comes back as an observation in the inbox."""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

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
from ..model.observation import Outcome
from ..model.ports.supervision import Actor, Clock, Inbox
from .passing_threads import PassingThreads

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
