"""The working folder of one run of a row, the environment of its processes, and the ledger of its steps."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from .faults import Fault
from .row import Row

HERE = Path(__file__).resolve().parent
OFFLINE = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}


class NotPrepared(Exception):  # noqa: N818  named after the condition
    """The command that makes a row's data failed. The message is its last lines."""


class Life(NamedTuple):
    """One process that trained: when it began (epoch seconds), its pid, its rank, the times of its steps."""

    begun: float
    pid: int
    rank: int
    times: tuple[float, ...]


class Place:
    """A fresh folder ``root``: ``work`` is the trainer's working folder, ``home`` trainwatch's state."""

    def __init__(self, row: Row, fault: Fault, root: Path, environment: Path, checkout: Path | None = None) -> None:
        self.row, self.fault, self.root = row, fault, root
        self.work, self.ledger = root / "work", root / "ledger"
        self._environment, self._checkout = environment, checkout
        shutil.rmtree(root, ignore_errors=True)
        for folder in (self.work, self.ledger, root / "home", root / "tmux"):
            folder.mkdir(parents=True)
        for name, text in row.files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((HERE / "scripts" / text[1:]).read_text() if text.startswith("@") else text)

    def words(self, command: tuple[str, ...], name: str = "one") -> list[str]:
        """The words of a command; ``name``: of the output folder, for rows that have several."""
        return [word.replace("{checkout}", str(self._checkout)).replace("{name}", name) for word in command]

    def env(self, *, counted: bool = True) -> dict[str, str]:
        """The environment of an activated virtual environment, with the injected code if ``counted``."""
        dropped = ("TMUX", "TRAINWATCH", "PYTHON", "PIP_", "VIRTUAL_ENV")
        env = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
        row = self.row
        env |= OFFLINE | row.env
        env["PATH"] = f"{self._environment / 'bin'}:{env['PATH']}"
        env["VIRTUAL_ENV"] = str(self._environment)
        env["TRAINWATCH_HOME"] = str(self.root / "home")
        env["TMUX_TMPDIR"] = str(self.root / "tmux")
        if counted:
            env["PYTHONPATH"] = str(HERE / "injected")
            env["GALLERY_LEDGER"] = str(self.ledger)
            env["GALLERY_HOOK"] = row.hook
            env["GALLERY_STEP_S"] = str(row.step_s)
            env["GALLERY_TORN"] = str(self.work / row.torn)
            if self.fault.kind and not self.row.ends:
                step = row.at * row.calls_per_step
                env["GALLERY_FAULT"] = f"{self.fault.kind}:{step}:{self.fault.rank}"
        return env

    def prepare(self) -> None:
        """Make the row's data, kept beside the runs so that each row makes it once."""
        if not self.row.prepare:
            return
        done = subprocess.run(
            self.words(self.row.prepare), cwd=self.work, env=self.env(counted=False),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise NotPrepared("; ".join((done.stderr or done.stdout).strip().splitlines()[-3:]))

    def lives(self, rank: int = 0) -> list[Life]:
        """The processes of this rank that trained, oldest first."""
        found = []
        for path in self.ledger.glob("*-*-*"):
            begun, pid, its_rank = path.name.split("-")
            times = tuple(float(line) for line in path.read_text().splitlines())
            found.append(Life(int(begun) / 1e9, int(pid), int(its_rank), times[:: self.row.calls_per_step]))
        return sorted(life for life in found if life.rank == rank)

    def fault_time(self) -> float | None:
        """When the fault was made, epoch seconds."""
        mark = self.ledger / "fault"
        return float(mark.read_text().splitlines()[0]) if mark.exists() else None

    def fault_words(self) -> str:
        mark = self.ledger / "fault"
        return " ".join(mark.read_text().splitlines()[1:]) if mark.exists() else ""

    def newest(self, pattern: str) -> Path | None:
        found = [path for path in self.work.glob(pattern) if path.exists()]
        return max(found, key=lambda path: path.stat().st_mtime, default=None)
