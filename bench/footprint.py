"""What watching costs: ``python bench/footprint.py [--runs 1 16] [--seconds 30]``.

Each run is a trainer that prints a line a second under a supervisor without a screen; the fake NVML library has 8 GPUs
whose values move. Prints for all processes of trainwatch together (supervisor, runner, GPU reader and their children;
not the trainer): CPU seconds a minute, memory (PSS), threads, processes, GPU readers, megabytes written a day, and what
one `nvitop --once` and one `gpustat` cost in the same run, if they are found. Exit code 1 if a bound is exceeded.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from screen import MOVING, ROOT, World

BOUNDS = {1: {"cpu": 0.4, "pss": 30.0, "threads": 12, "day": 100.0}, 16: {"cpu": 4.0, "pss": 250.0, "readers": 1}}
"""By the number of runs: CPU seconds a minute, MB, threads, megabytes a day, processes that read the GPUs."""
UNITS = {
    "cpu": "CPU-s/min",
    "pss": "MB PSS",
    "threads": "threads",
    "processes": "processes",
    "readers": "GPU readers",
    "day": "MB/day written",
}
SETTLE_S = 20.0
TRAINER_MARK = "trainer.py"


class Costs(msgspec.Struct, frozen=True):
    """Sums over processes. ``cpu`` in ticks, ``pss`` in kB, ``written`` in bytes."""

    cpu: int = 0
    pss: int = 0
    threads: int = 0
    processes: int = 0
    readers: int = 0
    written: int = 0


def ours(roots: set[int]) -> list[int]:
    """Pids of the processes below ``roots`` (and these), without trainers and what they started."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    chosen, trainers = set(roots), set[int]()
    grown = True
    while grown:
        grown = False
        for pid, parent in parents.items():
            if parent in chosen and pid not in chosen and pid not in trainers:
                grown = True
                (trainers if TRAINER_MARK in command(pid) else chosen).add(pid)
    return [pid for pid in chosen if pid in parents]


def command(pid: int) -> str:
    """The command line of a process; empty if it has ended."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def look(roots: set[int]) -> Costs:
    """The costs now."""
    total = dict.fromkeys(Costs.__struct_fields__, 0)
    for pid in ours(roots):
        place = Path("/proc") / str(pid)
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            rollup = (place / "smaps_rollup").read_text()
            io = (place / "io").read_text()
        except OSError:
            continue
        total["cpu"] += sum(map(int, fields[11:15]))  # with the children that it has waited for
        total["threads"] += int(fields[17])
        total["processes"] += 1
        total["readers"] += "nvml_child" in command(pid)
        total["pss"] += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        total["written"] += next(int(line.split()[1]) for line in io.splitlines() if line.startswith("write_bytes"))
    return Costs(**total)


def roots_of(worlds: list[World]) -> set[int]:
    """Supervisors, and the runners, which are in sessions of their own."""
    home = worlds[0].home
    found = {world.supervisor.pid for world in worlds}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and str(home) in command(int(entry.name)) and "runner" in command(int(entry.name)):
            found.add(int(entry.name))
    return found


def measure(runs: int, seconds: float) -> dict[str, float]:
    """Start this many runs under one state folder, and measure them together."""
    with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
        worlds: list[World] = []
        try:
            home = Path(folder) / "home"
            worlds += [World(Path(folder) / str(number), "steps", MOVING, home=home) for number in range(runs)]
            deadline = time.monotonic() + 60 + 5 * runs
            while len(list(home.rglob("train.log"))) < runs:
                if time.monotonic() > deadline:
                    raise SystemExit("not all runs have started")
                time.sleep(0.5)
            time.sleep(SETTLE_S)
            roots = roots_of(worlds)
            before = look(roots)
            time.sleep(seconds)
            after = look(roots)
        finally:
            for world in worlds:
                world.close()
    ticks = 100.0
    return {
        "cpu": (after.cpu - before.cpu) / ticks * 60 / seconds,
        "pss": after.pss / 1024,
        "threads": after.threads,
        "processes": after.processes,
        "readers": after.readers,
        "day": (after.written - before.written) / 1e6 * 86_400 / seconds,
    }


def main() -> int:
    """Print the table; 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    fine = True
    for runs in args.runs:
        found = measure(runs, args.seconds)
        for name, value in found.items():
            bound = BOUNDS.get(runs, {}).get(name)
            verdict = "" if bound is None else ("PASS" if value <= bound else "FAIL")
            fine = fine and verdict != "FAIL"
            said = "" if bound is None else f"(bound {bound:g})"
            print(f"{runs:2d} runs  {value:10.2f} {UNITS[name]:16} {said:14} {verdict}", flush=True)
    for peer in ("nvitop", "gpustat"):
        path = shutil.which(peer)
        if path is not None:
            began = time.perf_counter()
            subprocess.run((path, "--once") if peer == "nvitop" else (path,), capture_output=True, check=False)
            print(f"one {peer}: {time.perf_counter() - began:.2f} s", file=sys.stderr)
    return 0 if fine else 1


if __name__ == "__main__":
    assert ROOT.is_dir()
    sys.exit(main())
