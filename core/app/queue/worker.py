"""The process that starts queued runs: one for each state folder, by a lock.

It begins with ``queue add``, with the end of a queued run if it had died, or by a unit after a reboot
(``queue enable``). It ends when nothing waits and nothing of the queue runs any more. Everything that it knows is in
the queue's file before it acts on it; if it dies, the next one goes on from there:

- an entry that was being started has its run, found by its label, or is started anew;
- a run whose supervisor died or that a reboot interrupted is supervised again, on GPUs that have room for it;
- a run that ended, or that a person stopped, is over.

Each turn: look at what is started, then begin one start, interrupted runs before waiting ones. Those that wait are
started in their order; one that can never be placed here, or that waits for another run, is passed over.
"""

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...act.processes import ATTEMPT_VARIABLE
from ...model.launch.queue import Queue, QueueEntry
from ...model.text.suggestion import typed
from ...store.home import runs_folder
from ...store.journal import load_story
from ...store.lists.queue_file import QueueFile
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, RunUnreadable
from ..gpu_survey import GpuSurvey, survey
from ..runs.output_owner import trainer_pid
from ..runs.unwatched import as_found
from .placement import loads, place
from .starting import Started, run_of_entry

log = logging.getLogger(__name__)

POLL_S = 1.0
"""Period of looking at the queue and at the locks of its runs."""
EAGER_S = 20.0
"""After a run ended or an entry came, the GPUs are read each turn for so long: memory is released within seconds."""
SURVEY_S = 15.0
"""Else they are read this often. A reading takes a third of a second of CPU."""
START_S = 120.0
"""Longest time of one start: its checks may ask the trainer's own PyTorch."""
MOST_BEGINNINGS = 3
"""Starts in a row of one entry that did not end, before it is given up."""
OVER_KEPT = 20
"""Entries that are over and still listed."""
OVER = frozenset({"finished", "given_up", "stopped", "ended_early"})


class QueueWorker:
    """``start``: starts the run of an entry and returns what became of it. ``read_gpus``: reads all GPUs."""

    def __init__(
        self,
        home: Path,
        *,
        start: Callable[[QueueEntry], Started],
        read_gpus: Callable[[], GpuSurvey] = survey,
        boot: str = "",
        wall: Callable[[], float] = time.time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home = home
        self._file = QueueFile(home)
        self._start = start
        self._read_gpus = read_gpus
        self._boot = boot
        self._wall = wall
        self._now = now
        self._eager_until = now() + EAGER_S
        self._next_survey = 0.0
        self._ids: frozenset[int] = frozenset()

    def turn(self) -> bool:
        """Do what is due. Returns whether anything is left to do."""
        queue = self._file.read()
        ids = frozenset(entry.id for entry in queue.waiting)
        if ids - self._ids:
            self._hurry()
        self._ids = ids
        interrupted: list[QueueEntry] = []
        for entry in queue.entries:
            if entry.holds:
                after = self._looked_at(entry)
                if after is None and self._trains(entry):
                    self._begin(entry, entry.on)
                elif after is None:
                    interrupted.append(entry)
                elif after != entry:
                    self._put(after)
        queue = self._file.read()
        wanting = [*interrupted, *queue.waiting]
        if wanting and self._now() >= self._next_survey:
            self._next_survey = self._now() + (0.0 if self._now() < self._eager_until else SURVEY_S)
            self._place_one(queue, wanting)
        return any(entry.state != "over" for entry in self._file.read().entries)

    def _hurry(self) -> None:
        self._eager_until, self._next_survey = self._now() + EAGER_S, 0.0

    def _put(self, entry: QueueEntry) -> None:
        """Write one entry down. One that was removed meanwhile stays removed."""
        self._file.update(lambda queue: _without_oldest(queue.replaced(entry)))
        if entry.state == "over":
            self._file.forget_environment(entry.key)
            self._hurry()

    # --- what is started ----------------------------------------------------------------------------------------

    def _looked_at(self, entry: QueueEntry) -> QueueEntry | None:
        """The entry as its run is now; None if the run is interrupted and has to be supervised again."""
        run = self._run_of(entry)
        if run is None:
            return self._not_made(entry)
        held = is_held(run.lock)
        if held or (entry.state == "started" and trainer_pid(run) is not None and not _died(run.lock)):
            return self._works(entry, run)
        story = as_found(run, load_story(run.journal))
        if story.state in OVER:
            return self._over(entry, story.state, story.state_reason, run)
        if story.attempts and not _died(run.lock) and entry.boot == self._boot and trainer_pid(run) is None:
            why = "its supervisor was ended, and its trainer has ended since"
            how = f"continue it with `{typed('resume', run.id)}`"
            return self._over(entry, "interrupted", f"{why}; {how}", run)
        if entry.begun >= MOST_BEGINNINGS:
            return self._over(entry, "failed", f"its supervisor did not start {entry.begun} times: {entry.why}", run)
        return None

    def _trains(self, entry: QueueEntry) -> bool:
        """Whether its trainer lives, so that it has its GPUs already."""
        run = self._run_of(entry)
        return run is not None and trainer_pid(run) is not None

    def _run_of(self, entry: QueueEntry) -> RunDirectory | None:
        if entry.run is None:
            return run_of_entry(entry)
        run = RunDirectory(runs_folder(self._home) / entry.run)
        try:
            run.load_spec()
        except RunUnreadable:
            return None
        return run

    def _not_made(self, entry: QueueEntry) -> QueueEntry:
        """Its start was cut off before the run was made, or the run was forgotten by a person."""
        if entry.run is not None:
            return self._over(entry, "gone", f"the run {entry.run} is not known any more", None)
        if entry.begun >= MOST_BEGINNINGS:
            return self._over(entry, "failed", f"its start was cut off {entry.begun} times", None)
        return msgspec.structs.replace(entry, state="queued", on=(), why="its start was cut off")

    def _works(self, entry: QueueEntry, run: RunDirectory) -> QueueEntry:
        began = entry.started_wall or self._wall()
        return msgspec.structs.replace(
            entry, state="started", run=run.id, begun=0, why="", started_wall=began, boot=self._boot
        )

    def _over(self, entry: QueueEntry, ending: str, why: str, run: RunDirectory | None) -> QueueEntry:
        run_id = entry.run if run is None else run.id
        return msgspec.structs.replace(
            entry, state="over", ending=ending, why=why, run=run_id, over_wall=self._wall()
        )  # fmt: skip

    # --- what is to be started ----------------------------------------------------------------------------------

    def _place_one(self, queue: Queue, wanting: list[QueueEntry]) -> None:
        """Start the first that fits. One that fits only later keeps those behind it waiting."""
        seen = self._read_gpus()
        owners = _owners(self._home, seen)
        found = loads(seen.gpus, [e for e in queue.entries if e not in wanting], owners)
        for entry in wanting:
            chosen = place(entry, found, seen.trouble)
            if chosen.gpus is None:
                self._wait(entry, chosen.why)
                if chosen.never:
                    continue
                return
            if self._begin(entry, chosen.gpus):
                return

    def _wait(self, entry: QueueEntry, why: str) -> None:
        if entry.why != why:
            self._put(msgspec.structs.replace(entry, why=why))

    def _begin(self, entry: QueueEntry, gpus: tuple[int, ...]) -> bool:
        """Start an entry on these GPUs. Returns False if it has to wait for another run."""
        before = entry.state
        entry = msgspec.structs.replace(
            entry, state="starting", on=gpus, begun=entry.begun + 1, boot=self._boot, why=""
        )  # fmt: skip
        written = self._file.update(lambda queue: _begun(queue, entry, before))
        if written.find(entry.id) != entry:
            return True  # it was removed meanwhile
        done = self._start(entry)
        log.info("entry %s (%s): %s %s", entry.id, entry.name, done.how, done.run or done.why)
        match done.how:
            case "started":
                self._put(msgspec.structs.replace(entry, run=done.run))
            case "later":
                back = msgspec.structs.replace(entry, state="queued", on=(), begun=0, why=f"waits: {done.why}")
                self._put(back)
                return False
            case "failed":
                self._put(self._over(entry, "failed", done.why, None))
        return True


def _begun(queue: Queue, entry: QueueEntry, before: str) -> Queue:
    known = queue.find(entry.id)
    return queue.replaced(entry) if known is not None and known.state == before else queue


def _without_oldest(queue: Queue) -> Queue:
    """The queue without entries that are over for long."""
    over = sorted((e for e in queue.entries if e.state == "over"), key=lambda e: e.over_wall or 0.0)
    gone = {entry.id for entry in over[:-OVER_KEPT]}
    return msgspec.structs.replace(queue, entries=tuple(e for e in queue.entries if e.id not in gone))


def _died(lock: Path) -> bool:
    """Whether the last supervisor died without releasing its lock: it leaves its pid there."""
    try:
        return bool(lock.read_text().strip()) and not is_held(lock)
    except OSError:
        return False


def _owners(home: Path, seen: GpuSurvey) -> dict[int, str]:
    """The run of each process on a GPU that belongs to one of this state folder."""
    runs = f"{runs_folder(home)}/".encode()
    found: dict[int, str] = {}
    for user in {user.pid for gpu in seen.gpus for user in gpu.users or ()}:
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{user}/environ").read_bytes().split(b"\0"):
                name, _, value = entry.partition(b"=")
                if name == ATTEMPT_VARIABLE.encode() and value.startswith(runs):
                    found[user] = value[len(runs) :].split(b"/")[0].decode("utf-8", "replace")
    return found
