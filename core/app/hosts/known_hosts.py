"""The other machines that can be named by ``--on``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...config.location import USER_FILE, find_project, user_file
from ..errors import CliError, ExitCode, config_errors, did_you_mean
from ..runs.known_runs import here

if TYPE_CHECKING:
    from ...model.host import Host

NONE_KNOWN = 'no other machine is known: write [hosts.box1] and ssh = "user@box1" into ~/.config/trainwatch/config.toml'


def all_hosts() -> "dict[str, Host]":
    """By name: those of the user's own file, then those that this folder's trainwatch.toml adds.

    A project's file cannot replace a host of the user's. Raises CliError if a file has problems.
    """
    own = user_file(os.environ)
    project = find_project(here())
    if not (_may_name_hosts(own) or _may_name_hosts(project)):
        return {}
    from ...config.hosts import project_hosts, user_hosts  # a screen that opens should not wait for it

    with config_errors():
        hosts = {} if own is None else user_hosts(own)
        added = {} if project is None else project_hosts(project)
    return {**added, **hosts}


def _may_name_hosts(path: Path | None) -> bool:
    """Whether it must be read as TOML. A file that cannot be read is: then that is told."""
    if path is None or not path.exists():
        return False
    try:
        return path.name == USER_FILE or b"hosts" in path.read_bytes()
    except OSError:
        return True


def host_named(name: str) -> "Host":
    """The host. Raises CliError (exit code 2) that names the nearest one, or how to add it."""
    hosts = all_hosts()
    if name in hosts:
        return hosts[name]
    place = user_file(os.environ) or "trainwatch.toml"
    add = f'; to add it, write into {place}: [hosts.{name}] and below it ssh = "user@{name}"'
    raise CliError(ExitCode.USAGE, f'no host "{name}"{did_you_mean(name, hosts) or add}')
