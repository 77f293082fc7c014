"""Trainings started by hand, and the command line that takes them over; everything is cleared away."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.e2e_world import in_this_process, own_runtime
from tests.fakes.left_processes import end_processes_with
from tests.fakes.tmux_place import end_server, socket_folder
from tests.integration.act_world import wait_for
from trainwatch.core import processes
from trainwatch.core.app.runs.run_status import read_run
from trainwatch.core.store.run_lookup import list_runs

TRAINER = Path(__file__).parents[2] / "configs" / "examples" / "char_trainer.py"


class HandMade:
    """A user with a folder, a tmux server and a trainwatch home of their own."""

    def __init__(self, root: Path, tmux_folder: str) -> None:
        self.root = root
        self.out = root / "out"
        self.socket = f"trainwatch-test-{uuid.uuid4().hex[:12]}"
        self.environ = {k: v for k, v in os.environ.items() if k not in {"TMUX", "TMUX_PANE", "PYTHONUNBUFFERED"}}
        self.environ |= {
            "TMUX_TMPDIR": tmux_folder,
            "TRAINWATCH_HOME": str(root / "home"),
            "LC_ALL": "C.UTF-8",
        } | own_runtime(Path(tmux_folder))
        self.started: list[subprocess.Popen[Any]] = []

    def train(self, *more: str, steps: int = 200000) -> list[str]:
        """The command of a real training with a checkpoint every 10 steps."""
        return [
            sys.executable, str(TRAINER), "--output-dir", str(self.out), "--steps", str(steps),
            "--step-time", "0.02", "--save-every", "10", *more,
        ]  # fmt: skip

    def start(self, *argv: str, **more: Any) -> subprocess.Popen[Any]:
        """A process of the user's own."""
        values: dict[str, Any] = {
            "cwd": self.root, "env": self.environ, "start_new_session": True, "stdin": subprocess.DEVNULL,
        }  # fmt: skip
        made = subprocess.Popen(argv, **(values | more))
        self.started.append(made)
        return made

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One verb that comes back at once, in this process."""
        done = in_this_process(words, self.root, self.environ)
        return subprocess.CompletedProcess(words, done.code, done.out, done.err)

    def adopt(self, *words: str, command: tuple[str, ...] = ()) -> subprocess.Popen[Any]:
        """``trainwatch adopt … --headless`` in the background; what it says goes to ``said``."""
        behind = ("--", *command) if command else ()
        with (self.root / "said").open("ab") as said:
            return self.start(
                sys.executable, "-m", "trainwatch", "adopt", "--headless", "--output-dir", str(self.out),
                "--socket", self.socket, *words, *behind, stdout=said, stderr=said,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return (self.root / "said").read_text(encoding="utf-8")

    def status(self) -> dict[str, Any]:
        """What ``status --json`` says; empty while there is no run."""
        runs = list_runs(self.root / "home")
        return read_run(runs[0]).status if runs else {}

    def reaches(self, attempt: int, step: int) -> dict[str, Any]:
        """The status once this attempt trains beyond a step."""

        def look() -> dict[str, Any] | None:
            now = self.status()
            there = now and now["attempt"] == attempt and now["state"] == "running"
            return now if there and (now["progress"]["step"] or 0) >= step else None

        return wait_for(look, f"attempt {attempt} beyond step {step}")

    def tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-L", self.socket, *words],
            capture_output=True, text=True, check=True, env=self.environ, timeout=10,
        ).stdout  # fmt: skip

    def session(self, name: str = "luca", *command: str) -> None:
        """A session with a shell (or ``command``) in it."""
        words = command or ("bash", "--norc", "--noprofile")
        self.tmux("new-session", "-d", "-s", name, "-x", "150", "-y", "30", "-c", str(self.root), "--", *words)

    def type(self, line: str, session: str = "luca") -> None:
        self.tmux("send-keys", "-t", f"={session}:", "-l", line)
        self.tmux("send-keys", "-t", f"={session}:", "Enter")

    def checkpoints(self) -> list[Path]:
        return sorted(self.out.glob("*.safetensors"))

    def clear(self) -> None:
        """Supervisors first, or they would start what is ended."""
        home = self.root / "home"
        for lock in home.glob("runs/*/supervisor.lock"):
            pid = lock.read_text().strip()
            if pid and processes.read_process(int(pid)) is not None:
                os.kill(int(pid), signal.SIGKILL)
        for made in self.started:
            made.kill()
            made.wait()
        end_processes_with("TRAINWATCH_HOME", str(home))
        end_server("-L", self.socket, env=self.environ)


@contextmanager
def hand_made(root: Path) -> Iterator[HandMade]:
    with socket_folder() as folder:
        made = HandMade(root, folder)
        try:
            yield made
        finally:
            made.clear()
