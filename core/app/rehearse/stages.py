"""The stages of a rehearsal: to the first checkpoint, kill, restart, proof. Follows a supervised run and acts on it."""

import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path

from ...act import processes
from ...act.launch.attempt_records import read_start
from ...judge.text.position.loss_curve import FEW
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.control_messages import Request
from ...model.observation import Command
from ...model.record import Record
from ...model.run import TERMINAL_STATES
from ...model.settings import Settings
from ...model.story import RunStory
from ...model.story_fold import apply
from ...store.control.control_client import ControlError, send
from ...store.run_directory import RunDirectory
from .order import Stage
from .printed_steps import Printed, StepsReader
from .proof import SURE, fall_of, prove_steps, steps_of, tells_apart

LOOK_S = 0.1
"""Period of looking at the log and the story."""
HASTE_S = 0.01
LOSS_WAIT_S = 60.0
"""How long the first attempt trains on after its checkpoint until its losses tell a resume from a new start, at most;
a trainer that needed less than this to its checkpoint gets as long again."""
LOSS_WAIT_LEAST_S = 10.0
SHARE_OF_TOTAL = 0.6
"""Of the total steps: it is killed by then, before it ends by itself."""
PROOF_S = 60.0
"""How long the second attempt is waited for after its first step, at most."""
USABLE = frozenset({"complete", "opaque"})
"""Verdicts of checkpoints that a launch may resume from."""
LINES_AFTER = 3
"""Printed steps after the checkpoint before the kill, so that the kill loses some."""


class Stages:
    """One rehearsed run. ``listener`` is called by the supervisor, ``follow`` runs in a thread of its own."""

    def __init__(
        self,
        run: RunDirectory,
        settings: Settings,
        limit_s: float,
        say: Callable[[str], None],
        first_sight: Callable[[], Checkpoint | None] | None = None,
    ) -> None:
        """``first_sight``: looks for a checkpoint by itself; the kill then follows at once."""
        self.story = RunStory()
        self.stage: Stage = "start"
        self.timed_out = False
        self.killed_wall: float | None = None
        self.first_checkpoint: Checkpoint | None = None
        self.checkpoint_after_s: float | None = None
        self._run, self._settings, self._say, self._first_sight = run, settings, say, first_sight
        self._end = time.monotonic() + limit_s
        self._since = time.monotonic()
        self._readers: dict[int, StepsReader] = {}

    def listener(self, story: RunStory) -> Callable[[Sequence[Record]], None]:
        """The function that gets each record."""
        self.story = story

        def hear(records: Sequence[Record]) -> None:
            self.story = reduce(apply, records, self.story)

        return hear

    def lines(self, number: int) -> Sequence[Printed]:
        """What an attempt printed so far."""
        attempt = next((a for a in self.story.attempts if a.number == number), None)
        if attempt is None or attempt.log is None:
            return ()
        if number not in self._readers:
            before = self._readers.get(number - 1)
            self._readers[number] = StepsReader(Path(attempt.log), self._settings, before, attempt.resume_step)
        return self._readers[number].read()

    def total(self, number: int) -> int | None:
        """Total steps as an attempt printed them."""
        reader = self._readers.get(number)
        return None if reader is None else reader.total

    def step_of(self, checkpoint: Checkpoint | None) -> int | None:
        """The step of a checkpoint in the steps that the first attempt printed; None if it cannot be told.

        The stored one if it fits the log; a log that counts something else had come this far when it was written.
        """
        if checkpoint is None:
            return None
        lines = self.lines(1)
        printed = max(
            (line.step for line in lines if line.step and line.wall <= checkpoint.mtime + LOOK_S), default=None
        )
        ever = max((line.step for line in lines if line.step), default=None)
        stored = checkpoint.step
        if stored is not None and ever is not None and (printed or 0) / 2 <= stored <= ever + LINES_AFTER:
            return stored
        return printed

    def follow(self, over: threading.Event) -> None:
        """Act until the rehearsal is done or ``over`` is set."""
        self.stage = "checkpoint"
        self._since = time.monotonic()
        while not over.wait(LOOK_S if self._first_sight is None or self.stage != "checkpoint" else HASTE_S):
            if self.story.state in TERMINAL_STATES:
                continue  # the supervisor ends by itself
            if time.monotonic() >= self._end:
                self.timed_out = True
                self.end(over)
                return
            if self._act():
                self.end(over)
                return

    def _act(self) -> bool:
        """Do what is due in this stage. Returns whether all is done."""
        match self.stage:
            case "checkpoint":
                self._look_for_checkpoint()
            case "kill" if self._enough():
                self._kill()
            case "restart" if len(self.story.attempts) > 1 and (steps_of(self.lines(2)) or self._is_judged()):
                self._say("it trains again")
                self._next("proof")
            case "proof" if self._proven() or self._waited > PROOF_S:
                self._next("done")
                return True
            case _:
                pass
        return False

    def _next(self, stage: Stage) -> None:
        self.stage, self._since = stage, time.monotonic()

    @property
    def _waited(self) -> float:
        """Seconds since the stage began."""
        return time.monotonic() - self._since

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that a resume can use, of those before the kill."""
        before = self.killed_wall or float("inf")
        whole = [c for c in self.story.checkpoints if c.verdict in USABLE and c.mtime <= before]
        return whole[-1] if whole else None

    def _look_for_checkpoint(self) -> None:
        lines = self.lines(1)
        found = self.newest() if self._first_sight is None else self._first_sight()
        if found is None:
            return
        steps = steps_of(lines)  # a log without any (tqdm off) tells no more if it is waited for
        if self._first_sight is not None and steps and not tells_apart(steps, self.step_of(found)):
            return
        self.first_checkpoint, self.checkpoint_after_s = found, self._waited
        at = f" at step {found.step}" if found.step is not None else ""
        self._say(f"first checkpoint after {self._waited:.0f} s: {found.name}{at}")
        self._next("kill")
        if self._first_sight is not None:
            self._kill()

    def _enough(self) -> bool:
        """Whether what was printed so far tells a resume from a new start, or it will not get better."""
        lines, step = self.lines(1), self.step_of(self.newest())
        steps, total = steps_of(lines), self.total(1)
        longest = min(LOSS_WAIT_S, max(LOSS_WAIT_LEAST_S, self.checkpoint_after_s or 0.0))
        if total is not None and steps and steps[-1] >= SHARE_OF_TOTAL * total:
            return True
        if not tells_apart(steps, step):
            return self._waited > 2 * longest
        after = [s for s in steps if step is not None and s > step]
        fall = fall_of(lines, step)
        told = len(after) >= LINES_AFTER and (fall is None or fall.clear)
        return told or self._waited > longest

    def _kill(self) -> None:
        attempt = self.story.attempt
        if attempt is None:
            return
        self._next("restart")
        self.killed_wall = time.time()
        steps = steps_of(self.lines(1))
        self._say(f"kill -9{f' at step {steps[-1]}' if steps else ''}")
        start = None if attempt.directory is None else read_start(Path(attempt.directory))
        if start is None:
            return
        key = (start.trainer.pid, start.trainer.start_ticks)
        processes.send_signal(key, signal.SIGSTOP)  # it makes no further step while its children are looked for
        for process in processes.attempt_processes(key, directory=attempt.directory):
            try:
                processes.send_signal(process.key, signal.SIGKILL)
            except PermissionError:
                continue

    def _proven(self) -> bool:
        lines = self.lines(2)
        losses = sum(1 for line in lines if line.loss is not None)
        wanted = min(FEW, sum(1 for line in self.lines(1) if line.loss is not None))
        steps = len(steps_of(lines)) > SURE or not steps_of(self.lines(1))
        return steps and losses >= wanted and self._is_told()

    def _is_told(self) -> bool:
        """Whether the printed steps tell of the resume, or the judge has said what it saw of it."""
        told = prove_steps(self.lines(1), self.lines(2), self.step_of(self.newest())).holds is True
        return told or self._is_judged()

    def _is_judged(self) -> bool:
        """Whether the judge has said what it saw of the resume: it then closes the incident of the kill."""
        return not any(incident.open for incident in self.story.incidents if incident.attempt == 1)

    def end(self, over: threading.Event) -> None:
        """End the trainer and its supervisor."""
        request = Request(command=Command(t=0.0, verb="shutdown", by="the rehearsal", stop_trainer=True))
        while True:
            try:
                send(self._run, request)
            except ControlError:
                if not over.wait(LOOK_S):
                    continue
            return
