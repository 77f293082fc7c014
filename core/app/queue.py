"""The queue: runs that wait for a GPU, where they fit, their start, and the process that starts them.

That process is one for each state folder, by a lock. It begins with ``queue add``, with the end of a queued run if it
had died, or by ``queue work`` after a reboot. It ends when nothing waits and nothing of the queue runs any more.
Everything that it knows is in the queue's file; if it dies, the next one goes on from there:

- the run of a start that was cut off is found by its label, or the entry waits as before;
- a run whose supervisor died or that a reboot interrupted waits again, before the others, and goes on in its folder;
- a run that ended, or that a person stopped, is over.

Those that wait are started in their order; one that can never be placed here, or that waits for another run, is passed
over.
"""

import logging
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..bound_process import bound
from ..model.launch import LABEL, Queue, QueueEntry
from ..model.text import memory, typed
from ..processes import ATTEMPT_VARIABLE, boot_id, file_text, variables_of
from ..store.home import make_private, runs_folder
from ..store.journal import load_story
from ..store.learned import QueueFile, newest_trials
from ..store.lock import SupervisorLock, SupervisorRunning, holder_pid, is_held
from ..store.run_directory import RunDirectory, RunUnreadable
from ..store.run_lookup import list_runs
from .errors import CliError, ExitCode, file_errors
from .gpu_survey import GpuSeen, GpuSurvey, survey
from .plan.launch_plan import LaunchPlan
from .runs.known_runs import here, home
from .runs.output_claim import trainer_pid
from .runs.supervisor_life import as_found
from .runs.waiting import turns

AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)\s*([bkmgt]?)(i?)b?", re.IGNORECASE)
replace = msgspec.structs.replace
LEFT_OUT = frozenset({"TRAINWATCH_ATTEMPT", "TRAINWATCH_HOME", "CUDA_VISIBLE_DEVICES", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables of the shell that a queued run does not get: of a trainer around it, or chosen by the queue."""


def amount(text: str) -> float:
    """Bytes of ``12GB``, ``12GiB``, ``12000MiB``; a number alone counts GB, or bytes from a million on.

    Raises CliError.
    """
    found = AMOUNT.fullmatch(text.strip())
    if found is None:
        raise CliError(ExitCode.USAGE, f'--gpu-memory: "{text}" is no amount of memory; write it as 12GB or 12000MiB')
    value, unit = float(found[1]), found[2].lower()
    if not unit and not text.strip().lower().endswith("b"):
        return value if value >= 1e6 else value * 1e9
    return float(value * (1024.0 if found[3] else 1000.0) ** "bkmgt".index(unit or "b"))


def measured_need(plan: LaunchPlan) -> tuple[float | None, str]:
    """(GPU memory that a trial of this run measured with its profile, how that is known)."""
    spec = plan.spec
    for run in (spec.id, re.sub(r"-\d+$", "", spec.id)):
        measured = newest_trials(home(), run).get(spec.settings.profiles.use or "")
        if measured is not None and measured.vram_peak_bytes is not None and not measured.simulated_gpu:
            return measured.vram_peak_bytes, f"measured by a trial with the profile {measured.profile or '–'}"
    return None, "not known: it gets a GPU for itself alone"


def add_entry(environ: Mapping[str, str], *, name: str, words: Sequence[str], **fields: Any) -> tuple[QueueEntry, int]:
    """Add an entry at the end; ``fields``: its others. Returns it with its place, from 1. Raises CliError."""
    entry = QueueEntry(
        id=0, key=uuid.uuid4().hex[:12], name=name, words=tuple(words), cwd=str(here()), added_wall=time.time(),
        environ={name: value for name, value in environ.items() if name not in LEFT_OUT}, **fields,
    )  # fmt: skip

    def change(queue: Queue) -> Queue:
        return replace(queue, next_id=queue.next_id + 1, entries=(*queue.entries, replace(entry, id=queue.next_id)))

    queue = _changed(change)
    return queue.entries[-1], len(queue.waiting)


def move_entry(number: int, place: int) -> int:
    """Move a waiting entry to a place among those that wait, from 1. Returns the place. Raises CliError."""
    if place < 1:
        raise CliError(ExitCode.USAGE, f"the place {place} is not possible: the first one is 1")

    def change(queue: Queue) -> Queue:
        waiting = [each for each in queue.waiting if each.id != number]
        waiting.insert(place - 1, _not_started(queue, number, over=False))
        return replace(queue, entries=(*(each for each in queue.entries if each.state != "queued"), *waiting))

    return [entry.id for entry in _changed(change).waiting].index(number) + 1


def remove_entry(number: int) -> QueueEntry:
    """Remove an entry that waits or is over. Raises CliError, also for one that is started."""
    removed = _not_started(queue_now()[0], number, over=True)
    _changed(lambda queue: queue.replaced(_not_started(queue, number, over=True), None))
    return removed


def _changed(change: Callable[[Queue], Queue]) -> Queue:
    with file_errors():
        return QueueFile(home()).update(change)


def queue_now() -> tuple[Queue, int | None, bool]:
    """(the queue, pid of the process that starts its runs, whether that is alive). Raises CliError."""
    with file_errors():
        file = QueueFile(home())
        return file.read(), holder_pid(file.worker_lock), is_held(file.worker_lock)


def _not_started(queue: Queue, number: int, *, over: bool) -> QueueEntry:
    """The entry that waits, or (``over``) that is over. Raises CliError."""
    entry = next((each for each in queue.entries if each.id == number), None)
    if entry is None:
        known = ", ".join(str(each.id) for each in queue.entries)
        raise CliError(ExitCode.NOT_FOUND, f"no entry {number} in the queue; there are: {known or 'none'}")
    if entry.state == "queued" or (over and entry.state == "over"):
        return entry
    why = f"is over ({entry.ending})" if entry.state == "over" else f"({entry.name}) is started already"
    stop = f"; end it with `{typed('stop', entry.run)}`" if entry.state == "started" and entry.run else ""
    raise CliError(ExitCode.USAGE, f"entry {number} {why}{stop}; nothing was changed")


# On which GPUs a queued run fits: pure. What is not known is no room.
#
# The memory that a run of the queue needs is reserved for it from its start on, because a trainer takes it only
# minutes later. A process that the queue did not start may take more at any time: nothing is put beside it unless that
# is allowed. Of the GPUs that fit, those with the least load are taken.

EMPTY_BYTES = 1e9
"""Memory in use without a known process below which a GPU is empty: a desktop takes some hundred MB."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """``gpus`` None: it fits nowhere now; ``why``: the reason. ``never``: it will not, whatever ends."""

    gpus: tuple[int, ...] | None = None
    why: str = ""
    never: bool = False


def place(entry: QueueEntry, seen: GpuSurvey, started: Iterable[QueueEntry], owners: Mapping[int, str]) -> Placement:
    """The GPUs for an entry: those that its run has had, else the least loaded ones that have room.

    ``started``: those that have GPUs. ``owners``: pid → id of the run that it belongs to, of processes on GPUs.
    """
    wants, need = entry.wants, entry.need_bytes or 0.0
    gpus = [gpu for gpu in seen.gpus if entry.run is None or gpu.index in entry.on]
    if wants == 0:
        return Placement(gpus=())
    if seen.trouble is not None or not gpus:
        return Placement(why=f"no GPU can be read: {seen.trouble or 'there is none'}")
    if len(gpus) < wants:
        return Placement(why=f"it wants {wants} GPUs, this machine has {len(gpus)}", never=True)
    largest = sorted((gpu.mem_total_bytes or need for gpu in gpus), reverse=True)[wants - 1]
    if need > largest:
        return Placement(why=f"it needs {memory(need)}, the GPUs have {memory(largest)}", never=True)
    held = {gpu.index: [other for other in started if gpu.index in other.on] for gpu in gpus}
    found = {gpu.index: _room(entry, gpu, held[gpu.index], owners) for gpu in gpus}
    fits = [index for index, (objection, _) in found.items() if not objection]
    if len(fits) < wants:
        return Placement(why="; ".join(f"GPU {index}: {why}" for index, (why, _) in found.items() if why))
    fits.sort(key=lambda index: (len(held[index]), found[index][1], index))
    return Placement(gpus=tuple(sorted(fits[:wants])))


def _room(entry: QueueEntry, gpu: GpuSeen, held: list[QueueEntry], owners: Mapping[int, str]) -> tuple[str, float]:
    """(why the entry does not fit on this GPU now, "" if it does; the share of its memory that is taken or reserved).

    Memory of a run that the driver does not report counts as not taken yet: all that it needs is reserved. One whose
    need is not known needs all of an empty GPU.
    """
    used, total, users = gpu.mem_used_bytes, gpu.mem_total_bytes, gpu.users or ()
    if used is None or not total:
        return "its memory cannot be read", 1.0
    taken: dict[str | None, float] = {}
    for run in {other.run for other in held}:
        parts = [user.mem_bytes for user in users if owners.get(user.pid, "") == run]
        taken[run] = 0.0 if None in parts else sum(filter(None, parts))
    foreign = [str(user.pid) for user in users if owners.get(user.pid, "") not in taken]
    explained = sum(taken[other.run] or other.need_bytes or total for other in held)
    full = used + sum(max(0.0, (other.need_bytes or total) - taken[other.run]) for other in held)
    need, left = entry.need_bytes or total - EMPTY_BYTES, max(0.0, total - full)
    why = ""
    if foreign and not entry.beside:
        why = f"process{'es' if len(foreign) > 1 else ''} {', '.join(foreign[:3])} that the queue did not start"
    elif used - explained > EMPTY_BYTES and not entry.beside:
        why = f"{memory(used)} in use by processes that are not known"
    elif left < need:
        why = f"{memory(left)} left of {memory(total)}, it needs {memory(need)}"
    return why, full / total


# The process that starts queued runs.

log = logging.getLogger(__name__)

POLL_S = 1.0
"""Period of looking at the queue and at the locks of its runs."""
SURVEY_S = 5.0
"""Period of reading the GPUs while something waits. A reading takes a third of a second of CPU."""
REFUSED_S = 60.0
"""A start that has to wait for another run is tried again after this, or as soon as a run of the queue has ended."""
START_S = 120.0
"""Longest time of one start: its checks may ask the trainer's own PyTorch."""
OVER_KEPT = 20
"""Entries that are over and still listed."""
OVER = frozenset({"finished", "given_up", "stopped", "ended_early"})


class QueueWorker:
    """``start``: as ``start_entry``. ``read_gpus``: reads all GPUs. ``boot``: this one."""

    def __init__(
        self,
        home: Path,
        *,
        start: Callable[[QueueEntry], str],
        read_gpus: Callable[[], GpuSurvey] = survey,
        boot: str = "",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home, self._file = home, QueueFile(home)
        self._start, self._read_gpus, self._boot, self._now = start, read_gpus, boot, now
        self._next_survey = 0.0
        self._not_before: dict[str, float] = {}

    def turn(self) -> bool:
        """Do what is due. Returns whether anything is left to do."""
        queue = self._file.update(self._looked_at)
        waiting = sorted(queue.waiting, key=lambda entry: entry.run is None)
        if waiting and self._now() >= self._next_survey:
            began = self._place_one(queue, waiting)
            self._next_survey = self._now() + (0.0 if began else SURVEY_S)
        return self._file.read().is_live

    def _looked_at(self, queue: Queue) -> Queue:
        """The queue with its started entries as their runs are now, without old ones that are over."""
        found = tuple(map(self._as_found, queue.entries))
        if found != queue.entries:
            self._next_survey = 0.0
            self._not_before.clear()
        old = [entry for entry in found if entry.state == "over"][:-OVER_KEPT]
        return replace(queue, entries=tuple(entry for entry in found if entry not in old))

    def _as_found(self, entry: QueueEntry) -> QueueEntry:
        """The entry as its run is now; it waits again if the run is interrupted and has to be supervised."""
        if entry.state == "over" or (entry.state == "queued" and not entry.boot):
            return entry
        run = _run_of(self._home, entry)
        if run is None:  # a start that was cut off before there was a run waits as before
            return entry if entry.run is None else _over(entry, "gone", f"the run {entry.run} is not known any more")
        died = bool(file_text(run.lock).strip()) and not is_held(run.lock)  # it leaves its pid there
        trains = trainer_pid(run) is not None
        if is_held(run.lock) or (trains and not died):
            return replace(entry, state="started", run=run.id, why="", boot=self._boot)
        story = as_found(run, load_story(run.journal))
        if story.state in OVER:
            return _over(entry, story.state, story.state_reason)
        if entry.state == "started" and story.attempts and not died and entry.boot == self._boot and not trains:
            how = f"continue it with `{typed('resume', run.id)}`"
            return _over(entry, "interrupted", f"its supervisor was ended, and its trainer has ended since; {how}")
        return replace(entry, state="queued", run=run.id, why=entry.why or "its supervisor died")

    def _place_one(self, queue: Queue, waiting: list[QueueEntry]) -> bool:
        """Start the first that fits; whether one did. One that fits only later keeps those behind it waiting."""
        seen = self._read_gpus()
        mark = os.fsencode(f"{ATTEMPT_VARIABLE}={runs_folder(self._home)}/")
        owners = {
            pid: os.fsdecode(variable[len(mark) :].split(b"/")[0])
            for pid in {user.pid for gpu in seen.gpus for user in gpu.users or ()}
            for variable in variables_of(pid) or ()
            if variable.startswith(mark)
        }
        started = [entry for entry in queue.entries if entry.state == "started"]
        for entry in waiting:
            run = _run_of(self._home, entry) if entry.run is not None else None
            trains = run is not None and trainer_pid(run) is not None  # it has its GPUs already
            chosen = Placement(gpus=entry.on) if trains else place(entry, seen, started, owners)
            if chosen.gpus is None:
                self._put(entry, replace(entry, why=chosen.why))
                if not chosen.never:
                    return False
            elif self._now() >= self._not_before.get(entry.key, 0.0) and self._begin(entry, chosen.gpus):
                return True
        return False

    def _put(self, before: QueueEntry, after: QueueEntry) -> bool:
        """Write one entry down. One that was changed or removed meanwhile stays so: False."""
        return after in self._file.update(lambda queue: queue.replaced(before, after)).entries

    def _begin(self, entry: QueueEntry, gpus: tuple[int, ...]) -> bool:
        """Start an entry on these GPUs. Returns False if it has to wait for another run."""
        begun = replace(entry, on=gpus, boot=self._boot)
        if not self._put(entry, begun):
            return True
        try:
            after = replace(begun, state="started", run=self._start(begun), why="")
        except CliError as error:
            after = _over(begun, "failed", str(error))
            if error.code is ExitCode.OWNED:
                run = _run_of(self._home, entry)  # its start may go on all the same
                after = replace(entry if run is None else begun, run=run and run.id, why=f"waits: {error}")
                self._not_before[entry.key] = self._now() + REFUSED_S
        log.info("entry %s (%s): %s %s", after.id, after.name, after.state, after.run or after.why)
        self._put(begun, after)
        return after.state != "queued"


def _over(entry: QueueEntry, ending: str, why: str) -> QueueEntry:
    return replace(entry, state="over", ending=ending, why=why, environ={})


WAIT_S = 20.0
"""How long the start of the worker may take: imports take a second or two on a busy machine."""
LOOK_S = 0.05


def start_entry(entry: QueueEntry) -> str:
    """Start its run as it was asked for (``trainwatch run``), or supervise it again. Returns the id of the run.

    In a process with the folder and the environment of the entry. Raises CliError: exit code 4 if it has to wait for
    another run, any other if it cannot be started.
    """
    run = _run_of(home(), entry)
    words = ["run", "--detach", "--yes", f"--queued={entry.key}:{','.join(map(str, entry.on))}", *entry.words]
    words = words if run is None else ["supervise", run.id, "--detach"]
    try:
        done = subprocess.run(
            bound([sys.executable, "-P", "-m", "trainwatch", *words]),
            cwd=entry.cwd, env={**entry.environ, "TRAINWATCH_HOME": str(home())}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=START_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CliError(ExitCode.OWNED, f"its start took longer than {START_S:.0f} s") from None
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{error.filename or entry.cwd}: {error.strerror or error}") from None
    again, run = run is not None, run or _run_of(home(), entry)
    held = not again or any(is_held(run.lock) for _ in turns(WAIT_S, LOOK_S) if run is not None)
    if done.returncode != ExitCode.DONE or run is None or not held:
        said = (done.stderr.strip().splitlines() or ["its supervisor did not start"])[-1].removeprefix("trainwatch: ")
        raise CliError(ExitCode.OWNED if done.returncode == ExitCode.OWNED else ExitCode.FAILED, said)
    return run.id


def _run_of(home: Path, entry: QueueEntry) -> RunDirectory | None:
    """The run of an entry; by its label while its start is not known to have succeeded."""
    if entry.run is None:
        return next((run for run in list_runs(home) if run.load_spec().labels.get(LABEL) == entry.key), None)
    run = RunDirectory(runs_folder(home) / entry.run)
    try:
        run.load_spec()
    except RunUnreadable:
        return None
    return run


def work() -> int:
    """Start queued runs until nothing is left. Raises CliError (exit code 4) if another process does it already."""
    file = QueueFile(home())
    make_private(file.folder)
    lock = SupervisorLock(file.worker_lock)
    try:
        lock.acquire()
    except SupervisorRunning as running:
        who = f" (pid {running.pid})" if running.pid else ""
        raise CliError(ExitCode.OWNED, f"another process{who} starts the queued runs already") from None
    with lock:
        worker, left = QueueWorker(home(), start=start_entry, boot=boot_id()), True
        while left:
            try:
                left = worker.turn()
                time.sleep(POLL_S if left else 0.0)
            except OSError as error:  # a full disk: what could not be written down is done again
                log.warning("%s; it is tried again", error)
                time.sleep(SURVEY_S)
    ensure_worker(home())  # for what was added while it ended
    return ExitCode.DONE


def ensure_worker(home: Path) -> int | None:
    """Start the worker apart from any terminal, if entries are left and none is there. Returns its pid.

    Raises OSError, ListUnreadable.
    """
    file = QueueFile(home)
    if not file.read().is_live or is_held(file.worker_lock):
        return holder_pid(file.worker_lock)
    make_private(file.folder)
    log_file = os.open(file.worker_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(log_file, "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "trainwatch", "queue", "work"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/",
            env={**os.environ, "TRAINWATCH_HOME": str(home)}, start_new_session=True,
        ).pid  # fmt: skip
