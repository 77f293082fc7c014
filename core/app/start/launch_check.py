"""The quick part of ``check``, before every launch: what makes it pointless holds it, what may go wrong is said.

Only looks that take milliseconds: nothing is imported into the trainer's interpreter, no driver is asked, no tensor is
read. Whether the command exists and its config can be derived, the launch itself finds out.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from ...act.launch.readiness import READY, Readiness
from ...model.run import RunSpec
from ..preflight.check import Check, Machine, Plan, existing, warned
from ..preflight.disk_checks import check_disk, check_output_dir, check_state_folder, checkpoint_bytes
from ..preflight.launch_checks import check_notify, check_paths, check_script, plan_of
from ..preflight.trial_check import check_measured
from ..runs.known_runs import home

LEAST_BYTES = 64e6
"""Less free space holds a launch whose checkpoints' size is not known: not even its log would fit for long."""

LOOKS: tuple[Callable[[Plan, Machine], Check | None], ...] = (
    check_output_dir,
    check_script,
    check_paths,
    check_disk,
    check_notify,
    check_measured,
    lambda _plan, machine: check_state_folder(machine),
)
POINTLESS = frozenset({"output_dir"})
"""A failed look of this name holds the launch: a trainer that cannot save loses all it does."""


class QuickCheck:
    """Implements the actor's ``ready``. ``tell``: keeps a sentence; each warning is told once, not at every restart."""

    def __init__(self, spec: RunSpec, tell: Callable[[str], None]) -> None:
        self._spec = spec
        self._tell = tell
        self._told: set[str] = set()

    def __call__(self) -> Readiness:
        """Look now. Never raises."""
        try:
            found, warnings = look(self._spec)
        except Exception as error:  # a look that fails must not hold a training
            found, warnings = READY, (f"failed: {error!r}",)
        for warning in warnings:
            if warning not in self._told:
                self._told.add(warning)
                self._tell(f"check before the launch: {warning}")
        return found


def look(spec: RunSpec) -> tuple[Readiness, tuple[str, ...]]:
    """What stands against a launch of this run, and what may go wrong, a sentence each. Raises OSError."""
    plan, _ = plan_of(spec)
    machine = Machine(home=home(), environ=os.environ)
    checks = [check for take in LOOKS if (check := _take(take, plan, machine)) is not None]
    held = next((f"{c.found}; {c.remedy}" for c in checks if c.result == "fail" and c.name in POINTLESS), None)
    warnings = tuple(f"{c.name}: {c.found} ({c.remedy})" for c in checks if c.result != "pass")
    if held is not None:
        return Readiness(held=held), warnings
    need, free = _room(plan)
    return (Readiness(need_bytes=need) if free < need else READY), warnings


def _take(take: Callable[[Plan, Machine], Check | None], plan: Plan, machine: Machine) -> Check | None:
    try:
        return take(plan, machine)
    except OSError as error:
        return warned("check", f"could not be looked at: {error}", "check the rights of the files it names")


def _room(plan: Plan) -> tuple[float, float]:
    """(bytes that the next checkpoint needs, bytes free where it goes)."""
    folder = existing(Path(plan.spec.output_dir or plan.spec.cwd))
    return max(LEAST_BYTES, checkpoint_bytes(plan)[0]), float(shutil.disk_usage(folder).free)
