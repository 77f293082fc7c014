"""What the project of the working folder says about lines of its trainer, for verbs that read any log."""

import sys
from pathlib import Path

from trainwatch.core.model.settings import Settings


def project_settings() -> Settings:
    """Settings of the trainwatch.toml here or above; defaults where there is none.

    One that has problems is said on standard error and left out: a log can be read all the same.
    """
    from trainwatch.core.config.location import find_project

    try:
        path = find_project(Path.cwd())
    except FileNotFoundError:  # the working folder was deleted: a log elsewhere can be read all the same
        path = None
    if path is None:
        return Settings()
    from trainwatch.core.config.problem import ConfigError
    from trainwatch.core.config.project import load_project

    try:
        return load_project(path).settings
    except ConfigError as error:
        print(f"{error.problems[0]} (its own lines are not used)", file=sys.stderr)
        return Settings()
