"""The list of checks of ``trainwatch check``: those of the machine, and those of the run that is about to start."""

from collections.abc import Callable

from trainwatch.core.model.run import RunSpec

from .preflight_check import Check, Machine, Plan, failed, look_at_machine, passed, warned
from .preflight_disk import check_disk, check_output_dir, check_resume_point, check_state_folder
from .preflight_gpu import check_gpus, check_gpus_of, check_torch, check_vram
from .preflight_host import (
    check_logout,
    check_old_sessions,
    check_sleep,
    check_supervisor,
    check_tmux,
    check_wsl_idle,
)
from .preflight_launch import check_command, check_notify, check_paths, check_profile, check_script, plan_of
from .preflight_memory import check_advice, check_memory

__all__ = ["Check", "preflight"]

RUN_CHECKS: tuple[Callable[[Plan, Machine], Check | None], ...] = (
    check_command,
    check_script,
    check_profile,
    check_paths,
    check_output_dir,
    check_disk,
    check_resume_point,
    check_torch,
    check_gpus_of,
    check_vram,
    check_advice,
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
)


def preflight(spec: RunSpec | None, problem: str | None = None, machine: Machine | None = None) -> list[Check]:
    """All checks that apply; without a project only those of the machine. ``problem``: what is wrong with the config.

    Looks, and changes nothing. Asking torch and reading a checkpoint may take some seconds.
    """
    machine = machine if machine is not None else look_at_machine()
    checks = [_config(spec, problem)]
    if spec is not None:
        plan, launch = plan_of(spec)
        checks.append(launch)
        checks += [c for look in RUN_CHECKS if (c := _look(look, plan, machine)) is not None]
    else:
        checks.append(check_gpus(machine))
    checks += [c for look in MACHINE_CHECKS if (c := _look_at(look, machine)) is not None]
    return checks


def _config(spec: RunSpec | None, problem: str | None) -> Check:
    if problem is not None:
        return failed("config", problem, "correct it, then check again")
    if spec is None:
        return warned("config", "no trainwatch.toml here", "write one: trainwatch init -- COMMAND")
    return passed("config", f"{spec.project}: run {spec.name}, preset {spec.preset}")


def _look(look: Callable[[Plan, Machine], Check | None], plan: Plan, machine: Machine) -> Check | None:
    try:
        return look(plan, machine)
    except OSError as error:
        return _not_seen(look.__name__, error)


def _look_at(look: Callable[[Machine], Check | None], machine: Machine) -> Check | None:
    try:
        return look(machine)
    except OSError as error:
        return _not_seen(look.__name__, error)


def _not_seen(name: str, error: OSError) -> Check:
    """What cannot be looked at is said, and does not hide the other checks."""
    what = name.removeprefix("check_").replace("_", " ")
    return warned(what, f"could not be looked at: {error}", "check the rights of the files it names")
