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
from typing import NamedTuple, TypeVar

import msgspec

from ..act import processes
from ..act.overlay import NoOverlayError, enter
from ..model.run import RunSpec
from ..store.home import make_private
from ..store.learned import rehearsals_folder
from .errors import CliError, ExitCode
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


ORDER, ANSWER = "order.json", "answer.json"
_Kind = TypeVar("_Kind")


class Overlays(msgspec.Struct, frozen=True, kw_only=True):
    """Folders for the overlays (``act.overlay.enter``)."""

    wanted: tuple[Path, ...]
    kept: tuple[Path, ...]
    hidden: tuple[Path, ...]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the process apart is told: an order of its own kind, whose child it is, and where it works."""

    parent: int
    cwd: str
    order: msgspec.Raw
    overlays: Overlays | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """``value``, or why there is none: ``problem`` with the exit ``code`` of the verb; no overlay can be made."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    problem: str = ""
    code: int = 1
    no_overlay: str = ""
    interrupted: bool = False


def behind_overlays(
    module: str, plan: LaunchPlan, order: Callable[[Path], msgspec.Struct], kind: type[_Kind], *,
    scratch: Path | None, keep: bool, say: Callable[[str], None], take: Callable[[_Kind], _Kind] = lambda seen: seen,
) -> _Kind:  # fmt: skip
    """Have an order obeyed with every path as tonight, in the first place that can hold overlays.

    ``order``: made for a scratch folder. ``take``: takes out of it what is to stay.
    Raises NoOverlayError, CliError, KeyboardInterrupt.
    """
    wanted, why = written_folders(plan.spec), "no place for a scratch folder"
    for parent in places(scratch, wanted):
        with scratch_folder(parent, keep=keep) as folder:
            kept, hidden = tuple(caches(os.environ)), tuple(hidden_folders(plan))
            overlays = Overlays(wanted=tuple(wanted), kept=kept, hidden=hidden)
            try:
                return take(ordered(module, folder, plan.spec.cwd, order(folder), kind, say, overlays))
            except NoOverlayError as error:
                why = str(error)
    raise NoOverlayError(why)


def ordered(  # noqa: PLR0917
    module: str, folder: Path, cwd: str, order: msgspec.Struct, kind: type[_Kind], say: Callable[[str], None],
    overlays: Overlays | None = None,
) -> _Kind:  # fmt: skip
    """Have an order obeyed by ``python -m module``. Raises NoOverlayError, CliError, KeyboardInterrupt."""
    told = msgspec.Raw(msgspec.json.encode(order))
    task = Task(parent=os.getpid(), cwd=cwd, order=told, overlays=overlays)
    (folder / ORDER).write_bytes(msgspec.json.encode(task, enc_hook=str))
    end = run_apart(module, folder, say)
    try:
        answer = msgspec.json.decode((folder / ANSWER).read_bytes(), type=Answer)
    except (OSError, msgspec.MsgspecError):
        if end.interrupted:
            raise KeyboardInterrupt from None
        raise CliError(ExitCode.FAILED, f"the process of its own failed: {end.said}") from None
    if end.interrupted or answer.interrupted:
        raise KeyboardInterrupt
    if answer.no_overlay:
        raise NoOverlayError(answer.no_overlay)
    if answer.problem:
        raise CliError(ExitCode(answer.code), answer.problem)
    return msgspec.json.decode(answer.value, type=kind)


def obey(folder: Path, kind: type[_Kind], work: Callable[[_Kind, Path], msgspec.Struct]) -> int:
    """In the process apart: do what is ordered in ``folder``, and write the answer there."""
    task = msgspec.json.decode((folder / ORDER).read_bytes(), type=Task, dec_hook=lambda to, text: to(text))
    if not ends_with(task.parent):  # it died before the kernel was asked
        shutil.rmtree(folder, ignore_errors=True)
        return ExitCode.INTERRUPTED
    try:
        if task.overlays is not None:
            enter(folder, wanted=task.overlays.wanted, kept=task.overlays.kept, hidden=task.overlays.hidden)
            os.chdir(task.cwd)
        done = work(msgspec.json.decode(task.order, type=kind), folder)
        answer = Answer(value=msgspec.Raw(msgspec.json.encode(done)))
    except NoOverlayError as error:
        answer = Answer(no_overlay=str(error))
    except CliError as error:
        answer = Answer(problem=str(error), code=error.code)
    except KeyboardInterrupt:
        answer = Answer(interrupted=True)
    if os.getppid() != task.parent:
        shutil.rmtree(folder, ignore_errors=True)  # nobody else is left to do it
        return ExitCode.INTERRUPTED
    (folder / ANSWER).write_bytes(msgspec.json.encode(answer))
    return ExitCode.DONE


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
