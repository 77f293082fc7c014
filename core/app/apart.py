"""A trainer that writes apart from the files of the user: scratch folders, and a process of its own for overlays.

The process sees the user's folders through overlays; signals are passed on to it, and what it left is ended.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from ..act import processes
from ..model.run import RunSpec
from ..store.home import make_private
from ..store.learned import rehearsals_folder
from .plan.launch_plan import LaunchPlan
from .runs.known_runs import home
from .runs.output_folder import list_run_checkpoints

PR_SET_PDEATHSIG = 1
LAST_LINES = 12
PREFIX = "trainwatch-rehearsal-"
ROOM_BYTES = 20e9
"""A place with less is used only if no other has more."""
CACHES = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TORCH_HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR")
"""Folders of downloads: they stay the user's own, so that nothing is fetched twice."""


@contextmanager
def scratch_folder(parent: Path, *, keep: bool) -> Iterator[Path]:
    """A new folder in ``parent``, removed afterwards unless ``keep``."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        yield folder
    finally:
        if not keep:
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove the scratch folder. overlayfs leaves folders in it that nobody may enter, not even their owner."""
    for place, names, _ in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink() and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def places(given: Path | None, wanted: Sequence[Path]) -> list[Path]:
    """Where a scratch folder may be, the best first: outside what overlays must cover, with room."""
    if given is not None:
        return [given.absolute()]
    own = make_private(rehearsals_folder(home()) / "scratch")
    real = [Path(os.path.realpath(folder)) for folder in wanted]
    found = []
    for place in (Path("/var/tmp"), own, Path(tempfile.gettempdir())):  # noqa: S108  a folder of our own is made there
        outside = not any(Path(os.path.realpath(place)).is_relative_to(folder) for folder in real)
        if outside and os.access(place, os.W_OK | os.X_OK):
            found.append(place)
    found = list(dict.fromkeys(found)) or [own]
    return sorted(found, key=lambda place: shutil.disk_usage(place).free < ROOM_BYTES)


def written_folders(spec: RunSpec) -> list[Path]:
    """The folders of the user that a training certainly writes to."""
    folders = [Path(spec.cwd)]
    if spec.output_dir is not None:
        place = Path(spec.cwd, spec.output_dir)
        folders.append(next(parent for parent in (place, *place.parents) if parent.is_dir()))
    return folders


def hidden_folders(plan: LaunchPlan) -> list[Path]:
    """The output folder, if it holds checkpoints: tonight begins without them. One that holds input is not hidden."""
    spec = plan.spec
    if spec.output_dir is None or not list_run_checkpoints(spec, plan.preset).checkpoints:
        return []
    folder = Path(os.path.realpath(Path(spec.cwd, spec.output_dir)))
    words = [*spec.command, *map(str, plan.settings.values())]
    named = [Path(os.path.realpath(Path(spec.cwd, word))) for word in words if word and "\0" not in word]
    holds_input = any(place.is_relative_to(folder) and place != folder and place.exists() for place in named)
    is_work_folder = Path(os.path.realpath(spec.cwd)).is_relative_to(folder)
    return [] if holds_input or is_work_folder else [folder]


def caches(environ: Mapping[str, str]) -> list[Path]:
    """Folders of downloads that there may be."""
    user = environ.get("HOME")
    named = [Path(environ[name]) for name in CACHES if environ.get(name)]
    return [*([Path(user, ".cache")] if user else []), *named]


class ChildEnd(NamedTuple):
    """``interrupted``: a signal asked for the end. ``said``: the last lines of its stderr, else its status."""

    interrupted: bool
    said: str


def run_apart(module: str, scratch: Path, say: Callable[[str], None]) -> ChildEnd:
    """Run ``python -m module scratch`` to its end, and end everything that it may have left.

    The process has its state folder in the scratch folder. ``say`` gets its lines.
    """
    make_private(scratch / "home")
    log = scratch / "own-process.log"
    env = {**os.environ, "TRAINWATCH_HOME": str(scratch / "home")}
    argv = [sys.executable, "-P", "-m", module, str(scratch)]
    with log.open("wb") as errors:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, start_new_session=True
        )
    try:
        with _passed_on(child) as interrupted:
            for line in child.stdout or ():
                say(line.decode("utf-8", "replace").rstrip("\n"))
            child.wait()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        _end_all(scratch)
    lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return ChildEnd(interrupted.is_set(), "\n".join(lines) or f"status {child.returncode}")


def ends_with(parent: int) -> bool:
    """Ask the kernel to end this process with its parent. Returns whether the parent is there."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent


@contextmanager
def _passed_on(child: "subprocess.Popen[bytes]") -> Iterator[threading.Event]:
    """While it runs, signals that end this process end the other first. The event is set after one."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def leave(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        child.send_signal(signal.SIGINT)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_all(scratch: Path) -> None:
    """Kill what is left: every process whose environment names its scratch folder."""
    mark = os.fsencode(str(scratch))
    while left := [p for p in processes.all_processes().values() if p.pid != os.getpid() and mark in _environ(p.pid)]:
        for process in left:
            processes.send_signal(process.key, signal.SIGKILL)
        time.sleep(0.02)
        if all(processes.is_alive(p.key) for p in left) and all(p.state == "D" for p in left):
            return  # the kernel holds them; nothing else can be done


def _environ(pid: int) -> bytes:
    process = processes.read_process(pid)
    if process is None or process.state in processes.DEAD_STATES:
        return b""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
