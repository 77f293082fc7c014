"""The spec of a run, from a command line or from trainwatch.toml. Problems of the config are raised as CliError."""

import time
from collections.abc import Sequence
from pathlib import Path

from ...config.project import load_project
from ...config.spec import Overrides as Overrides  # noqa: PLC0414  front ends fill it
from ...config.spec import spec_for_command, spec_for_run
from ...model.run import RunSpec
from ...source.trainer_source import source_facts
from ...store.run_directory import new_run_id, run_id_for
from ..errors import config_errors
from ..runs.known_runs import here, home
from .definitions import Definitions
from .rehearsed import with_rehearsed
from .trainer_folders import with_output_folder


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
