"""How the job of an attempt begins: a living one is followed, an ended one runs once more, or one is submitted.

Two jobs in one folder overwrite each other's checkpoints, so nothing is submitted as long as it cannot be told whether
one lives. A job that was ended for a restart with the same settings is put back into the queue (``scontrol requeue``)
and keeps its number; where Slurm refuses that, and with other settings, the next job is submitted, to start after those
of the run that have not quite ended (``afterany``).
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...model.launch.elsewhere.job import JobHandle, JobRecord
from ...model.text.json_line import decode_exact
from ..launch import spool
from .answers import Seen
from .batch_script import AGAIN, EXIT_FILE, SCRIPT_FILE, STARTED_FILE
from .commands import Slurm, SlurmError

SCRIPT_S = 10.0
"""Longest wait for the end of a script whose job was cancelled: it gives the agents on the nodes three seconds."""
CLEARED_S = 0.5
"""For the node to remove the files of a script that has ended."""
POLL_S = 0.1
RECORD = "job.json"
ORDER = "job_order.json"


class JobOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``job_order.json``. ``tag`` begins the comment of all jobs of the run; ``poll_s``: as in the settings.

    ``settle_s``: after the end of a job its log may still grow for so long: network disks show it late.
    ``settings``: a text that differs if the attempt asks for anything else than another resume point. ``before``: the
    folder of the attempt before it, if that had the same. ``exclude``: nodes with a faulty GPU, and those of the
    settings. ``shared``: the folder of what all runs ask Slurm together.
    """

    tag: str
    poll_s: float
    settle_s: float = 2.0
    settings: str = ""
    before: str = ""
    exclude: tuple[str, ...] = ()
    shared: str = ""


def begin(directory: Path, order: JobOrder, slurm: Slurm, say: Callable[[str], None]) -> JobRecord:
    """Return the job to follow. Raises SlurmError: without an answer nothing is submitted."""
    jobs = [seen for seen in slurm.jobs().values() if seen.comment.startswith(order.tag)]
    alive = [seen for seen in jobs if seen.phase not in {"ended", "ending"}]
    if alive:
        seen = max(alive, key=lambda each: int(each.id))
        say(f"job {seen.id} of this run is alive ({seen.state}): it is followed, and no other is submitted")
        return _followed(directory, seen, slurm)
    ending = [seen.id for seen in jobs if seen.phase == "ending"]
    again = None if ending else _again(directory, order, slurm, say)
    if again is not None:
        return again
    handle = _submitted(directory, order, slurm, ending, say)
    after = f", to start after job {', '.join(ending)}" if ending else ""
    say(f"job {handle.id} submitted{after}")
    return JobRecord(
        handle=handle, phase="queued", attempt_directory=str(directory), home=str(directory), wall=time.time()
    )


def record_in(folder: Path) -> JobRecord | None:
    """The record of an attempt; None if there is none that can be read."""
    try:
        return decode_exact((folder / RECORD).read_bytes(), JobRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def exit_code(folder: str) -> int | None:
    """The exit status that the script of an attempt wrote; None as long as it has written none."""
    found = spool.read(folder, EXIT_FILE)
    code = None if found is None else found.get("code")
    return code if isinstance(code, int) else None


def _submitted(
    directory: Path, order: JobOrder, slurm: Slurm, ending: list[str], say: Callable[[str], None]
) -> JobHandle:
    script = str(directory / SCRIPT_FILE)
    try:
        return slurm.submit(script, after=ending, exclude=order.exclude)
    except SlurmError as error:
        if not error.refused or not order.exclude:
            raise
        say(f"without {', '.join(order.exclude)} it was refused ({error}): submitted with all nodes")
    return slurm.submit(script, after=ending)


def _again(directory: Path, order: JobOrder, slurm: Slurm, say: Callable[[str], None]) -> JobRecord | None:
    """Let the job of the attempt before run once more, for this one. None: that is not possible."""
    before = record_in(Path(order.before)) if order.before else None
    if before is None or not before.home:
        return None
    handle = before.handle
    seen = slurm.shown(handle)
    if seen is None or seen.phase != "ended" or seen.restarts is None:
        return None
    if not _script_has_ended(Path(before.attempt_directory or order.before)):
        say(f"job {handle.id} cannot run once more: its script has not written that it has ended")
        return None
    mark = Path(before.home, f"{AGAIN}-{seen.restarts + 1}")
    try:
        mark.write_text(f"{directory}\n")
    except OSError:
        return None
    try:
        slurm.requeue(handle)
    except SlurmError as error:
        if not error.refused:
            raise  # it may be in the queue now
        with contextlib.suppress(OSError):
            mark.unlink()
        say(f"job {handle.id} cannot run once more ({error})")
        return None
    say(f"job {handle.id} was put back into the queue, for attempt {directory.name}")
    return JobRecord(
        handle=msgspec.structs.replace(handle, submitted=""),
        phase="queued",
        attempt_directory=str(directory),
        home=before.home,
        wall=time.time(),
    )


def _script_has_ended(folder: Path) -> bool:
    """Wait for what the script of an ended job writes last.

    Slurm shows a cancelled job as ended while its script still waits for the training. A start on the same node finds
    the files of that script then, fails, and the job is held.
    """
    if not (folder / STARTED_FILE).exists():
        return True
    end = time.monotonic() + SCRIPT_S
    while exit_code(str(folder)) is None:
        if time.monotonic() >= end:
            return False
        time.sleep(POLL_S)
    time.sleep(CLEARED_S)
    return True


def _followed(directory: Path, seen: Seen, slurm: Slurm) -> JobRecord:
    """The record of the attempt that started this job, or a new one that begins at the end of its log."""
    for path in sorted(directory.parent.glob(f"*/{RECORD}"), reverse=True):
        record = record_in(path.parent)
        if record is not None and record.handle.id == seen.id and record.handle.submitted in {"", seen.submitted}:
            return record
    handle = JobHandle(cluster=slurm.cluster(), id=seen.id, submitted=seen.submitted)
    return JobRecord(handle=handle, phase=seen.phase, attempt_directory=str(directory))
