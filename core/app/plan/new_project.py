"""``trainwatch init``: a new trainwatch.toml for the working folder."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from ...act.adopt import config_of
from ...config.detection import config_text, survey_folder, write_config
from ...config.location import FILE_NAME
from ...config.project import Overrides
from ...model.resume_way import ResumeWay
from ...model.run import RunSpec
from ..errors import CliError, ExitCode
from ..runs.known_runs import here
from .resume_plan import way_of
from .specs import presets_here
from .trainer_folders import logging_folder, output_folder


class NewProject(NamedTuple):
    """What was written. ``output_dir``: where the trainer saves, if that is known. ``resume``: how it is resumed."""

    path: Path
    preset: str
    output_dir: str | None
    resume: ResumeWay


def write_project(command: tuple[str, ...], options: Overrides) -> NewProject:
    """Write trainwatch.toml. Raises CliError: exit code 2 if it exists or the preset is unknown."""
    folder = here()
    presets = presets_here()
    if options.preset is not None and options.preset not in presets:
        raise CliError(ExitCode.USAGE, f'no preset "{options.preset}"; there are: {", ".join(presets)}')
    found = options.config or config_of(command, str(folder))
    config = Path(found) if found else None
    if config is not None and not config.is_file():
        raise CliError(ExitCode.NOT_FOUND, f"{options.config}: no such config; give the trainer's own TOML or YAML")
    survey = survey_folder(folder, presets, command, config)
    if options.preset is not None:
        survey = msgspec.structs.replace(survey, preset=options.preset)
    name = options.name or folder.name
    spec = RunSpec(
        id="", name=name, command=survey.command, cwd=str(folder), created_wall=0.0, preset=survey.preset,
        config=survey.config,
    )  # fmt: skip
    preset = presets[survey.preset]
    output_dir = options.output_dir or output_folder(spec, preset)
    text = config_text(survey, name=name, output_dir=output_dir, logging_dir=logging_folder(spec, preset))
    try:
        path = write_config(folder, text)
    except FileExistsError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{folder / FILE_NAME}: {error.strerror or error}") from None
    return NewProject(path, survey.preset, output_dir, way_of(spec, preset))
