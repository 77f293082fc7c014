"""The list of checks of ``trainwatch check``: those of the machine, and those of the run that is about to start."""

from collections.abc import Callable, Sequence
from functools import partial

from ...model.run import RunSpec
from .check import Check, Machine, Plan, failed, look_at_machine, passed, warned
from .disk_checks import check_disk, check_output_dir, check_resume_point, check_state_folder
from .gpu_checks import check_gpus, check_gpus_of, check_torch, check_vram
from .host_checks import (
    check_gpu_channel,
    check_logout,
    check_old_sessions,
    check_sleep,
    check_supervisor,
    check_tmux,
    check_wsl_idle,
)
from .launch_checks import (
    check_command,
    check_ladder,
    check_notify,
    check_paths,
    check_profile,
    check_script,
    plan_of,
)
from .length_check import check_length
from .memory_checks import check_advice, check_memory, check_need
from .model_checks import check_data_changed, check_model
from .trial_check import check_measured

__all__ = ["Check", "config_check", "looks", "preflight"]

RUN_CHECKS: tuple[Callable[[Plan, Machine], Check | None], ...] = (
    check_command,
    check_script,
    check_profile,
    check_ladder,
    check_paths,
    check_output_dir,
    check_disk,
    check_resume_point,
    check_model,
    check_data_changed,
    check_torch,
    check_gpus_of,
    check_vram,
    check_need,
    check_advice,
    check_measured,
    check_length,
    check_notify,
    check_supervisor,
    check_old_sessions,
)
MACHINE_CHECKS: tuple[Callable[[Machine], Check | None], ...] = (
    check_memory,
    check_tmux,
    check_state_folder,
    check_logout,
    check_sleep,
    check_wsl_idle,
    check_gpu_channel,
)


def preflight(spec: RunSpec | None, problem: str | None = None, machine: Machine | None = None) -> list[Check]:
    """All checks that apply; without a project only those of the machine. ``problem``: what is wrong with the config.

    Looks, and changes nothing. Asking torch and reading a checkpoint may take some seconds.
    """
    machine = machine if machine is not None else look_at_machine()
    checks = [config_check(spec, problem)]
    if spec is not None:
        plan, launch = plan_of(spec)
        checks.append(launch)
        checks += [c for _, look in looks(plan, machine) if (c := look()) is not None]
    else:
        checks.append(check_gpus(machine))
        checks += [c for look in MACHINE_CHECKS if (c := _look_at(look, machine)) is not None]
    return checks


def looks(plan: Plan, machine: Machine) -> Sequence[tuple[str, Callable[[], Check | None]]]:
    """(what it looks at, the look) of all that apply to a planned launch. Each may be taken in a thread of its own."""
    of_run = [(_name(look), partial(_look, look, plan, machine)) for look in RUN_CHECKS]
    return of_run + [(_name(look), partial(_look_at, look, machine)) for look in MACHINE_CHECKS]


def config_check(spec: RunSpec | None, problem: str | None = None) -> Check:
    """Whether there is a config, and whether it can be used."""
    if problem is not None:
        return failed("config", problem, "correct it, then check again")
    if spec is None:
        return warned("config", "no trainwatch.toml here", "write one: trainwatch init -- COMMAND")
    if spec.project is None:
        return passed("config", f"none needed: run {spec.name}, preset {spec.preset}")
    return passed("config", f"{spec.project}: run {spec.name}, preset {spec.preset}")


def _look(look: Callable[[Plan, Machine], Check | None], plan: Plan, machine: Machine) -> Check | None:
    try:
        return look(plan, machine)
    except OSError as error:
        return _not_seen(_name(look), error)


def _look_at(look: Callable[[Machine], Check | None], machine: Machine) -> Check | None:
    try:
        return look(machine)
    except OSError as error:
        return _not_seen(_name(look), error)


def _name(look: Callable[..., Check | None]) -> str:
    return look.__name__.removeprefix("check_").replace("_", " ")


def _not_seen(name: str, error: OSError) -> Check:
    """What cannot be looked at is said, and does not hide the other checks."""
    return warned(name, f"could not be looked at: {error}", "check the rights of the files it names")
