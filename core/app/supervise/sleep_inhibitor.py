"""Keeps the machine from going to sleep while a trainer runs, through systemd-inhibit where it is there.

The lock is held by a program that ends with this supervisor; ``systemd-inhibit --list`` shows it. Where it cannot be
taken, the journal says why, once, and ``trainwatch check`` says what else helps.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from ...bound_process import bound
from ...model.ports.supervision import AttemptTarget

SETTLE_S = 3.0
"""A lock that is refused ends the program at once."""


class SleepInhibitor:
    """Follows the attempt, as sensors do. ``tell``: a sentence for the journal. ``booted``: exists if systemd runs."""

    def __init__(
        self,
        run: str,
        tell: Callable[[str], None],
        env: Mapping[str, str],
        *,
        booted: Path = Path("/run/systemd/system"),
        settle_s: float = SETTLE_S,
    ) -> None:
        self._run = run
        self._tell = tell
        self._env = dict(env)
        self._booted = booted
        self._settle_s = settle_s
        self._process: subprocess.Popen[bytes] | None = None
        self._told = False

    def start(self) -> None:
        """Nothing to do before there is a trainer."""

    def follow(self, target: AttemptTarget | None) -> None:
        """Take the lock when a trainer runs, and give it back when none does."""
        if target is None:
            self.stop()
        elif self._process is None or self._process.poll() is not None:
            self._take()

    def stop(self) -> None:
        """Give the lock back."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGTERM)  # with the program that it runs
                process.wait(timeout=2.0)

    def _take(self) -> None:
        program = shutil.which("systemd-inhibit", path=self._env.get("PATH"))
        if program is None or not self._booted.exists():
            return
        command = [
            program, "--what=sleep:idle", "--who=trainwatch", f"--why=training {self._run}", "--mode=block",
            "sleep", "infinity",
        ]  # fmt: skip
        import tempfile  # 0.3 MB, with random

        said = tempfile.TemporaryFile()  # noqa: SIM115  the thread closes it
        try:
            self._process = subprocess.Popen(
                bound(command, at_end=signal.SIGTERM, path=self._env.get("PATH")),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=self._env,
                start_new_session=True,  # without a terminal nobody is asked for a password
            )
        except OSError as error:
            said.close()
            self._refused(str(error))
            return
        threading.Thread(target=self._look, args=(self._process, said), name="sleep lock", daemon=True).start()

    def _look(self, process: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
        with said:
            try:
                process.wait(timeout=self._settle_s)
            except subprocess.TimeoutExpired:
                if not self._told:
                    self._told = True
                    self._tell("this machine does not go to sleep while the trainer runs (systemd-inhibit)")
                return
            said.seek(0)
            lines = said.read(4000).decode("utf-8", "replace").strip().splitlines()
        if process is self._process:
            self._refused(lines[-1] if lines else "it ended")

    def _refused(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._tell(f"this machine may go to sleep while the trainer runs: systemd-inhibit: {why}")
