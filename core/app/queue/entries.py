"""Adding, listing, moving and removing entries of the queue."""

import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ...config.project import Overrides
from ...model.run import RunSpec
from ...model.suggestion import typed
from ...model.text import memory
from ...model.trial import LABEL, Queue, QueueEntry
from ...store.home import runs_folder
from ...store.learned import ListUnreadable, QueueFile
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory
from ...store.run_lookup import list_runs
from ..errors import CliError, ExitCode
from ..gpu_survey import GpuSeen
from ..plan.launch_plan import LaunchPlan, plan_command, plan_launch, plan_project
from ..plan.specs import definitions_of
from ..preflight.other_trainer import other_trainers, what_it_is
from ..runs.forgetting import measured_here
from ..runs.known_runs import here, home
from ..runs.output_claim import lock_rival, rival_of
from ..start.detached import start_detached
from ..start.project_run import create_run
from ..start.start_choice import EarlierRun, StartChoice, Wish, choose_start, earlier_run, standing

AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)\s*(|[kmgt]i?b?|b)", re.IGNORECASE)
UNITS = {"": 1e9, "b": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
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
    if not unit:
        return value if value >= 1e6 else value * 1e9
    if "i" in unit:
        return float(value * 1024.0 ** ("bkmgt".index(unit[0])))
    return value * UNITS[unit[0]]


def measured_need(plan: LaunchPlan) -> tuple[float | None, str]:
    """(GPU memory that a trial of this run measured with its profile, how that is known)."""
    spec = plan.spec
    for run in (spec.id, re.sub(r"-\d+$", "", spec.id)):
        measured = measured_here(run).get(spec.settings.profiles.use or "")
        if measured is not None and measured.vram_peak_bytes is not None and not measured.simulated_gpu:
            return measured.vram_peak_bytes, f"measured by a trial with the profile {measured.profile or '–'}"
    return None, "not known: it gets a GPU for itself alone"


def add_entry(entry: Callable[[int, str], QueueEntry], environ: Mapping[str, str]) -> tuple[QueueEntry, int]:
    """Add an entry at the end. ``entry``: makes it of its number and key. Returns it with its place, from 1.

    Raises CliError.
    """
    file, key = QueueFile(home()), uuid.uuid4().hex[:12]
    made: list[QueueEntry] = []

    def change(queue: Queue) -> Queue:
        made.append(entry(queue.next_id, key))
        return msgspec.structs.replace(queue, next_id=queue.next_id + 1, entries=(*queue.entries, made[-1]))

    with queue_errors():
        file.keep_environment(key, {name: value for name, value in environ.items() if name not in LEFT_OUT})
        queue = file.update(change)
    return made[-1], len(queue.waiting)


def new_entry(number: int, key: str, name: str, command: Sequence[str], **fields: Any) -> QueueEntry:
    return QueueEntry(
        id=number, key=key, name=name, command=tuple(command), cwd=str(here()), added_wall=time.time(), **fields
    )


def move_entry(number: int, place: int) -> int:
    """Move a waiting entry to a place among those that wait, from 1. Returns the place. Raises CliError."""
    if place < 1:
        raise CliError(ExitCode.USAGE, f"the place {place} is not possible: the first one is 1")

    def change(queue: Queue) -> Queue:
        entry = _waiting(queue, number)
        others = [each for each in queue.entries if each.id != number]
        waiting = [each for each in others if each.state == "queued"]
        at = others.index(waiting[place - 1]) if place <= len(waiting) else len(others)
        return msgspec.structs.replace(queue, entries=(*others[:at], entry, *others[at:]))

    with queue_errors():
        queue = QueueFile(home()).update(change)
    return [entry.id for entry in queue.waiting].index(number) + 1


def remove_entry(number: int) -> QueueEntry:
    """Remove an entry that waits or is over. Raises CliError, also for one that is started."""
    removed: list[QueueEntry] = []

    def change(queue: Queue) -> Queue:
        entry = queue.find(number)
        if entry is None:
            raise _no_such(queue, number)
        if entry.holds:
            raise _started(entry)
        removed.append(entry)
        return msgspec.structs.replace(queue, entries=tuple(each for each in queue.entries if each.id != number))

    file = QueueFile(home())
    with queue_errors():
        file.update(change)
    file.forget_environment(removed[0].key)
    return removed[0]


def queue_now() -> tuple[Queue, int | None, bool]:
    """(the queue, pid of the process that starts its runs, whether that is alive). Raises CliError."""
    file = QueueFile(home())
    with queue_errors():
        queue = file.read()
    return queue, holder_pid(file.worker_lock), is_held(file.worker_lock)


def _waiting(queue: Queue, number: int) -> QueueEntry:
    entry = queue.find(number)
    if entry is None:
        raise _no_such(queue, number)
    if entry.state != "queued":
        raise _started(entry)
    return entry


def _no_such(queue: Queue, number: int) -> CliError:
    known = ", ".join(str(entry.id) for entry in queue.entries)
    return CliError(ExitCode.NOT_FOUND, f"no entry {number} in the queue; there are: {known or 'none'}")


def _started(entry: QueueEntry) -> CliError:
    if entry.state == "over":
        return CliError(ExitCode.USAGE, f"entry {entry.id} is over ({entry.ending}); nothing was changed")
    stop = f"; end it with `{typed('stop', entry.run)}`" if entry.run else ""
    return CliError(ExitCode.USAGE, f"entry {entry.id} ({entry.name}) is started already{stop}; nothing was changed")


class queue_errors:  # noqa: N801  a context manager, like contextlib.suppress
    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ListUnreadable):
            raise CliError(ExitCode.USAGE, str(error)) from None
        if isinstance(error, OSError):
            raise CliError(ExitCode.FAILED, f"{error.filename or 'the queue'}: {error.strerror or error}") from None


# On which GPUs a queued run fits: pure. What is not known is no room.
#
# The memory that a run of the queue needs is reserved for it from its start on, because a trainer takes it only
# minutes later. A process that the queue did not start may take more at any time: nothing is put beside it unless that
# is allowed. Of the GPUs that fit, those with the least load are taken.

EMPTY_BYTES = 1e9
"""Memory in use without a known process below which a GPU is empty: a desktop takes some hundred MB."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. ``taken_bytes``: in use or reserved; None = not known. ``alone``: a run has it for itself.

    ``foreign``: who else is there, a clause; empty if nobody is.
    """

    index: int
    total_bytes: float | None
    taken_bytes: float | None
    runs: int = 0
    alone: bool = False
    foreign: str = ""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """``gpus`` None: it fits nowhere now; ``why``: the reason. ``never``: it will not, whatever ends."""

    gpus: tuple[int, ...] | None = None
    why: str = ""
    never: bool = False


def loads(seen: Iterable[GpuSeen], entries: Iterable[QueueEntry], owners: Mapping[int, str]) -> tuple[Load, ...]:
    """The load of each GPU. ``owners``: pid → id of the run that it belongs to, of the processes on GPUs."""
    held = [entry for entry in entries if entry.holds]
    return tuple(_load(gpu, [entry for entry in held if gpu.index in entry.on], owners) for gpu in seen)


def _load(gpu: GpuSeen, held: list[QueueEntry], owners: Mapping[int, str]) -> Load:
    used = gpu.mem_used_bytes
    runs = {entry.run for entry in held if entry.run is not None}
    others = [user for user in gpu.users or () if owners.get(user.pid) not in runs]
    own: dict[str, float | None] = dict.fromkeys(runs, 0.0)
    for user in gpu.users or ():
        run = owners.get(user.pid)
        if run in own and run is not None:
            before = own[run]
            own[run] = None if user.mem_bytes is None or before is None else before + user.mem_bytes
    foreign = ""
    if others:
        pids = ", ".join(str(user.pid) for user in others[:3])
        foreign = f"process{'es' if len(others) > 1 else ''} {pids} that the queue did not start"
    elif used is not None and used - _explained(held, own, listed=gpu.users is not None) > EMPTY_BYTES:
        foreign = f"{memory(used)} in use by processes that are not known"
    reserved = sum(_reserved(entry, own) for entry in held)
    return Load(
        index=gpu.index,
        total_bytes=gpu.mem_total_bytes,
        taken_bytes=None if used is None else used + reserved,
        runs=len(held),
        alone=any(entry.need_bytes is None for entry in held),
        foreign=foreign,
    )


def _explained(held: list[QueueEntry], own: Mapping[str, float | None], *, listed: bool) -> float:
    """Memory in use that runs of the queue may have taken; without bound if one of them needs an unknown amount."""
    if any(entry.need_bytes is None for entry in held):
        return float("inf")
    known = [own.get(entry.run or "") for entry in held]
    return sum(
        (entry.need_bytes or 0.0) if taken is None or not listed or not taken else taken
        for entry, taken in zip(held, known, strict=True)
    )


def _reserved(entry: QueueEntry, own: Mapping[str, float | None]) -> float:
    """What it will still take. Memory that the driver does not report counts as not taken yet."""
    taken = own.get(entry.run or "") or 0.0
    return max(0.0, (entry.need_bytes or 0.0) - taken)


def place(entry: QueueEntry, found: tuple[Load, ...], trouble: str | None = None) -> Placement:
    """The GPUs for an entry: those that it had before if they fit, else the least loaded ones."""
    if entry.wants == 0:
        return Placement(gpus=())
    if trouble is not None or not found:
        return Placement(why=f"no GPU can be read: {trouble or 'there is none'}")
    if len(found) < entry.wants:
        return Placement(why=f"it wants {entry.wants} GPUs, this machine has {len(found)}", never=True)
    largest = sorted((load.total_bytes or 0.0 for load in found), reverse=True)[entry.wants - 1]
    if entry.need_bytes is not None and largest and entry.need_bytes > largest:
        return Placement(why=f"it needs {memory(entry.need_bytes)}, the GPUs have {memory(largest)}", never=True)
    fits = [load for load in found if not objection(entry, load)]
    if len(fits) < entry.wants:
        full = [f"GPU {load.index}: {objection(entry, load)}" for load in found if load not in fits]
        return Placement(why="; ".join(full))
    fits.sort(key=lambda load: (load.index not in entry.on, load.runs, _share(load), load.index))
    return Placement(gpus=tuple(sorted(load.index for load in fits[: entry.wants])))


def objection(entry: QueueEntry, load: Load) -> str:
    """Why it does not fit on a GPU now; empty if it does."""
    if load.taken_bytes is None or load.total_bytes is None:
        return "its memory cannot be read"
    if load.foreign and not entry.beside:
        return load.foreign
    if load.alone:
        return "a run has it for itself"
    if entry.need_bytes is None:
        return f"{load.runs} run{'s' if load.runs > 1 else ''} on it" if load.runs else ""
    free = load.total_bytes - load.taken_bytes
    return "" if free >= entry.need_bytes else f"{memory(max(0.0, free))} left of {memory(load.total_bytes)}"


def _share(load: Load) -> float:
    return (load.taken_bytes or 0.0) / (load.total_bytes or 1.0)


# Starts the run of one entry, in a process of its own with the folder and the environment of the entry.


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a start. ``run``: the run's id. ``later``: it has to wait for another run; ``why``: for which."""

    how: Literal["started", "later", "failed"]
    run: str | None = None
    why: str = ""


def run_of_entry(entry: QueueEntry) -> RunDirectory | None:
    for run in list_runs(home()):
        if run.load_spec().labels.get(LABEL) == entry.key:
            return run
    return None


def plan_of_entry(entry: QueueEntry) -> LaunchPlan:
    """The plan of its launch, without GPUs of its own. Raises CliError."""
    overrides = msgspec.convert(entry.options, Overrides)
    plan = plan_command(entry.command, overrides) if entry.command else plan_project(overrides.name, overrides)
    if plan is None:
        raise CliError(ExitCode.NOT_FOUND, f"{entry.cwd}: there is no trainwatch.toml any more")
    return plan


def start_entry(entry: QueueEntry) -> Started:
    """Start it on its GPUs, or go on with its run if that was made already. Raises nothing but bugs."""
    try:
        known = run_of_entry(entry)
        if known is not None:
            return _go_on(known, entry)
        return _begin(entry)
    except CliError as error:
        return Started(how="failed", why=str(error))


def _go_on(run: RunDirectory, entry: QueueEntry) -> Started:
    """Supervise the run again: it was interrupted, or its start was."""
    if not is_held(run.lock):
        spec = run.load_spec()
        if spec.gpus != entry.on:
            run.save_spec(msgspec.structs.replace(spec.without_outputs(), gpus=entry.on))
        start_detached(run)
    return Started(how="started", run=run.id)


def _begin(entry: QueueEntry) -> Started:
    plan = plan_of_entry(entry)
    spec = _with_gpus(plan.spec, entry)
    plan = plan_launch(spec, definitions_of(spec))
    rival = rival_of(spec) or lock_rival(spec, home(), unclear=True)
    if rival is not None:
        return Started(how="later", why=rival)
    if trains := other_trainers(plan, RunDirectory(runs_folder(home()) / spec.id)):
        return Started(how="later", why=what_it_is(plan, trains[0]))
    earlier = earlier_run(spec)
    if entry.command and earlier is not None and earlier.spec.labels.get(LABEL) not in {None, entry.key}:
        choice = _beside(plan, entry, earlier)
        if choice is None:
            return Started(how="later", why=f"run {earlier.run.id} of the same command is live")
    else:
        choice = _choice(plan, entry)
    ready = create_run(plan, choice)
    if choice.known is not None and not is_held(ready.run.lock):
        ready.run.save_spec(_with_gpus(ready.run.load_spec().without_outputs(), entry))
    start_detached(ready.run, ready.first, ready.claim)
    return Started(how="started", run=ready.run.id)


def _with_gpus(spec: RunSpec, entry: QueueEntry) -> RunSpec:
    return msgspec.structs.replace(spec, gpus=entry.on, labels={**spec.labels, LABEL: entry.key})


def _choice(plan: LaunchPlan, entry: QueueEntry) -> StartChoice:
    """As ``trainwatch run`` chooses."""
    choice = choose_start(plan, Wish(checkpoint=entry.checkpoint, fresh=entry.fresh))
    return msgspec.structs.replace(choice, said="") if entry.fresh else choice


def _beside(plan: LaunchPlan, entry: QueueEntry, earlier: EarlierRun) -> StartChoice | None:
    """The same command that another entry had is another run if that saved nothing; None: it has to wait."""
    asked = entry.fresh or entry.checkpoint is not None
    if not asked and not earlier.story.checkpoints and not standing(plan.spec, plan.preset, plan.profile, None):
        return StartChoice()
    return None if earlier.condition in {"supervised", "trains"} else _choice(plan, entry)
