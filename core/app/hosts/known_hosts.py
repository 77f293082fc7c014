"""The other machines that can be named by ``--on``."""

import os

from ...config.hosts import project_hosts, user_file, user_hosts
from ...config.location import find_project
from ...model.remote.host import Host
from ..errors import CliError, ExitCode, config_errors, did_you_mean
from ..runs.known_runs import here


def all_hosts() -> dict[str, Host]:
    """By name: those of the user's own file, then those that this folder's trainwatch.toml adds.

    A project's file cannot replace a host of the user's. Raises CliError if a file has problems.
    """
    own = user_file(os.environ)
    project = find_project(here())
    with config_errors():
        hosts = {} if own is None else user_hosts(own)
        added = {} if project is None else project_hosts(project)
    return {**added, **hosts}


def host_named(name: str) -> Host:
    """The host. Raises CliError (exit code 2) that names the nearest one, or how to add it."""
    hosts = all_hosts()
    if name in hosts:
        return hosts[name]
    place = user_file(os.environ) or "trainwatch.toml"
    add = f'; to add it, write into {place}: [hosts.{name}] and below it ssh = "user@{name}"'
    raise CliError(ExitCode.USAGE, f'no host "{name}"{did_you_mean(name, hosts) or add}')
