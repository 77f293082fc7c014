"""A short run that writes apart from the files of the user: its settings, scratch folder, process and overlays.

The process sees the user's folders through overlays; signals are passed on to it, and what it left is ended.
"""

import ctypes
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from .. import processes
from ..act.config.derive import DeriveError, redirected
from ..act.overlay import NoOverlayError, enter
from ..judge.state import JudgeState
from ..model.launch import Apart
from ..model.observation import Command, Request
from ..model.run import RunSpec
from ..model.settings import Notify, Remedies, Tmux
from ..spool import print_into
from ..store.control_client import ControlError, send
from ..store.home import make_private
from ..store.learned import rehearsals_folder
from ..store.run_directory import RunDirectory, new_run_id
from .errors import CliError, ExitCode
from .plan.launch_plan import LaunchPlan, plan_launch
from .plan.specs import Definitions
from .runs.known_runs import home
from .runs.output_folder import list_run_checkpoints

Judged = Callable[[], JudgeState | None]
"""What the judge of a short run knows now; None: it does not run yet."""
ASKED_AGAIN_S = 0.1
PR_SET_PDEATHSIG = 1
LAST_LINES = 12
ROOM_BYTES = 20e9
"""A place with less is used only if no other has more."""
CACHES = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TORCH_HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR")
"""Folders of downloads: they stay the user's own, so that nothing is fetched twice."""
Overlays = tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...]]
"""The folders that are covered, kept and hidden (``act.overlay.enter``)."""


def short_spec(spec: RunSpec, state: Path, what: str, settings: Mapping[str, Any], **changes: Any) -> RunSpec:
    """The run as one of a few minutes, with its state in ``state``: without notices, remedies and windows.

    ``what``: of the user's run; its label. ``settings``: sections of the settings that it has instead.
    """
    common = {"remedies": Remedies(apply="none"), "notify": Notify(), "tmux": Tmux(enabled=False)}
    return msgspec.structs.replace(
        spec,
        id=new_run_id(state, changes.get("name", spec.name), Path(spec.project or spec.cwd)),
        created_wall=time.time(),
        begin_from=None,
        settings=msgspec.structs.replace(spec.settings, **common, **settings),
        labels={**spec.labels, what: spec.id},
        **changes,
    )


def short_run(
    spec: RunSpec,
    definitions: Definitions,
    state: Path,
    follow: Callable[[RunDirectory, threading.Event, Judged], None],
) -> RunDirectory:
    """Launch a run with its state in ``state``, and supervise it to its end. What a check fails on, the run shows.

    ``follow``: in a thread beside it; it ends the run, or ends itself once the event is set. Raises CliError,
    KeyboardInterrupt.
    """
    from .foreground import supervise
    from .preflight.checklist import require_startable

    plan = plan_launch(spec, definitions, state)
    require_startable(plan, forced=True)
    run = RunDirectory.create(state, spec)
    over, judges = threading.Event(), list[Callable[[], JudgeState]]()
    judged: Judged = lambda: judges[0]() if judges else None  # noqa: E731
    thread = threading.Thread(target=follow, args=(run, over, judged), name="short run", daemon=True)
    thread.start()
    try:
        code = supervise(run, judged=judges.append, plan=plan, stop_trainer=True)
    finally:
        over.set()
        thread.join()
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return run


def end_trainer(run: RunDirectory, over: threading.Event, by: str) -> None:
    """End a short run with its trainer. A supervisor that is ending or busy is asked again, until the run is over."""
    request = Request(command=Command(t=0.0, verb="shutdown", by=by, stop_trainer=True))
    while not over.is_set():
        try:
            send(run, request)
        except ControlError:
            over.wait(ASKED_AGAIN_S)
        else:
            return


@contextmanager
def scratch_folder(parent: Path, *, keep: bool) -> Iterator[Path]:
    """A new folder in ``parent``, removed afterwards unless ``keep``."""
    folder = Path(tempfile.mkdtemp(prefix="trainwatch-apart-", dir=parent))
    try:
        yield folder
    finally:
        if not keep:
            for place, names, _ in os.walk(folder):  # overlayfs leaves folders that nobody may enter, not their owner
                for path in (Path(place, name) for name in names):
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


def _hidden_folders(plan: LaunchPlan) -> list[Path]:
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


_Kind = TypeVar("_Kind")
Say = Callable[[str], None]
Work = Callable[[RunSpec, Path, Say], _Kind]
"""What is done apart for a run, in a scratch folder; called in the process apart. It can be pickled."""
SPAWN = multiprocessing.get_context("spawn")


class Job(NamedTuple):
    """How something is done apart. ``what``: for people. ``first``: the way that is tried first.

    ``scratch``: parent of the scratch folder, None: where there is room; ``redirects_to``: that of redirected output.
    ``keep``: the folder stays. ``say`` gets lines of progress.
    """

    what: str
    first: Apart
    scratch: Path | None
    keep: bool
    redirects_to: Path | None = None
    say: Say = lambda _line: None


def done_apart(
    job: Job, work: Work[_Kind], plan: LaunchPlan, spec: Callable[[Path], RunSpec],
    take: Callable[[_Kind], _Kind] = lambda seen: seen,
) -> tuple[_Kind, Apart]:  # fmt: skip
    """Have work done for a run, behind overlays with every path as tonight, or with the output options redirected.

    No file of the user is written. ``spec``: the run of a scratch folder. ``take``: takes out of the result what is to
    stay. Raises CliError, also if neither way is possible; KeyboardInterrupt.
    """
    wanted, why = [Path(plan.spec.cwd)], dict[Apart, str]()  # what a training certainly writes to
    if plan.spec.output_dir is not None:
        place = Path(plan.spec.cwd, plan.spec.output_dir)
        wanted.append(next(parent for parent in (place, *place.parents) if parent.is_dir()))
    user, caches = os.environ.get("HOME"), filter(None, map(os.environ.get, CACHES))
    downloads = (*map(Path, caches), *([Path(user, ".cache")] if user else []))
    for way in sorted(get_args(Apart), key=lambda way: way != job.first):
        parents = places(job.scratch or (job.redirects_to if way == "redirect" else None), wanted)
        for parent in parents if way == "overlay" else parents[:1]:
            with scratch_folder(parent, keep=job.keep) as folder:
                run, overlays = spec(folder), None
                try:
                    if way == "redirect":
                        run = redirected(run, plan.preset, plan.profile, folder / "out")
                        (folder / "out").mkdir()
                    else:
                        overlays = (tuple(wanted), downloads, tuple(_hidden_folders(plan)))
                    return take(ordered(job, work, folder, run, overlays)), way
                except (NoOverlayError, DeriveError) as error:
                    why[way] = str(error)
        if way == job.first == "overlay":
            job.say(f"no overlay here ({why[way]}): redirecting the output instead")
    raise CliError(
        ExitCode.FAILED,
        f"no {job.what}: {why['redirect']}. Overlays over your folders, which need no such option, are not possible "
        f"here: {why['overlay']}; nothing was started",
    )


def ordered(job: Job, work: Work[_Kind], folder: Path, run: RunSpec, overlays: Overlays | None) -> _Kind:
    """Have work done in a process of its own, which has its state folder in ``folder``. ``overlays`` None: none.

    Everything that it may have left is ended. Raises NoOverlayError, CliError, KeyboardInterrupt.
    """
    make_private(folder / "home")
    log = folder / "own-process.log"
    said, says = SPAWN.Pipe(duplex=False)
    child = SPAWN.Process(target=_obey, args=(says, os.getpid(), log, work, folder, run, overlays))
    resource_tracker.ensure_running()  # its start would allow the signal again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until it can answer: an import would end in a traceback
    child.start()
    says.close()
    outcome: Any = ""
    try:
        with _passed_on(child) as interrupted, suppress(EOFError):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            while isinstance(outcome := said.recv(), str):
                job.say(outcome)
            child.join()
    finally:
        child.kill()
        child.join()
        _end_all(folder)
    if interrupted.is_set():
        raise KeyboardInterrupt
    if isinstance(outcome, str):
        last = "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
        raise CliError(ExitCode.FAILED, f"the process of its own failed: {last or f'status {child.exitcode}'}")
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome  # type: ignore[no-any-return]  # what ``work`` returned


def _obey(  # noqa: PLR0917
    says: Connection, parent: int, log: Path, work: Work[object], folder: Path, run: RunSpec, overlays: Overlays | None
) -> None:
    """In the process apart: do the work, and send its lines, then its result or why there is none."""
    os.setsid()
    print_into(log)
    os.environ["TRAINWATCH_HOME"] = str(folder / "home")
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # this process ends with its parent
    outcome: object = None
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if os.getppid() == parent:  # else it died before the kernel was asked
            if overlays is not None:
                wanted, kept, hidden = overlays
                enter(folder, wanted=wanted, kept=kept, hidden=hidden)
                os.chdir(run.cwd)
            outcome = work(run, folder, says.send)
    except (NoOverlayError, CliError, KeyboardInterrupt) as error:
        outcome = error
    if os.getppid() == parent:
        says.send(outcome)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # nobody else is left to do it


@contextmanager
def _passed_on(child: SpawnProcess) -> Iterator[threading.Event]:
    """While it runs, signals that end this process end the other first. The event is set after one."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def leave(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        if child.pid is not None and child.is_alive():
            os.kill(child.pid, signal.SIGINT)

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
    while left := [
        p for p in processes.all_processes().values()
        if p.pid != os.getpid() and any(mark in variable for variable in processes.variables_of(p.pid) or ())
    ]:  # fmt: skip
        for process in left:
            processes.send_signal(process.key, signal.SIGKILL)
        time.sleep(0.02)
        if all(processes.is_alive(p.key) for p in left) and all(p.state == "D" for p in left):
            return  # the kernel holds them; nothing else can be done
