"""Read all GPUs and their processes once, in the child process that the sensor of a run reads them with, too.

A driver call that hangs cannot be ended, only abandoned. ``survey()`` asks with a time limit, ``surveying()`` beside
other work.
"""

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from ..model.observation import GpuReading
from ..model.text import memory
from ..processes import owner_of, words_of

TIMEOUT_S = 15.0
"""Without persistence mode the first answer takes 1.5 s per GPU."""


class GpuUser(msgspec.Struct, frozen=True, kw_only=True):
    """A process on a GPU. ``mem_bytes`` None: the driver does not report it (WSL2, another user)."""

    pid: int
    mem_bytes: float | None = None


class GpuSeen(GpuReading, frozen=True, kw_only=True):
    """One GPU now, and who is on it; None = unknown."""

    users: tuple[GpuUser, ...] | None = None


class GpuSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """``trouble``: why nothing could be read. ``stuck``: the driver did not answer in time."""

    gpus: tuple[GpuSeen, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    trouble: str | None = None
    stuck: bool = False


def survey(timeout_s: float = TIMEOUT_S) -> GpuSurvey:
    """Query the driver. Blocks for at most ``timeout_s``. Never raises because of the machine."""
    with surveying(timeout_s) as answer:
        return answer()


@contextmanager
def surveying(timeout_s: float = TIMEOUT_S) -> Iterator[Callable[[], GpuSurvey]]:
    """Query the driver while the caller does something else; to call what it gets waits for the answer, as ``survey``.

    A query that nobody waited for is ended.
    """
    try:
        asked = subprocess.Popen(
            [sys.executable, "-P", "-m", "trainwatch.core.sense.gpu.nvml_child", str(os.getpid()), "0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
    except OSError as error:
        trouble = GpuSurvey(trouble=f"could not be queried: {error}")
        yield lambda: trouble
        return
    try:
        yield partial(_answer, asked, timeout_s)
    finally:
        if asked.returncode is None:
            asked.kill()
            # one that hangs in the kernel ends when the driver returns
            with contextlib.suppress(subprocess.TimeoutExpired):
                asked.communicate(timeout=0.5)


def _answer(asked: "subprocess.Popen[bytes]", timeout_s: float) -> GpuSurvey:
    try:
        out, _ = asked.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return GpuSurvey(trouble=f"the GPU driver did not answer within {timeout_s:g} s", stuck=True)
    from ..sense.gpu.gpu_sensor import Message, decoded

    try:
        message = msgspec.json.decode(out, type=Message)
        read = decoded(message)
    except msgspec.MsgspecError:
        return GpuSurvey(trouble=f"the GPU driver ended the process that queried it (status {asked.returncode})")
    told = next((device.detail for device, _ in read if device.detail), {})
    return GpuSurvey(
        gpus=tuple(
            GpuSeen(
                **msgspec.structs.asdict(seen),
                users=None if device.procs is None else tuple(GpuUser(pid=p, mem_bytes=m) for p, m in device.procs),
            )
            for device, seen in read
        ),
        driver=told.get("driver"), cuda=told.get("cuda"), trouble=message.text or None,
    )  # fmt: skip


def process_name(pid: int) -> str:
    """Name and command of a process on a GPU. Of another user's only that it is one: nothing else of it is read.

    ``pid N`` alone: it belongs to another namespace, or has ended.
    """
    owner = owner_of(pid)
    if owner is None:  # hidden (hidepid), of another namespace, or gone; signal 0 is not sent, it only tells
        with contextlib.suppress(OSError, OverflowError):
            try:
                os.kill(pid, 0)
            except PermissionError:
                return f"another user's process, pid {pid}"
        return f"pid {pid}"
    if os.geteuid() not in {0, owner}:
        name = str(owner)
        with contextlib.suppress(KeyError):
            name = pwd.getpwuid(owner).pw_name
        return f"another user's process ({name}), pid {pid}"
    shown = " ".join(word.decode("utf-8", "replace").rpartition("/")[2] for word in words_of(pid)[:2] if word)
    return f"{shown or 'kernel'} (pid {pid})"


def named_users(timeout_s: float = TIMEOUT_S) -> tuple[str, ...]:
    """The processes on the GPUs by the driver's list, a sentence each; empty if it does not report them."""
    return tuple(
        f"{process_name(user.pid)} with {memory(user.mem_bytes)} of GPU {gpu.index}"
        if user.mem_bytes is not None
        else f"{process_name(user.pid)} on GPU {gpu.index}"
        for gpu in survey(timeout_s).gpus
        for user in gpu.users or ()
    )
