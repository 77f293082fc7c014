"""Where a project's trainwatch.toml lies. Apart from reading it, which loads far more."""

from pathlib import Path

FILE_NAME = "trainwatch.toml"


def find_project(start: Path) -> Path | None:
    """Return the nearest trainwatch.toml in ``start`` or above it, absolute; None when there is none."""
    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        path = candidate / FILE_NAME
        if path.is_file():
            return path
    return None
