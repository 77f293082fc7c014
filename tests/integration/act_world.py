"""Real attempts for tests of core/act: started, watched and always cleared away."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.e2e_world import until
from trainwatch.core import processes
from trainwatch.core.act.launch.launching import launch
from trainwatch.core.act.stopping import members
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ExitRecord, LaunchOrder
from trainwatch.core.spool import read_exit

wait_for = until


def growing(first_s: float) -> Iterator[float]:
    """Times to give a program, each four times as long, for what it must do before its time is over.

    A busy machine may not have run it at all in the first one. Leave the loop when it did; the last one counts.
    """
    yield from (first_s * 4**n for n in range(4))


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


class World:
    """Launches into folders below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.targets: list[AttemptTarget] = []

    def order(self, *argv: str, **more: object) -> LaunchOrder:
        number = len(self.targets) + 1
        values: dict[str, object] = {
            "attempt": number,
            "argv": argv,
            "cwd": str(self.root),
            "env": {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
            "log": str(self.root / f"{number}.log"),
        }
        return LaunchOrder(**(values | more))  # type: ignore[arg-type]

    def launch(self, *argv: str, **more: object) -> AttemptTarget:
        order = self.order(*argv, **more)
        target = launch(order, self.root / "attempts" / str(order.attempt))
        self.targets.append(target)
        return target

    def exit(self, target: AttemptTarget) -> ExitRecord:
        return wait_for(lambda: read_exit(Path(target.directory)), "exit.json")

    def log(self, target: AttemptTarget) -> str:
        assert target.log is not None
        return Path(target.log).read_text(encoding="utf-8", errors="replace")

    def log_has(self, target: AttemptTarget, text: str) -> None:
        wait_for(lambda: text in self.log(target), f"{text!r} in the log")

    def pid_said(self, target: AttemptTarget, name: str) -> int:
        """The pid that the trainer printed as ``NAME=PID``."""

        def look() -> int:
            found = re.search(rf"{name}=(\d+)\s", self.log(target))  # another process may have begun the line
            return int(found[1]) if found else 0

        return wait_for(look, f"{name}= in the log")

    def clear(self) -> None:
        for target in self.targets:
            for process in members(target):
                processes.send_signal(process.key, signal.SIGKILL)
            if target.runner is not None:
                processes.send_signal((target.runner.pid, target.runner.start_ticks), signal.SIGKILL)


@contextmanager
def world(root: Path) -> Iterator[World]:
    made = World(root)
    try:
        yield made
    finally:
        made.clear()
