"""Trainers that were started without trainwatch while an attempt lives, and write where it writes."""

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from ...act.adopt.adoption import started_wall
from ...act.launch.launching import identify, is_alive
from ...act.processes import ancestors, descendants
from ...act.stop.stopping import members
from ...model.beside import other_trainer as told
from ...model.ports.supervision import AttemptTarget
from ...model.text.edge import EDGE
from ...model.text.printable import printable
from ...sense.process.other_trainers import Examined
from ...source.same_training import is_of_one_launch
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...views.quantity import clock
from ..plan.launch_plan import LaunchPlan
from ..runs.launched_attempts import newest_attempt
from .other_trainer import (
    APART,
    SHOWN_COMMAND,
    Look,
    OtherTrainer,
    Own,
    apart_from,
    argv_of,
    files_in,
    own_processes,
    topmost,
    wanted_by,
)

FILES = 20
"""Most files of a trainer that are kept as evidence."""


class BesideAttempt:
    """Examines processes for the sensor ``OtherTrainers``. ``folders``: the output folders that are known now.

    Evidence is what refuses a launch: the same training in the working folder, or the same script with a file open for
    writing in an output folder. Another program that writes there is none: an evaluation that a person starts, a
    notebook. Nor is the same training alone if each launch makes an output folder of its own.
    """

    def __init__(self, plan: LaunchPlan, run: RunDirectory, folders: Callable[[], Sequence[str]]) -> None:
        self._plan, self._run, self._folders = plan, run, folders
        self._look = Look(partial(wanted_by, plan), plan.spec.cwd, ())

    @property
    def wanted(self) -> bool:
        """Whether another trainer can be seen, and would write where this run writes."""
        spec = self._plan.spec
        return spec.capabilities.here and not APART & spec.labels.keys()

    def __call__(self, target: AttemptTarget, pids: Collection[int], known: Collection[int]) -> Examined:
        cwd, outputs = self._plan.spec.cwd, tuple(self._folders())
        self._look.folders = apart_from(outputs, cwd)
        seen = [each for each in self._look.found(pids) if each.evidence != "file"]
        again = (
            self._same_script(set(pids) - {each.process.pid for each in seen}) if self._look.folders else frozenset()
        )
        if not seen:
            return Examined((), again)
        own = own_processes(self._run)
        found = topmost(seen, self._run, own, frozenset(known))
        others = [each for each in found if not self._is_of_another_run(each.process.pid, own)]
        ours = tuple(process.pid for process in members(target)) if others else ()
        trainers = tuple(self._told(each, ours, outputs) for each in others)
        if outputs and all(is_of_one_launch(folder, cwd) for folder in outputs):
            silent = frozenset(each.pid for each in trainers if not each.files)
            trainers, again = tuple(each for each in trainers if each.files), again | silent
        return Examined(trainers, again)

    def _same_script(self, pids: Collection[int]) -> frozenset[int]:
        """Those that name the script of the run: one with other options may open a file there later."""
        names = {each.script.name for each in self._look.wanted.trainings} if pids else set()
        return frozenset(pid for pid in pids if names & set(_words(pid))) if names else frozenset()

    def _is_of_another_run(self, pid: int, own: Own) -> bool:
        """Whether another run watches it, which found it running: its locks say if it writes to the same folder."""
        return any(
            pid in ancestors(trainer, own.running) or trainer in ancestors(pid, own.running)
            for trainer in self._adopted()
        )

    def _adopted(self) -> Iterator[int]:
        with contextlib.suppress(OSError):
            for path in self._run.path.parent.iterdir():
                other = RunDirectory(path)
                if path.name == self._run.id or not is_held(other.lock):
                    continue
                target = newest_attempt(other)
                if target is not None and is_alive(target.trainer):
                    yield target.trainer.pid

    def _told(self, other: OtherTrainer, ours: Sequence[int], outputs: Sequence[str]) -> told.OtherTrainer:
        pid, spec = other.process.pid, self._plan.spec
        identity = identify(pid)
        line = (pid, *(each.pid for each in descendants(pid)))
        files = _unique(each for one in line for each in files_in(one, self._look.folders))
        held = {each for one in ours for each in files_in(one, self._look.folders)}
        folder = next((each for each in self._look.folders if files and files[0].startswith(f"{each}/")), None)
        return told.OtherTrainer(
            pid=pid,
            start_ticks=other.process.start_ticks,
            command=printable(EDGE.text(shlex.join(other.argv)))[:SHOWN_COMMAND],
            cwd=_cwd(pid) or spec.cwd,
            began="" if identity is None else clock(started_wall(identity), time.time()),
            same="training" if other.evidence == "command" else "script",
            folder=folder or next(iter(outputs), ""),
            files=files[:FILES],
            shared=tuple(each for each in files if each in held)[:FILES],
        )


def _words(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        yield from (os.path.basename(word) for word in argv_of(pid))  # noqa: PTH119


def _cwd(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
    except OSError:
        return ""


def _unique(files: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(files))
