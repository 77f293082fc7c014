"""What the trainwatch.toml of a folder means for a training that it does not describe."""

from ...config.document import Document
from ...config.location import find_project
from ...config.problem import ConfigError, display_path
from ...config.project import load_project
from ..runs.known_runs import here

OF_RUNS = frozenset({"run", "runs", "hosts"})
"""Sections without settings."""


def not_used_for_a_command(use: str = "start that with `trainwatch run`") -> str | None:
    """A sentence about this folder's trainwatch.toml, whose settings a run of a command does not have.

    None without such a file, and if it names other machines only. ``use``: how a run of the file is used instead.
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
    sections = _listed(written - OF_RUNS)
    return (
        f"{where} is not used for this command: {f'{sections} and all else in it do' if sections else 'it does'} not "
        f"apply. To use it, write the command into its [run] and {use}, without a command"
    )


def partly_used_when_adopted() -> str | None:
    """The same of a training that is adopted: it has the settings of the file, and is no run of it.

    Raises ConfigError.
    """
    path = find_project(here())
    if path is None:
        return None
    written = set(Document.read(path).data)
    if written <= {"hosts"}:
        return None
    where, sections = display_path(path), _listed(written - OF_RUNS)
    ladder = "; of [profiles] the ladder alone applies" if "profiles" in written else ""
    if not sections:
        return f"{where} is not used for an adopted training: command and folders are those of the process"
    return (
        f"{where}: {sections} {'apply' if ',' in sections else 'applies'} to the adopted training{ladder}; its runs do "
        "not: command, folders and environment are those of the process"
    )


def _listed(sections: set[str]) -> str:
    return ", ".join(f"[{name}]" for name in sorted(sections))
