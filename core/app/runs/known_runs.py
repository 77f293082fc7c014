"""Finding the run that is meant, among those in the state folder."""

import codecs
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...config.location import find_project
from ...model.redact import EDGE, url_secrets
from ...model.run import RunSpec
from ...private_folder import NotOurs, check_ours
from ...spool import read_order
from ...store.home import NoHomeError, runs_folder, trainwatch_home
from ...store.lock import is_held
from ...store.run_directory import RunDirectory as RunDirectory  # noqa: PLC0414  front ends name it, too
from ...store.run_directory import RunUnreadable
from ...store.run_lookup import AmbiguousRun, RunNotFound, enumerate_runs, list_runs
from ...store.run_lookup import find_run as find_known_run
from ..errors import CliError, ExitCode

if TYPE_CHECKING:
    from ...model.launch import QueueEntry


EXAMPLE_VERBS = ("demo", "drill")
"""Verbs that run example trainers; the projects of each are in a folder of its name in the state folder."""


def home() -> Path:
    """The state folder of this user (``TRAINWATCH_HOME``). Raises CliError: exit code 2 if it is not ours alone."""
    try:
        return _checked(trainwatch_home(os.environ))
    except NoHomeError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    except NotOurs as error:
        raise CliError(
            ExitCode.USAGE,
            f"{error}: it holds commands that are executed, so it is not used; "
            "set TRAINWATCH_HOME to a folder of yours",
        ) from None


@lru_cache
def _checked(place: Path) -> Path:
    """The folder, if nobody else can put a run there; asked once, not in the middle of a night. Raises NotOurs."""
    for folder in (place, runs_folder(place)):
        try:
            check_ours(folder)
        except NotOurs:
            raise
        except OSError:
            break  # not made yet; whoever uses it finds what else is wrong
    return place


def all_runs() -> list[RunDirectory]:
    """Every run that can be opened, newest first."""
    return [know_secrets(run) for run in list_runs(home())]


def runs_saving_to(spec: RunSpec) -> Iterator[tuple[RunDirectory, RunSpec]]:
    """The runs that were launched into the output folder of a run, newest first; none if it is not known."""
    wanted = None if spec.output_dir is None else os.path.realpath(Path(spec.cwd, spec.output_dir))
    for run in all_runs() if wanted is not None else ():
        other = run.load_spec()
        if other.output_dir and os.path.realpath(Path(other.cwd, other.output_dir)) == wanted and run.attempt_folders():
            yield run, other


def example_verb(spec: RunSpec) -> str | None:
    """The verb whose example this run is; None for other runs."""
    place, state = Path(spec.cwd).resolve(), home().resolve()
    return next((verb for verb in EXAMPLE_VERBS if place.is_relative_to(state / verb)), None)


def here() -> Path:
    """The working folder. Raises CliError (exit code 2) if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise CliError(ExitCode.USAGE, "the working folder does not exist any more: cd to one that does") from None


def find_run(name: str | None, warn: Callable[[str], None] | None = None, *, anywhere: bool = True) -> RunDirectory:
    """The run that is meant. Raises CliError: exit code 3 if there is none, 2 if several match.

    ``anywhere``: without a name it may be one of another folder.
    ``warn``: who only reads; without a name several runs mean the newest live one, else the newest, which is said. Runs
    of other folders are meant only if this one has none.
    """
    folder: Path | None = None
    try:
        folder = here()
    except CliError:
        if name is None:
            raise
    try:
        project = None if folder is None else find_project(folder)
        return know_secrets(find_known_run(home(), name, project=project, cwd=folder, anywhere=anywhere))
    except RunNotFound as error:
        raise CliError(ExitCode.NOT_FOUND, str(error)) from None
    except RunUnreadable as error:
        foreign = isinstance(error.__cause__, NotOurs)
        raise CliError(ExitCode.USAGE if foreign else ExitCode.FAILED, str(error)) from None
    except AmbiguousRun as error:
        if name is not None or warn is None:
            raise CliError(ExitCode.USAGE, str(error)) from None
        among, live = error.among, error.live
    known = [run for run in all_runs() if not among or run.id in among]
    meant = next((run for run in known if is_held(run.lock)), known[0])
    if not among:
        warn(f"no run was started in this folder; this is {meant.id}")
        return meant
    why = "several runs of this folder are live" if live else "this folder has several runs"
    warn(f"{why}; this is {meant.id}, the newest; others: {enumerate_runs(name for name in among if name != meant.id)}")
    return meant


def namesakes(run: RunDirectory) -> list[str]:
    """Runs of other folders with the same name, as ``ID in FOLDER``, newest first."""
    spec = run.load_spec()
    others = ((other, other.load_spec()) for other in all_runs() if other.id != run.id)
    alike = [(other, known) for other, known in others if known.name == spec.name]
    return [f"{o.id} in {s.cwd}" for o, s in alike if (s.project or s.cwd) != (spec.project or spec.cwd)]


def know_secrets(run: RunDirectory) -> RunDirectory:
    """Hide the values of this run's secret variables and notification URLs in all that this process shows."""
    with contextlib.suppress(RunUnreadable):
        spec = run.load_spec()
        EDGE.know(spec.env, url_secrets((*spec.settings.notify.urls, *filter(None, [spec.settings.notify.ping_url]))))
    for folder in run.attempt_folders()[:1]:
        order = read_order(folder)
        EDGE.know({} if order is None else order.env)
    return run


def run_at_hand(name: str | None) -> RunDirectory | None:
    """The run of this folder, or of that name, if nothing of its file is to be stored in it: a supervisor has it.

    None: what plans and checks a launch has to be loaded to tell which run is meant.
    """
    from ...config.document import ConfigError
    from ...config.project import load_project
    from ...store.run_directory import run_id_for

    try:
        path = find_project(here())
        if path is None:
            return find_run(name, anywhere=name is not None)
        run = RunDirectory(runs_folder(home()) / run_id_for(load_project(path).run(name).name, path))
    except (CliError, ConfigError):
        return None
    return run if is_held(run.lock) else None


def open_run(run_id: str) -> tuple[RunDirectory, RunSpec]:
    """A run by its id, for the screen. Raises RuntimeError with a sentence."""
    try:
        run = know_secrets(find_known_run(home(), run_id))
        return run, run.load_spec()
    except (RunNotFound, AmbiguousRun, RunUnreadable) as error:
        raise RuntimeError(str(error)) from error


# Entries of the queue that wait, for lists of runs.


def queued_entries(warn: Callable[[str], None] = lambda _text: None) -> "tuple[QueueEntry, ...]":
    """In their order. ``warn`` is called if the queue cannot be read; then there are none."""
    if not (home() / "queue").exists():  # as on most machines: what reads it is not loaded
        return ()
    from ...store.learned import ListUnreadable, QueueFile

    try:
        return QueueFile(home()).read().waiting
    except (ListUnreadable, OSError) as error:
        warn(str(error))
        return ()


# The log of a run's trainer, as text.

BLOCK_BYTES = 1 << 16
POLL_S = 0.25
"""Period of looking for what was added."""


def log_of(run: RunDirectory, attempt: int | None = None) -> Path:
    """The log of an attempt (None: the newest). Raises CliError (exit code 3) if there is none."""
    from ...store.journal import load_story

    attempts = load_story(run.journal).attempts
    chosen = [each for each in attempts if each.log and (attempt is None or each.number == attempt)]
    if not chosen or chosen[-1].log is None:
        which = "no attempt was started yet" if attempt is None else f"there is no attempt {attempt} with a log"
        raise CliError(ExitCode.NOT_FOUND, f"{run.id}: {which}")
    path = Path(chosen[-1].log)
    if not path.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{path}: the log was removed")
    return path


def log_around(run: RunDirectory, said: str, lines: int) -> str:
    """The lines of the log before and after a local time: ``03:41``, ``2026-11-30 03:41:20``.

    Raises CliError: exit code 2 for another text, 3 if no attempt ran before.
    """
    from datetime import datetime, timedelta
    from datetime import time as clock

    from ...sense.log.log_browser import FileLogBrowser
    from ...store.journal import load_story
    from ...store.log_index import FILE_NAME, LogIndex

    now = datetime.now().astimezone()
    try:
        if len(said) <= len("03:41:20"):
            at = datetime.combine(now, clock.fromisoformat(said)).astimezone()
            at -= timedelta(days=at > now)
        else:
            at = datetime.fromisoformat(said).astimezone()
    except ValueError:
        raise CliError(ExitCode.USAGE, f'{said}: not a local time like "03:41" or "2026-11-30 03:41:20"') from None
    story = load_story(run.journal)
    t = at.timestamp() - story.wall0
    attempt = next((each for each in reversed(story.attempts) if each.t <= t), None)
    if attempt is None:
        raise CliError(ExitCode.NOT_FOUND, f"{run.id}: no attempt had begun at {at:%Y-%m-%d %H:%M:%S}")
    path, browser = str(log_of(run, attempt.number)), FileLogBrowser()
    points = LogIndex(run.attempt(attempt.number) / FILE_NAME).since(t)
    size = max((size for at, size in points if at <= t), default=0)
    before, after = browser.before(path, size, (lines + 1) // 2), browser.after(path, size, lines // 2)
    shown = [line.text for stretch in (before, after) for line in stretch.lines]
    return "\n".join([f"==> attempt {attempt.number}, around {at:%Y-%m-%d %H:%M:%S} <==", *shown, ""])


def log_pieces(run: RunDirectory, path: Path, lines: int | None, over: Callable[[], bool] | None) -> Iterator[str]:
    """The last ``lines`` of a log (None: all), and what is added until ``over``, also by the next attempts."""
    while True:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        with path.open("rb") as file:
            if lines is not None:
                file.seek(_beginning(path, lines))
            while True:
                ended = over is None or over()  # before the log is read
                if data := file.read(BLOCK_BYTES):
                    yield decoder.decode(data)
                elif over is not None and (newest := log_of(run)) != path:
                    break
                elif ended:
                    return
                else:
                    time.sleep(POLL_S)
        path, lines = newest, None
        yield f"\n==> {newest} <==\n"


def _beginning(path: Path, lines: int) -> int:
    """Offset of the last ``lines`` lines."""
    size = path.stat().st_size
    found, end = 0, size
    with path.open("rb") as file:
        while end > 0:
            start = max(0, end - BLOCK_BYTES)
            file.seek(start)
            block = file.read(end - start)
            at = len(block) - 1 if end == size and block.endswith(b"\n") else len(block)
            while (at := block.rfind(b"\n", 0, at)) >= 0:
                found += 1
                if found == lines:
                    return start + at + 1
            end = start
    return 0
