"""What watching costs: ``python bench/footprint.py [--runs 1 4 16] [--seconds 30]``.

Each run is a trainer that prints a line a second under a supervisor without a screen; the fake NVML library has 8 GPUs
whose values move. Prints for the supervisor and the GPU reader of one run, or for all processes of several, runners
included: CPU seconds a minute, memory (PSS), threads, processes, GPU readers, megabytes written a day; then what each
kind of process takes, and, if they are found, what supervisord takes for such a trainer and gpustat for such GPUs, in
the same run, with the ratio of one run to each. Exit code 1 if a bound is exceeded.

All is compiled beforehand, the modules of Python by a run that is not counted: a process that compiles its modules
keeps the memory that it used for that and writes them to the disk, and an installed trainwatch never does.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from footprint_peers import peers
from screen import MOVING, ROOT, World

import trainwatch

BOUNDS = {1: {"cpu": 0.4, "pss": 30.0, "threads": 12, "day": 100.0}, 16: {"cpu": 4.0, "pss": 250.0, "readers": 1}}
"""By the number of runs: CPU seconds a minute, MB, threads, megabytes a day, processes that read the GPUs. For one run
those of supervisor and GPU reader, else those of all processes."""
UNITS = {
    "cpu": "CPU-s/min",
    "pss": "MB PSS",
    "threads": "threads",
    "processes": "processes",
    "readers": "GPU readers",
    "day": "MB/day written",
}
PEERS = {"supervisord": ("supervisor", "runner"), "gpustat": ("GPU reader",)}
"""By another program, the kinds of our processes that do as much and more."""
LEAST = 0.02
"""CPU seconds a minute: no ratio to less than two ticks."""
SETTLE_S = 20.0
TRAINER_MARK = "trainer.py"
TICKS = os.sysconf("SC_CLK_TCK")


class Costs(msgspec.Struct, frozen=True):
    """Sums over processes. ``cpu`` in ticks, ``pss`` in kB, ``written`` in bytes."""

    cpu: int = 0
    pss: int = 0
    threads: int = 0
    processes: int = 0
    readers: int = 0
    written: int = 0

    def __add__(self, other: "Costs") -> "Costs":
        return Costs(
            *(a + b for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True))
        )


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


def kind_of(pid: int) -> str:
    """What a process of trainwatch is."""
    words = command(pid)
    return "GPU reader" if "nvml_child" in words else "runner" if "runner" in words else "supervisor"


def look(roots: set[int]) -> dict[str, Costs]:
    """The costs now, by the kind of process."""
    found: dict[str, Costs] = {}
    for pid in ours(roots):
        place = Path("/proc") / str(pid)
        kind = kind_of(pid)
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            rollup = (place / "smaps_rollup").read_text()
            io = (place / "io").read_text()
        except OSError:
            continue
        found[kind] = found.get(kind, Costs()) + Costs(
            cpu=sum(map(int, fields[11:15])),  # with the children that it has waited for
            threads=int(fields[17]),
            processes=1,
            readers=kind == "GPU reader",
            pss=next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")),
            written=next(int(line.split()[1]) for line in io.splitlines() if line.startswith("write_bytes")),
        )
    return found


def roots_of(worlds: list[World]) -> set[int]:
    """Supervisors, and the runners, which are in sessions of their own."""
    home = worlds[0].home
    found = {world.supervisor.pid for world in worlds}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and str(home) in command(int(entry.name)) and "runner" in command(int(entry.name)):
            found.add(int(entry.name))
    return found


def started(folder: Path, runs: int, compiled: Path, worlds: list[World]) -> None:
    """Start this many runs under one state folder and wait until they train."""
    home = folder / "home"
    worlds += [World(folder / str(number), "lines", MOVING, home=home, compiled=compiled) for number in range(runs)]
    deadline = time.monotonic() + 60 + 5 * runs
    while len(list(home.rglob("train.log"))) < runs:
        if time.monotonic() > deadline:
            raise SystemExit("not all runs have started")
        time.sleep(0.5)
    time.sleep(SETTLE_S)


def measure(runs: int, seconds: float, *, beside: bool = False) -> dict[str, dict[str, float]]:
    """Costs by the kind of process; ``beside``: those of other programs, too, while the run goes on."""
    with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
        worlds: list[World] = []
        compiled = Path(folder) / "compiled"
        try:
            first: list[World] = []
            try:
                started(Path(folder) / "first", 1, compiled, first)
            finally:
                for world in first:
                    world.close()
            compile_ours(compiled)
            started(Path(folder) / "measured", runs, compiled, worlds)
            roots = roots_of(worlds)
            before = look(roots)
            time.sleep(seconds)
            after = look(roots)
            others = peers(Path(folder), worlds[0].env, seconds) if beside else {}
        finally:
            for world in worlds:
                world.close()
    return {kind: per_time(before.get(kind, Costs()), costs, seconds) for kind, costs in after.items()} | others


def compile_ours(compiled: Path) -> None:
    """Compile all of trainwatch: the summary of every five minutes loads modules that a short run does not."""
    env = os.environ | {"PYTHONPYCACHEPREFIX": str(compiled)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    package = Path(trainwatch.__file__).parent
    folders = (str(package / name) for name in ("cli", "core", "configs"))  # by name: links to folders are not followed
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], env=env, check=True)


def per_time(before: Costs, after: Costs, seconds: float) -> dict[str, float]:
    """What was used between two readings, per minute or day where it grows with time, in the units of UNITS."""
    return {
        "cpu": (after.cpu - before.cpu) / TICKS * 60 / seconds,
        "pss": after.pss / 1024,
        "threads": after.threads,
        "processes": after.processes,
        "readers": after.readers,
        "day": (after.written - before.written) / 1e6 * 86_400 / seconds,
    }


def main() -> int:
    """Print the table; 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    fine = True
    for runs in args.runs:
        kinds = measure(runs, args.seconds, beside=runs == 1)
        others = {name: kinds.pop(name) for name in PEERS if name in kinds}
        counted = [kind for kind in kinds if runs > 1 or kind != "runner"]
        print(f"{runs:2d} runs: {', '.join(counted)}")
        for name, unit in UNITS.items():
            value = sum(kinds[kind][name] for kind in counted)
            bound = BOUNDS.get(runs, {}).get(name)
            verdict = "" if bound is None else ("PASS" if value <= bound else "FAIL")
            fine = fine and verdict != "FAIL"
            said = "" if bound is None else f"(bound {bound:g})"
            print(f"{runs:2d} runs  {value:10.2f} {unit:16} {said:14} {verdict}", flush=True)
        for kind, costs in kinds.items():
            print(
                f"         {kind:12}",
                "  ".join(f"{costs[name]:.2f} {unit}" for name, unit in UNITS.items()),
                flush=True,
            )
        for name, theirs in others.items():
            mine = {unit: sum(kinds[kind][unit] for kind in PEERS[name] if kind in kinds) for unit in ("cpu", "pss")}
            whom = " and ".join(PEERS[name])
            said = ", ".join(
                f"{theirs[unit]:.2f} {UNITS[unit]}"
                + (f" ({mine[unit] / theirs[unit]:.1f} x by {whom})" if theirs[unit] >= LEAST else "")
                for unit in ("cpu", "pss")
            )
            print(f"         {name:12} {said}", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    assert ROOT.is_dir()
    sys.exit(main())
