"""Plans of a command, and of the runs of the working folder's trainwatch.toml."""

from collections.abc import Sequence
from pathlib import Path

from ...config.document import Document
from ...config.location import FILE_NAME, find_project
from ...config.problem import ConfigError, display_path
from ...config.project import load_project
from ...config.spec import Overrides
from ...model.run import RunSpec
from ..runs.known_runs import here
from .definitions import Definitions, read_definitions
from .launch_plan import LaunchPlan, plan_launch
from .specs import spec_of_command, spec_of_project

NO_OPTIONS = Overrides()


def plan_command(command: Sequence[str], overrides: Overrides = NO_OPTIONS) -> LaunchPlan:
    """The plan of ``trainwatch run -- COMMAND``."""
    definitions = read_definitions(here() / FILE_NAME)
    return plan_launch(spec_of_command(command, overrides, definitions), definitions)


def plan_project(name: str | None, overrides: Overrides = NO_OPTIONS) -> LaunchPlan | None:
    """The plan of a run of this folder's trainwatch.toml; None without such a file."""
    found = spec_and_definitions(name, overrides)
    return None if found is None else plan_launch(*found)


def project_spec(name: str | None, overrides: Overrides = NO_OPTIONS) -> RunSpec | None:
    """The spec of a run of this folder's trainwatch.toml; None without one."""
    found = spec_and_definitions(name, overrides)
    return None if found is None else found[0]


def spec_and_definitions(name: str | None, overrides: Overrides) -> tuple[RunSpec, Definitions] | None:
    """The section of a run in trainwatch.toml, and its definitions; None without such a file."""
    path: Path | None = find_project(here())
    if path is None:
        return None
    definitions = read_definitions(path)
    return spec_of_project(path, name, overrides, definitions), definitions


def not_used_for_a_command() -> str | None:
    """A sentence about this folder's trainwatch.toml, whose settings a run of a command does not have.

    None without such a file, and if it names other machines only.
    """
    path = find_project(here())
    if path is None:
        return None
    where = display_path(path)
    try:
        written = set(Document.read(path).data)
        if written <= {"hosts"}:
            return None
        load_project(path)
    except ConfigError as error:
        problems = "; ".join(map(str, error.problems))
        return f"{where} is not used for this command, and `trainwatch run` without a command refuses it: {problems}"
    sections = ", ".join(f"[{name}]" for name in sorted(written - {"run", "runs", "hosts"}))
    return (
        f"{where} is not used for this command: {f'{sections} and all else in it do' if sections else 'it does'} not "
        "apply. To use it, write the command into its [run] and start that with `trainwatch run`, without a command"
    )
