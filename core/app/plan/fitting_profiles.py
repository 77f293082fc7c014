"""Which profiles are offered for a run: those of its ladder; without one, those that support its framework."""

from collections.abc import Mapping
from pathlib import Path

from ...act.config.flags import find_option, option_groups
from ...judge.recovery.remedies.remedies import SAFE_MODES
from ...model.profile import Profile
from ...model.run import RunSpec


def fitting_profiles(spec: RunSpec, known: Mapping[str, Profile]) -> tuple[Profile, ...]:
    """Safest first if there is a ladder. Without one, the profile in use is included, whatever it is meant for.

    Safe modes are flags that few scripts have: without a ladder they are offered if the command or config names one.
    """
    ladder = spec.settings.profiles.ladder
    if ladder:
        return tuple(known[name] for name in ladder if name in known)
    used = spec.settings.profiles.use
    safe_modes = _knows_safe_modes(spec, known)
    return tuple(
        profile
        for name, profile in known.items()
        if name == used or (profile.is_for(spec.preset) and (profile.family != SAFE_MODES or safe_modes))
    )


def _knows_safe_modes(spec: RunSpec, known: Mapping[str, Profile]) -> bool:
    """Whether the command or the trainer's config contains one of their flags."""
    used = known.get(spec.settings.profiles.use or "")
    if used is not None and used.family == SAFE_MODES:
        return True
    flags = {
        group.key
        for profile in known.values()
        if profile.family == SAFE_MODES
        for group in option_groups(profile.flags)
    }
    if any(find_option(spec.command, flag) is not None for flag in flags):
        return True
    if spec.config is None:
        return False
    try:
        text = Path(spec.cwd, spec.config).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(flag in text for flag in flags)
