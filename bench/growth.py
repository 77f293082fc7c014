"""What the state of a long run costs its readers: ``python bench/growth.py [--days 7] [--checkpoints 5000]``.

Writes the journal of a run of that length with 200 faults (as this version writes it, or with ``--first-release``
with the judge's states in it), and runs each verb on it as its own process, three times after one that is not counted.
Prints the lowest wall time, CPU time and peak memory, and their ratio to ``trainwatch --version`` and to ``git status``
in a fresh repository, measured in the same run. Exit code 1 if a verb is above its bound.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from growth_state import write_run

BOUNDS_S = {"status": 0.1, "runs": 0.1}
"""Wall seconds beyond those of ``--version``."""
BOUND_MB = 40.0
RATIO = 4.0
"""CPU time of status and runs to that of ``--version``."""


class Cost:
    """Of one process: wall and CPU seconds, and the peak of its resident memory in MB."""

    def __init__(self, argv: Sequence[str], env: dict[str, str], cwd: Path) -> None:
        began = time.perf_counter()
        child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.wall_s = time.perf_counter() - began
        self.cpu_s = used.ru_utime + used.ru_stime
        self.peak_mb = used.ru_maxrss / 1024
        self.code = child.returncode


def cheapest(argv: Sequence[str], env: dict[str, str], cwd: Path) -> Cost:
    """The cheapest of three runs after one that warms the caches."""
    costs = [Cost(argv, env, cwd) for _ in range(4)][1:]
    return min(costs, key=lambda cost: cost.cpu_s)


def verbs(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is measured."""
    yield "status", ("status", "--json", name)
    yield "runs", ("runs", "--json")
    yield "events", ("events", name)
    yield "report", ("report", name)


def main() -> int:
    """Print the table; 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--checkpoints", type=int, default=5000)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--first-release", action="store_true", help="with the judge's states in the journal")
    args = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        run, records = write_run(
            home,
            days=args.days,
            checkpoints=args.checkpoints,
            faults=args.faults,
            snapshots_in_journal=args.first_release,
        )
        env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        env |= {"TRAINWATCH_HOME": str(home), "PYTHONPYCACHEPREFIX": str(Path(folder) / "pycache")}
        program = (sys.executable, "-m", "trainwatch")
        print(f"journal: {records} records, {run.journal.stat().st_size / 1e6:.1f} MB")
        first = Cost((*program, "status", "--json", "long"), env, home)
        print(f"{'status, nothing stored':28} {first.wall_s:6.2f} s  CPU {first.cpu_s:5.2f} s  {first.peak_mb:4.0f} MB")
        subprocess.run(("git", "init", "-q", str(home)), check=False)
        git = cheapest(("git", "status"), env, home)
        version = cheapest((*program, "--version"), env, home)
        print(f"{'git status':28} {git.wall_s:6.2f} s  CPU {git.cpu_s:5.2f} s  {git.peak_mb:4.0f} MB")
        print(f"{'--version':28} {version.wall_s:6.2f} s  CPU {version.cpu_s:5.2f} s  {version.peak_mb:4.0f} MB")
        for name, argv in verbs("long"):
            cost = cheapest((*program, *argv), env, home)
            ratio = cost.cpu_s / version.cpu_s
            bound = BOUNDS_S.get(name)
            missed = [f"exit code {cost.code}"] if cost.code else []
            if bound is not None:
                missed += ["wall"] * (cost.wall_s - version.wall_s > bound) + ["CPU"] * (ratio > RATIO)
                missed += ["memory"] * (cost.peak_mb > BOUND_MB)
            fine = fine and not missed
            said = f"  MISSED: {', '.join(missed)}" if missed else ""
            print(
                f"{name:28} {cost.wall_s:6.2f} s  CPU {cost.cpu_s:5.2f} s  {cost.peak_mb:4.0f} MB"
                f"  {ratio:4.1f} × --version  {cost.wall_s / git.wall_s:5.1f} × git status{said}"
            )
        size = sum(each.stat().st_size for each in run.path.rglob("*") if each.is_file())
        print(f"state of the run: {size / 1e6:.1f} MB; largest process so far: {_children_mb():.0f} MB")
    return 0 if fine else 1


def _children_mb() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
