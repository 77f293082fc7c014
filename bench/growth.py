"""What the state of a long run costs its readers: ``python bench/growth.py [--days 7] [--checkpoints 5000]``.

Writes the journal of a run of that length with 200 faults, and runs each verb on it as its own process, several times
after one that is not counted; ``--home DIR --run NAME`` measures a run that is there. Prints the lowest wall and CPU
time and the peak of memory beside ``trainwatch --version``, ``git status`` in a fresh repository and ``cat`` of the
journal in the same run. Exit code 1 if a goal is missed. 80 days with 57,000 checkpoints and 2,300 faults make a
journal of 129 MB.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from growth_state import write_run

WALL_S = 0.1
"""Wall seconds beyond those of ``--version``: status, runs, the first line of events, the whole report."""
PEAK_MB = 40.0
RATIO = 4.0
"""CPU time of status and runs to that of ``--version``."""
LAUNCHER = """
import os, sys, time
null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
began = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, used = os.wait4(pid, 0)
print(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
print(os.waitstatus_to_exitcode(status))
"""
"""A small process in between: the peak of a child counts what its parent had before the exec."""
OPENING = """
import sys, time
from pathlib import Path
{imports}
began = time.process_time()
{act}
print(time.process_time() - began)
"""
SUPERVISOR = (
    """from trainwatch.core.store.supervision import SafeJournal
from trainwatch.core.store.journal import latest_snapshot
from trainwatch.core.store.run_directory import RunDirectory""",
    "run = RunDirectory(Path(sys.argv[1])); SafeJournal(run).close(); latest_snapshot(run.journal)",
)
SCREEN = (
    """from trainwatch.core.app.screen.store_feed import StoreFeed
from trainwatch.core.store.run_directory import RunDirectory""",
    "StoreFeed(RunDirectory(Path(sys.argv[1])), 0.0).poll()",
)


class Cost:
    """Of one process: wall and CPU seconds, and the peak of its resident memory in MB."""

    def __init__(self, argv: Sequence[str], env: dict[str, str], cwd: Path) -> None:
        program = shutil.which(argv[0]) or argv[0]
        command = (sys.executable, "-I", "-S", "-c", LAUNCHER, program, *argv[1:])
        said = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, check=True).stdout.split()
        self.wall_s, self.cpu_s, self.peak_mb = map(float, said[:3])
        self.code = int(said[3])


def cheapest(argv: Sequence[str], env: dict[str, str], cwd: Path, *, times: int = 4) -> Cost:
    """The cheapest of them after one that warms the caches."""
    costs = [Cost(argv, env, cwd) for _ in range(times)][1:]
    return min(costs, key=lambda cost: cost.cpu_s)


def first_line_s(argv: Sequence[str], env: dict[str, str], cwd: Path) -> float:
    """Wall seconds until the first line, the lowest of three."""
    found = []
    for _ in range(3):
        began = time.perf_counter()
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
        assert child.stdout is not None
        child.stdout.readline()
        found.append(time.perf_counter() - began)
        child.kill()
        child.communicate()
    return min(found)


def opening_s(parts: tuple[str, str], run: Path, env: dict[str, str]) -> float:
    """CPU seconds of a call after its imports, the lowest of three."""
    code = OPENING.format(imports=parts[0], act=parts[1])
    command = (sys.executable, "-c", code, str(run))
    runs = [subprocess.run(command, capture_output=True, text=True, env=env, check=True) for _ in range(3)]
    return min(float(done.stdout) for done in runs)


def measure(home: Path, name: str) -> bool:
    """Print the table of a run; whether each goal is met."""
    (run,) = [each for each in (home / "runs").iterdir() if each.name.startswith(f"{name}-")]
    journal = run / "journal.jsonl"
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env |= {"TRAINWATCH_HOME": str(home)}
    program = (sys.executable, "-m", "trainwatch")
    print(f"load {os.getloadavg()[0]:.1f}; journal {journal.stat().st_size / 1e6:.1f} MB")
    first = Cost((*program, "status", "--json", name), env, home)
    line("status, first of all", first)
    version = cheapest((*program, "--version"), env, home, times=8)
    line("--version", version)
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run(("git", "init", "-q", empty), check=False)
        git = cheapest(("git", "status"), env, Path(empty))
    line("git status", git)
    cat = cheapest(("cat", str(journal)), env, home)
    line("cat of the journal", cat)
    fine = []
    for verb in (("status", "--json", name), ("runs", "--json")):
        cost = cheapest((*program, *verb), env, home, times=8)
        ratio, wall = cost.cpu_s / version.cpu_s, cost.wall_s - version.wall_s
        told = f"{ratio:.1f} × --version, {cost.wall_s / git.wall_s:.1f} × git status"
        fine.append(line(verb[0], cost, told, {"CPU": ratio <= RATIO, "wall": wall <= WALL_S}))
    cost = cheapest((*program, "events", name), env, home, times=2)
    told = f"{cost.cpu_s / max(cat.cpu_s, 0.001):.0f} × cat, {journal.stat().st_size / 1e6 / cost.cpu_s:.0f} MB/s"
    fine.append(line("events, all", cost, told, {}))
    began = first_line_s((*program, "events", name), env, home)
    fine.append(goal("events, first line", began - version.wall_s))
    cost = cheapest((*program, "report", name), env, home, times=3)
    fine.append(line("report", cost, "", {"wall": cost.wall_s - version.wall_s <= WALL_S}))
    fine.append(goal("supervisor: opens the journal", opening_s(SUPERVISOR, run, env)))
    fine.append(goal("screen: first data", opening_s(SCREEN, run, env)))
    size = sum(each.stat().st_size for each in run.rglob("*") if each.is_file())
    print(f"state of the run: {size / 1e6:.1f} MB")
    return all(fine)


def line(title: str, cost: Cost, told: str = "", goals: dict[str, bool] | None = None) -> bool:
    """Print one; with ``goals`` the peak of memory is one, too. Whether all are met."""
    missed = [] if goals is None else [name for name, met in goals.items() if not met]
    missed += ["memory"] * (goals is not None and cost.peak_mb > PEAK_MB)
    missed += [f"exit code {cost.code}"] * (cost.code != 0)
    said = f"  MISSED: {', '.join(missed)}" if missed else ""
    print(f"{title:30} {cost.wall_s:6.2f} s  CPU {cost.cpu_s:6.3f} s  {cost.peak_mb:4.0f} MB  {told}{said}", flush=True)
    return not missed


def goal(title: str, seconds: float) -> bool:
    """Print one of which only the time counts; whether it is met."""
    met = seconds <= WALL_S
    print(f"{title:30} {seconds:6.3f} s (goal {WALL_S:g}){'' if met else '  MISSED'}", flush=True)
    return met


def main() -> int:
    """Print the table; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--checkpoints", type=int, default=5000)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--home", type=Path, help="a state folder that is there")
    parser.add_argument("--run", default="long", help="the name of the run in it")
    args = parser.parse_args()
    if args.home is not None:
        return 0 if measure(args.home, args.run) else 1
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        _, records = write_run(
            home,
            days=args.days,
            checkpoints=args.checkpoints,
            faults=args.faults,
        )
        print(f"{args.days:g} days, {args.checkpoints} checkpoints, {args.faults} faults: {records} records")
        return 0 if measure(home, args.run) else 1


if __name__ == "__main__":
    sys.exit(main())
