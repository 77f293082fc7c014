"""Plans of a command, and of the runs of the working folder's trainwatch.toml."""

from collections.abc import Sequence
from pathlib import Path

from ...config.location import FILE_NAME, find_project
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
