"""Adding, listing, moving and removing entries of the queue."""

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...model.launch.queue import Queue, QueueEntry
from ...model.text.suggestion import typed
from ...store.lists.queue_file import QueueFile, QueueUnreadable
from ...store.lock import holder_pid, is_held
from ..errors import CliError, ExitCode
from ..plan.launch_plan import LaunchPlan
from ..runs.known_runs import here, home
from ..runs.measured_trials import measured_here

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
    """An entry of the working folder."""
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
    """Faults of the queue's file as CliError."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, QueueUnreadable):
            raise CliError(ExitCode.USAGE, str(error)) from None
        if isinstance(error, OSError):
            raise CliError(ExitCode.FAILED, f"{error.filename or 'the queue'}: {error.strerror or error}") from None
