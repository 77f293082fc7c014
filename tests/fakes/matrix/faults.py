"""The faults of the matrix, made real: damaged files, a full disk, a dead lock, a signal from another process.

Which one, and where notes are kept, is in the environment (``MATRIX_FAULT``, ``MATRIX_NOTES``), so that no trainer's
own options or settings know of it. A fault that has no cure of its own happens once; out of memory and the stuck
loader come back until the trainer's settings are changed.

The notes: ``lives.txt``, a line for each process that began; ``saved.txt``, name and SHA-256 of every file that was
saved, after any damage; ``read.jsonl``, the settings that each process saw.
"""

import hashlib
import json
import math
import os
import struct
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

FAULT = os.environ.get("MATRIX_FAULT", "")
NOTES = Path(os.environ.get("MATRIX_NOTES", "."))

FAULT_STEP = 25
"""Steps of trouble: in the third of four stretches of ten, so that two checkpoints exist."""
DAMAGED_SAVE_STEP = 20
"""After which step the save is made that is damaged, or finds the disk full."""
CUDA_ERROR = (
    "CUDA error: unknown error\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)
OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.99 GiB of which 1.02 GiB is free."
)
DAMAGED = frozenset({"torn", "flipped", "nan-saved", "nan-optimizer"})


def begin(settings: Mapping[str, Any]) -> None:
    """Note that a process began, and what it read."""
    with (NOTES / "lives.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")
    with (NOTES / "read.jsonl").open("a") as file:
        file.write(json.dumps(dict(settings), default=str) + "\n")


def first_time(name: str) -> bool:
    """Says yes once, across restarts."""
    try:
        os.close(os.open(NOTES / f"fired-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return False
    return True


def due(name: str, step: int, at: int = FAULT_STEP) -> bool:
    """Whether this fault happens after this step."""
    return name == FAULT and step == at and first_time(name)


def after_step(step: int, *, batch: int) -> None:
    """What ends an attempt, or stops it. A ``batch`` above 2 does not fit into memory that is fragmented ("oom").

    Of "oom-large" it does not fit into any.
    """
    if due("crash", step):
        raise RuntimeError(CUDA_ERROR)
    whole = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    if (FAULT == "oom-large" or (FAULT == "oom" and not whole)) and step == FAULT_STEP and batch > 2:
        from tests.fakes.matrix.tensors import OutOfMemoryError

        raise OutOfMemoryError(OUT_OF_MEMORY)
    if due("hang", step):
        wait_for_ever()
    if due("killed", step):  # by somebody else: another process sends the signal
        sends = f"import os, signal; os.kill({os.getpid()}, signal.SIGINT)"
        subprocess.run([sys.executable, "-c", sends], check=True)


def loader_sticks(step: int, workers: int) -> bool:
    """Whether the loader's workers stop delivering now: more than one lock each other out."""
    return FAULT == "hang-loader" and step == FAULT_STEP and workers > 1


def wait_for_ever() -> None:
    """A lock that nobody releases."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def spoil(weights: Iterable[Any], step: int) -> None:
    """Weights that are no numbers any more."""
    if due("nan", step, at=FAULT_STEP - 3):
        first = next(iter(weights))
        (first.detach().fill_ if hasattr(first, "detach") else first.fill)(math.nan)


def give_up_on_nan(loss: float, step: int) -> None:
    """As scripts do that look at their loss now and then."""
    if math.isnan(loss) and step % 10 == 2:
        raise ValueError(f"Loss is nan, stopping training at step {step}")


def write_all(parts: Mapping[Path, Callable[[Path], object]], step: int, *, spoiled: Path) -> bool:
    """Write the files of the save after ``step``; ``spoiled``: which of them the trouble of this save is about.

    Returns whether it was damaged: the trainer then dies, as soon as the save has its final name (``saved``).
    """
    damaged_save = step == DAMAGED_SAVE_STEP
    for path, write in parts.items():
        if FAULT == "disk-full" and damaged_save and path == spoiled and first_time("disk-full"):
            _write_to_a_full_disk(path, write)
        write(path)
    if FAULT in DAMAGED and damaged_save and first_time(FAULT):
        _damage(spoiled)
        return True
    return False


def saved(folder: Path, *, damaged: bool) -> None:
    """The save is complete, under its final name (a file, or a folder of them): note the sums; die if ``damaged``."""
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    with (NOTES / "saved.txt").open("a") as notes:
        for path in files:
            notes.write(f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.resolve()}\n")
    if damaged:
        raise RuntimeError(CUDA_ERROR)


def _write_to_a_full_disk(path: Path, write: Callable[[Path], object]) -> None:
    """The kernel says ENOSPC to the trainer's own write; what a full disk leaves is the part that had room.

    safetensors writes to another name first, where the link does not stand: its bytes are written here then.
    """
    path.symlink_to("/dev/full")
    try:
        write(path)
        Path("/dev/full").write_bytes(path.read_bytes())
    finally:
        path.unlink()
        whole = path.with_name(f".{path.name}.whole")
        write(whole)
        path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
        whole.unlink()


def _damage(path: Path) -> None:
    match FAULT:
        case "torn":
            os.truncate(path, path.stat().st_size * 2 // 3)
        case "flipped":
            _flip(path)
        case "nan-saved" | "nan-optimizer":
            from tests.fakes.matrix.tensors import write_nan

            write_nan(path)


def _flip(path: Path) -> None:
    """One bit: in the first tensor's bytes of an archive (its checksum tells); in a safetensors header.

    A flipped bit among the values of a safetensors file is another finite value most times: nothing could tell.
    """
    data = bytearray(path.read_bytes())
    if path.suffix == ".safetensors":
        at = data.index(b'"data_offsets":[') + len('"data_offsets":[')
    else:
        with zipfile.ZipFile(path) as archive:
            member = max((i for i in archive.infolist() if "/data/" in i.filename), key=lambda i: i.file_size)
        at = data.index(member.filename.encode(), member.header_offset) + len(member.filename)
        at += struct.unpack_from("<H", data, member.header_offset + 28)[0] + 1
    data[at] ^= 0x04
    path.write_bytes(bytes(data))


def fail(message: str) -> None:
    """End with one line for a mistake of the person who started it."""
    sys.stderr.write(f"{message}\n")
    sys.exit(2)
