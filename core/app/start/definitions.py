"""Profiles and presets of the project of the working folder, or the shipped ones."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ...model.profile import Preset, Profile
from ..errors import CliError, ExitCode
from ..runs.known_runs import here

Definition = TypeVar("Definition")


def profiles_here() -> dict[str, Profile]:
    """All profiles by name."""
    from ...config.shipped import load_profiles

    return _load(load_profiles)


def presets_here() -> dict[str, Preset]:
    """All presets by name."""
    from ...config.shipped import load_presets

    return _load(load_presets)


def _load(load: Callable[[Path], dict[str, Definition]]) -> dict[str, Definition]:
    from ...config.problem import ConfigError
    from ...config.project import FILE_NAME, find_project

    try:
        return load(find_project(here()) or here() / FILE_NAME)
    except ConfigError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
