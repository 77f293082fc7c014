"""The spec of a run, from a command line or from trainwatch.toml. Problems of the config are raised as CliError."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ...act.config.trainer_config import config_of
from ...config import project as projects
from ...config.detection import config_text, recognise, survey_folder, write_config
from ...config.document import ConfigError, Problem
from ...config.location import FILE_NAME, find_project
from ...config.project import Overrides as Overrides  # noqa: PLC0414  front ends fill it
from ...config.shipped import load_presets, load_profiles
from ...model.preset import Preset, Profile, Recognition, ResumeWay, with_way
from ...model.run import RunSpec
from ...model.settings import Settings
from ...model.wrappers import lone_config
from ...source.trainer_source import source_facts
from ...store.run_directory import new_run_id, run_id_for
from ..errors import CliError, ExitCode, config_errors, ends_verb, file_errors
from ..runs.known_runs import here, home
from .resume_plan import way_of
from .trainer_folders import logging_folder, output_folder, with_output_folder

# Presets and profiles: the shipped ones, and those in the project's folder beside its trainwatch.toml.


class Definitions(msgspec.Struct, frozen=True, kw_only=True):
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


def definitions_here() -> Definitions:
    """Those of the project of the working folder. Raises CliError."""
    return read_definitions(find_project(here()) or here() / FILE_NAME)


def spec_of_command(command: Sequence[str], overrides: Overrides, definitions: Definitions) -> RunSpec:
    """The spec of ``trainwatch run -- COMMAND``, under an id that is not taken.

    Without ``output_dir`` the folder that the trainer's own flags or config name is watched.
    """
    spec = bare_spec(command, overrides, definitions, here())
    spec = msgspec.structs.replace(spec, id=new_run_id(home(), spec.name, here()))
    return with_output_folder(spec, definitions.preset_of(spec))


def bare_spec(command: Sequence[str], overrides: Overrides, definitions: Definitions, cwd: Path) -> RunSpec:
    """The spec of a command with default settings, without an id. Raises CliError (exit code 2)."""
    options = {key.removeprefix("run."): option for option, key in projects.OPTIONS.values()}
    with config_errors():
        problems = projects.option_problems(overrides, definitions.presets, definitions.profiles)
        if not command or not command[0].strip():
            text = "no command; write it after --, as in `trainwatch run -- python train.py`"
            raise ConfigError([*problems, Problem("run", None, text)])
        section = projects.RunSection(
            name=projects.name_of_command(command), command=tuple(command), cwd=str(cwd.absolute())
        )
        section = _given(section, overrides, cwd, problems, lambda key: options.get(key, "run"))
    return _spec(section, projects.settings_with(Settings(), overrides), definitions)


def _given(
    section: projects.RunSection, overrides: Overrides, cwd: Path, problems: list[Problem], place: Callable[[str], str]
) -> projects.RunSection:
    """The section with the options of the command line. Raises ConfigError. ``place``: where a key is set."""
    section = projects.with_options(section, overrides, cwd)
    if problems := [*problems, *projects.launch_problems(section, place)]:
        raise ConfigError(problems)
    return section


def spec_of_project(
    path: Path, run: str | None, overrides: Overrides, definitions: Definitions, *, fresh: bool = False
) -> RunSpec:
    """The spec of a project's run. Its id follows from file and name, to be found again (``fresh``: a new one).

    Without ``output_dir`` as above. Raises CliError with all problems.
    """
    given = projects.given(overrides)
    with config_errors():
        project = projects.load_project(path, profiles=definitions.profiles, presets=definitions.presets)
        section = project.run(run)

        def place(key: str) -> str:
            return given[f"run.{key}"][0] if f"run.{key}" in given else project.origin(section.key, key)

        end = msgspec.structs.replace(project.settings.end, **section.end)
        problems = projects.option_problems(overrides, definitions.presets, definitions.profiles)
        section = _given(section, overrides, here(), problems, place)
    settings = projects.settings_with(msgspec.structs.replace(project.settings, end=end), overrides)
    spec = msgspec.structs.replace(
        _spec(section, settings, definitions), project=str(project.path), section=section.key,
        typed=tuple(key.removeprefix("run.") for key in given if key.startswith("run.")),
        id=(new_run_id(home(), section.name, path) if fresh else run_id_for(section.name, path)),
    )  # fmt: skip
    return with_output_folder(spec, definitions.preset_of(spec))


def _spec(run: projects.RunSection, settings: Settings, definitions: Definitions) -> RunSpec:
    lone = lone_config(run.command)
    config = run.config or (lone and str(Path(run.cwd, lone)))
    known = Path(config) if config and Path(config).is_file() else None
    found = (
        Recognition(preset=run.preset, why="told by [run] preset or --preset")
        if run.preset is not None
        else recognise(run.command, known, definitions.presets, source_facts(run.command, run.cwd))
    )
    same = {field: getattr(run, field) for field in projects.RunTable.__struct_fields__}
    same |= {"preset": found.preset, "preset_why": found.why, "preset_resumes": found.resumes}
    return RunSpec(id="", created_wall=time.time(), settings=settings, **same)


# ``trainwatch init``: a new trainwatch.toml for the working folder.


def write_project(command: tuple[str, ...], options: Overrides) -> tuple[Path, str, str | None, ResumeWay]:
    """Write trainwatch.toml. Raises CliError: exit code 2 if it exists or the preset is unknown.

    Returns its path, the preset, where the trainer saves, if that is known, and how it is resumed.
    """
    folder = here()
    presets = definitions_here().presets
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
    with file_errors(folder / FILE_NAME), ends_verb(ExitCode.USAGE, FileExistsError):
        path = write_config(folder, text)
    return path, survey.preset, output_dir, way_of(spec, preset)
