"""The spec of a run, from a command line or from trainwatch.toml. Problems of the config are raised as CliError."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...config.location import FILE_NAME, find_project
from ...config.project import load_project
from ...config.shipped import load_presets, load_profiles
from ...config.spec import Overrides as Overrides  # noqa: PLC0414  front ends fill it
from ...config.spec import spec_for_command, spec_for_run
from ...model.preset import Preset, Profile
from ...model.resume_way import with_way
from ...model.run import RunSpec
from ...source.trainer_source import source_facts
from ...store.run_directory import new_run_id, run_id_for
from ..errors import config_errors
from ..runs.known_runs import here, home
from .resume_plan import with_rehearsed
from .trainer_folders import with_output_folder

# Presets and profiles: the shipped ones, and those in the project's folder beside its trainwatch.toml.


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


def spec_of_command(command: Sequence[str], overrides: Overrides, definitions: Definitions) -> RunSpec:
    """The spec of ``trainwatch run -- COMMAND``, under an id that is not taken.

    Without ``output_dir`` the folder that the trainer's own flags or config name is watched.
    """
    cwd = here()
    with config_errors():
        spec = spec_for_command(
            command,
            identify=lambda name: new_run_id(home(), name, cwd),
            created_wall=time.time(),
            cwd=cwd,
            presets=definitions.presets,
            look=source_facts,
            profiles=definitions.profiles,
            overrides=overrides,
        )
    return with_rehearsed(with_output_folder(spec, definitions.preset_of(spec)))


def spec_of_project(
    path: Path, run: str | None, overrides: Overrides, definitions: Definitions, *, fresh: bool = False
) -> RunSpec:
    """The spec of a project's run. Its id follows from file and name, to be found again (``fresh``: a new one).

    Without ``output_dir`` as above.
    """
    with config_errors():
        project = load_project(path, profiles=definitions.profiles, presets=definitions.presets)
        spec = spec_for_run(
            project,
            project.run(run),
            identify=lambda name: new_run_id(home(), name, path) if fresh else run_id_for(name, path),
            created_wall=time.time(),
            cwd=here(),
            presets=definitions.presets,
            look=source_facts,
            profiles=definitions.profiles,
            overrides=overrides,
        )
    return with_rehearsed(with_output_folder(spec, definitions.preset_of(spec)))
