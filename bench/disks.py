"""Real disks in trouble under a real run: what the trainer, ``status`` and the notifications do. Needs root.

``.venv/bin/python bench/disks.py`` puts itself into a mount namespace of its own (``unshare -m``), where the state
folder and the output folder are small tmpfs disks, and makes each trouble in turn while a stand-in trainer runs: full,
without inodes, read-only, deleted. It prints a table and ends with 1 if a trainer was lost, ``status`` failed or nobody
was notified. About four minutes.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TRAINER = ROOT / "tests" / "fakes" / "e2e_trainer.py"
PATIENCE_S = 120.0
INSIDE = "TRAINWATCH_BENCH_MOUNTS"
CONFIG = """
[run]
name = "job"
command = {command}
output_dir = "{out}"
preset = "generic"
[notify]
command = ["sh", "-c", "cat >> {notices}; echo >> {notices}"]
[restart]
backoff_s = [0, 1]
[tmux]
enabled = false
"""


class Place(NamedTuple):
    """One scenario's folders, on disks of its own."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def run(self) -> Path:
        return next((self.state / "home" / "runs").iterdir())

    def trainwatch(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "trainwatch", *words],
            cwd=self.folder, env=self.env(), capture_output=True, text=True, check=False,
        )  # fmt: skip

    def env(self) -> dict[str, str]:
        return {
            **os.environ, "TRAINWATCH_HOME": str(self.state / "home"), "XDG_CACHE_HOME": str(self.folder / "cache"),
        }  # fmt: skip

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.trainwatch("status", "--json").stdout)
        return found

    def notices(self) -> list[str]:
        path = self.folder / "notices.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line)["title"] for line in lines if line.strip()]


def fill(folder: Path) -> None:
    """Write until the disk is full."""
    try:
        with (folder / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
    except OSError:
        pass


def take_inodes(folder: Path) -> None:
    """Make empty files until no inode is free."""
    try:
        for number in range(100_000):
            (folder / f"inode-{number}").touch()
    except OSError:
        pass


def free_inodes(folder: Path) -> None:
    for path in folder.glob("inode-*"):
        path.unlink()


def read_only(folder: Path) -> None:
    """Cover the folder with a read-only view: the kernel refuses to remount a disk on which a file is open to write."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)


def writable(folder: Path) -> None:
    subprocess.run(["umount", "-l", folder], check=True)


class Scenario(NamedTuple):
    """``make`` makes the trouble, ``mend`` ends it; ``kills``: the trainer is killed meanwhile and must come back.

    ``waits``: only once it is mended.
    """

    name: str
    make: Callable[[Place], object]
    mend: Callable[[Place], object]
    kills: bool = False
    waits: bool = False
    told: str = ""


SCENARIOS = (
    Scenario("state disk full", lambda p: fill(p.state), lambda p: (p.state / "filler").unlink(), told="state disk"),
    Scenario(
        "state disk full, trainer killed",
        lambda p: fill(p.state), lambda p: (p.state / "filler").unlink(), kills=True, told="state disk",
    ),
    Scenario("no inodes on the state disk", lambda p: take_inodes(p.state), lambda p: free_inodes(p.state),
             kills=True, told="state disk"),
    Scenario("state disk read-only", lambda p: read_only(p.state), lambda p: writable(p.state),
             kills=True, waits=True, told="state disk"),
    Scenario("state folder deleted", lambda p: shutil.rmtree(p.run()), lambda _p: None,
             kills=True, told="state folder"),
    Scenario("journal and lock deleted",
             lambda p: [(p.run() / name).unlink() for name in ("journal.jsonl", "supervisor.lock")], lambda _p: None,
             told="journal"),
    Scenario("output disk full", lambda p: fill(p.out), lambda p: (p.out / "filler").unlink()),
    Scenario("no inodes on the output disk", lambda p: take_inodes(p.out), lambda p: free_inodes(p.out)),
    Scenario("output disk read-only", lambda p: read_only(p.out), lambda p: writable(p.out)),
)  # fmt: skip


def until(look: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if look():
            return True
        time.sleep(0.5)
    return False


def play(scenario: Scenario, folder: Path) -> list[str]:
    """Run one scenario. Returns the row of the table; its last cell is empty if all was well."""
    place = Place(folder)
    for disk in (place.state, place.out):
        disk.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,nr_inodes=600", "tmpfs", disk], check=True)
    command = [sys.executable, str(TRAINER), "--output-dir", "{output_dir}", "--resume", "{resume}"]
    command += ["--steps", "100000", "--step-time", "0.05", "--save-every", "40"]
    (folder / "trainwatch.toml").write_text(
        CONFIG.format(command=json.dumps(command), out=place.out, notices=folder / "notices.jsonl")
    )
    with (folder / "supervisor.txt").open("w") as output:
        watch = subprocess.Popen(
            [sys.executable, "-m", "trainwatch", "--headless"],
            cwd=folder,
            env=place.env(),
            stdout=output,
            stderr=output,
        )
    problems: list[str] = []
    try:
        if not until(lambda: place.trainwatch("status", "--json").returncode == 0 and step(place) > 50):
            return [scenario.name, "", "", "", "did not start"]
        first = place.status()
        scenario.make(place)
        time.sleep(5)
        if scenario.kills:
            os.kill(first["pid"], signal.SIGKILL)
        time.sleep(10)
        during = place.status()
        kinds = [t["kind"] for t in during["troubles"]]
        alive = during["pid"] is not None and during["state"] == "running"
        if scenario.told and not any(scenario.told in title for title in place.notices()):
            problems.append("not notified")
        if scenario.kills and not scenario.waits and during["attempt"] < 2:
            problems.append("not restarted meanwhile")
        scenario.mend(place)
        at = step(place)
        if not until(lambda: place.status()["state"] == "running" and step(place) > at + 20):
            problems.append(f"training does not go on ({place.status()['state']})")
        after = place.status()
        trainer = f"attempt {first['attempt']} → {after['attempt']}, " + (
            "running meanwhile" if alive else during["state"]
        )
        titles = [title.removeprefix("job: ") for title in dict.fromkeys(place.notices())]
        return [scenario.name, trainer, ", ".join(kinds) or "–", "; ".join(titles) or "–", ", ".join(problems)]
    finally:
        place.trainwatch("kill", "--yes")
        watch.terminate()
        watch.wait()
        for disk in (place.state, place.out):
            subprocess.run(["umount", "-l", disk], check=False)


def step(place: Place) -> int:
    return place.status()["overall"]["step"] or 0


def main() -> int:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        print("disks.py mounts small disks: it needs root and unshare; nothing was run")
        return 0
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, __file__, *sys.argv[1:]])
    wanted = " ".join(sys.argv[1:])
    print("| trouble | trainer | troubles in status | notices | problem |\n|---|---|---|---|---|")
    failed = False
    for scenario in SCENARIOS:
        if wanted not in scenario.name:
            continue
        with tempfile.TemporaryDirectory(prefix="tw-disks-") as folder:
            row = play(scenario, Path(folder))
        failed |= bool(row[-1])
        print(f"| {' | '.join(row)} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
