"""The run of this project: made from trainwatch.toml at its first start, brought up to date at each later one."""

import argparse

import msgspec

from ...config.project import find_project
from ...config.spec import setting_problems, settings_with
from ...model.run import RunSpec
from ...store.atomic import write_atomically
from ...store.home import runs_folder
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..runs.known_runs import find_run, here, home
from .specs import overrides_of, spec_of_project


def project_spec(args: argparse.Namespace) -> RunSpec | None:
    """What trainwatch.toml says now; None without one (then a run started in this folder may be meant)."""
    project = find_project(here())
    return None if project is None else spec_of_project(project, args.run_name, overrides_of(args))


def project_run(args: argparse.Namespace, *, to_start: bool = False) -> RunDirectory:
    """The run to look after. Creates its folder at the first call; takes changed settings over while nobody watches.

    ``to_start``: it will be started at once, so a new one whose command cannot be is refused (exit code 2).
    Ends with exit code 3 where there is neither a trainwatch.toml nor a run that was started in this folder.
    """
    try:
        spec = project_spec(args)
    except CliError as error:  # no run of the file: one that is known by its id, then
        if error.code is not ExitCode.NOT_FOUND:
            raise
        try:
            return _with_flags(find_run(args.run_name), args)
        except CliError as unknown:
            raise (error if unknown.code is ExitCode.NOT_FOUND else unknown) from None
    if spec is None:
        if args.run_name is None and find_project(here()) is None:
            try:
                return _with_flags(find_run(None, anywhere=False), args)
            except CliError as error:
                raise CliError(
                    ExitCode.NOT_FOUND,
                    "no trainwatch.toml here or above, and no run was started in this folder; write one with "
                    "`trainwatch init -- COMMAND`, or start a command with `trainwatch run -- COMMAND`",
                ) from error
        return _with_flags(find_run(args.run_name), args)
    run = RunDirectory(runs_folder(home()) / spec.id)
    if not run.path.exists():
        if to_start:
            from .output_owner import require_own_output
            from .startable import require_startable

            require_own_output(spec)
            require_startable(spec)
        return RunDirectory.create(home(), spec)
    known = run.load_spec()
    current = msgspec.structs.replace(spec, created_wall=known.created_wall, labels=known.labels)
    if current != known and not is_held(run.lock):
        write_atomically(run.spec, msgspec.json.encode(current))
    return run


def _with_flags(run: RunDirectory, args: argparse.Namespace) -> RunDirectory:
    """A run that no trainwatch.toml describes: what the command line says of it holds from now on."""
    overrides = overrides_of(args)
    if problems := setting_problems(overrides):
        raise CliError(ExitCode.USAGE, "; ".join(map(str, problems)))
    known = run.load_spec()
    settings = settings_with(known.settings, overrides)
    if settings != known.settings and not is_held(run.lock):
        write_atomically(run.spec, msgspec.json.encode(msgspec.structs.replace(known, settings=settings)))
    return run
