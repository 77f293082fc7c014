"""Check of the options that the profile in use gives to the trainer."""

from ..plan.declared_options import undeclared
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, failed, passed

SHOWN = 6


def check_profile_options(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The trainer's script declares the options of the profile in use: it would end at one that it does not know."""
    profile = plan.profile
    missing = undeclared(plan.spec, profile) if profile is not None and profile.flags else None
    if profile is None or missing is None:
        return None
    if missing:
        return failed(
            "profile options",
            f"the script declares no {', '.join(missing[:SHOWN])} (profile {profile.name})",
            "use another profile (`trainwatch profiles`), or write one with the options that it has",
        )
    return passed("profile options", f"the script declares all {len(profile.flags)} words of {profile.name}")
