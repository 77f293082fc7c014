"""What is known of a run's framework, and the first launch that follows from it."""

import os
from collections.abc import Mapping
from pathlib import Path

from ...act.config.derive import Derived, preview
from ...config.location import FILE_NAME
from ...config.shipped import load_presets, load_profiles
from ...model.profile import Preset, Profile
from ...model.run import RunSpec


def profiles_of(spec: RunSpec) -> Mapping[str, Profile]:
    """All profiles that exist for a run, shipped and of its project, by name."""
    return load_profiles(_project(spec))


def framework_of(spec: RunSpec) -> tuple[Preset, Mapping[str, Profile]]:
    """The run's preset, and its profiles."""
    presets = load_presets(_project(spec))
    return presets.get(spec.preset, presets["generic"]), profiles_of(spec)


def plan_first_launch(spec: RunSpec) -> Derived:
    """What the first launch of a run would be; writes nothing. Raises DeriveError."""
    preset, profiles = framework_of(spec)
    profile = profiles.get(spec.settings.profiles.use) if spec.settings.profiles.use else None
    return preview(spec, preset, profile, None, (), Path("ATTEMPT"), base_env=os.environ)


def _project(spec: RunSpec) -> Path:
    return Path(spec.project) if spec.project else Path(spec.cwd, FILE_NAME)
