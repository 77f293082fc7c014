"""From a command line or a trainwatch.toml to the spec of a run, with config errors as exit code 2."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ...config.problem import ConfigError, UnknownRun
from ...config.project import FILE_NAME, load_project
from ...config.shipped import load_presets, load_profiles
from ...config.spec import Overrides, spec_for_command, spec_for_run
from ...model.run import RunSpec
from ...store.run_directory import new_run_id, run_id_for
from ..errors import CliError, ExitCode
from ..runs.known_runs import here, home


def overrides_of(args: argparse.Namespace) -> Overrides:
    """What the command line says about a run."""
    return Overrides(
        name=getattr(args, "name", None),
        preset=getattr(args, "preset", None),
        profile=getattr(args, "profile", None),
        config=getattr(args, "config", None),
        output_dir=getattr(args, "output_dir", None),
        interval_s=getattr(args, "interval", None),
        max_restarts=getattr(args, "max_restarts", None),
    )


def spec_of_command(command: Sequence[str], args: argparse.Namespace) -> RunSpec:
    """The spec of ``trainwatch run -- COMMAND``, under an id that is not taken.

    Without ``--output-dir`` the folder that the trainer's own flags or config name is watched.
    """
    from .trainer_folders import with_output_folder

    cwd = here()
    try:
        presets = load_presets(cwd / FILE_NAME)
        spec = spec_for_command(
            command,
            identify=lambda name: new_run_id(home(), name, cwd),
            created_wall=time.time(),
            cwd=cwd,
            presets=presets,
            profiles=load_profiles(cwd / FILE_NAME),
            overrides=overrides_of(args),
        )
    except ConfigError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    return with_output_folder(spec, presets)


def spec_of_project(path: Path, run: str | None, overrides: Overrides, *, fresh: bool = False) -> RunSpec:
    """The spec of a project's run. Its id follows from file and name, to be found again (``fresh``: a new one)."""
    try:
        profiles = load_profiles(path)
        presets = load_presets(path)
        project = load_project(path, profiles=profiles, presets=presets)
        return spec_for_run(
            project,
            project.run(run),
            identify=lambda name: new_run_id(home(), name, path) if fresh else run_id_for(name, path),
            created_wall=time.time(),
            cwd=here(),
            presets=presets,
            profiles=profiles,
            overrides=overrides,
        )
    except UnknownRun as error:
        raise CliError(ExitCode.NOT_FOUND, str(error)) from None
    except ConfigError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
