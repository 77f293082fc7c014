"""Which live run writes into an output directory: two trainings in one would overwrite each other's checkpoints.

The runs of this state folder are known by their own records, all others by the locks that they hold.
"""

import os
from pathlib import Path

from ...act.launch.attempt_records import read_start
from ...model.run import TERMINAL_STATES, RunSpec
from ...model.story import RunStory
from ...model.text.suggestion import typed
from ...sense.process.process_identity import is_alive
from ...store.journal import JournalTooNew, load_story
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory
from ...store.run_lookup import list_runs
from ..errors import CliError, ExitCode
from .known_runs import all_runs
from .known_runs import home as known_home
from .output_claim import lock_rival


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
    if spec.output_dir is None:
        return lock_rival(spec, known_home() if home is None else home)
    wanted = os.path.realpath(spec.output_dir)
    for run in all_runs() if home is None else list_runs(home):
        known = run.load_spec()
        if run.id == spec.id or known.output_dir is None or os.path.realpath(known.output_dir) != wanted:
            continue
        trainer = trainer_pid(run)
        if trainer is None and not is_held(run.lock):
            continue
        if trainer is not None:
            return (
                f"run {run.id} is live (trainer pid {trainer}) and writes into {spec.output_dir} already; look at it "
                f"with `{typed('status', run.id)}`, end it with `{typed('stop', run.id)}`, or choose another "
                "--output-dir"
            )
        if is_at_rest(run):
            continue
        supervisor = holder_pid(run.lock) or "unknown"
        return (
            f"run {run.id} is live (supervisor pid {supervisor}) and may start a trainer into {spec.output_dir} at any "
            f"time; look at it with `{typed('status', run.id)}`, end it with `{typed('stop', run.id)}`, or choose "
            "another --output-dir"
        )
    return lock_rival(spec, known_home() if home is None else home)


def require_own_output(spec: RunSpec) -> None:
    """Raise CliError (exit code 4) if another live run writes into this run's output directory."""
    rival = rival_of(spec)
    if rival is not None:
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")


def rival_at_start(run: RunDirectory) -> str | None:
    """As ``rival_of`` for a known run; None if its own trainer lives, because then no second one is started."""
    return rival_of(run.load_spec()) if trainer_pid(run) is None else None


def require_own_output_to_start(run: RunDirectory) -> None:
    """Raise CliError (exit code 4) if supervising this run would start a trainer beside another live run's."""
    rival = rival_at_start(run)
    if rival is not None:
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")
