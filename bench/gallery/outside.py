"""Rows with ``ends``: a fault from outside after the third save, and what became of the run and of a neighbour's files.

The neighbour is a second copy of the same training that a person starts by hand in the same working folder, with
another output folder. It has a group of its own, so that each file in its folder says who made it (needs root).
"""

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .place import Place
from .supervised import Supervised, resume_said, supervise
from .verdicts import Result, facts_named, hang_of

ENDS = {
    "finished": "it trains to its end",
    "resumed": "its second life goes on from the newest save, and trains to its end",
    "kept": "what the first life saved is still there at the end, whether the run is held or began anew",
    "told": "NaN is said, and the run goes on from an older save or is held",
}
SAVES, SETTLE_S = 3, 1.0
SIGNALS = {"kill": signal.SIGKILL, "neighbour": signal.SIGKILL, "deadlock": signal.SIGUSR2, "nan": signal.SIGUSR1}
LEAST_BYTES = 200
"""Smaller files may be equal by chance."""
GROUP = 54321
NEIGHBOUR = "two"


class Outside:
    """Watches one run from outside, and makes its fault."""

    def __init__(self, place: Place) -> None:
        self.place, self.row, self.fault = place, place.row, place.fault
        self.saves: dict[tuple[str, int], float] = {}
        self.saved: dict[str, str] = {}
        """Path → hash of the files of the saves that were there at the fault."""
        self.said: list[str] = []
        self.touched: set[str] = set()
        self.neighbour: subprocess.Popen[bytes] | None = None

    def run(self, limit_s: float) -> Supervised:
        self.said.append(resume_said(self.place, before=True))
        try:
            done = supervise(self.place, limit_s, config=False, meanwhile=self.look)
        finally:
            if self.neighbour is not None:
                os.killpg(self.neighbour.pid, signal.SIGKILL)
                self.neighbour.wait()
        self.said.append(resume_said(self.place, before=False))
        return done

    def look(self) -> None:
        if self.fault.name == "neighbour":
            if self.neighbour is None and any(self.trainers()):
                self.neighbour = self.start_neighbour()
            self.touched |= {f"locked {path}" for path in self.locked()}
        now = time.time()
        for path in self.files("one"):
            with contextlib.suppress(FileNotFoundError):
                self.saves.setdefault((str(path), 0 if path.is_dir() else path.stat().st_mtime_ns), now)
        third = sorted(self.saves.values())[SAVES - 1 : SAVES]
        alone = self.fault.name == "neighbour" and not self.files(NEIGHBOUR)
        if self.saved or not third or now < third[0] + SETTLE_S or alone:
            return
        self.said.append(resume_said(self.place, before=False))
        if (sent := SIGNALS.get(self.fault.name)) is None:
            self.saved["none"] = ""
            return
        self.saved = {str(path): _hash(path) for path in self.files("one")}
        (self.place.ledger / "fault").write_text(f"{time.time()}\n")
        for pid in self.trainers():
            os.kill(pid, sent)

    def start_neighbour(self) -> "subprocess.Popen[bytes]":
        words = self.place.words(self.row.command, NEIGHBOUR)
        if "{resume}" in words:
            del words[words.index("{resume}") - 1 : words.index("{resume}") + 1]
        with (self.place.root / "neighbour.log").open("wb") as log:
            return subprocess.Popen(
                words, cwd=self.place.work, env=self.place.env(counted=False), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, group=GROUP,
            )  # fmt: skip

    def trainers(self) -> Iterator[int]:
        """The processes of the run that have the command's own words."""
        wanted = f"GALLERY_LEDGER={self.place.ledger}".encode()
        words = [word.encode() for word in self.place.words(self.row.command)[1:] if word != "{resume}"]
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                ours = wanted in (folder / "environ").read_bytes().split(b"\0")
                given = (folder / "cmdline").read_bytes().split(b"\0")[1:-1]
            except OSError:
                continue
            if ours and given and given == words[: len(given)] and len(given) >= len(words) - 1:
                yield int(folder.name)

    def files(self, name: str) -> list[Path]:
        """The main file of each save of this copy; of a save that is a folder all that is in it."""
        found = [Path(path) for path in self.place.work.glob(self.row.checkpoints.replace("{name}", name))]
        return [path for path in found if path.is_file() or path.is_dir()]

    def folder(self, name: str) -> Path:
        return self.place.work / self.row.output_dir.replace("{name}", name)

    def locked(self) -> Iterator[str]:
        """Files of the neighbour's folder that a process outside its session has locked."""
        if self.neighbour is None:
            return
        inodes = {stat.st_ino: path for path, stat in _below(self.folder(NEIGHBOUR))}
        for line in Path("/proc/locks").read_text().splitlines():
            words = [word for word in line.split() if word != "->"]
            path = inodes.get(int(words[5].rpartition(":")[2]))
            try:
                foreign = path is not None and os.getsid(int(words[4])) != self.neighbour.pid
            except OSError:
                continue
            if foreign and path is not None:
                yield path.name

    def foreign(self, records: list[dict[str, Any]]) -> set[str]:
        """What was done to the neighbour's files by anybody but itself."""
        folder, root = self.folder(NEIGHBOUR), self.place.root
        if self.neighbour is None or not folder.exists():
            return set()
        touched = set(self.touched)
        below = [(folder, folder.lstat()), *_below(folder)]
        touched |= {f"made {path.relative_to(root)}" for path, stat in below if stat.st_gid != GROUP}
        touched |= {f"linked {path.relative_to(root)}" for path, stat in below if path.is_file() and stat.st_nlink > 1}
        theirs = {_hash(path) for path in self.files(NEIGHBOUR) if path.stat().st_size > LEAST_BYTES}
        elsewhere = [path for path, _ in _below(root) if path != folder and folder not in path.parents]
        touched |= {f"copied to {path.relative_to(root)}" for path in elsewhere if _hash(path) in theirs}
        for name, key, deed in (
            ("attempt_started", "resume_from", "resumed from"), ("output_known", "folder", "taken for the run's:"),
        ):  # fmt: skip
            places = [self.place.work / str(fact.get(key)) for fact in facts_named(records, name) if fact.get(key)]
            touched |= {f"{deed} {p}" for p in places if p.resolve() == folder or folder in p.resolve().parents}
        seen = [Path(fact["checkpoint"]["path"]) for fact in facts_named(records, "checkpoint")]
        if any(folder in path.parents for path in seen):
            touched.add("its checkpoints judged")
        return touched

    def result(self, done: Supervised, version: str) -> Result:
        row, fault, records = self.row, self.fault, done.records
        state, expected = str(done.status.get("state", "")), row.ends[fault.name]
        lives = facts_named(records, "attempt_started")
        number = self.goes_on(lives)
        hang = hang_of(self.place, records)
        kept = set(self.saved.values()) <= {_hash(path) for path, _ in _below(self.place.root)}
        told = any("nan" in str(fact["incident"]).lower() for fact in facts_named(records, "incident_opened"))
        ended = {
            "finished": state == "finished",
            "resumed": state == "finished" and number is not None and number >= SAVES * row.save_every,
            "kept": kept and state in {"finished", "given_up", "stopped"},
            "told": told,
        }[expected]
        if fault.hangs:
            ended &= hang is not None
        foreign = sorted(self.foreign(records))
        wrong = [will for will in self.said if will in ({"yes", "self"} if row.resume == "no" else {"no"})]
        why = []
        if not ended:
            reason = done.status.get("reason") or done.output.strip()[-300:]
            why.append(
                f"expected: {ENDS[expected]}. Seen: {state or 'no run'}, {len(lives)} lives, at {number}, kept {kept}, "
                f"NaN told {told}: {reason}"
            )
        if fault.name != "none" and self.place.fault_time() is None:
            why.append(f"the fault never came: {len(self.saves)} saves seen")
        why += [f"foreign files: {', '.join(foreign[:6])}"] if foreign else []
        why += [f"resume said: {', '.join(self.said)}; right: {row.resume}"] if wrong else []
        return Result(
            row=row.name, fault=fault.name, version=version, zero_config=True, passed=not why, why=why, state=state,
            right={"ends": ended, "foreign": not foreign, "resume": not wrong}, resumed=number,
            hang_s=hang[0] if hang else None, hang_kind=hang[1] if hang else "", proof=" → ".join(self.said),
        )  # fmt: skip

    def goes_on(self, lives: list[dict[str, Any]]) -> int | None:
        """The number at which the last life went on, by the trainer's own words."""
        if len(lives) < 2 or not self.row.goes_on:
            return None
        found = re.search(self.row.goes_on, Path(lives[-1]["log"]).read_text(errors="replace"))
        return int(found[1]) if found else None


def run_outside(place: Place, limit_s: float, version: str) -> Result:
    watched = Outside(place)
    return watched.result(watched.run(limit_s), version)


def _below(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """All that is in a folder at this moment; what vanishes meanwhile is left out."""
    found = []
    for root, folders, files in os.walk(folder):
        for path in (Path(root) / name for name in (*folders, *files)):
            with contextlib.suppress(OSError):
                found.append((path, path.lstat()))
    return found


def _hash(path: Path) -> str:
    """Of a file's bytes; of a folder, of all that is in it."""
    try:
        if path.is_dir():
            return hashlib.sha256("".join(_hash(p) for p in sorted(path.iterdir())).encode()).hexdigest()
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "gone"
