"""Files and hand-overs on four ways through the program: ``python bench/handovers.py [--tree DIR]``.

A hand-over is a call from one file of trainwatch to another; a file counts if code of it runs. Distinct: from the same
file to the same function counts once. Measured: ``trainwatch
run`` of a short training, from an exit to the decision about a restart, one progress line, and the imports of
``trainwatch status``. ``--tree``: another checkout, which is measured with its own code and test builders.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("core", "tui", "configs", "src")
COUNTED = {"derive": "derive.py", "preview": "derive.py", "load_profiles": "shipped.py"}
"""Functions of which the number of calls is of interest, and the file of each."""
IMPORT_RUNS = 9
CACHE = str(Path(tempfile.gettempdir()) / "trainwatch-bench-cache")
"""Byte code of the measured trees, so that they are left as they are."""
TRAINER = """
import sys, time
for step in range(1, 6):
    print(f"step {step}/5 loss: 0.5", flush=True)
    time.sleep(0.1)
"""


class Calls:
    """A profile function: which files run, and how often one calls another."""

    def __init__(self, tree: Path) -> None:
        self.tree = str(tree.resolve())
        self.counted: list[str] = []
        self.files: set[str] = set()
        self.handovers = 0
        self.distinct: set[tuple[str, str, str]] = set()
        self._known: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event != "call":
            return
        file = self._file(frame.f_code.co_filename)
        if file is None:
            return
        self.files.add(file)
        before = None if frame.f_back is None else self._file(frame.f_back.f_code.co_filename)
        if before is not None and before != file:
            self.handovers += 1
            self.distinct.add((before, file, frame.f_code.co_name))
        name = frame.f_code.co_name
        if name in COUNTED and file.endswith("/" + COUNTED[name]):
            self.counted.append(name)

    def _file(self, name: str) -> str | None:
        """Path inside the tree; None for any other code."""
        if name not in self._known:
            path = os.path.realpath(name)
            inside = path.removeprefix(self.tree + os.sep) if path.startswith(self.tree + os.sep) else ""
            self._known[name] = inside if inside.startswith(FOLDERS) else None
        return self._known[name]

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.handovers} hand-overs, {len(self.distinct)} of them distinct"


def measure_judge(tree: Path) -> None:
    """In a process of the tree: one exit up to the decision, up to the next launch, and one progress line."""
    sys.path.insert(0, str(tree))
    from tests.builders import Story, World
    from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk

    def trained() -> Any:
        world = World().begin().watch(Story(meta=False, period_s=5.0).load(10).train(40))
        return world.see(CheckpointEvent(t=world.t, path="out/step-40", event="complete", step=40, size_bytes=1e6))

    def crash(world: Any) -> Any:
        return world.see(LogChunk(t=world.t, text="\nRuntimeError: CUDA error: unknown error\n"))

    crash(trained()).see(Exit(t=0.0, code=1))  # caches of compiled patterns
    line = "\rsteps:   1%|   | 41/10260 [01:44<1:00:00, 2.50s/it, avr_loss=0.1]"
    for what, silent, world, observation in (
        ("exit to answer", {"capture_stacks", "end_leftovers"}, crash(trained()), Exit(t=0.0, code=1)),
        ("exit to next launch", {"capture_stacks", "start_attempt"}, crash(trained()), Exit(t=0.0, code=1)),
        ("one progress line", set(), trained(), LogChunk(t=0.0, text=line)),
    ):
        world.silent = silent
        calls = Calls(tree)
        sys.setprofile(calls)
        world.see(observation)
        sys.setprofile(None)
        print(f"{what}: {calls}", flush=True)


def measure_run(tree: Path, python: str) -> None:
    """``trainwatch run`` without a terminal, up to the launch of the runner, in the process that supervises."""
    with tempfile.TemporaryDirectory(prefix="tw-bench-") as folder:
        place = Path(folder)
        (place / "train.py").write_text(TRAINER, "utf-8")
        hook = place / "hook"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(
            "import pathlib, sys, threading\n"
            f"sys.path.insert(0, {str(ROOT / 'bench')!r})\n"
            "import handovers\n"
            "sys.path.pop(0)\n"
            f"calls = handovers.Calls(pathlib.Path({str(tree)!r}))\n"
            f"sys.addaudithook(handovers.Launch(calls, pathlib.Path({str(place / 'report')!r})))\n"
            "sys.setprofile(calls)\n"
            "threading.setprofile(calls)\n",
            "utf-8",
        )
        env = {**environment(tree), "TRAINWATCH_HOME": str(place / "home")}
        env["PYTHONPATH"] = f"{hook}{os.pathsep}{env['PYTHONPATH']}"
        argv = [python, "-m", "trainwatch", "run", "--output-dir", "out", "--", python, "train.py"]
        done = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            print(f"trainwatch run: exit code {done.returncode}\n{done.stdout}{done.stderr}")
            return
        print(f"trainwatch run: {(place / 'report').read_text('utf-8')}")


class Launch:
    """An audit hook that reports when the runner of the attempt is started."""

    def __init__(self, calls: Calls, report: Path) -> None:
        self.calls = calls
        self.report = report

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen" or not any("runner" in str(part) for part in args[1]):
            return
        calls = self.calls
        loaded = {m.__file__ for n, m in list(sys.modules.items()) if n.startswith("trainwatch.") and m.__file__}
        counted = ", ".join(f"{name} called {calls.counted.count(name)} times" for name in COUNTED)
        text = f"{len(loaded)} files loaded; {calls}; {counted}"
        self.report.write_text(text, "utf-8")


def measure_imports(tree: Path, python: str) -> None:
    """All imports of ``trainwatch status``: the best of some runs."""
    with tempfile.TemporaryDirectory(prefix="tw-bench-") as folder:
        env = {**environment(tree), "TRAINWATCH_HOME": folder}
        best, own, count = float("inf"), 0.0, 0
        for _ in range(IMPORT_RUNS):
            argv = [python, "-X", "importtime", "-m", "trainwatch", "status"]
            done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
            rows = re.findall(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)", done.stderr)
            total = sum(int(us) for us, _ in rows) / 1000.0
            if total < best:
                mine = [int(us) for us, name in rows if name.startswith("trainwatch")]
                best, own, count = total, sum(mine) / 1000.0, len(mine)
        print(f"trainwatch status: imports {best:.0f} ms, of which {count} modules of trainwatch {own:.0f} ms")


def environment(tree: Path) -> dict[str, str]:
    """For processes that are to import the tree's own packages. Variables of a supervised run are left out."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRAINWATCH_", "PYTHON")) and k != "TMUX"}
    return {**env, "PYTHONPATH": str(tree / "src"), "PYTHONPYCACHEPREFIX": CACHE}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    tree = options.tree.resolve()
    if options.child:
        measure_judge(tree)
        return
    measure_run(tree, sys.executable)
    child = [sys.executable, str(Path(__file__).resolve()), "--child", "--tree", str(tree)]
    subprocess.run(child, cwd=tree, env=environment(tree), check=True)
    measure_imports(tree, sys.executable)


if __name__ == "__main__":
    main()
