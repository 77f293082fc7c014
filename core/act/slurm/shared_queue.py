"""One question to Slurm for all runs of a user on this machine: what squeue printed last, in a file that they share.

The process that finds the answer too old asks again and keeps it; the others wait for that at its lock. A failure is
kept, too: a controller that does not answer is not asked by every run. Where the file cannot be kept, each asks itself.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from ...model.launch.elsewhere.job import JobHandle
from ...private_folder import make_private
from .answers import Seen, read_squeue
from .commands import Slurm, SlurmError

LOCK_S = 60.0
"""Longest wait for another process that asks: a command of Slurm has half of it."""
POLL_S = 0.05


class SharedQueue:
    """``folder``: on this machine, of this user; None: nothing is shared. Times are seconds since boot."""

    def __init__(self, slurm: Slurm, folder: Path | None) -> None:
        self._slurm = slurm
        self._folder = folder
        which = f"{os.environ.get('SLURM_CONF', '')}\0{os.environ.get('PATH', '')}"
        self._name = sha256(which.encode(errors="surrogateescape")).hexdigest()[:16]

    def jobs(self, since_s: float) -> dict[str, Seen]:
        """All jobs of this user, as Slurm showed them at ``since_s`` or later. Raises SlurmError."""
        if self._folder is None:
            return self._slurm.jobs()
        kept = self._kept(since_s)
        if kept is None:
            with self._locked():
                kept = self._kept(since_s) or self._ask()
        text, error = kept
        if error:
            raise SlurmError(error)
        return read_squeue(text)

    def find(self, handles: Sequence[JobHandle], since_s: float) -> dict[JobHandle, Seen | None]:
        """These jobs, as of ``since_s`` or later: one question, and one more for each that the queue shows no longer.

        None: Slurm answered and does not know it. Raises SlurmError.
        """
        shown = self.jobs(since_s)
        found: dict[JobHandle, Seen | None] = {}
        for handle in handles:
            seen = shown.get(handle.id)
            same = seen is not None and handle.submitted in {"", seen.submitted}
            found[handle] = seen if same else self._slurm.job(handle)
        return found

    def _ask(self) -> tuple[str, str]:
        at = now()
        try:
            answer = self._slurm.queue(), ""
        except SlurmError as error:
            answer = "", str(error)
        with contextlib.suppress(OSError):
            path = self._path("json")
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps({"at": at, "text": answer[0], "error": answer[1]}))
            fresh.replace(path)
        return answer

    def _kept(self, since_s: float) -> tuple[str, str] | None:
        """What was kept, if it is new enough: text and error."""
        try:
            kept = json.loads(self._path("json").read_bytes())
            return (str(kept["text"]), str(kept["error"])) if since_s <= float(kept["at"]) <= now() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, if it can be had within LOCK_S."""
        try:
            assert self._folder is not None
            make_private(self._folder)
            handle = os.open(self._path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            end = time.monotonic() + LOCK_S
            while time.monotonic() < end:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    time.sleep(POLL_S)
            yield
        finally:
            os.close(handle)

    def _path(self, suffix: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._name}.{suffix}"


def now() -> float:
    """Seconds since boot, as all processes of this machine count them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
