"""Check: what trials of the profile measured on this machine."""

from ...model.text.memory_words import memory
from ...views import quantity
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, passed, warned


def check_measured(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """A trial of the profile in use was stable here; None if no profile was measured."""
    from ..runs.measured_trials import measured_here

    profile = plan.spec.settings.profiles.use
    known = measured_here(plan.spec.id)
    if not known:
        return None
    result = known.get(profile or "")
    if result is None:
        return passed("measured here", f"{', '.join(known)} measured, not {profile or 'your own settings'}")
    parts = [quantity.pace(result.s_per_step)] if result.s_per_step is not None else []
    parts += [f"VRAM {memory(result.vram_peak_bytes)}"] if result.vram_peak_bytes is not None else []
    parts += [f"RAM {memory(result.ram_peak_bytes)}"] if result.ram_peak_bytes is not None else []
    found = f"{profile} measured here: {', '.join(parts) or 'no step was reached'}"
    if result.stable is False:
        return warned("measured here", f"{found}; not stable: {'; '.join(result.doubts)}", "choose a safer profile")
    return passed("measured here", found)
