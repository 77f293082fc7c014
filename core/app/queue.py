"""The queue: runs that wait for a GPU, where they fit, their start, and the process that starts them.

That process is one for each state folder, by a lock. It begins with ``queue add``, with the end of a queued run if it
had died, or by a unit after a reboot (``queue enable``). It ends when nothing waits and nothing of the queue runs any
more. Everything that it knows is in the queue's file before it acts on it; if it dies, the next one goes on from there:

- an entry that was being started has its run, found by its label, or is started anew;
- a run whose supervisor died or that a reboot interrupted is supervised again, on GPUs that have room for it;
- a run that ended, or that a person stopped, is over.

Each turn: look at what is started, then begin one start, interrupted runs before waiting ones. Those that wait are
started in their order; one that can never be placed here, or that waits for another run, is passed over.
"""

import contextlib
import logging
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..bound_process import bound
from ..config.project import Overrides
from ..model.launch import LABEL, Queue, QueueEntry
from ..model.run import RunSpec
from ..model.text import memory, typed
from ..processes import ATTEMPT_VARIABLE, boot_id, text_of, variables_of
from ..store.home import make_private, runs_folder
from ..store.journal import load_story
from ..store.learned import ListUnreadable, QueueFile, newest_trials
from ..store.lock import SupervisorLock, SupervisorRunning, holder_pid, is_held
from ..store.run_directory import RunDirectory, RunUnreadable
from ..store.run_lookup import list_runs
from .errors import CliError, ExitCode, file_errors
from .gpu_survey import GpuSeen, GpuSurvey, survey
from .plan.launch_plan import LaunchPlan, plan_command, plan_launch, plan_project
from .preflight.other_trainer import other_trainers, what_it_is
from .runs.known_runs import here, home
from .runs.output_claim import lock_rival, rival_of, trainer_pid
from .runs.supervisor_life import as_found
from .runs.waiting import turns
from .start.detached import start_detached
from .start.project_run import create_run
from .start.start_choice import StartChoice, Wish, choose_start, earlier_run, standing

AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)\s*([bkmgt]?)(i?)b?", re.IGNORECASE)
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


def add_entry(
    environ: Mapping[str, str], *, name: str, command: Sequence[str], **fields: Any
) -> tuple[QueueEntry, int]:
    """Add an entry at the end; ``fields``: its others. Returns it with its place, from 1. Raises CliError."""
    key, cwd, now = uuid.uuid4().hex[:12], str(here()), time.time()

    def change(queue: Queue) -> Queue:
        added = QueueEntry(
            id=queue.next_id, key=key, name=name, command=tuple(command), cwd=cwd, added_wall=now, **fields
        )
        return msgspec.structs.replace(queue, next_id=queue.next_id + 1, entries=(*queue.entries, added))

    with file_errors():
        file = QueueFile(home())
        file.keep_environment(key, {name: value for name, value in environ.items() if name not in LEFT_OUT})
        queue = file.update(change)
    return queue.entries[-1], len(queue.waiting)


def move_entry(number: int, place: int) -> int:
    """Move a waiting entry to a place among those that wait, from 1. Returns the place. Raises CliError."""
    if place < 1:
        raise CliError(ExitCode.USAGE, f"the place {place} is not possible: the first one is 1")

    def change(queue: Queue) -> Queue:
        entry = _not_started(queue, number, over=False)
        others = [each for each in queue.entries if each.id != number]
        waiting = [each for each in others if each.state == "queued"]
        at = others.index(waiting[place - 1]) if place <= len(waiting) else len(others)
        return msgspec.structs.replace(queue, entries=(*others[:at], entry, *others[at:]))

    with file_errors():
        queue = QueueFile(home()).update(change)
    return [entry.id for entry in queue.waiting].index(number) + 1


def remove_entry(number: int) -> QueueEntry:
    """Remove an entry that waits or is over. Raises CliError, also for one that is started."""
    removed: list[QueueEntry] = []

    def change(queue: Queue) -> Queue:
        removed.append(_not_started(queue, number, over=True))
        return msgspec.structs.replace(queue, entries=tuple(each for each in queue.entries if each.id != number))

    with file_errors():
        file = QueueFile(home())
        file.update(change)
        file.forget_environment(removed[0].key)
    return removed[0]


def queue_now() -> tuple[Queue, int | None, bool]:
    """(the queue, pid of the process that starts its runs, whether that is alive). Raises CliError."""
    with file_errors():
        file = QueueFile(home())
        return file.read(), holder_pid(file.worker_lock), is_held(file.worker_lock)


def _not_started(queue: Queue, number: int, *, over: bool) -> QueueEntry:
    """The entry that waits, or (``over``) that is over. Raises CliError."""
    entry = queue.find(number)
    if entry is None:
        known = ", ".join(str(each.id) for each in queue.entries)
        raise CliError(ExitCode.NOT_FOUND, f"no entry {number} in the queue; there are: {known or 'none'}")
    if entry.state == "queued" or (over and not entry.holds):
        return entry
    if entry.state == "over":
        raise CliError(ExitCode.USAGE, f"entry {number} is over ({entry.ending}); nothing was changed")
    stop = f"; end it with `{typed('stop', entry.run)}`" if entry.run else ""
    raise CliError(ExitCode.USAGE, f"entry {number} ({entry.name}) is started already{stop}; nothing was changed")


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
    """The GPUs for an entry: those that it had before if they fit, else the least loaded ones.

    ``started``: the entries that have GPUs. ``owners``: pid → id of the run that it belongs to, of processes on GPUs.
    """
    gpus, wants, need = seen.gpus, entry.wants, entry.need_bytes
    if wants == 0:
        return Placement(gpus=())
    if seen.trouble is not None or not gpus:
        return Placement(why=f"no GPU can be read: {seen.trouble or 'there is none'}")
    if len(gpus) < wants:
        return Placement(why=f"it wants {wants} GPUs, this machine has {len(gpus)}", never=True)
    largest = sorted((gpu.mem_total_bytes or 0.0 for gpu in gpus), reverse=True)[wants - 1]
    if need is not None and largest and need > largest:
        return Placement(why=f"it needs {memory(need)}, the GPUs have {memory(largest)}", never=True)
    held = {gpu.index: [other for other in started if other.holds and gpu.index in other.on] for gpu in gpus}
    found = {gpu.index: _room(entry, gpu, held[gpu.index], owners) for gpu in gpus}
    fits = [index for index, (objection, _) in found.items() if not objection]
    if len(fits) < wants:
        return Placement(why="; ".join(f"GPU {index}: {why}" for index, (why, _) in found.items() if why))
    fits.sort(key=lambda index: (index not in entry.on, len(held[index]), found[index][1], index))
    return Placement(gpus=tuple(sorted(fits[:wants])))


def _room(entry: QueueEntry, gpu: GpuSeen, held: list[QueueEntry], owners: Mapping[int, str]) -> tuple[str, float]:
    """(why the entry does not fit on this GPU now, "" if it does; the share of its memory that is taken or reserved).

    Memory of a run that the driver does not report counts as not taken yet: all that it needs is reserved.
    """
    used, total, users = gpu.mem_used_bytes, gpu.mem_total_bytes, gpu.users or ()
    if used is None or not total:
        return "its memory cannot be read", 1.0
    taken: dict[str | None, float] = {}
    for run in {other.run for other in held}:
        parts = [user.mem_bytes for user in users if owners.get(user.pid, "") == run]
        taken[run] = 0.0 if None in parts else sum(filter(None, parts))
    foreign = [str(user.pid) for user in users if owners.get(user.pid, "") not in taken]
    alone = any(other.need_bytes is None for other in held)
    explained = float("inf") if alone else sum(taken[other.run] or other.need_bytes or 0.0 for other in held)
    full = used + sum(max(0.0, (other.need_bytes or 0.0) - taken[other.run]) for other in held)
    why = ""
    if foreign and not entry.beside:
        why = f"process{'es' if len(foreign) > 1 else ''} {', '.join(foreign[:3])} that the queue did not start"
    elif used - explained > EMPTY_BYTES and not entry.beside:
        why = f"{memory(used)} in use by processes that are not known"
    elif alone:
        why = "a run has it for itself"
    elif entry.need_bytes is None and held:
        why = f"{len(held)} run{'s' if len(held) > 1 else ''} on it"
    elif total - full < (entry.need_bytes or 0.0):
        why = f"{memory(max(0.0, total - full))} left of {memory(total)}"
    return why, full / total


# The start of the run of one entry, in a process of its own with the folder and the environment of the entry.


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a start. ``run``: the run's id. ``later``: it has to wait for another run; ``why``: for which."""

    how: Literal["started", "later", "failed"]
    run: str | None = None
    why: str = ""


def run_of_entry(entry: QueueEntry) -> RunDirectory | None:
    return next((run for run in list_runs(home()) if run.load_spec().labels.get(LABEL) == entry.key), None)


def start_entry(entry: QueueEntry) -> Started:
    """Start it on its GPUs, or go on with its run if that was made already. Raises nothing but bugs."""
    try:
        run = run_of_entry(entry)
        if run is None:
            return _begin(entry)
        if not is_held(run.lock):  # it was interrupted, or its start was
            _give_gpus(run, entry)
            start_detached(run)
        return Started(how="started", run=run.id)
    except CliError as error:
        return Started(how="failed", why=str(error))


def _begin(entry: QueueEntry) -> Started:
    overrides = msgspec.convert(entry.options, Overrides)
    plan = plan_command(entry.command, overrides) if entry.command else plan_project(overrides.name, overrides)
    if plan is None:
        raise CliError(ExitCode.NOT_FOUND, f"{entry.cwd}: there is no trainwatch.toml any more")
    spec = _with_gpus(plan.spec, entry)
    plan = plan_launch(spec)
    rival = rival_of(spec) or lock_rival(spec, home(), unclear=True)
    if rival is not None:
        return Started(how="later", why=rival)
    if trains := other_trainers(plan, RunDirectory(runs_folder(home()) / spec.id)):
        return Started(how="later", why=what_it_is(plan, trains[0]))
    other = earlier_run(spec)
    if other is not None and (not entry.command or other.spec.labels.get(LABEL) in {None, entry.key}):
        other = None  # it is the one that the entry goes on with, as `trainwatch run` would
    asked = entry.fresh or entry.checkpoint is not None
    apart = other is not None and not asked and not other.story.checkpoints
    if apart and not standing(plan.spec, plan.preset, plan.profile, None):
        choice = StartChoice()  # the same command that another entry had, and that saved nothing
    elif other is not None and other.condition in {"supervised", "trains"}:
        return Started(how="later", why=f"run {other.run.id} of the same command is live")
    else:
        choice = choose_start(plan, Wish(checkpoint=entry.checkpoint, fresh=entry.fresh))
        choice = msgspec.structs.replace(choice, said="") if entry.fresh else choice
    ready = create_run(plan, choice)
    if choice.known is not None and not is_held(ready.run.lock):
        _give_gpus(ready.run, entry)
    start_detached(ready.run, ready.first, ready.claim)
    return Started(how="started", run=ready.run.id)


def _with_gpus(spec: RunSpec, entry: QueueEntry) -> RunSpec:
    return msgspec.structs.replace(spec, gpus=entry.on, labels={**spec.labels, LABEL: entry.key})


def _give_gpus(run: RunDirectory, entry: QueueEntry) -> None:
    spec = run.load_spec()
    if _with_gpus(spec, entry) != spec:
        run.save_spec(_with_gpus(spec.without_outputs(), entry))


# The process that starts queued runs.

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
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home, self._file = home, QueueFile(home)
        self._start, self._read_gpus, self._boot, self._now = start, read_gpus, boot, now
        self._next_survey = 0.0

    def turn(self) -> bool:
        """Do what is due. Returns whether anything is left to do."""
        interrupted: list[QueueEntry] = []
        for entry in self._file.read().entries:
            if entry.holds:
                run = self._run_of(entry)
                after = self._looked_at(entry, run)
                if after is not None and after != entry:
                    self._put(after)
                elif after is None and run is not None and trainer_pid(run) is not None:
                    self._begin(entry, entry.on)
                elif after is None:
                    interrupted.append(entry)
        queue = self._file.read()
        wanting = [*interrupted, *queue.waiting]
        if wanting and self._now() >= self._next_survey:
            began = self._place_one(queue, wanting)
            self._next_survey = self._now() + (0.0 if began else SURVEY_S)
        return any(entry.state != "over" for entry in self._file.read().entries)

    def _put(self, entry: QueueEntry) -> None:
        """Write one entry down. One that was removed meanwhile stays removed; old ones that are over are left out."""

        def change(queue: Queue) -> Queue:
            queue = queue.replaced(entry)
            over = sorted((e for e in queue.entries if e.state == "over"), key=lambda e: e.over_wall or 0.0)
            return msgspec.structs.replace(queue, entries=tuple(e for e in queue.entries if e not in over[:-OVER_KEPT]))

        self._file.update(change)
        if entry.state == "over":
            self._file.forget_environment(entry.key)
            self._next_survey = 0.0

    def _run_of(self, entry: QueueEntry) -> RunDirectory | None:
        if entry.run is None:
            return run_of_entry(entry)
        run = RunDirectory(runs_folder(self._home) / entry.run)
        with contextlib.suppress(RunUnreadable):
            run.load_spec()
            return run
        return None

    def _looked_at(self, entry: QueueEntry, run: RunDirectory | None) -> QueueEntry | None:
        """The entry as its run is now; None if the run is interrupted and has to be supervised again."""
        replace = msgspec.structs.replace
        if run is None:  # its start was cut off before the run was made, or a person forgot the run
            if entry.run is not None:
                return self._over(entry, "gone", f"the run {entry.run} is not known any more")
            if entry.begun >= MOST_BEGINNINGS:
                return self._over(entry, "failed", f"its start was cut off {entry.begun} times")
            return replace(entry, state="queued", on=(), why="its start was cut off")
        if is_held(run.lock) or (entry.state == "started" and trainer_pid(run) is not None and not _died(run.lock)):
            began = entry.started_wall or time.time()
            return replace(entry, state="started", run=run.id, begun=0, why="", started_wall=began, boot=self._boot)
        entry = replace(entry, run=run.id)
        story = as_found(run, load_story(run.journal))
        if story.state in OVER:
            return self._over(entry, story.state, story.state_reason)
        if story.attempts and not _died(run.lock) and entry.boot == self._boot and trainer_pid(run) is None:
            how = f"continue it with `{typed('resume', run.id)}`"
            why = f"its supervisor was ended, and its trainer has ended since; {how}"
            return self._over(entry, "interrupted", why)
        if entry.begun >= MOST_BEGINNINGS:
            return self._over(entry, "failed", f"its supervisor did not start {entry.begun} times: {entry.why}")
        return None

    @staticmethod
    def _over(entry: QueueEntry, ending: str, why: str) -> QueueEntry:
        return msgspec.structs.replace(entry, state="over", ending=ending, why=why, over_wall=time.time())

    def _place_one(self, queue: Queue, wanting: list[QueueEntry]) -> bool:
        """Start the first that fits; whether one did. One that fits only later keeps those behind it waiting."""
        seen = self._read_gpus()
        mark = os.fsencode(f"{ATTEMPT_VARIABLE}={runs_folder(self._home)}/")
        owners = {
            pid: os.fsdecode(variable[len(mark) :].split(b"/")[0])
            for pid in {user.pid for gpu in seen.gpus for user in gpu.users or ()}
            for variable in variables_of(pid) or ()
            if variable.startswith(mark)
        }
        started = [entry for entry in queue.entries if entry not in wanting]
        for entry in wanting:
            chosen = place(entry, seen, started, owners)
            if chosen.gpus is not None:
                if self._begin(entry, chosen.gpus):
                    return True
                continue
            if entry.why != chosen.why:
                self._put(msgspec.structs.replace(entry, why=chosen.why))
            if not chosen.never:
                return False
        return False

    def _begin(self, entry: QueueEntry, gpus: tuple[int, ...]) -> bool:
        """Start an entry on these GPUs. Returns False if it has to wait for another run."""
        before, replace = entry.state, msgspec.structs.replace
        entry = replace(entry, state="starting", on=gpus, begun=entry.begun + 1, boot=self._boot, why="")

        def change(queue: Queue) -> Queue:
            known = queue.find(entry.id)
            return queue.replaced(entry) if known is not None and known.state == before else queue

        if self._file.update(change).find(entry.id) != entry:
            return True  # it was removed meanwhile
        done = self._start(entry)
        log.info("entry %s (%s): %s %s", entry.id, entry.name, done.how, done.run or done.why)
        if done.how == "started":
            self._put(replace(entry, run=done.run))
        elif done.how == "later":
            self._put(replace(entry, state="queued", on=(), begun=0, why=f"waits: {done.why}"))
        else:
            self._put(self._over(entry, "failed", done.why))
        return done.how != "later"


def _died(lock: Path) -> bool:
    """Whether the last supervisor died without releasing its lock: it leaves its pid there."""
    return bool(text_of(lock).strip()) and not is_held(lock)


WAIT_S = 20.0
"""How long the start of the worker may take: imports take a second or two on a busy machine."""
LOOK_S = 0.05


def start_apart(entry: QueueEntry) -> Started:
    """Start an entry by ``trainwatch queue start``, in its folder and with its environment."""
    kept = QueueFile(home()).environment(entry.key)
    env = {**(dict(os.environ) if kept is None else kept), "TRAINWATCH_HOME": str(home())}
    argv = [sys.executable, "-P", "-m", "trainwatch", "queue", "start", str(entry.id)]
    try:
        done = subprocess.run(
            bound(argv), cwd=entry.cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=START_S, check=False,
        )  # fmt: skip
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
        worker = QueueWorker(home(), start=start_apart, boot=boot_id())
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
    log_file = os.open(file.worker_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(log_file, "ab") as output:
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "trainwatch", "queue", "work"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/",
            env={**os.environ, "TRAINWATCH_HOME": str(home)}, start_new_session=True,
        )  # fmt: skip
    for _ in turns(WAIT_S, LOOK_S):
        ended = worker.poll() is not None
        if is_held(file.worker_lock):
            return holder_pid(file.worker_lock)
        if not _anything_left(file):  # it is done already
            return None
        if ended:
            break
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
