"""The supervisor's part of a run's output locks: what is taken before anything is started, and held until the end."""

import contextlib
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

from ... import processes
from ...act.launch.launching import lives_elsewhere
from ...act.launch.locks import SUPERVISOR, Holder, Owner, Taken, look
from ...act.launch.output_locks import NAME, KeptLocks, OutputLocks, command_key, look_for_rival
from ...model.ports import AttemptTarget
from ...model.run import TERMINAL_STATES, LockOrder, RunSpec
from ...model.story import RunStory
from ...model.text import printable, typed
from ...mounts import is_network_filesystem
from ...processes import is_alive
from ...spool import read_start
from ...store.journal import JournalTooNew, load_story
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory
from ...store.run_lookup import list_runs
from ..errors import CliError, ExitCode
from .known_runs import home as known_home

ANSWER_S = 5.0
"""How long a look at the locks may take before a launch."""
SHOWN = 3
"""Most processes that a sentence names."""


class OutputClaim(KeptLocks):
    """The locks of a run, as its supervisor or the command that starts it holds them. A Sensor of the supervisor.

    ``home``: the state folder that the run is kept in.
    """

    def __init__(self, spec: RunSpec, home: Path) -> None:
        self.order, self._spec = lock_order(spec, home), spec
        self._unsaid: list[str] = []
        owner, order = _owner(self.order), self.order
        locks = OutputLocks(owner, SUPERVISOR, order.command, is_network, inside=order.inside)
        super().__init__(locks, self._unsaid.append)

    def take(self, *, force: bool = False) -> None:
        """Take the locks. Raises CliError (exit code 4) if another run has one of them, or if that cannot be told.

        ``force``: also from a holder of which it cannot be told whether it lives.
        """
        try:
            with self._mutex:
                super().take(force=force)
        except Taken as taken:
            raise CliError(ExitCode.OWNED, f"{sentence(taken, self._spec)}; nothing was started") from None

    def tell_later(self, text: str) -> None:
        """Keep a sentence for the supervisor's events."""
        if text:
            self._unsaid.append(text)

    def refusal(self) -> str | None:
        """Take the locks. Returns why no attempt may be started now; None: nothing speaks against it."""
        if not self._mutex.acquire(timeout=ANSWER_S):
            return None  # a file system that does not answer: what is held stays held
        try:
            super().take()
        except Taken as taken:
            return sentence(taken, self._spec)
        finally:
            self._mutex.release()
        return None

    def is_taken(self, folder: str) -> bool:
        """Whether a live run holds the lock of a folder that is not known to be this run's."""
        try:
            look(os.path.join(folder, NAME), _owner(self.order), is_network)  # noqa: PTH118
        except Taken as taken:
            return taken.lives
        except OSError:
            return False
        return False

    def tell(self, note: Callable[[str], None]) -> None:
        """Send news to ``note`` from now on, beginning with what could not be locked."""
        self._note = note
        for text in self._unsaid:
            note(text)
        self._unsaid.clear()

    def follow(self, target: AttemptTarget | None) -> None:
        """Name the trainer of the attempt."""
        if target is not None:
            self.name_trainer((target.trainer.pid, target.trainer.start_ticks), target.directory)

    def hand_over(self) -> None:
        """Leave the locks to the supervisor that was started, which has taken them."""
        self._locks.hand_over()


def lock_order(spec: RunSpec, home: Path) -> LockOrder:
    """What identifies the locks of a run.

    None is in the folder of a trainer that would take it for a checkpoint, unless other hosts may write there.
    """
    folder = None if spec.output_dir is None else str(Path(spec.cwd, spec.output_dir))
    return LockOrder(
        run=spec.id,
        created=spec.created_wall,
        home=os.path.realpath(home),
        output_dir=folder,
        command=command_key(spec.command, spec.cwd),
        inside=not spec.second_start.lists or is_network(folder or spec.cwd),
    )


def lock_rival(spec: RunSpec, home: Path, *, unclear: bool = False) -> str | None:
    """A sentence about another run that holds a lock of this one, on any host and with any state folder; else None.

    Changes nothing. ``unclear``: only of a holder of which it cannot be told whether it lives; else only of one that
    lives for certain.
    """
    order = lock_order(spec, home)
    try:
        look_for_rival(_owner(order), order.command, is_network)
    except Taken as taken:
        return sentence(taken, spec) if taken.lives is not unclear else None
    return None


def take_over(spec: RunSpec, home: Path) -> None:
    """Take the output folder from a run of which it cannot be told whether it lives: a person says that it does not.

    Raises CliError (exit code 4) if it does live.
    """
    if lock_rival(spec, home, unclear=True) is not None:
        claim = OutputClaim(spec, home)
        claim.take(force=True)
        claim.release()


def sentence(taken: Taken, spec: RunSpec) -> str:
    """Who holds a lock that this run needs, and what to do; printable, whatever the lock says."""
    return printable(_sentence(taken, spec))


def _sentence(taken: Taken, spec: RunSpec) -> str:
    holder = taken.holder
    where = spec.output_dir or f"the working folder {spec.cwd}"
    if holder is None:
        return (
            f"{where} may be in use: {taken.path}: {taken.why}; if no training writes there, remove that file, "
            "else choose another --output-dir"
        )
    owner = holder.owner
    known = f"run {owner.run}"
    home = f"TRAINWATCH_HOME={shlex.quote(owner.home)}"
    look, end = (f"`{home} {typed(verb, owner.run)}`" for verb in ("status", "stop"))
    if owner.output_dir is None or spec.output_dir is None:
        what = (
            f"{known} runs the same command in {spec.cwd}, and the output folder of one of them is not known, so they "
            "may write over each other's checkpoints"
        )
        other = "or give each of them its own --output-dir"
    else:
        what = f"{where} is in use by {known}, and two trainers would write over each other's checkpoints"
        other = "or choose another --output-dir"
    if holder.boot != processes.boot_id():
        end = "" if taken.lives else "start with --force if that training is over, "
        written = ""  # for people only: clocks of hosts differ
        with contextlib.suppress(OSError, ValueError, OverflowError):
            written = time.strftime(", last sign of life %Y-%m-%d %H:%M", time.localtime(os.lstat(taken.path).st_mtime))
        return (
            f"{what}: {taken.why} (host {holder.host}, pid {holder.pid}{written}); "
            f"look at it there with {look}, {end}{other}"
        )
    if not Path(owner.home, "runs", owner.run).is_dir():
        if Path(owner.home).is_dir():
            left = "its records are not there: look again in a minute if it has just been started, else end it"
        else:
            left = f"its state folder {owner.home} is gone; end it"
        # Whoever can write the lock chose its pids: only one that has the attempt in its own environment is named.
        kill = f" (kill {' '.join(str(process.pid) for process in marked)})" if (marked := _marked(holder)) else ""
        return f"{what}: {_processes(holder)}; {left}{kill}, {other}"
    return f"{what}: {_processes(holder)} on the host {holder.host}; look at it with {look}, end it with {end}, {other}"


def is_network(folder: str) -> bool:
    """Whether other hosts may write into a folder; also if that cannot be told."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return True
    return is_network_filesystem(os.path.realpath(folder), mounts)


def _processes(holder: Holder) -> str:
    alive = [f"{holder.role} pid {holder.pid}"] if processes.is_alive((holder.pid, holder.start_ticks)) else []
    if holder.trainer is not None and processes.is_alive(holder.trainer):
        alive.append(f"trainer pid {holder.trainer[0]}")
    else:
        alive += [f"{process.name} pid {process.pid}" for process in _marked(holder)]
    return ", ".join(alive) or f"{holder.role} pid {holder.pid}"


def _marked(holder: Holder) -> list[processes.Process]:
    """Processes of ours of its attempt, at most SHOWN."""
    running = processes.all_processes().values() if holder.directory is not None else ()
    return processes.marked_with(holder.directory, running)[:SHOWN] if holder.directory is not None else []


def _owner(order: LockOrder) -> Owner:
    return Owner(order.run, order.created, order.home, order.output_dir)


# Which live run writes into an output directory: two trainings in one would overwrite each other's checkpoints.
#
# The runs of this state folder are known by their own records, all others by the locks that they hold.


def trainer_pid(run: RunDirectory) -> int | None:
    """The pid of the live trainer, of any attempt; None if there is none."""
    starts = (read_start(folder) for folder in run.attempt_folders())
    return next((start.trainer.pid for start in starts if start is not None and is_alive(start.trainer)), None)


def is_at_rest(run: RunDirectory, story: RunStory | None = None) -> bool:
    """Whether the run is over, with no trainer and no question, so that nothing starts unless a person orders it.

    Its supervisor may still be there for a while; it holds no lock of the output folder then.
    """
    try:
        known = load_story(run.journal) if story is None else story
    except JournalTooNew:
        return False
    return known.state in TERMINAL_STATES and known.question is None and trainer_pid(run) is None


def rival_of(spec: RunSpec, home: Path | None = None) -> str | None:
    """A sentence that names another live run with the same output directory; None if there is none.

    ``home``: the state folder to look through (None: this user's).
    Live: a supervisor holds its lock, or its trainer lives. Directories are compared by their real paths.
    """
    home = known_home() if home is None else home
    wanted = None if spec.output_dir is None else os.path.realpath(spec.output_dir)
    for run in () if wanted is None else list_runs(home):
        known = run.load_spec()
        if run.id == spec.id or known.output_dir is None or os.path.realpath(known.output_dir) != wanted:
            continue
        if (trainer := trainer_pid(run)) is not None:
            what = f"trainer pid {trainer}) and writes into {spec.output_dir} already"
        elif not is_held(run.lock) or is_at_rest(run):
            continue
        else:
            supervisor = holder_pid(run.lock) or "unknown"
            what = f"supervisor pid {supervisor}) and may start a trainer into {spec.output_dir} at any time"
        return (
            f"run {run.id} is live ({what}; look at it with `{typed('status', run.id)}`, end it with "
            f"`{typed('stop', run.id)}`, or choose another --output-dir"
        )
    return lock_rival(spec, home)


def require_own_output(spec: RunSpec) -> None:
    """Raise CliError (exit code 4) if another live run writes into this run's output directory."""
    if (rival := rival_of(spec)) is not None:
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")


def require_own_output_to_start(run: RunDirectory) -> None:
    """The same if supervising this run would start a trainer: none is started while its own trainer lives."""
    if trainer_pid(run) is not None:
        return
    spec = run.load_spec()
    if spec.capabilities.here:
        require_here(run, "resume")
    require_own_output(spec)


def require_here(run: RunDirectory, verb: str) -> None:
    """Raise CliError (exit code 4) if it runs where its processes are not seen from here: what is done would be blind.

    ``verb``: what to do there.
    """
    if away := [each.name for each in run.attempt_folders() if lives_elsewhere(each)]:
        where = "in another container or on another host that shares this state folder"
        there = f"run `{typed(verb, run.id)}` there"
        raise CliError(ExitCode.OWNED, f"attempt {int(away[0])} of {run.id} is running {where}: {there}")
