"""What watching a large job costs: ``python bench/nodes.py [--nodes 64] [--gpus 8] [--seconds 120] [--keep FOLDER]``.

A run with ``engine = "slurm"`` under stand-in commands; the files of the agents on its nodes are written by this
program, one line a node every ten seconds, spread over them as agents are. Each node has GPUs with moving values and as
many ranks, whose newest lines advance; one rank is behind, another one is stopped. Prints CPU and memory of the
supervisor and of the job's follower, and bytes and CPU of the screen, on the dashboard and on the page of ranks.
Exit code 1 if a goal is missed. ``--keep``: make the run there, and go on until it is interrupted, to look at it.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from footprint import command
from screen_terminal import OnTerminal

ROOT = Path(__file__).parent.parent
COMMANDS = ROOT / "tests" / "fakes" / "slurm_commands.py"
SIZE = (200, 50)
INTERVAL_S = 10.0
TOTAL = 100_000
AGE_S = 5 * 3600.0
GOALS = {"supervisor CPU": 10.0, "supervisor memory": 150.0, "dashboard": 6.0, "ranks": 6.0}
"""Per cent of a core, MB, kB/s, kB/s."""
UNITS = {"supervisor CPU": "% of a core", "supervisor memory": "MB PSS", "dashboard": "kB/s", "ranks": "kB/s"}
TICKS = os.sysconf("SC_CLK_TCK")
TRAINER = """
import sys, time
step = 0
while True:
    step += 1
    print(f"step {step}/100000 loss {1 / step ** 0.1:.4f} lr 1e-4", flush=True)
    time.sleep(1)
"""


class Nodes:
    """Writes what the agents of the nodes would write."""

    def __init__(self, nodes: int, gpus: int) -> None:
        self.nodes, self.gpus = nodes, gpus
        self.begun = time.monotonic()
        self.numbers = [0] * nodes
        self.quiet: set[int] = set()
        self.stopping = threading.Event()
        self.values = random.Random(1)

    def write(self, folder: Path) -> None:
        """Write until it is stopped; each node in its own part of the interval."""
        folder.mkdir(parents=True, exist_ok=True)
        end = time.monotonic()
        while not self.stopping.is_set():
            for node in range(self.nodes):
                end += INTERVAL_S / self.nodes
                if node not in self.quiet:
                    with (folder / f"node{node + 1:03}.jsonl").open("a") as file:
                        file.write(json.dumps(self.line(node)) + "\n")
                if self.stopping.wait(max(0.0, end - time.monotonic())):
                    return

    def line(self, node: int) -> dict[str, object]:
        """One line of an agent."""
        self.numbers[node] += 1
        step = int(time.monotonic() - self.begun)
        ranks = []
        for local in range(self.gpus):
            rank = node * self.gpus + local
            at = step - 25 if rank == 13 else step
            state = "T" if rank == 27 else "S"
            age = 42.0 if rank == 27 else round(self.values.uniform(0.0, 1.0), 2)
            ranks.append({
                "rank": rank, "pid": 4000 + local, "state": state, "line": f"step {max(0, at)}/{TOTAL} loss 0.4321",
                "line_age_s": age, "earlier": f"step {max(0, at - 60)}/{TOTAL} loss 0.4381",
                "earlier_age_s": age + 60.0,
            })  # fmt: skip
        gpus = [
            {
                "index": index, "util": float(self.values.randint(88, 100)), "mem_used": 76e9 + index * 1e8,
                "mem_total": 80e9, "temp": float(self.values.randint(55, 72)),
                "power": self.values.uniform(350.0, 690.0),
                "power_limit": 700.0, "own": True,
            }
            for index in range(self.gpus)
        ]  # fmt: skip
        number = self.numbers[node]
        process = {
            "procs": 5 * self.gpus, "states": {"R": self.gpus, "S": 4 * self.gpus}, "cpu": 1.1 * self.gpus,
            "read_bytes": 1e9 * number, "write_bytes": 1e6 * number, "ranks": ranks,
            "agents": [{"pid": 3999, "workers": self.gpus, "max_restarts": 0}],
        }  # fmt: skip
        return {"n": number, "wall": time.time(), "node": f"node{node + 1:03}", "process": process, "gpus": gpus}


class Run:
    """The run, its supervisor and its nodes."""

    def __init__(self, folder: Path, nodes: int, gpus: int) -> None:
        self.home, self.project = folder / "home", folder / "project"
        for made in (self.project, folder / "bin", folder / "jobs"):
            made.mkdir(parents=True)
        for name in ("sbatch", "squeue", "scontrol", "scancel", "srun"):
            (folder / "bin" / name).symlink_to(COMMANDS)
        (self.project / "trainer.py").write_text(TRAINER)
        (self.project / "trainwatch.toml").write_text(
            f'[run]\nname = "large"\nengine = "slurm"\ncommand = ["{sys.executable}", "trainer.py"]\n'
            f"[slurm]\nnodes = {nodes}\ngpus = {gpus}\n[tmux]\nenabled = false\n"
        )
        drop = ("TMUX", "TRAINWATCH", "NO_COLOR", "SLURM")
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
        self.env |= {
            "TRAINWATCH_HOME": str(self.home), "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "FAKE_SLURM": str(folder / "jobs"),
            "FAKE_SLURM_AGENTS": "elsewhere", "XDG_RUNTIME_DIR": str(folder),
        }  # fmt: skip
        self.age()
        self.said = (folder / "supervisor.txt").open("wb")
        argv = [sys.executable, "-m", "trainwatch", "--headless", "--stop-trainer"]
        self.supervisor = subprocess.Popen(
            argv, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said,
            start_new_session=True,
        )  # fmt: skip
        attempt = self.until(lambda: next(iter(self.home.glob("runs/*/attempts/0001/job.json")), None)).parent
        self.nodes = Nodes(nodes, gpus)
        self.writer = threading.Thread(target=self.nodes.write, args=(attempt / "nodes",), daemon=True)
        self.writer.start()
        self.until(lambda: next(iter(self.home.glob("runs/*/attempts/0001/nodes.json")), None))

    def age(self) -> None:
        """Date the run back: charts of a young run change at every poll, those of an old one rarely."""
        argv = [sys.executable, "-m", "trainwatch"]
        subprocess.run(argv, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        (paper,) = self.home.rglob("run.json")
        spec = json.loads(paper.read_text())
        paper.write_text(json.dumps(spec | {"created_wall": spec["created_wall"] - AGE_S}))

    def until(self, look: Callable[[], Path | None]) -> Path:
        """The first true result of ``look``."""
        end = time.monotonic() + 120.0
        while time.monotonic() < end and self.supervisor.poll() is None:
            found = look()
            if found:
                return found
            time.sleep(0.2)
        raise SystemExit("the run did not begin: " + Path(self.said.name).read_text()[-2000:])

    def screen(self) -> OnTerminal:
        """The screen on this run, when it is drawn."""
        shown = OnTerminal([sys.executable, "-m", "trainwatch"], self.env, SIZE, self.project)
        if shown.wait_for("large") is None:
            raise SystemExit(f"the screen did not come up: {shown.last_output}")
        return shown

    def close(self) -> None:
        """End the nodes, the writer, the supervisor and the trainer."""
        self.nodes.stopping.set()
        self.writer.join()
        self.supervisor.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.supervisor.wait(90)
        if self.supervisor.poll() is None:
            self.supervisor.kill()
            self.supervisor.wait()
        self.said.close()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, with children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def pss_mb(pid: int) -> float:
    """Memory of a process in MB, shared pages divided."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1000.0


def follower(home: Path) -> int | None:
    """The process that follows the job."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and str(home) in (said := command(int(entry.name))) and "job_process" in said:
            return int(entry.name)
    return None


def shown_cost(shown: OnTerminal, seconds: float) -> tuple[float, float]:
    """kB/s and per cent of a core, after the first pictures."""
    time.sleep(12.0)
    written, cpu = shown.written, shown.cpu_s
    time.sleep(seconds)
    if not shown.alive:
        raise SystemExit(f"it ended: {shown.last_output}")
    return (shown.written - written) / seconds / 1000.0, (shown.cpu_s - cpu) / seconds * 100.0


def measure(run: Run, seconds: float) -> dict[str, float]:
    """All of it, one after another: the screen costs the supervisor nothing."""
    time.sleep(2 * INTERVAL_S)
    pid, beside = run.supervisor.pid, follower(run.home)
    before, before_beside, began = cpu_s(pid), cpu_s(beside) if beside else 0.0, time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    found = {"supervisor CPU": (cpu_s(pid) - before) / took * 100.0, "supervisor memory": pss_mb(pid)}
    if beside:
        found["follower CPU"] = (cpu_s(beside) - before_beside) / took * 100.0
        found["follower memory"] = pss_mb(beside)
    shown = run.screen()
    try:
        found["dashboard"], found["dashboard CPU"] = shown_cost(shown, seconds / 3)
        shown.press("D")
        found["ranks"], found["ranks CPU"] = shown_cost(shown, seconds / 3)
        found["screen memory"] = shown.rss_mb
    finally:
        shown.end()
    return found


def main() -> int:
    """Print a row for each quantity."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nodes", type=int, default=64)
    options.add_argument("--gpus", type=int, default=8, help="on each node")
    options.add_argument("--seconds", type=float, default=120.0)
    options.add_argument("--keep", type=Path)
    options.add_argument("--quiet-node", type=int, help="this one writes no more after the first minute")
    asked = options.parse_args()
    with contextlib.ExitStack() as stack:
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nodes-bench-")))
        run = Run(folder, asked.nodes, asked.gpus)
        stack.callback(run.close)
        if asked.keep:
            over = threading.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda _which, _frame: over.set())
            if not over.wait(60.0) and asked.quiet_node is not None:
                run.nodes.quiet.add(asked.quiet_node - 1)
            over.wait()
            return 0
        found = measure(run, asked.seconds)
    missed = False
    print(f"{asked.nodes} nodes, {asked.nodes * asked.gpus} GPUs, a line a node every {INTERVAL_S:g} s")
    for name, value in found.items():
        goal = GOALS.get(name)
        unit = UNITS.get(name, "% of a core" if name.endswith("CPU") else "MB")
        verdict = "" if goal is None else f"goal {goal:g}: {'met' if value <= goal else 'MISSED'}"
        missed = missed or (goal is not None and value > goal)
        print(f"{name:20} {value:8.2f} {unit:12} {verdict}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
