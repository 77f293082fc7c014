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
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...act.processes import ATTEMPT_VARIABLE, boot_id
from ...bound_process import bound
from ...model.suggestion import typed
from ...model.trial import Queue, QueueEntry
from ...store.home import make_private, runs_folder
from ...store.journal import load_story
from ...store.learned import ListUnreadable, QueueFile
from ...store.lock import SupervisorLock, SupervisorRunning, holder_pid, is_held
from ...store.run_directory import RunDirectory, RunUnreadable
from ..errors import CliError, ExitCode
from ..gpu_survey import GpuSurvey, survey
from ..runs.output_claim import trainer_pid
from ..runs.supervisor_life import as_found
from .entries import Started, loads, place, run_of_entry

log = logging.getLogger(__name__)

POLL_S = 1.0
"""Period of looking at the queue and at the locks of its runs."""
SURVEY_S = 5.0
"""Period of reading the GPUs while something waits. A reading takes a third of a second of CPU."""
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
        self._next_survey = 0.0

    def turn(self) -> bool:
        """Do what is due. Returns whether anything is left to do."""
        queue = self._file.read()
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
            began = self._place_one(queue, wanting)
            self._next_survey = self._now() + (0.0 if began else SURVEY_S)
        return any(entry.state != "over" for entry in self._file.read().entries)

    def _put(self, entry: QueueEntry) -> None:
        """Write one entry down. One that was removed meanwhile stays removed."""
        self._file.update(lambda queue: _without_oldest(queue.replaced(entry)))
        if entry.state == "over":
            self._file.forget_environment(entry.key)
            self._next_survey = 0.0

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

    def _place_one(self, queue: Queue, wanting: list[QueueEntry]) -> bool:
        """Start the first that fits; whether one did. One that fits only later keeps those behind it waiting."""
        seen = self._read_gpus()
        owners = _owners(self._home, seen)
        found = loads(seen.gpus, [e for e in queue.entries if e not in wanting], owners)
        for entry in wanting:
            chosen = place(entry, found, seen.trouble)
            if chosen.gpus is None:
                self._wait(entry, chosen.why)
                if chosen.never:
                    continue
                return False
            if self._begin(entry, chosen.gpus):
                return True
        return False

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
    runs = f"{runs_folder(home)}/".encode()
    found: dict[int, str] = {}
    for user in {user.pid for gpu in seen.gpus for user in gpu.users or ()}:
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{user}/environ").read_bytes().split(b"\0"):
                name, _, value = entry.partition(b"=")
                if name == ATTEMPT_VARIABLE.encode() and value.startswith(runs):
                    found[user] = value[len(runs) :].split(b"/")[0].decode("utf-8", "replace")
    return found


# Starts the process that starts queued runs, and the starts that it makes, each apart from it.

WAIT_S = 20.0
"""How long the start of the worker may take: imports take a second or two on a busy machine."""
LOOK_S = 0.05


def start_apart(home: Path) -> Callable[[QueueEntry], Started]:
    """Starts an entry by ``trainwatch queue start``, in its folder and with its environment."""

    def start(entry: QueueEntry) -> Started:
        kept = QueueFile(home).environment(entry.key)
        env = {**(dict(os.environ) if kept is None else kept), "TRAINWATCH_HOME": str(home)}
        argv = [sys.executable, "-P", "-m", "trainwatch", "queue", "start", str(entry.id)]
        try:
            done = subprocess.run(
                bound(argv),
                cwd=entry.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=START_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Started(how="started")  # it may have begun: the next turn looks
        except OSError as error:
            return Started(how="failed", why=f"{error.filename or entry.cwd}: {error.strerror or error}")
        try:
            return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=Started)
        except (msgspec.MsgspecError, IndexError):
            said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            log.warning("entry %s: its start ended with %s: %s", entry.id, done.returncode, said)
            return Started(how="started")  # cut off: the next turn looks for its run

    return start


def work(home: Path) -> int:
    """Start queued runs until nothing is left. Raises CliError (exit code 4) if another process does it already."""
    file = QueueFile(home)
    make_private(file.folder)
    lock = SupervisorLock(file.worker_lock)
    try:
        lock.acquire()
    except SupervisorRunning as running:
        who = f" (pid {running.pid})" if running.pid else ""
        raise CliError(ExitCode.OWNED, f"another process{who} starts the queued runs already") from None
    with lock:
        worker = QueueWorker(home, start=start_apart(home), boot=boot_id())
        while worker.turn():
            time.sleep(POLL_S)
    return ExitCode.DONE


def ensure_worker(home: Path) -> int | None:
    """Start the worker apart from any terminal if none is there. Returns its pid, None if it is not known.

    Raises CliError.
    """
    file = QueueFile(home)
    if is_held(file.worker_lock):
        return holder_pid(file.worker_lock)
    make_private(file.folder)
    output = os.open(file.worker_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", "trainwatch", "queue", "work", "--detach"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={**os.environ, "TRAINWATCH_HOME": str(home)},
            start_new_session=True,
        )
    finally:
        os.close(output)
    code = started.wait()
    deadline = time.monotonic() + WAIT_S
    while code == 0 and time.monotonic() < deadline:
        if is_held(file.worker_lock):
            return holder_pid(file.worker_lock)
        if not _anything_left(file):  # it is done already
            return None
        time.sleep(LOOK_S)
    raise CliError(ExitCode.FAILED, f"the process that starts queued runs did not start: see {file.worker_log}")


def revive_worker(home: Path) -> None:
    """At the end of a queued run: if entries are left and nobody starts them, start the worker again. Never raises."""
    file = QueueFile(home)
    try:
        if _anything_left(file) and not is_held(file.worker_lock):
            ensure_worker(home)
    except (CliError, OSError) as error:
        log.warning("the queue: %s", error)


def _anything_left(file: QueueFile) -> bool:
    try:
        return any(entry.state != "over" for entry in file.read().entries)
    except ListUnreadable:
        return False


def detach() -> bool:
    """Go on in a process without a parent that waits for it. Returns whether this is that process."""
    if os.fork():
        return False
    os.setsid()
    return True
