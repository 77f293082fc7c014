"""Finding a project's trainwatch.toml, and the user's own file. Reading them imports many more modules."""

import os
from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "trainwatch.toml"
USER_FILE = "config.toml"
"""The user's own file; it names other machines."""


def find_project(start: Path) -> Path | None:
    """Return the nearest trainwatch.toml in ``start`` or above it, absolute; None if there is none."""
    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        path = candidate / FILE_NAME
        if path.exists() and not path.is_dir():  # what is no file is told when it is read
            return path
    return None


def user_file(env: Mapping[str, str]) -> Path | None:
    """``$XDG_CONFIG_HOME/trainwatch/config.toml``, else that below ``~/.config``; None without a home folder."""
    config = env.get("XDG_CONFIG_HOME")
    if config and Path(config).is_absolute():
        return Path(config) / "trainwatch" / USER_FILE
    home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  raises nothing
    return None if home == "~" else Path(home) / ".config" / "trainwatch" / USER_FILE
