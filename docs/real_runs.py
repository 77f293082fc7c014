"""Real runs for the pictures of the screens: real trainings with real faults; only the NVIDIA driver is a fake.

The values of the fake driver follow the trainer: busy while its log grows, idle while it hangs.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "configs" / "examples"
PATIENCE_S = 400.0
SHOWN = "/tmp/tw-docs"  # noqa: S108  not a folder that is used: pictures show it in place of the real one
"""The folder of the projects in pictures: short, and the same each time."""
ONE = """gpus = 1
driver = 570.133.07
[gpu *]
name = NVIDIA GeForce RTX 4080
mem_total = 16376
mem_used = 15300~15500/60
power_limit = 320
temp = 58~66/45
fan = 40~52/45
clock_sm = 2400~2700/20
pcie_rx = 100000~9000000/20
pcie_tx = 100000~2000000/20
"""
EIGHT = """gpus = 8
driver = 570.133.07
[gpu *]
name = NVIDIA H100 80GB HBM3
mem_total = 81559
mem_used = 74000~76000/60
power_limit = 700
temp = 58~66/45
fan = n/a
clock_sm = 1900~1980/20
pcie_rx = 100000~9000000/20
pcie_tx = 100000~2000000/20
pcie_gen = 5
pcie_maxgen = 5
ecc_mode = 1
ecc_corrected = 0
ecc_uncorrected = 0
"""
BUSY = "util_gpu = 93~99/31\nutil_mem = 40~60/29\npower = {busy}\n"
IDLE = "util_gpu = 0\nutil_mem = 0\npower = 62\n"
TROUBLE = """[gpu 2]
throttle = 0x4
[gpu 3]
temp = 88
throttle = 0x48
[gpu 5]
fault = lost
"""
CONFIG = """# settings of the trainer
max_train_steps = {steps}
save_every_n_steps = 60
learning_rate = 2e-3
train_batch_size = 64
gradient_accumulation_steps = 6
"""
PROJECT = """[run]
name = "{run}"
command = [
  "python", "train.py", "--config_file", "{{config}}", "--output_dir", "{{output_dir}}", "--resume", "{{resume}}",
  {options}
]
config = "train.toml"
preset = "generic"
output_dir = "outputs/luca"
[tmux]
enabled = false
{more}"""
RANKS = """import os, time

rank = int(os.environ["RANK"])
for step in range(1, 3001):
    time.sleep(1.2 if rank == 2 and step > 40 else 0.4)
    print(f"step {step}/3000, loss: {1 / step + 0.1:.4f}", flush=True)
"""
LADDER = '[profiles]\nuse = "middle"\nladder = ["small", "middle", "large"]\n'
PROFILES = {
    "small": ("Small: needs least memory", 4, 48),
    "middle": ("Middle: the usual one", 6, 64),
    "large": ("Large: the fewest steps", 8, 96),
}
"""By name: title, gradient_accumulation_steps, train_batch_size."""
PROFILE = """name = "{name}"
title = "{title}"
description = "{title}"
rung = {rung}
flags = []
source = "this project"
[settings]
gradient_accumulation_steps = {parts}
train_batch_size = {batch}
"""


class Project:
    """A folder with a trainer, its settings and a trainwatch.toml; state and driver are its own."""

    def __init__(self, place: Path, library: Path, gpus: str, busy_w: str) -> None:
        self.place, self.folder, self.gpus = place, place / "luca", place / "gpus"
        self._about, self._busy = gpus, BUSY.format(busy=busy_w)
        self.more: Callable[[int], str] = lambda _: ""
        self.run = ""
        self.folder.mkdir(parents=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "TRAINWATCH"))}
        self.env = kept | {
            "TRAINWATCH_HOME": str(place / "home"), "XDG_RUNTIME_DIR": str(place),
            "XDG_CACHE_HOME": str(place / "cache"), "LD_LIBRARY_PATH": str(library),
            "FAKE_NVML_STATE": str(self.gpus), "PATH": f"{library.parent / 'venv' / 'bin'}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1", "COLORTERM": "truecolor", "TZ": "UTC", "TMUX_TMPDIR": str(place),
        }  # fmt: skip
        self.show(self._about + self._busy)

    def write(self, *options: str, steps: int = 2000, more: str = "", run: str = "luca") -> None:
        """The files of the project."""
        self.run = run
        for file in EXAMPLES.glob("*.py"):
            shutil.copy(file, self.folder)
        shutil.copy(ROOT / "docs" / "picture_trainer.py", self.folder / "train.py")
        (self.folder / "train.toml").write_text(CONFIG.format(steps=steps))
        (self.folder / "profiles").mkdir()
        for rung, (name, (title, parts, batch)) in enumerate(PROFILES.items()):
            text = PROFILE.format(name=name, title=title, rung=rung, parts=parts, batch=batch)
            (self.folder / "profiles" / f"{name}.toml").write_text(text)
        quoted = ", ".join(json.dumps(each) for each in options)
        (self.folder / "trainwatch.toml").write_text(PROJECT.format(options=quoted, more=more, run=run))

    def distribute(self, ranks: int) -> None:
        """A command of so many ranks under torchrun (which needs torch) instead; one of them slows down."""
        (self.folder / "ranks.py").write_text(RANKS)
        command = ["python", "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "ranks.py"]
        text = (
            f'[run]\nname = "{self.run}"\ncommand = {json.dumps(command)}\npreset = "generic"\noutput_dir = "outputs"\n'
        )
        (self.folder / "trainwatch.toml").write_text(f"{text}[tmux]\nenabled = false\n")

    def show(self, text: str) -> None:
        """Replace the driver's state at once."""
        fresh = self.gpus.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.gpus)

    def as_shown(self, text: str) -> str:
        """What a terminal shows, with ``SHOWN`` in place of the real folder."""
        return as_shown(text, self.place.parent)

    def do(self, *words: str) -> str:
        """One verb, to its end."""
        command = [sys.executable, "-m", "trainwatch", *words]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(f"{words}: {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-1500:]}\n")
        return done.stdout

    @property
    def status(self) -> Any:
        """``status --json``; None before the first start."""
        try:
            return json.loads(self.do("status", "--json"))
        except ValueError:
            return None

    def until(self, true: Callable[[Any], bool], what: str) -> None:
        """Wait until this is true of the status."""
        end = time.monotonic() + PATIENCE_S
        while not ((status := self.status) and true(status)):
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: {status}")
            time.sleep(0.5)

    def follow(self) -> None:
        """Set the driver's values by what the trainer does now."""
        attempts = Path(self.env["TRAINWATCH_HOME"]) / "runs"
        logs = sorted(attempts.glob(f"{self.run}-*/attempts/*/train.log"))
        busy = bool(logs) and time.time() - logs[-1].stat().st_mtime < 2.0
        starts = sorted(attempts.glob(f"{self.run}-*/attempts/*/start.json"))
        try:
            pid = int(json.loads(starts[-1].read_text())["trainer"]["pid"]) if starts else 0
        except (OSError, ValueError, KeyError, TypeError):
            pid = 0
        self.show(self._about + (self._busy if busy else IDLE) + (self.more(pid) if pid else ""))


@contextmanager
def foreign() -> Iterator[int]:
    """The pid of a process that is not the run's, for the list of processes on a GPU."""
    process = subprocess.Popen([shutil.which("sleep") or "/bin/sleep", "3600"], start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def new_place() -> Path:
    """A folder of this call alone, whose path is as long as ``SHOWN``."""
    while True:
        place = Path(f"{SHOWN[:-4]}{secrets.token_hex(2)}")
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
            return place


def as_shown(text: str, place: Path) -> str:
    """A captured screen with ``SHOWN`` in place of the folder, also where the path is cut."""
    real = str(place)
    for end in range(len(real), len(SHOWN) - 4, -1):
        text = text.replace(real[:end], SHOWN[:end])
    return text


@contextmanager
def driver() -> Iterator[Callable[[str, str, str], Project]]:
    """A maker of projects; at the end every run is ended and the folder removed."""
    place = new_place()
    (place / "venv" / "bin").mkdir(parents=True)
    for name in ("pyvenv.cfg", "lib"):
        (place / "venv" / name).symlink_to(Path(sys.prefix) / name)
    (place / "venv" / "bin" / "python").symlink_to(sys.executable)
    library = place / "nvml"
    library.mkdir(parents=True)
    source = ROOT / "tests" / "fakes" / "nvml" / "fake_nvml.c"
    flags = ["-O1", "-std=gnu11", "-fvisibility=hidden", "-shared", "-fPIC", "-w", "-Wl,-soname,libnvidia-ml.so.1"]
    made = str(library / "libnvidia-ml.so.1")
    subprocess.run([shutil.which("cc") or "/usr/bin/cc", *flags, "-o", made, str(source), "-lpthread"], check=True)
    projects: list[Project] = []
    ended = threading.Event()

    def project(name: str, gpus: str, busy_w: str) -> Project:
        projects.append(Project(place / name, library, gpus, busy_w))
        return projects[-1]

    def follow() -> None:
        while not ended.wait(0.5):
            for each in projects:
                each.follow()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield project
    finally:
        ended.set()
        thread.join()
        for each in projects:
            for run in each.place.glob("home/runs/*"):
                each.do("kill", run.name, "--yes")
        for each in projects:
            end = time.monotonic() + 20
            while time.monotonic() < end and (status := each.status) and status["supervisor"]["alive"]:
                time.sleep(0.3)
        shutil.rmtree(place, ignore_errors=True)
