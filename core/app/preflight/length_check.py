"""Check: how long the training will be (requirements B6, D7)."""

from pathlib import Path

from ...model.expected_length import ExpectedLength
from ...model.run import RunSpec
from ...views import quantity
from ..start.expected_run_length import expected_of
from ..start.framework import framework_of
from .check import Check, Machine, Plan, passed
from .launch_checks import dataset_of, plan_of


def check_length(plan: Plan, machine: Machine) -> Check | None:
    """Steps by settings and data, time by the pace of earlier runs; silent where nothing tells."""
    expected = _expected(plan, machine.home)
    if expected is None:
        return None
    found = f"about {quantity.count(expected.steps)} steps: {expected.by}"
    if expected.seconds is None:
        return passed("length", f"{found}; how long one takes is known after a first run or a trial")
    pace = quantity.pace(expected.pace_s)
    return passed("length", f"about {quantity.duration(expected.seconds)} at {pace} as earlier; {found}")


def expected_of_run(spec: RunSpec, home: Path) -> ExpectedLength | None:
    """As the check says it, for a run that is being created. An estimate is never worth a launch: None on any fault."""
    try:
        return _expected(plan_of(spec)[0], home)
    except Exception:
        return None


def _expected(plan: Plan, home: Path) -> ExpectedLength | None:
    spec = plan.spec
    preset, _ = framework_of(spec)
    return expected_of(spec, preset.length, plan.settings, dataset_of(plan), home)
