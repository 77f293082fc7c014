"""Somebody who reads the documentation: a fresh home, a folder, a shell, and the lines of a page typed as they stand."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from tests.fakes.e2e_world import Done, World, until
from tests.fakes.tmux_terminal import Terminal, terminal
from trainwatch.core.store.lock import holder_pid

T = TypeVar("T")
REPOSITORY = Path(__file__).parents[2]
FAKES = Path(__file__).parent
CONFIG = "steps: {steps}\nsave_steps: {save_steps}\nstep_time: {step_time}\n"
PATIENCE_S = 300.0


class Reader(World):
    """``home`` is where the state of runs lies, ``person`` the home folder. Programs are found as after the set-up."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._kept = ExitStack()
        self.person = root / "person"
        self.home = self.person / ".local" / "state" / "trainwatch"
        self.programs = root / "programs"
        for folder in (self.person, self.programs):
            folder.mkdir()
        (self.programs / "trainwatch").symlink_to(Path(sys.executable).with_name("trainwatch"))
        self.offer(self.programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        self.offer(self.programs / "accelerate", '#!/bin/sh\nshift\nexec python "$@"\n')
        self.env |= {
            "HOME": str(self.person),
            "PATH": f"{self.programs}:/usr/local/bin:/usr/bin:/bin",
            "USER": "reader",
        }
        for name in (
            "TRAINWATCH_HOME",
            "XDG_STATE_HOME",
            "XDG_CONFIG_HOME",
            "PYTHONPATH",
            "VIRTUAL_ENV",
            "DBUS_SESSION_BUS_ADDRESS",
        ):
            self.env.pop(name, None)
        self.project = root / "my project"  # a space, as in many people's paths
        self.project.mkdir()
        self.out = self.project / "outputs"

    def offer(self, path: Path, text: str) -> None:
        """Write a program that can be executed."""
        path.write_text(text)
        path.chmod(0o755)

    def has_script(self, *, steps: int = 60, save_steps: int = 20, step_time: float = 0.05) -> None:
        """``train.py`` and its ``cfg.yaml`` are in the folder."""
        shutil.copy(FAKES / "reader_trainer.py", self.project / "train.py")
        (self.project / "cfg.yaml").write_text(CONFIG.format(steps=steps, save_steps=save_steps, step_time=step_time))

    def types(self, line: str, patience_s: float = PATIENCE_S) -> Done:
        """One line in a shell without a terminal, to its end."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=patience_s, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    @contextmanager
    def at_terminal(self) -> Iterator[Terminal]:
        """A terminal in the folder, with a shell in it."""
        with terminal((120, 40), self.project, self.env | {"TERM": "xterm-256color"}) as made:
            yield made

    def code_of(self, terminal: Terminal) -> int:
        """The exit code of what the terminal's shell runs, once that has ended."""
        until(lambda: terminal.tmux("display-message", "-p", "#{pane_current_command}").strip() == "sh", "the prompt")
        terminal.run("echo the code is $?.")
        answer = re.compile(r"^the code is (\d+)\.", re.MULTILINE)
        text = terminal.until(answer.search, "the exit code")
        return int(answer.findall(text)[-1])

    def keep(self, made: AbstractContextManager[T]) -> T:
        """What a context manager makes, until the reader is gone."""
        return self._kept.enter_context(made)

    @property
    def supervised(self) -> bool:
        """Whether a supervisor watches one of the runs."""
        return any(holder_pid(run.lock) is not None for run in self.runs())

    def clear(self) -> None:
        self._kept.close()
        super().clear()
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _left(self) -> list[int]:
        """What still runs with this home, such as the process that starts the runs of the queue."""
        mark = f"HOME={self.person}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found

    def trainer_pid(self, number: int = 1) -> int:
        """The process of this attempt that trains."""
        trainer = self.attempt(number).trainer
        assert trainer is not None
        return trainer.pid

    def highest_step(self, number: int = 1) -> int:
        """As the log of this attempt shows it."""
        return max((int(step) for step in re.findall(r"step (\d+)/", self.log(number))), default=0)


@contextmanager
def reader_at(root: Path) -> Iterator[Reader]:
    """A reader whose processes are ended and whose short folder is removed, whatever happens."""
    made = Reader(root)
    try:
        yield made
    finally:
        made.clear()
