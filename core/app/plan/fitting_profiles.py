"""Which profiles are offered for a run: those of its ladder; without one, those that support its framework."""

from collections.abc import Mapping
from pathlib import Path

from ...act.config.flags import find_option, option_groups
from ...model.run import RunSpec
from ...model.shipped.profile import OF_OPTIONS, Profile
from .declared_options import undeclared


def fitting_profiles(spec: RunSpec, known: Mapping[str, Profile]) -> tuple[Profile, ...]:
    """Safest first if there is a ladder. Without one, the profile in use is included, whatever it is meant for.

    Those of options, which few scripts have, are offered without a ladder if the script declares them all, or if the
    command or config names one.
    """
    ladder = spec.settings.profiles.ladder
    if ladder:
        return tuple(known[name] for name in ladder if name in known)
    used = spec.settings.profiles.use
    families = {family for family in OF_OPTIONS if _knows(spec, known, family)}
    return tuple(
        profile
        for name, profile in known.items()
        if name == used or (profile.is_for(spec.preset) and (profile.family not in OF_OPTIONS - families))
    )


def _knows(spec: RunSpec, known: Mapping[str, Profile], family: str) -> bool:
    """Whether the trainer knows the options of a family of profiles."""
    used = known.get(spec.settings.profiles.use or "")
    if used is not None and used.family == family:
        return True
    profiles = [profile for profile in known.values() if profile.family == family and profile.flags]
    if any(undeclared(spec, profile) == () for profile in profiles):
        return True
    own = {group.key for profile in profiles for group in option_groups(profile.flags) if group.value is True}
    if any(find_option(spec.command, flag) is not None for flag in own):
        return True
    if spec.config is None:
        return False
    try:
        text = Path(spec.cwd, spec.config).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(flag in text for flag in own)
