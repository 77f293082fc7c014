"""Finding a project's trainwatch.toml. Reading it is in project.py, which imports many more modules."""

from pathlib import Path

FILE_NAME = "trainwatch.toml"


def find_project(start: Path) -> Path | None:
    """Return the nearest trainwatch.toml in ``start`` or above it, absolute; None if there is none."""
    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        path = candidate / FILE_NAME
        if path.is_file():
            return path
    return None
