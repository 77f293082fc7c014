"""Presets and profiles: the shipped ones, and those in the project's folder beside its trainwatch.toml."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...config.location import FILE_NAME, find_project
from ...config.shipped import load_presets, load_profiles
from ...model.launch.resume_way import with_way
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from ..errors import config_errors
from ..runs.known_runs import here


class Definitions(msgspec.Struct, frozen=True, kw_only=True):
    """The presets and profiles of one project, by name."""

    presets: Mapping[str, Preset]
    profiles: Mapping[str, Profile]

    def preset_of(self, spec: RunSpec) -> Preset:
        """The preset of a run, with the ways to resume that its command has, and the one that was found for it."""
        preset = self.presets.get(spec.preset, self.presets["generic"])
        return with_way(preset.of_command(spec.command, resumes=spec.preset_resumes), spec.resume_way)


def read_definitions(project: Path) -> Definitions:
    """Read them. ``project``: a trainwatch.toml, or its path in a folder without one. Raises CliError (exit code 2)."""
    with config_errors():
        return Definitions(presets=load_presets(project), profiles=load_profiles(project))


def definitions_of(spec: RunSpec) -> Definitions:
    """Those of a run's project, else of its working folder."""
    return read_definitions(Path(spec.project) if spec.project else Path(spec.cwd, FILE_NAME))


def profiles_here() -> Mapping[str, Profile]:
    """The profiles of the project of the working folder. Raises CliError."""
    with config_errors():
        return load_profiles(find_project(here()) or here() / FILE_NAME)


def presets_here() -> Mapping[str, Preset]:
    """The presets of the project of the working folder. Raises CliError."""
    with config_errors():
        return load_presets(find_project(here()) or here() / FILE_NAME)
