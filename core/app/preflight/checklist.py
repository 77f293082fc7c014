"""The table of checks, and what follows from it: the list of ``trainwatch check``, and whether a run can start.

No other module decides whether a run can start. A check that can refuse a start has an exit code in ``refuses``.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..gpu_survey import GpuSurvey, survey, surveying
from ..plan.launch_plan import LaunchPlan, plan_project
from ..runs.known_runs import home
from ..runs.output_claim import take_over
from . import command_checks as command
from . import gpu_checks as gpu
from . import host_checks as host
from . import launch_checks as launch
from . import resume_checks as resume
from .check import Check, Machine, failed, look_at_machine, passed, warned
from .other_trainer import accept, check_other_trainer

FORCE = "`--force` starts it all the same"
SHOWN_COMMAND = 200
"""Characters of the command in the sentence that refuses it."""
DISK = "disk"
SHOWN_APART = frozenset({"output_dir", "hand-over"})
"""Checks whose finding a dry run shows in a row of its own."""


class Row(NamedTuple):
    """A check of a planned launch and the machine.

    ``quick``: it takes milliseconds (no driver call, nothing is imported into the trainer's interpreter, no tensor
    is read), so it is repeated before every launch. ``refuses``: a failure refuses a start with this exit code.
    ``stops``: so does this one, when a person starts, unless ``--force`` is given. ``at_start``: what is asked then, if
    the whole check takes too long. ``told``: who starts the run by a command is told of a warning or a failure.
    ``here``: it looks at this machine's GPUs, memory or packages: of a run whose attempts are jobs it says nothing.
    ``gpus``: it needs the driver's answer. ``alone``: it is of the machine alone, without a plan.
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
    alone: bool = False

    def ask(self, plan: LaunchPlan | None, machine: Machine, *, starts: bool = False) -> Check | None:
        """The result; a file that cannot be read is a warning, and does not end the other checks."""
        function = (self.at_start if starts else None) or self.function
        try:
            found = function(machine) if self.alone else function(plan, machine)
        except OSError as error:
            found = warned(f"could not be checked: {error}", "check the permissions of the files that it names")
        return None if found is None else msgspec.structs.replace(found, name=self.name)


RUN_CHECKS = (
    Row("launch", launch.check_launch, refuses=ExitCode.USAGE),
    Row("command", launch.check_command, refuses=ExitCode.USAGE),
    Row("scheduler", launch.check_scheduler, quick=True, stops=ExitCode.NOT_FOUND, told=True),
    Row("output owner", host.check_output_owner, refuses=ExitCode.OWNED),
    Row("output lock", host.check_output_lock, stops=ExitCode.OWNED),
    Row("other trainer", check_other_trainer, stops=ExitCode.OWNED, here=True),
    Row("script", launch.check_script, quick=True, stops=ExitCode.NOT_FOUND, told=True),
    Row("exit status", command.check_exit_status, quick=True),
    Row("hand-over", command.check_hand_over, quick=True),
    Row("place", command.check_place, quick=True, told=True),
    Row("stable profile", launch.check_profile, told=True),
    Row("ladder", launch.check_ladder, told=True),
    Row("profile options", gpu.check_profile_options, quick=True, stops=ExitCode.USAGE),
    Row("checkpoint", resume.check_checkpoint_named, quick=True, stops=ExitCode.NOT_FOUND),
    Row("data", launch.check_paths, quick=True, stops=ExitCode.NOT_FOUND, told=True),
    Row("output_dir", host.check_output_dir, quick=True, refuses=ExitCode.FAILED),
    Row(DISK, host.check_disk, quick=True, stops=ExitCode.FAILED),
    Row("resume", resume.check_resume, stops=ExitCode.USAGE),
    Row("restart", resume.check_second_start, quick=True, stops=ExitCode.FAILED, told=True),
    Row("saves", resume.check_saves, told=True),
    Row("resume point", host.check_resume_point),
    Row("model", resume.check_model, stops=ExitCode.FAILED),
    Row("load", resume.check_load, told=True),
    Row("data set", resume.check_data_changed, told=True),
    Row("imports", gpu.check_imports, stops=ExitCode.FAILED, told=True, here=True),
    Row(
        "torch", gpu.check_torch, stops=ExitCode.FAILED, at_start=gpu.check_torch_build, told=True, here=True, gpus=True
    ),
    Row("gpu", gpu.check_gpus_of, stops=ExitCode.FAILED, told=True, here=True, gpus=True),
    Row("vram", gpu.check_vram, stops=ExitCode.FAILED, told=True, here=True, gpus=True),
    Row("vram need", gpu.check_need, told=True, here=True, gpus=True),
    Row("hardware", gpu.check_advice, told=True, here=True, gpus=True),
    Row("length", launch.check_length, told=True),
    Row("notify", launch.check_notify, quick=True, stops=ExitCode.FAILED),
    Row("supervisor", host.check_supervisor),
    Row("old sessions", host.check_old_sessions),
)
MACHINE_CHECKS = (
    Row("memory", gpu.check_memory, alone=True),
    Row("tmux", host.check_tmux, alone=True),
    Row("state folder", host.check_state_folder, quick=True, alone=True),
    Row("logout", host.check_logout, stops=ExitCode.FAILED, alone=True),
    Row("sleep", host.check_sleep, alone=True),
    Row("wsl idle", host.check_wsl_idle, alone=True),
    Row("gpu channel", host.check_gpu_channel, stops=ExitCode.FAILED, alone=True),
)
"""None prevents a launch without a person: our own trouble costs no training."""


def preflight_here(name: str | None) -> list[Check]:
    """The checks of a run of this folder's trainwatch.toml. A file with problems is a check that failed."""
    try:
        return preflight(plan_project(name))
    except CliError as error:
        if error.code is not ExitCode.USAGE:
            raise
        return preflight(None, str(error))


def preflight(plan: LaunchPlan | None, problem: str | None = None) -> list[Check]:
    """All checks that apply; without a project only those of the machine. ``problem``: what is wrong with the config.

    Changes nothing. Asking torch and reading a checkpoint may take some seconds.
    """
    if plan is None:
        return [config_check(None, problem), *machine_checks()]
    found = _said((*_rows(plan), *MACHINE_CHECKS), plan, look_at_machine())
    return [config_check(plan.spec, problem, plan.preset), *found]


def machine_checks() -> list[Check]:
    """The checks of the machine alone, whatever is to run on it. Changes nothing; asks the GPU driver."""
    return list(_said((Row("gpu", gpu.check_gpus, alone=True), *MACHINE_CHECKS), None, look_at_machine()))


def checks_of(plan: LaunchPlan, machine: Machine) -> Sequence[tuple[str, Callable[[], Check | None]]]:
    """(name, check) of all that apply to a planned launch. Each may be called in a thread of its own."""
    return [(row.name, partial(row.ask, plan, machine)) for row in (*_rows(plan), *MACHINE_CHECKS)]


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
    machine = look_at_machine(_answered.pop if _answered else survey, gpus=any(row.gpus for row in rows))
    found = (c for c in _said(rows, plan, machine, starts=True) if c.name != "gpu" or machine.gpus.gpus)
    return tuple(c for c in found if c.result != "pass" or c.name in {"length", "place"})


def told_before_start(plan: LaunchPlan) -> tuple[Check, ...]:
    """What a start would tell: at once, and in its first events (*check before the launch*); the disk in any case."""
    told = told_at_launch(plan)
    apart = {*SHOWN_APART, *(check.name for check in told)}
    quick = (c for c in _said(_quick(plan), plan) if c.name not in apart)
    return (*told, *(c for c in quick if c.result != "pass" or c.name == DISK))


def told_at_resume(plan: LaunchPlan) -> Check | None:
    """What a person should know who lets a known run go on: the data set is another one than at its last launch."""
    found = _said((row for row in RUN_CHECKS if row.name == "data set"), plan)
    return next((c for c in found if c.result != "pass"), None)


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
    rows = _rows(plan)
    for row, check in _asked((row for row in rows if row.refuses and not known), plan):
        if check.result == "fail":
            spec, origin, place = plan.spec, "", ""
            if row.refuses is ExitCode.USAGE and spec.project is not None:
                origin = f"{load_project(Path(spec.project)).origin(spec.section, 'command')}: "
                place = with_place("", spec, "command", "cwd")
            parts = (check.found, check.remedy.removesuffix(place))
            return Obstacle(row.refuses or ExitCode.FAILED, origin + "; ".join(filter(None, parts)))
    if forced or plan.derived is None:
        return None
    rows = [row for row in (*rows, *MACHINE_CHECKS) if row.stops and not (waits_for_room and row.name == DISK)]
    of_gpus = [row for row in rows if row.gpus]
    with surveying() if of_gpus else nullcontext(GpuSurvey) as answer:
        found = _failure((row for row in rows if not row.gpus), plan)
        if found is not None or not of_gpus:
            return found
        machine = look_at_machine(answer)
    _answered[:] = [machine.gpus]
    return _failure(of_gpus, plan, machine)


_answered: list[GpuSurvey] = []
"""What the driver said when a start was not refused: what is told of that start, right after it, need not ask again."""


def _asked(
    rows: Iterable[Row], plan: LaunchPlan | None, machine: Machine | None = None, *, starts: bool = False
) -> Iterator[tuple[Row, Check]]:
    """Those of the checks that say something, one after the other. ``machine`` None: its GPUs are not asked for."""
    machine = machine or Machine(home=home(), environ=os.environ)
    for row in rows:
        if (check := row.ask(plan, machine, starts=starts)) is not None:
            yield row, check


def _said(
    rows: Iterable[Row], plan: LaunchPlan | None, machine: Machine | None = None, *, starts: bool = False
) -> Iterator[Check]:
    return (check for _, check in _asked(rows, plan, machine, starts=starts))


def _failure(rows: Iterable[Row], plan: LaunchPlan, machine: Machine | None = None) -> Obstacle | None:
    """The first that fails, although nothing but its finding prevents the launch."""
    for row, check in _asked(rows, plan, machine, starts=True):
        if row.stops and check.result == "fail":
            return Obstacle(row.stops, "; ".join((f"{row.name}: {check.found}", *filter(None, (check.remedy, FORCE)))))
    return None


def require_startable(
    plan: LaunchPlan,
    run: RunDirectory | None = None,
    *,
    known: bool = False,
    forced: bool = False,
    waits_for_room: bool = False,
) -> None:
    """Raise CliError if the run cannot be started. Options as for ``why_not_start``.

    ``run``: it is there already; ``forced``: a person starts it beside the other trainers and locks that are there now.
    """
    obstacle = why_not_start(plan, known=known, forced=forced, waits_for_room=waits_for_room)
    if obstacle is not None:
        shown = shlex.join(plan.command_shown)[:SHOWN_COMMAND]
        raise CliError(obstacle.exit_code, f"{obstacle.sentence}; nothing was started: {shown}")
    if forced and run is not None:
        accept(plan, run)
        take_over(plan.spec, run.path.parents[1])


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
    checks = list(_asked(_quick(plan), plan))
    warnings = tuple(f"{c.name}: {c.found} ({c.remedy})" for _, c in checks if c.result != "pass")
    failed = next((c for row, c in checks if row.refuses and c.result == "fail"), None)
    if failed is not None:
        return Readiness(refusal=f"{failed.found}; {failed.remedy}", errno=failed.errno), warnings
    folder = host.saves_below(plan.spec)
    space = os.statvfs(folder)
    need = need_bytes(host.own_checkpoint_bytes(plan), float(space.f_blocks * space.f_frsize))
    room = ""
    if space.f_bavail * space.f_frsize < need:
        room = f"not enough disk space for a checkpoint: {size(need)} must be free in {folder}"
    elif space.f_files and not has_inodes(float(space.f_favail)):
        room = f"no more files can be created in {folder}: no inodes are free"
    return Readiness(need_bytes=need, room=room) if room else READY, warnings


def _rows(plan: LaunchPlan) -> list[Row]:
    """The checks that say something of this launch: of a job nothing of this machine, on the CPU nothing of GPUs."""
    here, cpu = plan.spec.capabilities.here, gpu.asks_for_cpu(plan)
    return [row for row in RUN_CHECKS if (here or not row.here) and not (cpu and row.gpus)]


def _quick(plan: LaunchPlan) -> list[Row]:
    return [row for row in (*_rows(plan), *MACHINE_CHECKS) if row.quick]
