"""Kill the supervisor or the runner at one of its calls and see what becomes of the run.

``python bench/kill_points.py [--points 300] [--seed 1] [--workers 2]``. A library that is compiled here and preloaded
(kill_points.c; needs ``cc`` and Linux) sends SIGKILL at the chosen call: open, write, rename, link, unlink, truncate,
mkdir, fsync, fork or exec of a file or process of the run. The output folder holds 300 checkpoints of the run. Each
point plays the same story: a new supervisor after an interruption, a crash, a stop, a resume. After the kill another
supervisor is started, and the story goes on to its end.

A survey without a kill lists the calls by process, phase and name; points are spread evenly over these. A point fails
if two trainers lived at once, if a trainer was not given the newest whole checkpoint that was there, if a checkpoint
was lost or written over, or if a process is left at the end. Prints a table by process, phase and call. Exit code 1 on
any failure.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from kill_points_trainer import is_whole, step_of  # noqa: E402

from trainwatch.core.model.observation import Command, Request  # noqa: E402
from trainwatch.core.store.control_client import ControlError, send  # noqa: E402
from trainwatch.core.store.journal import load_story  # noqa: E402
from trainwatch.core.store.run_directory import RunDirectory  # noqa: E402

CHECKPOINTS = 300
STEPS_A_SAVE = 10
REACHED = 0.75
"""Share of the calls of a kind that the next story makes, too: some depend on the time."""
ENDING_S = 3.0
"""A child of a killed process needs as long on a busy machine until Python has read who its parent is."""
SHOWN = 20
"""Points between two lines of progress."""
PATIENCE_S = 600.0
"""Longest wait for one stage of the story: with a load of 40 on two cores one took more than two minutes."""
SETTINGS = f"""
[run]
name = "job"
preset = "generic"
command = ["{sys.executable}", "-S", "{HERE}/kill_points_trainer.py", "--out", "{{output_dir}}", "--diary", "DIARY",
  "--fast-until", "{CHECKPOINTS * STEPS_A_SAVE}", "--resume", "{{resume}}"]
output_dir = "out"
[watch]
interval_s = 0.5
settle_s = 0.1
[restart]
max_restarts = 9
backoff_s = [0]
interrupt_grace_s = 5
gpu_clear_timeout_s = 1
[tmux]
enabled = false
"""


class Point(NamedTuple):
    """One kill: the ``number``-th call of this name in this phase of this process, ``when`` before or after it."""

    role: str
    phase: str
    call: str
    when: str
    number: int


class LateError(RuntimeError):
    """A stage of the story did not come in time."""


def until(look: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not look():
        if time.monotonic() > end:
            raise LateError(f"not within {PATIENCE_S:g} s: {what}")
        time.sleep(0.05)


class Place:
    """The folders of one worker: always at the same paths, because a run's files contain them."""

    def __init__(self, root: Path, library: Path) -> None:
        self.root, self.library = root, library
        self.project, self.home, self.diary, self.store = (root / n for n in ("project", "home", "diary", "store"))
        self.out = self.project / "out"
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "TRAINWATCH", "KP_"))}
        self.env |= {"TRAINWATCH_HOME": str(self.home), "TMUX_TMPDIR": str(root), "KP_MARK": str(root)}

    # --- what a person does

    def headless(self, kill: Point | None = None, log: Path | None = None) -> None:
        """Start a supervisor. ``kill``, ``log``: under the library."""
        env = dict(self.env)
        if kill is not None or log is not None:
            env |= {"LD_PRELOAD": str(self.library), "KP_ROOT": str(self.root), "KP_DONE": str(self.root / "killed")}
            env |= {} if kill is None else {"KP_POINT": " ".join(map(str, kill))}
            env |= {} if log is None else {"KP_LOG": str(log)}
        with (self.root / "supervisor.log").open("ab") as out:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-m", "trainwatch", "--headless", "--interval", "600"],
                cwd=self.project, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip

    @property
    def run(self) -> RunDirectory:
        return RunDirectory(next((self.home / "runs").iterdir()))

    def command(self, verb: str) -> None:
        request = Request(command=Command(t=0.0, verb=verb, by="bench"))  # type: ignore[arg-type]
        with contextlib.suppress(ControlError):
            send(self.run, request)

    def state(self) -> str:
        return load_story(self.run.journal).state

    # --- what can be seen

    def lines(self) -> list[dict[str, object]]:
        try:
            return [json.loads(line) for line in (self.diary / "diary.jsonl").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def saves(self) -> int:
        try:
            return (self.diary / "diary.jsonl").read_bytes().count(b'"saved"')
        except FileNotFoundError:
            return 0

    def killed(self) -> bool:
        return (self.root / "killed").exists()

    def processes(self) -> list[int]:
        """All processes of this place, without those that are dead already."""
        found = []
        mark = f"KP_MARK={self.root}\0".encode()
        for each in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if mark in (each / "environ").read_bytes() + b"\0":
                    found.append(int(each.name))
        return found

    def end_supervisor(self) -> None:
        """As `kill PID` does: the trainer, if there is one, goes on."""
        if self.supervisor is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.supervisor.terminate()
                self.supervisor.wait(PATIENCE_S)
            if self.supervisor.poll() is None:
                self.supervisor.kill()
                self.supervisor.wait()

    def clean(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.supervisor is not None:
            self.supervisor.wait()

    # --- the story

    def prepare(self) -> None:
        """A run with 300 checkpoints, interrupted: its supervisor was killed, then its trainer."""
        for folder in (self.project, self.diary):
            folder.mkdir(parents=True)
        settings = SETTINGS.replace("DIARY", str(self.diary))
        (self.project / "trainwatch.toml").write_text(settings)
        self.headless()
        until(lambda: self.saves() > CHECKPOINTS, f"{CHECKPOINTS} checkpoints")
        until(lambda: self.state() == "running", "a run")
        self.clean()
        for name in ("project", "home", "diary"):
            shutil.copytree(self.root / name, self.store / name, symlinks=True)

    def restore(self) -> None:
        for name in ("project", "home", "diary"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            shutil.copytree(self.store / name, self.root / name, symlinks=True)
        for name in ("killed", "supervisor.log"):
            (self.root / name).unlink(missing_ok=True)

    def play(self, kill: Point | None, log: Path | None = None) -> bool:
        """The story up to the stage in which the kill happens, and then two further checkpoints and a stop.

        Returns whether the kill happened.
        """
        self.headless(kill, log)
        for stage in (self.trains, self.crashes, self.stops, self.resumes, self.trains):
            stage()
            if self.killed():
                break
        if self.killed():
            self.resumes_if_stopped()
            self.trains()
        self.stops()
        self.end_supervisor()
        return self.killed()

    def _stand(self) -> None:
        """Another supervisor if the last one is dead, and a person who resumes what a person had stopped."""
        assert self.supervisor is not None
        if self.supervisor.poll() is None:
            return
        self.headless()
        if self.state() in {"stopped", "given_up"}:
            self.supervisor.wait(PATIENCE_S)
            self._resume_anew()

    def _resume_anew(self) -> None:
        resume = [sys.executable, "-m", "trainwatch", "resume", "job"]
        subprocess.run(resume, cwd=self.project, env=self.env, capture_output=True, check=False, timeout=PATIENCE_S)
        pid = self.run.lock and _holder(self.run)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)  # it runs detached; this bench watches one in the foreground
            until(lambda: _holder(self.run) is None, "the detached supervisor's end")
        self.headless()

    def _until(self, look: Callable[[], bool], what: str) -> None:
        def seen() -> bool:
            self._stand()
            return look()

        until(seen, what)

    def trains(self) -> None:
        """Two further checkpoints."""
        before = self.saves()
        self._until(lambda: self.saves() >= before + 2, "two checkpoints")

    def crashes(self) -> None:
        lives = self._lives()
        (self.diary / "crash").touch()
        self._until(lambda: self._lives() > lives, "another attempt after the crash")
        self.trains()

    def _lives(self) -> int:
        return sum("resume" in line for line in self.lines())

    def stops(self) -> None:
        def stopped() -> bool:
            assert self.supervisor is not None
            if self.state() == "stopped" and not self._trainers():
                return True
            if self.supervisor.poll() is not None:
                self.headless()
                time.sleep(0.3)
            self.command("stop")
            time.sleep(0.1)
            return False

        until(stopped, "the stop")

    def resumes(self) -> None:
        assert self.supervisor is not None
        lives = self._lives()
        if self.supervisor.poll() is None:
            self.command("resume")
        self._until(lambda: self._lives() > lives, "another attempt after the resume")

    def resumes_if_stopped(self) -> None:
        if self.state() == "stopped":
            self.resumes()

    def _trainers(self) -> list[int]:
        return [pid for pid in self.processes() if b"kill_points_trainer" in _command_line(pid)]

    # --- what became of it

    def failures(self) -> list[str]:
        """What went wrong, a sentence each."""
        found = []
        if (self.diary / "twice").exists():
            found.append("two trainers lived at once")
        lines = self.lines()
        starts = [line for line in lines if "resume" in line][1:]
        stale = [f"{line['resume']} instead of {line['newest']}" for line in starts if line["resume"] != line["newest"]]
        found += [f"stale resume: {each}" for each in stale]
        saved = {str(line["saved"]) for line in lines if "saved" in line}
        found += [f"lost: {path}" for path in sorted(saved) if not is_whole(Path(path))]
        found += [f"written over: {line['saved']}" for line in lines if line.get("over")]
        end = time.monotonic() + ENDING_S
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.1)
        found += [f"left: {pid} {_command_line(pid).decode(errors='replace')[:200]}" for pid in left]
        if len(saved) < CHECKPOINTS or any(step_of(Path(path)) % STEPS_A_SAVE for path in saved):
            found.append(f"{len(saved)} checkpoints only")
        return found


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def _holder(run: RunDirectory) -> int | None:
    from trainwatch.core.store.lock import holder_pid

    return holder_pid(run.lock)


# --- the points


def survey(place: Place) -> Counter[tuple[str, str, str]]:
    """How often each call is made in each phase, in a story without a kill."""
    log = place.root / "calls.log"
    place.restore()
    place.play(None, log)
    problems = place.failures()
    if problems:
        raise SystemExit("without any kill: " + "; ".join(problems))
    found: Counter[tuple[str, str, str]] = Counter()
    for line in log.read_text().splitlines():
        role, phase, call, number, *_ = line.split(" ")
        key = (role, phase, call)
        found[key] = max(found[key], int(number))
    log.unlink()
    place.clean()
    return found


def choose(calls: Counter[tuple[str, str, str]], seed: int) -> Iterator[Point]:
    """Points without end, spread over the kinds of calls; no point twice."""
    chosen = random.Random(seed)
    waiting = {}
    for (role, phase, call), count in sorted(calls.items()):
        whens = ("after",) if call == "exec" else ("before", "after")
        reached = max(1, int(count * REACHED))
        points = [Point(role, phase, call, when, n) for n in range(1, reached + 1) for when in whens]
        chosen.shuffle(points)
        waiting[role, phase, call] = points
    while waiting:
        for key in chosen.sample(sorted(waiting), len(waiting)):
            yield waiting[key].pop()
            if not waiting[key]:
                del waiting[key]


class Tally:
    """Points that were made, and what failed."""

    def __init__(self) -> None:
        self.made: Counter[tuple[str, str, str]] = Counter()
        self.missed = 0
        self.failed: list[tuple[Point, list[str]]] = []
        self._lock = threading.Lock()

    def add(self, point: Point, *, happened: bool, problems: list[str]) -> None:
        with self._lock:
            if happened:
                self.made[point[:3]] += 1
                if sum(self.made.values()) % SHOWN == 0:
                    print(f"{sum(self.made.values())} points, {len(self.failed)} failures", flush=True)
            else:
                self.missed += 1
            if problems:
                self.failed.append((point, problems))
                print(f"FAILED {' '.join(map(str, point))}: {'; '.join(problems)}", flush=True)

    def table(self) -> str:
        bad = Counter(point[:3] for point, _ in self.failed)
        keys = sorted(self.made.keys() | bad.keys())
        rows = [f"{key[0]:10} {key[1]:9} {key[2]:9} {self.made[key]:6} {bad[key]:8}" for key in keys]
        return "\n".join((f"{'process':10} {'phase':9} {'call':9} {'points':>6} {'failures':>8}", *rows))


def work(place: Place, points: Iterator[Point], wanted: int, tally: Tally, lock: threading.Lock) -> None:
    while True:
        with lock:
            point = next(points, None) if sum(tally.made.values()) < wanted else None
        if point is None:
            return
        place.restore()
        try:
            happened = place.play(point)
            problems = place.failures()
        except (LateError, OSError, subprocess.SubprocessError) as fault:
            happened, problems = place.killed(), [f"the run did not go on: {fault}", *place.failures()[:3]]
        finally:
            place.clean()
        if problems:
            keep = place.root.parent / f"failed-{'-'.join(map(str, point))}"
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(place.home, keep / "home", symlinks=True)
            shutil.copy(place.root / "supervisor.log", keep)
            shutil.copytree(place.diary, keep / "diary")
        tally.add(point, happened=happened, problems=problems)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=300, help="kills that happened (default 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="work here and keep what failed (default: a temporary folder)")
    args = parser.parse_args()
    begun = time.monotonic()
    root = args.folder or Path(tempfile.mkdtemp(prefix="tw-kill-"))
    root.mkdir(parents=True, exist_ok=True)
    library = root / "kill_points.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "kill_points.c"), "-ldl", "-lpthread"],
        check=True,
    )
    places = [Place(root / f"w{number}", library) for number in range(args.workers)]
    try:
        for place in places:
            place.prepare()
        calls = survey(places[0])
        print(f"{sum(calls.values())} calls of {len(calls)} kinds in one story without a kill", flush=True)
        tally, lock, points = Tally(), threading.Lock(), choose(calls, args.seed)
        with ThreadPoolExecutor(args.workers) as pool:
            for done in [pool.submit(work, place, points, args.points, tally, lock) for place in places]:
                done.result()
    finally:
        for place in places:
            place.clean()
    made = sum(tally.made.values())
    print(tally.table())
    print(
        f"{made} points, {len(tally.failed)} failures, {tally.missed} that were not reached; "
        f"{CHECKPOINTS} checkpoints and more in the folder; {time.monotonic() - begun:.0f} s"
    )
    if not tally.failed and args.folder is None:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print(f"kept: {root}")
    return 1 if tally.failed or made < args.points else 0


if __name__ == "__main__":
    sys.exit(main())
