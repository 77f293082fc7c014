"""Measures deep verification against ``cat FILE > /dev/null`` and torch.load + isfinite.

Run: ``python bench/checkpoints.py [--size-gb 2] [--directory DIR]``. Prints ratios; needs disk space for one file at a
time. torch is used if it is installed. Each figure is the best of three; "cold" means that the file's pages were
dropped from the cache before each measurement (posix_fadvise DONTNEED).
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

import numpy as np

REPEATS = 3
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


def best(path: Path, act: Callable[[], object], *, cold: bool) -> float:
    """GB/s, the best of REPEATS."""
    seconds = []
    for _ in range(REPEATS):
        if cold:
            drop_cache(path)
        began = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - began)
    return path.stat().st_size / min(seconds) / 1e9


def cat(path: Path) -> None:
    with Path(os.devnull).open("wb") as sink:
        subprocess.run(["cat", str(path)], stdout=sink, check=True)


def in_fresh_process(path: Path, cold: bool) -> tuple[float, float]:
    """GB/s and peak RSS in MB of a deep verification in a process of its own."""
    command = [sys.executable, __file__, "--child", str(path), *(["--cold"] if cold else [])]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    speed, rss = output.split()
    return float(speed), float(rss)


def peak_rss_mb() -> float:
    """Peak memory from /proc: getrusage would report the parent's size before the exec."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def child(path: Path, cold: bool) -> None:
    from trainwatch.core.checkpoints import verify

    def act() -> None:
        found = verify(path, deep=True)
        assert found.verdict == "complete", found

    speed = best(path, act, cold=cold)
    print(speed, peak_rss_mb())


def torch_isfinite(path: Path) -> None:
    import torch

    state = torch.load(path, weights_only=True, mmap=True)
    assert all(torch.isfinite(tensor).all() for tensor in state.values())


def crc_only(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def report(label: str, path: Path) -> None:
    cat_cold, (ours_cold, _) = best(path, lambda: cat(path), cold=True), in_fresh_process(path, cold=True)
    cat_warm, (ours_warm, rss) = best(path, lambda: cat(path), cold=False), in_fresh_process(path, cold=False)
    print(
        f"{label:22} cold {ours_cold:5.2f} GB/s = {ours_cold / cat_cold:4.0%} of cat ({cat_cold:.2f})   "
        f"warm {ours_warm:5.2f} GB/s = {ours_warm / cat_warm:4.0%} of cat ({cat_warm:.2f})   RSS {rss:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-gb", type=float, default=2.0)
    parser.add_argument("--directory", type=Path, default=None)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.cold)
        return
    size = int(options.size_gb * 1e9)
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        for dtype in ("F32", "BF16", "F16"):
            path = Path(scratch) / f"{dtype}.safetensors"
            write_safetensors(path, size, dtype)
            report(f"safetensors {dtype}", path)
            path.unlink()
        path = Path(scratch) / "model.pt"
        if not write_torch(path, size):
            print("torch is not installed: .pt left out")
            return
        report(".pt float32 with CRC", path)
        cat(path)
        print(f"{'torch.load + isfinite':22} warm {best(path, lambda: torch_isfinite(path), cold=False):5.2f} GB/s")
        print(f"{'zipfile.testzip':22} warm {best(path, lambda: crc_only(path), cold=False):5.2f} GB/s")


if __name__ == "__main__":
    main()
