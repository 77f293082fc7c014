"""Trainers that nobody started with trainwatch and that write where a run would write: two would overwrite each other.

Evidence is a process of this user that runs the command of the run in its working folder, or a Python program that has
a file in its output folder open for writing. What cannot be read is unknown and refuses nothing. A person who starts
the run all the same (``--force``) accepts exactly the processes that are there then.
"""

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ...act import processes
from ...act.adopt import is_trainwatch, started_wall
from ...act.launch.launching import find_attempt, identify, is_alive
from ...act.launch.output_locks import NAME
from ...act.processes import ATTEMPT_VARIABLE, Process, ancestors, descendants
from ...act.stopping import members
from ...model import observation as told
from ...model.edge import EDGE
from ...model.preset import Preset
from ...model.resume import PLACEHOLDER
from ...model.suggestion import typed
from ...model.supervision_ports import AttemptTarget
from ...model.text import printable
from ...sense.files.inotify import descriptors_for_writing
from ...sense.process.ranks import Examined
from ...source.launch_target import (
    Training,
    is_of_one_launch,
    options_that_name,
    training_in,
    training_run_by,
    without_options,
)
from ...store.home import write_atomically
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...views.quantity import clock
from ..errors import CliError, ExitCode
from ..plan.launch_plan import LaunchPlan, plan_launch
from ..plan.specs import definitions_of
from ..runs.ended_attempt import newest_attempt
from .check import Check, Machine, failed

ACCEPTED = "accepted.json"
"""File in the run's folder: processes beside which a person started the run all the same."""
PYTHON = ("python", "pypy")
APART = frozenset({"rehearsal_of", "trial_of"})
"""Labels of runs that write apart from the files of the run that they are made from."""
SHOWN_COMMAND = 120
"""Characters of the other trainer's command in a sentence."""
_OUTPUT = (1, 2)

Evidence = Literal["command", "script", "file"]
"""It is the same training; the same script has a file there open for writing; another Python program has."""


class OtherTrainer(NamedTuple):
    """``file``: what it has open for writing in the run's output folder; "" for the same training."""

    process: Process
    argv: tuple[str, ...]
    evidence: Evidence
    file: str = ""


class Wanted(NamedTuple):
    """What is compared with a process: the commands of a run, and what they train without the options of resume."""

    commands: tuple[tuple[str, ...], ...]
    trainings: tuple[Training, ...]
    resume_options: frozenset[str]

    def same(self, argv: Sequence[str], training: Training | None) -> bool:
        if tuple(argv) in self.commands:
            return True
        return training is not None and without_options(training, self.resume_options) in self.trainings

    def same_script(self, training: Training | None) -> bool:
        return training is not None and training.script in {each.script for each in self.trainings}


def check_other_trainer(plan: LaunchPlan, machine: Machine) -> Check | None:
    found = other_trainers(plan, RunDirectory(machine.home / "runs" / plan.spec.id))
    return None if not found else failed(what_it_is(plan, found[0]), what_to_do(found[0]))


def refusal_at_launch(plan: LaunchPlan, run: RunDirectory) -> str | None:
    """Why a supervisor that nobody looks at starts nothing now: the same script trains there. None: it can start."""
    found = [each for each in other_trainers(plan, run) if each.evidence != "file"]
    return f"{what_it_is(plan, found[0])}; {what_to_do(found[0])}" if found else None


def require_no_other(run: RunDirectory) -> None:
    """Raise CliError (exit code 4) if a launch that a person orders on a screen would have another trainer beside it.

    The verbs ask the same with all other checks (``require_startable``).
    """
    spec = run.load_spec()
    plan = plan_launch(spec, definitions_of(spec), run.path.parents[1])
    found = other_trainers(plan, run)
    if found:
        force = f"`{typed('resume', run.id, '--force')}` starts it all the same"
        raise CliError(
            ExitCode.OWNED, f"{what_it_is(plan, found[0])}; {what_to_do(found[0])}; {force}; nothing was started"
        )


def what_it_is(plan: LaunchPlan, other: OtherTrainer) -> str:
    spec, pid = plan.spec, other.process.pid
    identity = identify(pid)
    since = "" if identity is None else f", since {clock(started_wall(identity), time.time())}"
    command = printable(EDGE.text(shlex.join(other.argv)))[:SHOWN_COMMAND]
    what = f"it has {other.file} open for writing" if other.file else f"it is the same training in {spec.cwd}"
    where = spec.output_dir or "the same output folder"
    return f"`{command}` (pid {pid}{since}) was started without trainwatch, and {what}: both would write to {where}"


def what_to_do(other: OtherTrainer) -> str:
    pid = other.process.pid
    return (
        f"watch that one instead (`trainwatch adopt --pid {pid}`), end it (`kill {pid}`), or use another output folder"
    )


def other_trainers(plan: LaunchPlan, run: RunDirectory) -> Sequence[OtherTrainer]:
    """All that are known, the topmost process of each. Reads ``/proc`` once; nothing of the run's own counts."""
    spec = plan.spec
    if not spec.capabilities.here or APART & spec.labels.keys():
        return ()
    look = Look(partial(wanted_by, plan), spec.cwd, apart_from((spec.output_dir,), spec.cwd))
    found = look.found()
    return topmost(found, run, own_processes(run)) if found else ()


def wanted_by(plan: LaunchPlan) -> Wanted:
    """What the processes are compared with. Reads scripts."""
    spec = plan.spec
    derived = () if plan.derived is None else (plan.derived.argv,)
    return _wanted((spec.command, *derived), plan.preset, spec.cwd, {**os.environ, **spec.env})


class Own(NamedTuple):
    """``running``: all processes; ``pids``: those of them that are the run's own."""

    running: Mapping[int, Process]
    pids: AbstractSet[int]


def topmost(
    found: Sequence[OtherTrainer], run: RunDirectory, own: Own, above_known: AbstractSet[int] = frozenset()
) -> tuple[OtherTrainer, ...]:
    """Without the run's own, those that a person accepted, and what another trainer started.

    ``above_known``: pids of trainers that are known already: their descendants are not named again.
    """
    pids = {each.process.pid for each in found}
    others = (pids | above_known) - own.pids
    return tuple(
        each
        for each in sorted(found, key=lambda each: each.process.pid)
        if each.process.pid in others
        and not _is_known(each.process, run)
        and not (processes.ancestors(each.process.pid, own.running) - {each.process.pid}) & others
    )


def accept(plan: LaunchPlan, run: RunDirectory) -> None:
    """Remember the other trainers that are there now: a person starts the run beside them."""
    found = [[processes.boot_id(), *other.process.key] for other in other_trainers(plan, run)]
    if found:
        write_atomically(run.path / ACCEPTED, msgspec.json.encode([*_accepted(run), *found]))


def _is_known(process: Process, run: RunDirectory) -> bool:
    return (processes.boot_id(), *process.key) in _accepted(run)


def _accepted(run: RunDirectory) -> list[tuple[str, int, int]]:
    try:
        return msgspec.json.decode((run.path / ACCEPTED).read_bytes(), type=list[tuple[str, int, int]])
    except (OSError, msgspec.MsgspecError):
        return []


def _wanted(commands: Sequence[Sequence[str]], preset: Preset, cwd: str, env: Mapping[str, str]) -> Wanted:
    options = {word for words in commands for word in options_that_name(PLACEHOLDER, words)}
    for style in (preset.resume_file, preset.resume_directory):
        if style is not None:
            options |= {word.partition("=")[0] for word in style.args if word.startswith("-") or "=" in word}
    trainings = (training_in(words, Path(cwd), env) for words in commands)
    return Wanted(
        tuple(tuple(words) for words in commands),
        tuple(without_options(each, options) for each in trainings if each is not None),
        frozenset(options),
    )


def apart_from(output_dirs: Iterable[str | None], cwd: str) -> tuple[str, ...]:
    """The output folders in which a file says something: not one that the working folder lies in, with other files."""
    folders = (os.path.realpath(os.path.join(cwd, each)) for each in output_dirs if each is not None)  # noqa: PTH118
    return tuple(each for each in folders if not Path(os.path.realpath(cwd)).is_relative_to(each))


class Look:
    """Passes over the processes of this user. ``folders``: as by ``apart_from``."""

    def __init__(self, wanted: Callable[[], Wanted], cwd: str, folders: Sequence[str]) -> None:
        self._read_wanted, self.folders = wanted, folders
        self._place = _file_key(cwd)

    @cached_property
    def wanted(self) -> Wanted:
        return self._read_wanted()

    def found(self, pids: Iterable[int] | None = None) -> list[OtherTrainer]:
        """Those among these processes (None: among all) that are other trainers, or started by one."""
        among = (int(name) for name in os.listdir("/proc") if name.isdecimal()) if pids is None else pids  # noqa: PTH208
        found: list[OtherTrainer] = []
        for pid in among:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                found += self._at(pid)
        return found

    def _at(self, pid: int) -> Iterator[OtherTrainer]:
        """Raises OSError, UnicodeDecodeError: what cannot be read is unknown."""
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116
            return
        python = os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(PYTHON)  # noqa: PTH115, PTH119
        here = self._place is not None and _file_key(f"/proc/{pid}/cwd") == self._place
        if not here and (not python or not self.folders):
            return
        process = processes.read_process(pid)
        if process is None or process.state in processes.DEAD_STATES:
            return
        argv = argv_of(pid)
        training = self._training(pid, argv) if python and here else None
        if here and self.wanted.same(argv, training):
            evidence: Evidence | None = "command"
            file = ""
        elif python and self.folders:
            evidence, file = self._writes(pid, argv)
        else:
            return
        if evidence is not None and not is_trainwatch(pid) and not _is_marked(pid):
            yield OtherTrainer(process, argv, evidence, file)

    def _writes(self, pid: int, argv: Sequence[str]) -> tuple[Evidence | None, str]:
        """What it has open for writing there. A program whose output goes there need not write anything else there."""
        there = files_in(pid, self.folders)
        if not there:
            return None, ""
        if self.wanted.same_script(self._training(pid, argv)):
            return "script", there[0]
        outputs = {_file_key(f"/proc/{pid}/fd/{number}") for number in _OUTPUT}
        file = next((path for path in there if _file_key(path) not in outputs), None)
        return (None, "") if file is None else ("file", file)

    @staticmethod
    def _training(pid: int, argv: Sequence[str]) -> Training | None:
        cwd = Path(os.readlink(f"/proc/{pid}/cwd"))  # noqa: PTH115
        return training_run_by(argv, cwd, os.environ)


def files_in(pid: int, folders: Sequence[str]) -> list[str]:
    """What a process has open for writing in these folders, locks left out, under the names that it has there."""
    return [
        path
        for number, path in descriptors_for_writing(pid)
        if any(path.startswith(f"{folder}/") for folder in folders)
        and not path.endswith(f"/{NAME}")
        and _file_key(path) == _file_key(f"/proc/{pid}/fd/{number}")
    ]


def own_processes(run: RunDirectory) -> Own:
    """Our process with what it was started from and what it started, and the attempts of the run likewise."""
    running = processes.all_processes()
    own = {*processes.ancestors(os.getpid(), running), *(p.pid for p in processes.descendants(os.getpid(), running))}
    for folder in run.attempt_folders():
        target = find_attempt(folder)
        for process in () if target is None else members(target):
            own |= processes.ancestors(process.pid, running)
    return Own(running, own)


def _is_marked(pid: int) -> bool:
    """Whether it belongs to an attempt, of any run: those are known by their records and locks."""
    with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        return any(word.startswith(os.fsencode(f"{ATTEMPT_VARIABLE}=")) for word in file.read().split(b"\0"))


def argv_of(pid: int) -> tuple[str, ...]:
    with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
        return tuple(word.decode() for word in file.read().removesuffix(b"\0").split(b"\0"))


def _file_key(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino


# Trainers that were started without trainwatch while an attempt lives, and write where it writes.

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
