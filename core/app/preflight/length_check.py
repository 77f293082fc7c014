"""Check: how long the training will be (requirements B6, D7)."""

from pathlib import Path

from ...model.launch.expected_length import ExpectedLength
from ...views import quantity
from ..start.expected_run_length import expected_of
from ..start.launch_plan import LaunchPlan
from .check import Check, Machine, passed
from .launch_checks import dataset_of


def check_length(plan: LaunchPlan, machine: Machine) -> Check | None:
    """Steps by settings and data, time by the pace of earlier runs; silent where nothing tells."""
    expected = _expected(plan, machine.home)
    if expected is None:
        return None
    found = f"about {quantity.count(expected.steps)} steps: {expected.by}"
    if expected.seconds is None:
        return passed("length", f"{found}; how long one takes is known after a first run or a trial")
    pace = quantity.pace(expected.pace_s)
    return passed("length", f"about {quantity.duration(expected.seconds)} at {pace} as earlier; {found}")


def expected_of_run(plan: LaunchPlan, home: Path) -> ExpectedLength | None:
    """The same estimate for a run that is being created; None on any fault: a launch does not fail for an estimate."""
    try:
        return _expected(plan, home)
    except Exception:
        return None


def _expected(plan: LaunchPlan, home: Path) -> ExpectedLength | None:
    return expected_of(plan.spec, plan.preset.length, plan.settings, dataset_of(plan), home)
