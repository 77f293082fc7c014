"""Which profiles are offered for a run: those of its ladder; without one, those that its framework knows."""

from collections.abc import Mapping

from trainwatch.core.model.profile import Profile
from trainwatch.core.model.run import RunSpec


def fitting_profiles(spec: RunSpec, known: Mapping[str, Profile]) -> tuple[Profile, ...]:
    """Safest first where there is a ladder. Without one, the one in use is among them, whatever it is meant for."""
    ladder = spec.settings.profiles.ladder
    if ladder:
        return tuple(known[name] for name in ladder if name in known)
    used = spec.settings.profiles.use
    return tuple(profile for name, profile in known.items() if profile.is_for(spec.preset) or name == used)
