"""One user's machine for end-to-end tests: a project folder, a TRAINWATCH_HOME, a tmux server; real processes only.

Everything that was started below its home is found by the files that trainwatch itself writes, and ended by
pid when the test is over.
"""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from tests.fakes.tmux_place import end_server
from trainwatch.cli import main
from trainwatch.core import processes
from trainwatch.core.act.launch.launching import find_attempt, settle_launch
from trainwatch.core.act.stopping import members
from trainwatch.core.model.decision import Decision, Record
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.story import RunStory
from trainwatch.core.processes import is_alive
from trainwatch.core.store.journal import load_story, read_journal
from trainwatch.core.store.lock import holder_pid
from trainwatch.core.store.run_directory import RunDirectory

T = TypeVar("T")
PATIENCE_S = 100.0
TRAINER = Path(__file__).with_name("e2e_trainer.py")
SWIFT: dict[str, dict[str, Any]] = {
    "watch": {"interval_s": 0.2, "summary_s": 1, "settle_s": 0.1, "gpu_timeout_s": 20},
    "hang": {"min_s": 60, "max_s": 90, "startup_s": 90},
    "restart": {
        "max_restarts": 3,
        "backoff_s": [0, 0.2],
        "interrupt_grace_s": 60,
        "gpu_clear_timeout_s": 1,
    },
    "tmux": {"enabled": False},
}
"""Settings of a run whose steps take hundredths of a second.

On a busy machine a step, a save, the answer to a signal or the readings of a GPU may take seconds: no hang is seen in
that, a trainer that ends by itself is not killed meanwhile, and the GPUs do not become unknown.
"""
HASTY = {
    "hang": {"min_s": 4, "max_s": 20, "startup_s": 60},
    "restart": {"interrupt_grace_s": 1},
}
"""For a trainer that really hangs and ignores signals: it is noticed and killed within seconds."""
HASTY_DRIVER = {"watch": {"gpu_timeout_s": 0.5}}
"""For a driver that really hangs."""


class Done(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return strict_json(self.out)


def strict_json(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in {text[:200]}")

    return json.loads(text, parse_constant=refuse)


def in_this_process(words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Done:
    """Run a verb here: to start a process costs more than all that most verbs do. It must not supervise."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for name in os.environ.keys() - env.keys():
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        code = main(words)
    return Done(code, out.getvalue(), err.getvalue())


def stand_in_python(folder: Path) -> str:
    """An interpreter for scripts that are not run: it finds all packages. To ask a real one takes half of a dry run."""
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    python.write_text("#!/bin/sh\necho '[]'\n")
    python.chmod(0o755)
    return str(python)


def until(look: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S) -> T:
    """The first true result of ``look``. Looks take no more than a quarter of the time."""
    end = time.monotonic() + patience_s
    while True:
        begun = time.monotonic()
        if result := look():
            return result
        if (now := time.monotonic()) > end:
            pytest.fail(f"not within {patience_s:g} s: {what}", pytrace=True)
        time.sleep(min(0.2, max(0.01, 3 * (now - begun))))


def own_runtime(folder: Path) -> dict[str, str]:
    """Variables that keep sockets, shared GPU readings and what no full disk takes in ``folder``, apart from others."""
    place, cache = folder / "run", folder / "cache"
    place.mkdir(mode=0o700)
    cache.mkdir(mode=0o700)
    return {"XDG_RUNTIME_DIR": str(place), "XDG_CACHE_HOME": str(cache)}


def lives(pid: int) -> bool:
    """Whether this pid runs and is no zombie."""
    process = processes.read_process(pid)
    return process is not None and process.state not in processes.DEAD_STATES


def command_line(pid: int) -> bytes:
    """Its words, each ended by a zero byte; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Watcher:
    """A trainwatch process in the foreground of the test, such as ``--headless``."""

    def __init__(self, process: "subprocess.Popen[bytes]", out: Path) -> None:
        self.process = process
        self._out = out

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        return self._out.read_text(errors="replace")

    def ends(self, patience_s: float = PATIENCE_S) -> int:
        """Wait until it ends. Returns its exit code; fails the test after ``patience_s``."""
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still runs after {patience_s:g} s; it said:\n{self.said[-3000:]}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def murder(self) -> None:
        """SIGKILL, as an OOM killer would."""
        self.process.kill()
        self.process.wait(PATIENCE_S)


class World:
    """See the module's docstring."""

    def __init__(self, root: Path) -> None:
        self.short = Path(tempfile.mkdtemp(prefix="tw-e2e-"))  # tmux sockets have short paths
        self.project = root / "project"
        self.home = root / "home"
        self.project.mkdir()
        self.out = self.project / "out"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "COV_", "TRAINWATCH"))}
        self.env |= {"TRAINWATCH_HOME": str(self.home), "TMUX_TMPDIR": str(self.short), "PYTHONUNBUFFERED": "1"}
        self.env |= own_runtime(self.short)
        self.within: tuple[str, ...] = ()
        """What every command is run by, for example ``nsenter`` and its options."""
        self._watchers: list[Watcher] = []

    # -- what a user does

    def write(self, *trainer: str, more: Mapping[str, Mapping[str, Any]] | None = None, **run: Any) -> None:
        """Write a trainwatch.toml whose trainer is e2e_trainer.py with these arguments."""
        command = [sys.executable, str(TRAINER), "--output-dir", "{output_dir}", "--resume", "{resume}", *trainer]
        sections: dict[str, dict[str, Any]] = {
            "run": {"name": "job", "command": command, "output_dir": "out", "preset": "generic"} | run
        }
        for name in {**SWIFT, **(more or {})}:
            sections[name] = {**SWIFT.get(name, {}), **(more or {}).get(name, {})}
        text = "".join(
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
            for name, section in sections.items()
        )
        (self.project / "trainwatch.toml").write_text(text)

    def do(
        self,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        text: str = "",
        patience_s: float = PATIENCE_S,
    ) -> Done:
        """Run a verb to its end."""
        done = subprocess.run(
            [*self.within, sys.executable, "-m", "trainwatch", *words],
            cwd=cwd or self.project, env=self.env | dict(env or {}), input=text.encode(), capture_output=True,
            timeout=patience_s, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def asks(self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
        """Run a verb that looks, sends a command or refuses in this process."""
        return in_this_process(words, cwd or self.project, self.env | dict(env or {}))

    def begin(self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Watcher:
        """Start a verb and come back at once."""
        said = self.short / f"said-{len(self._watchers)}.txt"
        with said.open("wb") as file:
            process = subprocess.Popen(
                [*self.within, sys.executable, "-m", "trainwatch", *words],
                cwd=cwd or self.project, env=self.env | dict(env or {}),
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        watcher = Watcher(process, said)
        self._watchers.append(watcher)
        return watcher

    def headless(self, *words: str, env: Mapping[str, str] | None = None) -> Watcher:
        """``trainwatch --headless`` in the project."""
        return self.begin("--headless", *words, env=env)

    # -- what can be seen from outside

    @property
    def run(self) -> RunDirectory:
        """The only run there is."""
        (run,) = self.runs()
        return run

    def runs(self) -> list[RunDirectory]:
        folder = self.home / "runs"
        return [RunDirectory(p) for p in sorted(folder.iterdir()) if p.name[0] != "."] if folder.is_dir() else []

    def records(self) -> list[Record]:
        runs = self.runs()
        return list(read_journal(runs[0].journal)) if runs else []

    def story(self) -> RunStory:
        runs = self.runs()
        return load_story(runs[0].journal) if runs else RunStory()

    def decisions(self, kind: type[Decision]) -> list[Any]:
        return [r.decision for r in self.records() if isinstance(r.decision, kind)]

    def in_state(self, state: str, patience_s: float = PATIENCE_S) -> RunStory:
        """Wait until the run is in this state."""

        def look() -> RunStory | None:
            story = self.story()
            return story if story.state == state else None

        return until(look, f"state {state}, it is: {self.story().state} ({self.story().state_reason})", patience_s)

    def status(self) -> Any:
        """``status --json``."""
        done = self.asks("status", "--json")
        assert done.code == 0, done.err
        return done.json

    def attempt(self, number: int = 1) -> AttemptTarget:
        """Wait until this attempt was launched."""

        def look() -> AttemptTarget | None:
            runs = self.runs()
            folders = sorted(runs[0].attempts.glob(f"{number:04d}*"), reverse=True) if runs else []
            return next((t for t in map(find_attempt, folders) if t is not None), None)

        return until(look, f"attempt {number} launched")

    def log(self, number: int = 1) -> str:
        target = self.attempt(number)
        assert target.log is not None
        return Path(target.log).read_text(errors="replace")

    def steps(self, number: int = 1) -> list[int]:
        """The steps that the attempt's log shows, in order."""
        return [int(step) for step in re.findall(r"\| (\d+)/\d+ \[", self.log(number))]

    def at_step(self, step: int, number: int = 1) -> None:
        """Wait until the log shows this step or a later one."""
        until(lambda: (self.steps(number) or [0])[-1] >= step, f"step {step} of attempt {number}")

    def lives(self) -> list[int]:
        """Pids of all trainers ever started; asserts that never two of them lived together."""
        assert not (self.out / "twice.txt").exists(), "two trainers at the same time"
        path = self.out / "lives.txt"
        return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []

    def alive(self, number: int = 1) -> bool:
        return is_alive(self.attempt(number).trainer)

    # -- the end

    def clear(self) -> None:
        """End everything that was started here; what it said is shown with a failure."""
        for watcher in self._watchers:
            sys.stdout.write(f"--- {watcher.process.args!r}\n{watcher.said[-6000:]}\n")
            if watcher.process.poll() is None:
                watcher.process.kill()
            watcher.process.wait(PATIENCE_S)
        for run in self.runs():
            if (pid := holder_pid(run.lock)) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        until(lambda: not any(holder_pid(run.lock) for run in self.runs()), "the end of the supervisors")
        for run in self.runs():
            for folder in run.attempts.iterdir():
                _end(folder)
        for socket in self.short.glob("tmux-*/*"):
            end_server("-S", str(socket), env=self.env)
        shutil.rmtree(self.short, ignore_errors=True)


def _end(folder: Path) -> None:
    target = settle_launch(folder)  # its supervisor may have been killed while it launched
    if target is None:
        return
    for process in members(target):
        processes.send_signal(process.key, signal.SIGKILL)
    if target.runner is not None:
        processes.send_signal((target.runner.pid, target.runner.start_ticks), signal.SIGKILL)


@contextlib.contextmanager
def world_at(root: Path) -> Iterator[World]:
    """A world that is cleared away whatever happens."""
    made = World(root)
    try:
        yield made
    finally:
        made.clear()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_at(tmp_path) as made:
        yield made
