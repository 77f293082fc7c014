"""Trainers that nobody started with trainwatch and that write where a run would write: two would overwrite each other.

Evidence is a process of this user that runs the command of the run in its working folder, a Python program that has a
file in its output folder open for writing, or one of the same script, whatever its options, whose arguments, settings
or defaults name that folder: saves of small models are open for milliseconds. It trains if it has written as much as
what was saved there since it began; an evaluation has not, and a board, a notebook or an editor is another script. What
cannot be read is unknown and refuses nothing. A person who starts the run all the same (``--force``) accepts exactly
the processes that are there then.
"""

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from ... import processes
from ...act.launch.output_locks import NAME
from ...act.stopping import members
from ...model import observation as told
from ...model.ports import AttemptTarget
from ...model.preset import resume_support
from ...model.redact import EDGE
from ...model.run import APART
from ...model.text import printable, typed
from ...processes import ATTEMPT_VARIABLE, Process, ancestors, boot_id, descendants, identify, is_alive
from ...sense.files.inotify import open_for_writing
from ...sense.files.output_search import written_since
from ...sense.files.writers import PYTHON
from ...source.launch_target import Training, is_of_one_launch, training_in, training_run_by, without_options
from ...spool import read_record
from ...store.home import write_atomically
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...views.quantity import clock
from ..errors import CliError, ExitCode
from ..plan.launch_plan import LaunchPlan, plan_launch
from ..plan.trainer_folders import output_folder
from ..runs.ended_attempt import attempts_of, newest_attempt
from .check import Check, Machine, failed

ACCEPTED = "accepted.json"
"""File in the run's folder: processes beside which a person started the run all the same."""
SEARCH_S = 1.0
"""Longest search for what was saved since another trainer began."""
SHOWN_COMMAND = 120
"""Characters of the other trainer's command in a sentence."""


class OtherTrainer(NamedTuple):
    """``evidence``: of the same training ("command"), of one of the same ``script`` there, or ``weak``.

    ``weak``: another program that has a file there open for writing, or the same script, which may only read there.
    ``what``: a clause about it.
    """

    process: Process
    argv: tuple[str, ...]
    evidence: str
    what: str

    @property
    def command(self) -> str:
        return printable(EDGE.text(shlex.join(self.argv)))[:SHOWN_COMMAND]

    @property
    def began(self) -> str:
        """When it was started, for people; "" = unknown."""
        identity = identify(self.process.pid)
        return "" if identity is None else clock(time.time() - processes.age_s(identity.start_ticks), time.time())


def check_other_trainer(plan: LaunchPlan, machine: Machine) -> Check | None:
    found = other_trainers(plan, machine.run(plan.spec))
    return None if not found else failed(what_it_is(plan, found[0]), what_to_do(found[0]))


def refusal_at_launch(plan: LaunchPlan, run: RunDirectory) -> str | None:
    """Why a supervisor that nobody looks at starts nothing now: the same script trains there. None: it can start."""
    found = [each for each in other_trainers(plan, run) if each.evidence != "weak"]
    return sentence(plan, found[0]) if found else None


def require_no_other(run: RunDirectory) -> None:
    """Raise CliError (exit code 4) if a launch that a person orders on a screen would have another trainer beside it.

    The verbs ask the same with all other checks (``require_startable``).
    """
    plan = plan_launch(run.load_spec(), state=run.path.parents[1])
    found = other_trainers(plan, run)
    if found:
        force = f"`{typed('resume', run.id, '--force')}` starts it all the same"
        raise CliError(ExitCode.OWNED, f"{sentence(plan, found[0])}; {force}; nothing was started")


def what_it_is(plan: LaunchPlan, other: OtherTrainer) -> str:
    spec, pid = plan.spec, other.process.pid
    since = f", since {began}" if (began := other.began) else ""
    where = spec.output_dir or "the same output folder"
    started = f"`{other.command}` (pid {pid}{since}) was started without trainwatch"
    return f"{started}, and {other.what}: both would write to {where}"


def what_to_do(other: OtherTrainer) -> str:
    instead, end = f"`trainwatch adopt --pid {other.process.pid}`", f"`kill {other.process.pid}`"
    return f"watch that one instead ({instead}), end it ({end}), or use another output folder"


def sentence(plan: LaunchPlan, other: OtherTrainer) -> str:
    return f"{what_it_is(plan, other)}; {what_to_do(other)}"


def other_trainers(plan: LaunchPlan, run: RunDirectory) -> Sequence[OtherTrainer]:
    """All that are known, the topmost process of each. Reads ``/proc`` once; nothing of the run's own counts."""
    if not _can_be_disturbed(plan):
        return ()
    look = Look(plan)
    look.in_folders(() if plan.spec.output_dir is None else (plan.spec.output_dir,))
    found = look.found(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    return topmost(found, run, own_processes(run)) if found else ()


def _can_be_disturbed(plan: LaunchPlan) -> bool:
    return plan.spec.capabilities.here and not APART & plan.spec.labels.keys()


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
    others = ({each.process.pid for each in found} | above_known) - own.pids
    accepted = _accepted(run)
    return tuple(
        each
        for each in sorted(found, key=lambda each: each.process.pid)
        if (pid := each.process.pid) in others
        and (boot_id(), *each.process.key) not in accepted
        and not (ancestors(pid, own.running) - {pid}) & others
    )


def accept(plan: LaunchPlan, run: RunDirectory) -> None:
    """Remember the other trainers that are there now: a person starts the run beside them."""
    found = [(boot_id(), *other.process.key) for other in other_trainers(plan, run)]
    if found:
        write_atomically(run.path / ACCEPTED, msgspec.json.encode([*_accepted(run), *found]))


def _accepted(run: RunDirectory) -> list[tuple[str, int, int]]:
    return read_record(run.path, ACCEPTED, list[tuple[str, int, int]]) or []


class Look:
    """Compares processes of this user with a planned launch: its command, its script, its output folders."""

    def __init__(self, plan: LaunchPlan) -> None:
        self._plan = plan
        self._place = _file_key(plan.spec.cwd)
        self.folders: tuple[str, ...] = ()
        self._run_by: dict[tuple[object, ...], Training] = {}

    def in_folders(self, folders: Iterable[str]) -> None:
        """The output folders in which a file says something: none that holds the working folder, with other files."""
        cwd = self._plan.spec.cwd
        real = (os.path.realpath(os.path.join(cwd, each)) for each in folders)  # noqa: PTH118
        self.folders = tuple(each for each in real if not Path(os.path.realpath(cwd)).is_relative_to(each))

    @cached_property
    def _commands(self) -> tuple[tuple[str, ...], ...]:
        derived = self._plan.derived
        return (self._plan.spec.command, *(() if derived is None else (tuple(derived.argv),)))

    @cached_property
    def _resume_options(self) -> frozenset[str]:
        return frozenset(each for words in self._commands for each in resume_support(self._plan.preset, words).names)

    @cached_property
    def trainings(self) -> tuple[Training, ...]:
        """What the launch trains, without the options of resume. Reads scripts."""
        spec = self._plan.spec
        found = (training_in(words, Path(spec.cwd), {**os.environ, **spec.env}) for words in self._commands)
        return tuple(without_options(each, self._resume_options) for each in found if each is not None)

    def found(self, pids: Iterable[int]) -> list[OtherTrainer]:
        """Those among these processes that are other trainers, or started by one."""
        found: list[OtherTrainer] = []
        for pid in pids:
            with contextlib.suppress(OSError, UnicodeDecodeError):  # what cannot be read is unknown
                found += self._at(pid)
        return found

    def _at(self, pid: int) -> Iterator[OtherTrainer]:
        """Raises OSError, UnicodeDecodeError."""
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116
            return
        python = os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(PYTHON)  # noqa: PTH115, PTH119
        here = self._place is not None and _file_key(f"/proc/{pid}/cwd") == self._place
        if not here and (not python or not self.folders):
            return
        process = processes.read_process(pid)
        if process is None or process.state in processes.DEAD_STATES:
            return
        with open(f"/proc/{pid}/cmdline", "rb") as command:  # noqa: PTH123
            argv = tuple(word.decode() for word in command.read().removesuffix(b"\0").split(b"\0"))
        cwd = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
        asked = process.key, argv, cwd
        training = self._run_by.get(asked) or (training_run_by(argv, Path(cwd), os.environ) if python else None)
        if training is not None:  # each look finds the same processes there, and to read their scripts takes long
            self._run_by = {**dict(list(self._run_by.items())[-255:]), asked: training}
        bare = None if training is None else without_options(training, self._resume_options)
        same = training is not None and training.script in {each.script for each in self.trainings}
        evidence, what, there = "", "", files_in(pid, self.folders) if python else []
        if here and (argv in self._commands or (bare is not None and bare in self.trainings)):
            evidence, what = "command", f"it is the same training in {cwd}"
        elif same and there:
            evidence, what = "script", f"it has {there[0]} open for writing"
        elif same and self._saves_here(argv, cwd):
            evidence = "script" if self._has_saved(process) else "weak"
            what = "it runs the same script with the same output folder"
        else:  # a program whose output goes there need not write anything else there
            outputs = {_file_key(f"/proc/{pid}/fd/{number}") for number in (1, 2)}
            for file in (path for path in there if _file_key(path) not in outputs):
                evidence, what = "weak", f"it has {file} open for writing"
        if not evidence or processes.is_trainwatch(processes.words_of(pid)):
            return
        # What belongs, or may belong, to an attempt of any run is known by its records and locks.
        variables, mark = processes.variables_of(pid), os.fsencode(f"{ATTEMPT_VARIABLE}=")
        if variables is not None and not any(each.startswith(mark) for each in variables):
            yield OtherTrainer(process, argv, evidence, what)

    def _saves_here(self, argv: Sequence[str], cwd: str) -> bool:
        """Whether the command names one of the folders, or its settings or defaults do."""
        spec = msgspec.structs.replace(self._plan.spec, command=tuple(argv), cwd=cwd)
        values = (part for word in argv for part in (word, word.partition("=")[2]))
        named = (each for each in (*values, output_folder(spec, self._plan.preset)) if each)
        return any(os.path.realpath(os.path.join(cwd, each)) in self.folders for each in named)  # noqa: PTH118

    def _has_saved(self, process: Process) -> bool:
        """Whether it has written as much as the largest file that was saved there since it began."""
        io, began = processes.read_io(process.pid), time.time() - processes.age_s(process.start_ticks)
        found = map(processes.status_of, written_since(self.folders, began, SEARCH_S))
        largest = max((each.st_size for each in found if each is not None), default=0)
        return io is not None and 0 < largest <= io.given_bytes


def files_in(pid: int, folders: Sequence[str]) -> list[str]:
    """What a process has open for writing in these folders, locks left out, under the names that it has there."""
    return [
        path
        for _, path, number, _ in open_for_writing([pid])
        if any(path.startswith(f"{folder}/") for folder in folders)
        and not path.endswith(f"/{NAME}")
        and _file_key(path) == _file_key(f"/proc/{pid}/fd/{number}")
    ]


def own_processes(run: RunDirectory) -> Own:
    """Our process with what it was started from and what it started, and the attempts of the run likewise."""
    running = processes.all_processes()
    own = {*processes.ancestors(os.getpid(), running), *(p.pid for p in processes.descendants(os.getpid(), running))}
    for process in (process for target in attempts_of(run) for process in members(target)):
        own |= processes.ancestors(process.pid, running)
    return Own(running, own)


def _file_key(path: str) -> tuple[int, int] | None:
    found = processes.status_of(path)
    return None if found is None else (found.st_dev, found.st_ino)


# Trainers that were started without trainwatch while an attempt lives, and write where it writes.

FILES = 20
"""Most files of a trainer that are kept as evidence."""


class BesideAttempt:
    """Examines processes for the sensor ``OtherTrainers``. ``folders``: the output folders that are known now.

    Evidence is what refuses a launch: the same training in the working folder, or the same script that saves to an
    output folder. Another program that writes there is none: an evaluation that a person starts, a notebook. Nor is the
    same training alone if each launch makes an output folder of its own.
    """

    def __init__(self, plan: LaunchPlan, run: RunDirectory, folders: Callable[[], Sequence[str]]) -> None:
        self._cwd, self._run, self._folders = plan.spec.cwd, run, folders
        self._look = Look(plan)
        self.wanted = _can_be_disturbed(plan)

    def __call__(
        self, target: AttemptTarget, pids: Collection[int], known: Collection[int]
    ) -> tuple[told.OtherTrainer, ...]:
        outputs = tuple(self._folders())
        self._look.in_folders(outputs)
        seen = [each for each in self._look.found(pids) if each.evidence != "weak"]
        if not seen:
            return ()
        own = own_processes(self._run)
        found = topmost(seen, self._run, own, frozenset(known))
        others = [each for each in found if not self._is_of_another_run(each.process.pid, own)]
        held = set(self._files(members(target))) if others else set()
        trainers = tuple(self._told(each, held, outputs) for each in others)
        alone = bool(outputs) and all(is_of_one_launch(folder, self._cwd) for folder in outputs)
        return tuple(each for each in trainers if each.files or each.same == "script" or not alone)

    def _files(self, of: Iterable[Process]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for each in of for path in files_in(each.pid, self._look.folders)))

    def _is_of_another_run(self, pid: int, own: Own) -> bool:
        """Whether another run watches it, which found it running: its locks say if it writes to the same folder."""
        with contextlib.suppress(OSError):
            for path in self._run.path.parent.iterdir():
                other = RunDirectory(path)
                target = newest_attempt(other) if path.name != self._run.id and is_held(other.lock) else None
                if target is not None and is_alive(target.trainer):
                    trainer = target.trainer.pid
                    if pid in ancestors(trainer, own.running) or trainer in ancestors(pid, own.running):
                        return True
        return False

    def _told(self, other: OtherTrainer, held: Collection[str], outputs: Sequence[str]) -> told.OtherTrainer:
        pid, cwd = other.process.pid, self._cwd
        with contextlib.suppress(OSError):
            cwd = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
        files = self._files((other.process, *descendants(pid)))
        folder = next((each for each in self._look.folders if files and files[0].startswith(f"{each}/")), None)
        return told.OtherTrainer(
            pid=pid,
            start_ticks=other.process.start_ticks,
            command=other.command,
            cwd=cwd,
            began=other.began,
            same="training" if other.evidence == "command" else "script",
            folder=folder or next(iter(outputs), ""),
            files=files[:FILES],
            shared=tuple(each for each in files if each in held)[:FILES],
        )
