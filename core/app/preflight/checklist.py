"""The table of checks, and what follows from it: the list of ``trainwatch check``, and whether a run can start.

No other module decides whether a run can start. A check that can refuse a start has an exit code in ``refuses``.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...act.config.derive import Derived
from ...act.local_engine import READY, Readiness
from ...config.project import load_project
from ...model.preset import Preset
from ...model.run import RunSpec, has_inodes, need_bytes, with_place
from ...model.text import size
from ..errors import CliError, ExitCode
from ..gpu_survey import GpuSurvey, survey, surveying
from ..plan.launch_plan import LaunchPlan, plan_project
from ..runs.known_runs import home
from .check import Check, Machine, existing, failed, look_at_machine, passed, warned
from .command_checks import check_exit_status, check_hand_over, check_place
from .gpu_checks import (
    asks_for_cpu,
    check_advice,
    check_gpus,
    check_gpus_of,
    check_imports,
    check_memory,
    check_need,
    check_profile_options,
    check_torch,
    check_torch_build,
    check_vram,
)
from .host_checks import (
    check_disk,
    check_gpu_channel,
    check_logout,
    check_old_sessions,
    check_output_dir,
    check_output_lock,
    check_output_owner,
    check_resume_point,
    check_sleep,
    check_state_folder,
    check_supervisor,
    check_tmux,
    check_wsl_idle,
    own_checkpoint_bytes,
)
from .launch_checks import (
    check_command,
    check_ladder,
    check_launch,
    check_length,
    check_measured,
    check_notify,
    check_paths,
    check_profile,
    check_scheduler,
    check_script,
)
from .other_trainer import check_other_trainer
from .resume_checks import (
    check_checkpoint_named,
    check_data_changed,
    check_load,
    check_model,
    check_resume,
    check_saves,
    check_second_start,
)

FORCE = "`--force` starts it all the same"
SHOWN_COMMAND = 200
"""Characters of the command in the sentence that refuses it."""
DISK = "disk"
SHOWN_APART = frozenset({"output_dir", "hand-over"})
"""Checks whose finding a dry run shows in a row of its own."""


class Row(NamedTuple):
    """A check of a planned launch and the machine, or of the machine alone (``MACHINE_CHECKS``).

    ``quick``: it takes milliseconds (no driver call, nothing is imported into the trainer's interpreter, no tensor
    is read), so it is repeated before every launch. ``refuses``: a failure refuses a start with this exit code.
    ``stops``: so does this one, when a person starts, unless ``--force`` is given. ``at_start``: what is asked then, if
    the whole check takes too long. ``told``: who starts the run by a command is told of a warning or a failure.
    ``here``: it looks at this machine's GPUs, memory or packages: of a run whose attempts are jobs it says nothing.
    ``gpus``: it needs the driver's answer.
    """

    name: str
    function: Callable[..., Check | None]
    quick: bool = False
    refuses: ExitCode | None = None
    stops: ExitCode | None = None
    at_start: Callable[..., Check | None] | None = None
    told: bool = False
    here: bool = False
    gpus: bool = False

    def ask(self, *about: LaunchPlan | Machine, starts: bool = False) -> Check | None:
        """The result; a file that cannot be read is a warning, and does not end the other checks."""
        try:
            found = ((self.at_start if starts else None) or self.function)(*about)
        except OSError as error:
            found = warned(f"could not be checked: {error}", "check the permissions of the files that it names")
        return None if found is None else msgspec.structs.replace(found, name=self.name)


RUN_CHECKS = (
    Row("launch", check_launch, refuses=ExitCode.USAGE),
    Row("command", check_command, refuses=ExitCode.USAGE),
    Row("scheduler", check_scheduler, quick=True, stops=ExitCode.NOT_FOUND, told=True),
    Row("output owner", check_output_owner, refuses=ExitCode.OWNED),
    Row("output lock", check_output_lock, stops=ExitCode.OWNED),
    Row("other trainer", check_other_trainer, stops=ExitCode.OWNED, here=True),
    Row("script", check_script, quick=True, stops=ExitCode.NOT_FOUND, told=True),
    Row("exit status", check_exit_status, quick=True),
    Row("hand-over", check_hand_over, quick=True),
    Row("place", check_place, quick=True, told=True),
    Row("stable profile", check_profile, told=True),
    Row("ladder", check_ladder, told=True),
    Row("profile options", check_profile_options, quick=True, stops=ExitCode.USAGE),
    Row("checkpoint", check_checkpoint_named, quick=True, stops=ExitCode.NOT_FOUND),
    Row("data", check_paths, quick=True, stops=ExitCode.NOT_FOUND, told=True),
    Row("output_dir", check_output_dir, quick=True, refuses=ExitCode.FAILED),
    Row(DISK, check_disk, quick=True, stops=ExitCode.FAILED),
    Row("resume", check_resume, stops=ExitCode.USAGE),
    Row("restart", check_second_start, quick=True, stops=ExitCode.FAILED, told=True),
    Row("saves", check_saves, told=True),
    Row("resume point", check_resume_point),
    Row("model", check_model, stops=ExitCode.FAILED),
    Row("load", check_load, told=True),
    Row("data set", check_data_changed, told=True),
    Row("imports", check_imports, stops=ExitCode.FAILED, told=True, here=True),
    Row("torch", check_torch, stops=ExitCode.FAILED, at_start=check_torch_build, told=True, here=True, gpus=True),
    Row("gpu", check_gpus_of, stops=ExitCode.FAILED, told=True, here=True, gpus=True),
    Row("vram", check_vram, stops=ExitCode.FAILED, told=True, here=True, gpus=True),
    Row("vram need", check_need, told=True, here=True, gpus=True),
    Row("hardware", check_advice, told=True, here=True, gpus=True),
    Row("measured here", check_measured, quick=True, told=True),
    Row("length", check_length, told=True),
    Row("notify", check_notify, quick=True, stops=ExitCode.FAILED),
    Row("supervisor", check_supervisor),
    Row("old sessions", check_old_sessions),
)
MACHINE_CHECKS = (
    Row("memory", check_memory),
    Row("tmux", check_tmux),
    Row("state folder", check_state_folder, quick=True),
    Row("logout", check_logout, stops=ExitCode.FAILED),
    Row("sleep", check_sleep),
    Row("wsl idle", check_wsl_idle),
    Row("gpu channel", check_gpu_channel, stops=ExitCode.FAILED),
)
"""None prevents a launch without a person: our own trouble costs no training."""


def preflight_here(name: str | None) -> list[Check]:
    """The checks of a run of this folder's trainwatch.toml. A file with problems is a check that failed."""
    plan, problem = None, None
    try:
        plan = plan_project(name)
    except CliError as error:
        if error.code is not ExitCode.USAGE:
            raise
        problem = str(error)
    return preflight(plan, problem)


def preflight(plan: LaunchPlan | None, problem: str | None = None, machine: Machine | None = None) -> list[Check]:
    """All checks that apply; without a project only those of the machine. ``problem``: what is wrong with the config.

    Changes nothing. Asking torch and reading a checkpoint may take some seconds.
    """
    machine = machine if machine is not None else look_at_machine()
    if plan is None:
        return [config_check(None, problem), *machine_checks(machine)]
    found = (check() for _, check in checks_of(plan, machine))
    return [config_check(plan.spec, problem, plan.preset), *(check for check in found if check is not None)]


def machine_checks(machine: Machine | None = None) -> list[Check]:
    """The checks of the machine alone, whatever is to run on it. Changes nothing; asks the GPU driver."""
    machine = machine if machine is not None else look_at_machine()
    found = (row.ask(machine) for row in (Row("gpu", check_gpus), *MACHINE_CHECKS))
    return [check for check in found if check is not None]


def checks_of(plan: LaunchPlan, machine: Machine) -> Sequence[tuple[str, Callable[[], Check | None]]]:
    """(name, check) of all that apply to a planned launch. Each may be called in a thread of its own."""
    of_run = [(row.name, partial(row.ask, plan, machine)) for row in _rows(plan)]
    return of_run + [(row.name, partial(row.ask, machine)) for row in MACHINE_CHECKS]


def config_check(spec: RunSpec | None, problem: str | None = None, preset: Preset | None = None) -> Check:
    """Whether there is a trainwatch.toml, and whether it can be used. ``preset``: that of the run."""
    if problem is not None:
        found = failed(problem, "correct it, then check again")
    elif spec is None:
        found = warned("no trainwatch.toml here", "write one: trainwatch init -- COMMAND")
    else:
        why = spec.preset_why if preset is None else preset.told(spec.preset_why)
        known_by = f"preset {spec.preset}" + (f" ({why})" if why else "")
        found = passed(f"{spec.project or 'none needed'}: run {spec.name}, {known_by}")
    return msgspec.structs.replace(found, name="config")


def told_at_launch(plan: LaunchPlan) -> tuple[Check, ...]:
    """What ``check`` would say about this launch that its user should know now: no GPU, data or time is enough for it.

    Warnings and failures; also the estimate of its length, and where it runs. Takes as long as one question to the GPU
    driver.
    """
    rows = [row for row in _rows(plan) if row.told]
    answer = _answered.pop if _answered else survey
    machine = look_at_machine(answer, gpus=any(row.gpus for row in rows))
    found = [(row.name, row.ask(plan, machine, starts=True)) for row in rows]
    shown = ((name, check) for name, check in found if not (name == "gpu" and not machine.gpus.gpus))
    return tuple(c for name, c in shown if c is not None and (c.result != "pass" or name in {"length", "place"}))


def told_before_start(plan: LaunchPlan) -> tuple[Check, ...]:
    """What a start would tell: at once, and in its first events (*check before the launch*); the disk in any case."""
    told = told_at_launch(plan)
    apart = {*SHOWN_APART, *(check.name for check in told)}
    quick = [check for _, check in _quick(plan) if check.name not in apart]
    return (*told, *(check for check in quick if check.result != "pass" or check.name == DISK))


def told_at_resume(plan: LaunchPlan) -> Check | None:
    """What a person should know who lets a known run go on: the data set is another one than at its last launch."""
    found = Row("data set", check_data_changed).ask(plan, _without_gpus())
    return None if found is None or found.result == "pass" else found


class Obstacle(NamedTuple):
    """Why a run cannot be started. ``exit_code``: of the verb that was to start it."""

    exit_code: ExitCode
    sentence: str


def why_not_start(
    plan: LaunchPlan, *, known: bool = False, forced: bool = False, waits_for_room: bool = False
) -> Obstacle | None:
    """The first check that refuses a start; None if the run can be started.

    Takes a tenth of a second for a script that imports packages, and as long as one question to the GPU driver.
    ``known``: an earlier run goes on, so that only what ``check`` fails on stops it. ``forced``: that stops nothing.
    ``waits_for_room``: its supervisor launches nothing before there is room.
    """
    machine, rows = _without_gpus(), _rows(plan)
    for row in () if known else rows:
        check = None if row.refuses is None else row.ask(plan, machine)
        if row.refuses is not None and check is not None and check.result == "fail":
            origin = _origin(plan.spec) if row.refuses is ExitCode.USAGE else ""
            place = with_place("", plan.spec, "command", "cwd") if origin else ""
            parts = (check.found, check.remedy.removesuffix(place))
            return Obstacle(row.refuses, origin + "; ".join(filter(None, parts)))
    if forced or plan.derived is None:
        return None
    rows = [row for row in rows if row.stops and not (waits_for_room and row.name == DISK)]
    of_gpus = [row for row in rows if row.gpus]
    with surveying() if of_gpus else nullcontext(GpuSurvey) as answer:
        found = next(_failures([row for row in rows if not row.gpus], plan, machine), None)
        found = found or next(_failures([row for row in MACHINE_CHECKS if row.stops], machine), None)
        if found is not None or not of_gpus:
            return found
        machine = look_at_machine(answer)
    _answered[:] = [machine.gpus]
    return next(_failures(of_gpus, plan, machine), None)


_answered: list[GpuSurvey] = []
"""What the driver said when a start was not refused: what is told of that start, right after it, need not ask again."""


def _without_gpus() -> Machine:
    return Machine(home=home(), environ=os.environ)


def _failures(rows: Sequence[Row], *about: LaunchPlan | Machine) -> Iterator[Obstacle]:
    """What fails, although nothing but its finding prevents the launch."""
    for row in rows:
        check = row.ask(*about, starts=True)
        if row.stops is not None and check is not None and check.result == "fail":
            yield Obstacle(row.stops, "; ".join((f"{row.name}: {check.found}", *filter(None, (check.remedy, FORCE)))))


def require_startable(
    plan: LaunchPlan, *, known: bool = False, forced: bool = False, waits_for_room: bool = False
) -> None:
    """Raise CliError if the run cannot be started. Options as for ``why_not_start``."""
    obstacle = why_not_start(plan, known=known, forced=forced, waits_for_room=waits_for_room)
    if obstacle is not None:
        command = shlex.join(plan.command_shown)[:SHOWN_COMMAND]
        raise CliError(obstacle.exit_code, f"{obstacle.sentence}; nothing was started: {command}")


class ReadinessCheck:
    """Implements the actor's ``ready``: the quick checks before every launch.

    ``note`` keeps a sentence in the journal; each warning is noted once, not at every restart. ``taken``: the sentence
    about another run that has the output folder. ``other``: the one about a trainer that belongs to no run.
    """

    def __init__(
        self,
        plan: LaunchPlan,
        note: Callable[[str], None],
        taken: Callable[[], str | None] = lambda: None,
        other: Callable[[LaunchPlan], str | None] = lambda _plan: None,
    ) -> None:
        self._plan, self._note, self._taken, self._other = plan, note, taken, other
        self._noted: set[str] = set()

    def __call__(self, derived: Derived) -> Readiness:
        """Whether this launch can be made now. Never raises: an error in a check does not prevent a launch."""
        if (taken := self._taken()) is not None:
            return Readiness(refusal=taken)
        try:
            plan = self._plan.with_derived(derived)
            if (other := self._other(plan)) is not None:
                return Readiness(other_trainer=other)
            found, warnings = before_launch(plan)
        except Exception as error:
            found, warnings = READY, (f"failed: {error!r}",)
        for warning in warnings:
            if warning not in self._noted:
                self._noted.add(warning)
                self._note(f"check before the launch: {warning}")
        return found


def before_launch(plan: LaunchPlan) -> tuple[Readiness, tuple[str, ...]]:
    """Whether a launch can be made now, and the warnings of the quick checks. Raises OSError."""
    checks = list(_quick(plan))
    warnings = tuple(f"{c.name}: {c.found} ({c.remedy})" for _, c in checks if c.result != "pass")
    failed = next((c for refuses, c in checks if refuses and c.result == "fail"), None)
    if failed is not None:
        return Readiness(refusal=f"{failed.found}; {failed.remedy}", errno=failed.errno), warnings
    folder = existing(Path(plan.spec.output_dir or plan.spec.cwd))
    space = os.statvfs(folder)
    need = need_bytes(own_checkpoint_bytes(plan), float(space.f_blocks * space.f_frsize))
    room = ""
    if space.f_bavail * space.f_frsize < need:
        room = f"not enough disk space for a checkpoint: {size(need)} must be free in {folder}"
    elif space.f_files and not has_inodes(float(space.f_favail)):
        room = f"no more files can be created in {folder}: no inodes are free"
    return Readiness(need_bytes=need, room=room) if room else READY, warnings


def _rows(plan: LaunchPlan) -> list[Row]:
    """The checks that say something of this launch: of a job nothing of this machine, on the CPU nothing of GPUs."""
    here, cpu = plan.spec.capabilities.here, asks_for_cpu(plan)
    return [row for row in RUN_CHECKS if (here or not row.here) and not (cpu and row.gpus)]


def _quick(plan: LaunchPlan) -> Iterator[tuple[bool, Check]]:
    """(whether a failure refuses a start, the check)."""
    machine = _without_gpus()
    of_run = [(row, row.ask(plan, machine)) for row in _rows(plan) if row.quick]
    of_machine = [(row, row.ask(machine)) for row in MACHINE_CHECKS if row.quick]
    for row, check in of_run + of_machine:
        if check is not None:
            yield row.refuses is not None, check


def _origin(spec: RunSpec) -> str:
    """``FILE:LINE: `` of the command in trainwatch.toml."""
    if spec.project is None:
        return ""
    origins = load_project(Path(spec.project)).provenance
    origin = origins.get(f"runs.{spec.name}.command") or origins.get("run.command")
    return f"{origin}: " if origin is not None else ""
