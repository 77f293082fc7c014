"""Measures deep verification against ``cat FILE > /dev/null`` and torch.load + isfinite.

Run: ``python bench/checkpoints.py [--size-gb 2] [--directory DIR]``. Prints ratios; needs disk space for one file at a
time. torch is used if it is installed, isal for the checksums if it is. Each figure is the best of three, ``cat`` and
the verification in turn; "cold" means that the file's pages were dropped from the cache before each measurement
(posix_fadvise DONTNEED). Exit code 1 if a bound is exceeded.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

REPEATS = 3
COLD_TO_CAT = 1.3
"""Most time of a cold verification, in times of ``cat``."""
CHECKED_S_PER_GB = 0.25
"""Most CPU seconds for a gigabyte of a .pt file with its checksums, warm."""
LEFT_MB = 4.0
"""Most that a cold verification may leave in the page cache."""
PIECE_ELEMENTS = 1 << 20
PIECES_PER_TENSOR = 16


def write_safetensors(path: Path, size: int, dtype: str) -> None:
    width = {"F32": 4, "BF16": 2, "F16": 2}[dtype]
    piece = np.random.default_rng(0).normal(size=PIECE_ELEMENTS).astype(np.float32)
    raw = piece.tobytes() if dtype == "F32" else (piece.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    if dtype == "F16":
        raw = piece.astype(np.float16).tobytes()
    length = PIECE_ELEMENTS * PIECES_PER_TENSOR * width
    header, at = {}, 0
    for index in range(max(1, size // length)):
        shape = [PIECES_PER_TENSOR, PIECE_ELEMENTS]
        header[f"layer.{index}.weight"] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + length]}
        at += length
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(at // len(raw)):
            file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def write_torch(path: Path, size: int) -> bool:
    try:
        import torch
    except ImportError:
        return False
    count = PIECE_ELEMENTS * PIECES_PER_TENSOR
    tensor = torch.randn(count)
    torch.save({f"layer.{index}.weight": tensor.clone() for index in range(max(1, size // (count * 4)))}, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return True


def drop_cache(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def best(path: Path, act: Callable[[], object], *, cold: bool, repeats: int = REPEATS) -> float:
    """GB/s, the best of ``repeats``."""
    seconds = []
    for _ in range(repeats):
        if cold:
            drop_cache(path)
        began = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - began)
    return path.stat().st_size / min(seconds) / 1e9


def cat(path: Path) -> None:
    with Path(os.devnull).open("wb") as sink:
        subprocess.run(["cat", str(path)], stdout=sink, check=True)


class Verified(NamedTuple):
    """Of a deep verification in a process of its own, the best of REPEATS beside ``cat`` in turn."""

    gb_per_s: float
    cat_gb_per_s: float
    cpu_s_per_gb: float
    rss_mb: float
    cached_mb: float
    """Left in the page cache."""


def in_fresh_process(path: Path, cold: bool) -> Verified:
    command = [sys.executable, __file__, "--child", str(path), *(["--cold"] if cold else [])]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Verified(*map(float, output.split()))


def peak_rss_mb() -> float:
    """Peak memory from /proc: getrusage would report the parent's size before the exec."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def child(path: Path, cold: bool) -> None:
    from trainwatch.core.checkpoints.inspection import verify

    def act() -> None:
        found = verify(path, deep=True, rate_limit_bytes_per_s=1e12)  # as beside a training
        assert found.verdict == "complete", found

    act()  # loads the modules
    speeds, cats, costs = [], [], []
    for _ in range(REPEATS):
        cats.append(best(path, lambda: cat(path), cold=cold, repeats=1))
        before = time.process_time()
        speeds.append(best(path, act, cold=cold, repeats=1))
        costs.append((time.process_time() - before) / (path.stat().st_size / 1e9))
    left = int(subprocess.check_output(["fincore", "--bytes", "--noheadings", "--output", "RES", path])) / 1e6
    print(max(speeds), max(cats), min(costs), peak_rss_mb(), left)


def torch_isfinite(path: Path) -> None:
    import torch

    state = torch.load(path, weights_only=True, mmap=True)
    assert all(torch.isfinite(tensor).all() for tensor in state.values())


def crc_only(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def report(label: str, path: Path, *, checked: bool = False) -> bool:
    """Print one line; whether it is within the bounds. ``checked``: the file has checksums."""
    cold, warm = in_fresh_process(path, cold=True), in_fresh_process(path, cold=False)
    times = cold.cat_gb_per_s / cold.gb_per_s
    missed = ["cold"] * (times > COLD_TO_CAT) + ["cache"] * (cold.cached_mb > LEFT_MB)
    missed += ["CPU"] * (checked and warm.cpu_s_per_gb > CHECKED_S_PER_GB)
    print(
        f"{label:22} cold {times:4.2f} x cat ({cold.gb_per_s:.2f} GB/s, {cold.cat_gb_per_s:.2f}), "
        f"leaves {cold.cached_mb:.1f} MB cached   warm {warm.cat_gb_per_s / warm.gb_per_s:4.2f} x cat "
        f"({warm.gb_per_s:.2f} GB/s, {warm.cat_gb_per_s:.2f}), CPU {warm.cpu_s_per_gb:.2f} s/GB   "
        f"RSS {warm.rss_mb:.0f} MB{'  MISSED: ' + ', '.join(missed) if missed else ''}"
    )
    return not missed


def main() -> int:
    """Print the table; 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-gb", type=float, default=2.0)
    parser.add_argument("--directory", type=Path, default=None)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.cold)
        return 0
    size = int(options.size_gb * 1e9)
    fine = True
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        for dtype in ("F32", "BF16", "F16"):
            path = Path(scratch) / f"{dtype}.safetensors"
            write_safetensors(path, size, dtype)
            fine = report(f"safetensors {dtype}", path) and fine
            path.unlink()
        path = Path(scratch) / "model.pt"
        if not write_torch(path, size):
            print("torch is not installed: .pt left out")
            return 0 if fine else 1
        fine = report(".pt float32 with CRC", path, checked=True) and fine
        cat(path)
        print(f"{'torch.load + isfinite':22} warm {best(path, lambda: torch_isfinite(path), cold=False):5.2f} GB/s")
        print(f"{'zipfile.testzip':22} warm {best(path, lambda: crc_only(path), cold=False):5.2f} GB/s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
