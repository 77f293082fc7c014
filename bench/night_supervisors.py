"""The supervisors that bench/nights.py compares, each really run: one function for each, and the night that it gets."""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
import night_trainer

from trainwatch.core.act.evidence.capture import PAUSE_SHARE
from trainwatch.core.judge.hang.pauses import AGAIN
from trainwatch.core.model.decision import CaptureStacks, LookForLoop, Record
from trainwatch.core.model.fact import IncidentOpened, Note, StateChanged
from trainwatch.core.store.journal import read_journal

TRAINER = Path(night_trainer.__file__)
HANGS = frozenset({"deadlock", "deadlock_without_signals", "spin", "hung_loader", "child_deadlock"})
"""Kinds after which the process lives on without training."""
SILENT = frozenset({"nan", "nonfinite_later"})
"""Kinds after which it goes on with damaged weights."""

SETTINGS = """[run]
name = "night"
command = [{command}]
output_dir = "out"
[watch]
interval_s = 0.2
summary_s = 3600
settle_s = {settle_s}
[hang]
min_s = {min_s}
max_s = {max_s}
startup_s = {startup_s}
[restart]
backoff_s = [0, {ten_s}, {minute_s}, {ten_minutes_s}]
network_wait_s = [{half_minute_s}, {minute_s}, {five_minutes_s}, {ten_minutes_s}]
interrupt_grace_s = {interrupt_s}
[tmux]
enabled = false
"""
"""Only times: they are the defaults, divided by the scale. All else is left at its default."""


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """One night: a training with its faults. Times in seconds, already scaled."""

    name: str
    faults: tuple[tuple[int, str], ...]
    """(step, kind), in order."""
    steps: int
    step_s: float
    save_every: int
    scale: float
    """Seconds of a real night for each second of this one."""

    @property
    def ideal_s(self) -> float:
        return self.steps * self.step_s


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a night ended. ``wall_s`` None: it did not end before the limit. ``right``: the final weights."""

    supervisor: str
    night: str
    wall_s: float | None
    right: bool
    twice: bool
    lives: int
    repeated: int
    gaps: dict[int, "Gap"]
    told: dict[int, str] = {}
    """Number of a fault → what trainwatch told after it, before the next one."""
    lived_on: frozenset[int] = frozenset()
    """Numbers of the faults after which no process was started before the next one."""
    held: tuple[tuple[int, str], ...] = ()
    """(number of the last fault, reason) of each time that trainwatch left the run to a person."""
    folder: str = ""


class Gap(NamedTuple):
    """Time without training after a fault, in seconds: until the process was ended, and from then to the next start.

    ``seen_s``: part of the first in which stacks were taken, without the pause between them: the start of processes,
    which takes as long in a long night. ``planned_s``: part of the second that was waited on purpose. ``repeated``:
    steps that the next process made again.
    """

    dead_s: float
    seen_s: float
    start_s: float
    planned_s: float
    repeated: int


class Place:
    """The folder of one night under one supervisor."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.root = Path(tempfile.mkdtemp(prefix="tw-night-"))
        self.out = self.root / "out"
        self.log = self.root / "log.txt"
        self.ledger = night_trainer.Ledger(self.root / "ledger")
        schedule = [{"step": step, "kind": kind} for step, kind in night.faults]
        (self.root / "faults.json").write_bytes(msgspec.json.encode(schedule))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "TRAINWATCH"))}
        self.env = inherited | {"TRAINWATCH_HOME": str(self.root / "home"), "TMUX_TMPDIR": str(self.root)}
        self.held: list[float] = []

    def command(self, *resume: str) -> list[str]:
        """The trainer's command."""
        night = self.night
        return [
            sys.executable, str(TRAINER), "--output-dir", str(self.out), "--ledger", str(self.ledger.folder),
            "--faults", str(self.root / "faults.json"), "--steps", str(night.steps), "--step-s", str(night.step_s),
            "--save-every", str(night.save_every), "--outage-s", str(120 / night.scale),
            "--slow-save-s", str(240 / night.scale), "--stall-s", str(220 / night.scale), *resume,
        ]  # fmt: skip

    def spawn(self, command: list[str]) -> "subprocess.Popen[bytes]":
        """Start a process in a session of its own, with its output in the log."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def machine(self, over: threading.Event) -> None:
        """Make the output folder read-only at each such fault, until the next save and a minute (scaled) are over."""
        done = set[int]()
        while not over.wait(0.05):
            for number, kind, _ in self.ledger.faults():
                if kind == "readonly_folder" and number not in done:
                    done.add(number)
                    for words in (("--bind", self.out, self.out), ("-o", "remount,ro,bind", self.out)):
                        subprocess.run(["mount", *words], check=True)
                    over.wait(self.night.save_every * self.night.step_s + 60 / self.night.scale)
                    subprocess.run(["umount", "--lazy", self.out], check=True)

    def clear(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def finished(place: Place) -> bool:
    """Whether the training wrote its last checkpoint."""
    return night_trainer.is_usable(place.out / "final.safetensors")


def perfect(place: Place, limit_s: float) -> bool:
    """Knows of each fault at once, kills at once, restarts at once from the newest usable checkpoint."""
    until, handled = time.monotonic() + limit_s, set[int]()
    while time.monotonic() < until:
        usable = [path for path in night_trainer.newest_first(place.out) if night_trainer.is_usable(path)]
        trainer = place.spawn(place.command("--resume", str(usable[0]) if usable else "none"))
        while trainer.poll() is None and time.monotonic() < until:
            new = {number: kind for number, kind, _ in place.ledger.faults() if number not in handled}
            handled |= set(new)
            if HANGS.union(SILENT).intersection(new.values()):
                break
            time.sleep(0.005)
        code = trainer.poll()
        end(trainer)
        _end_trainers(place)
        if code == 0 and finished(place):
            return True
        outage_s = 120 / place.night.scale
        for _, kind, since in place.ledger.faults():
            if kind == "network_at_start":
                time.sleep(max(0.0, since + outage_s - time.time()))
    return False


def until_loop(place: Place, limit_s: float) -> bool:
    """``until train --resume newest; do sleep 1; done``."""
    return _loop(place, limit_s, silence_s=None)


def watchdog(place: Place, limit_s: float) -> bool:
    """The same loop, and whatever printed nothing for 30 minutes is killed."""
    return _loop(place, limit_s, silence_s=1800 / place.night.scale)


def _loop(place: Place, limit_s: float, *, silence_s: float | None) -> bool:
    patience = Patience(place, limit_s)
    while not patience.is_over():
        trainer = place.spawn(place.command("--resume", "newest"))
        size, since = -1, time.monotonic()
        while trainer.poll() is None and not patience.is_over():
            time.sleep(0.02)
            if (now := place.log.stat().st_size) != size:
                size, since = now, time.monotonic()
            elif silence_s is not None and time.monotonic() - since > silence_s:
                break
        code = trainer.poll()
        end(trainer)
        if code == 0:
            return True
        time.sleep(1 / place.night.scale)
    return False


def torchrun(place: Place, limit_s: float) -> bool:
    """``torchrun --max-restarts``, the restart that PyTorch brings; the trainer takes the newest file by itself."""
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1",
             "--max-restarts", "100", "--no-python"]  # fmt: skip
    return _wait(place, place.spawn([*words, *place.command("--resume", "newest")]), limit_s)


def trainwatch(place: Place, limit_s: float) -> bool:
    """``trainwatch --headless`` with its default policy."""
    scale = place.night.scale
    settings = SETTINGS.format(
        command=", ".join(f"'{word}'" for word in place.command("--resume", "{resume}")),
        settle_s=1 / scale, min_s=90 / scale, max_s=1800 / scale,
        startup_s=1200 / scale, ten_s=10 / scale, half_minute_s=30 / scale, minute_s=60 / scale,
        five_minutes_s=300 / scale, ten_minutes_s=600 / scale, interrupt_s=20 / scale,
    )  # fmt: skip
    (place.root / "trainwatch.toml").write_text(settings)
    program, patience = [sys.executable, "-m", "trainwatch"], Patience(place, limit_s)
    ended = _wait(place, place.spawn([*program, "--headless"]), limit_s)
    while not ended and _state(place) in OVER and len(place.held) <= len(place.night.faults):
        place.held.append(time.time())  # a person comes, and lets it go on
        place.spawn([*program, "resume", "--yes"]).wait()
        begun = time.monotonic()
        while (_state(place) in OVER and time.monotonic() < begun + 10) or _state(place) not in OVER:
            if patience.is_over():
                place.spawn([*program, "kill", "--yes"]).wait()
                _end_trainers(place)
                return False
            time.sleep(0.2)
        ended = _state(place) == "finished"
    return ended


OVER = frozenset({"finished", "ended_early", "given_up", "stopped"})


def _state(place: Place) -> str:
    return next((r.fact.state for r in reversed(records_of(place)) if isinstance(r.fact, StateChanged)), "")


def _wait(place: Place, supervisor: "subprocess.Popen[bytes]", limit_s: float) -> bool:
    patience = Patience(place, limit_s)
    try:
        while supervisor.poll() is None and not patience.is_over():
            time.sleep(0.05)
        return supervisor.poll() == 0
    finally:
        end(supervisor)
        _end_trainers(place)


class Patience:
    """A night is lost after ``limit_s``, or after two hours (scaled) without a new furthest step."""

    def __init__(self, place: Place, limit_s: float) -> None:
        self._place = place
        self._until = time.monotonic() + limit_s
        self._furthest, self._since = 0, time.monotonic()

    def is_over(self) -> bool:
        furthest = max((last for _, _, last in self._place.ledger.lives()), default=0)
        now = time.monotonic()
        if furthest > self._furthest:
            self._furthest, self._since = furthest, now
        return now > self._until or now - self._since > 7200 / self._place.night.scale


def _end_trainers(place: Place) -> None:
    """Kill what a supervisor left running: the processes that the ledger names."""
    for path in place.ledger.folder.glob("life-*"):
        pid = int(path.name.split("-")[2])
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if str(place.ledger.folder).encode() in words:
                os.kill(pid, signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue


SUPERVISORS: dict[str, Callable[[Place, float], bool]] = {
    "perfect": perfect,
    "trainwatch": trainwatch,
    "until loop": until_loop,
    "watchdog 30 min": watchdog,
    "torchrun": torchrun,
}


def run(name: str, night: Night, expected: bytes, limit_s: float, *, keep: bool) -> Result:
    """One night under one supervisor."""
    place, over = Place(night), threading.Event()
    begun = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(place.machine, over)
        ended = SUPERVISORS[name](place, limit_s)
        wall_s = time.monotonic() - begun
        over.set()
    lives = place.ledger.lives()
    final = place.out / "final.safetensors"
    result = Result(
        supervisor=name,
        night=night.name,
        wall_s=wall_s if ended else None,
        right=final.exists() and final.read_bytes() == expected,
        twice=(place.ledger.folder / "twice").exists(),
        lives=len(lives),
        repeated=sum(last - first for _, first, last in lives) - night.steps,
        gaps=gaps(place, lives),
        told={number: " | ".join(words) for number, words in after_faults(place, told(place))},
        lived_on=frozenset(n for n, begun in after_faults(place, [(began, "") for began, _, _ in lives]) if not begun),
        held=tuple((n, words[-1]) for n, words in after_faults(place, holds(place)) if words),
        folder=str(place.root),
    )
    if not keep:
        place.clear()
    return result


def told(place: Place) -> list[tuple[float, str]]:
    """(wall time, ``KIND CLASS REASON`` or sentence) of incidents, notes and states."""
    found = []
    for record in records_of(place):
        match record.fact:
            case IncidentOpened(incident=incident):
                found.append((record.wall, f"{incident.kind} {incident.class_} {incident.reason}"))
            case Note(text=text) | StateChanged(reason=text):
                found.append((record.wall, text))
    return found


def holds(place: Place) -> list[tuple[float, str]]:
    """(wall time, reason) of each time that the run was left to a person."""
    facts = [(record.wall, record.fact) for record in records_of(place)]
    states = [(wall, f"{fact.state} {fact.reason}") for wall, fact in facts if isinstance(fact, StateChanged)]
    return [max(state for state in states if state[0] <= wall) for wall in place.held]


def after_faults(place: Place, events: Sequence[tuple[float, str]]) -> list[tuple[int, list[str]]]:
    """Number of each fault → what happened after it and before the next one."""
    faults = sorted((at, number) for number, _, at in place.ledger.faults())
    ends = [at for at, _ in faults[1:]] + [math.inf]
    spans = zip(faults, ends, strict=True)
    return [(number, [text for wall, text in events if at < wall < until]) for (at, number), until in spans]


def records_of(place: Place) -> list[Record]:
    journals = list((place.root / "home").glob("runs/*/journal.jsonl"))
    return list(read_journal(journals[0])) if journals else []


def gaps(place: Place, lives: list[tuple[float, int, int]]) -> dict[int, Gap]:
    """The time without training after each fault that ended a process.

    The moment at which the process was ended is known from trainwatch's journal; without one it is that of the fault.
    """
    records = records_of(place)
    changes = [(record.wall, record.fact.state) for record in records if isinstance(record.fact, StateChanged)]
    stacks = stack_times(records, 90.0 / place.night.scale)
    found = {}
    for number, kind, at in place.ledger.faults():
        start = next((began for began, _, _ in lives if began > at), None)
        if start is None or kind == "slow_save":
            continue
        ended = [wall for wall, state in changes if at < wall < start and state in {"cleaning", "backing_off"}]
        dead = min(ended, default=at)
        waits = [wall for wall, state in changes if at < wall < start and state == "backing_off"]
        before = next((last for began, _, last in reversed(lives) if began <= at), 0)
        after = next((first for began, first, last in lives if began > at and last > 0), before)
        repeated = max(0, before - after)
        found[number] = Gap(
            dead_s=max(0.0, dead - at),
            seen_s=sum(took_s for wall, took_s in stacks if at < wall < dead),
            start_s=start - dead,
            planned_s=start - min(waits) if waits else 0.0,
            repeated=repeated,
        )
    return found


def stack_times(records: Sequence[Record], min_s: float) -> list[tuple[float, float]]:
    """(wall time, seconds) of each time that stacks were taken, less the pause that depends on ``hang.min_s``."""
    pauses_s = {CaptureStacks: PAUSE_SHARE * min_s, LookForLoop: AGAIN * min_s}
    begun: dict[int, tuple[float, float]] = {}
    found = []
    for record in records:
        if isinstance(record.decision, CaptureStacks | LookForLoop):
            begun[record.decision.id] = record.wall, pauses_s[type(record.decision)]
        elif record.outcome is not None and record.outcome.decision in begun:
            wall, pause_s = begun[record.outcome.decision]
            found.append((record.wall, max(0.0, record.wall - wall - pause_s)))
    return found
