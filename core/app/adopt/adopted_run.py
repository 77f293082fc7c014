"""The run of an adopted trainer: made once, found again when somebody adopts the same process a second time."""

import argparse
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...act.adopt.adoption import AdoptionError, Trainer, config_of, look_at, record_start
from ...act.adopt.log_place import LogPlace, log_of, pane_log, unreadable_terminal
from ...act.adopt.tmux_panes import PaneSeen, pane_on, panes_of, piped_already, tap, trainer_in
from ...act.launch.launching import find_attempt
from ...config.problem import ConfigError
from ...config.project import FILE_NAME, find_project, load_project
from ...config.shipped import load_presets, load_profiles
from ...config.spec import Overrides, settings_with, spec_for_command
from ...model.run import RunSpec
from ...model.settings import Profiles, Settings, Tmux
from ...store.home import make_private
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory, new_run_id
from ..errors import CliError, ExitCode
from ..runs.known_runs import all_runs, here, home
from ..start.output_owner import require_own_output
from .adopted_again import take_over_options


def adopt(args: argparse.Namespace) -> tuple[RunDirectory, tuple[str, ...]]:
    """The run to supervise, and sentences for the person who asked. Raises AdoptionError, CliError.

    Nothing is sent to the trainer. A run that is not watched and has this trainer already is given back, with what
    the command line says differently now.
    """
    settings = _settings(args)
    with _one_at_a_time():
        pid, pane = _process(args, settings.tmux)
        trainer = look_at(pid)
        known = _run_of(trainer)
        if known is not None:
            changed = take_over_options(known, args, log_of(trainer, Path(args.log)) if args.log else None)
            again = f"process {pid} belongs to run {known.id} already, which nobody watched; it is watched again"
            return known, (again, *(f"from now on: {difference}" for difference in changed))
        place = log_of(trainer, Path(args.log) if args.log else None)
        if place.log is None:
            pane = _pane_to_copy(trainer, place, pane, settings.tmux)
        spec = _spec(args, settings, trainer, place, pane)
        require_own_output(spec)
        run = RunDirectory.create(home(), spec)
        try:
            log = place.log
            if log is None and pane is not None:
                log = str(pane_log(pane, run.attempt(1)))
                make_private(run.attempt(1))
                tap(settings.tmux, pane, trainer.identity, Path(log), os.environ)
            record_start(run.attempt(1), trainer, log or "")
        except OSError as error:
            shutil.rmtree(run.path, ignore_errors=True)  # made a moment ago, by us
            raise CliError(ExitCode.FAILED, f"{run.path}: {error.strerror or error}; nothing was adopted") from None
        except AdoptionError:
            shutil.rmtree(run.path, ignore_errors=True)
            raise
    return run, tuple(_remarks(spec, trainer, log or "", own_words=bool(args.command_after_dashes)))


def _settings(args: argparse.Namespace) -> Settings:
    """Those of the project in this folder, if there is one; the trainer keeps the profile that it was started with."""
    project = find_project(here())
    settings = Settings()
    if project is not None:
        try:
            settings = load_project(project, profiles=load_profiles(project), presets=load_presets(project)).settings
        except ConfigError as error:
            raise CliError(ExitCode.USAGE, str(error)) from None
    socket = args.socket if args.socket is not None else settings.tmux.socket
    tmux = Tmux(socket=socket, enabled=settings.tmux.enabled)
    profiles = Profiles(use=None, ladder=settings.profiles.ladder)
    return msgspec.structs.replace(settings, tmux=tmux, profiles=profiles)


def _process(args: argparse.Namespace, tmux: Tmux) -> tuple[int, PaneSeen | None]:
    if args.pid is not None:
        return args.pid, None
    panes = panes_of(tmux, args.session, os.environ)
    ours = next((pane.run for pane in panes if pane.run is not None), None)
    if ours is not None:
        _refuse_watched(ours, f"tmux session {args.session} is the window of run {ours}")
        raise CliError(
            ExitCode.USAGE, f"tmux session {args.session} shows run {ours}; watch it again: trainwatch resume {ours}"
        )
    return trainer_in(panes, args.session)


def _refuse_watched(run_id: str, what: str) -> None:
    for run in all_runs():
        if run.id == run_id and is_held(run.lock):
            raise CliError(
                ExitCode.OWNED, f"{what}, which a supervisor (pid {holder_pid(run.lock)}) looks after already"
            )


def _run_of(trainer: Trainer) -> RunDirectory | None:
    """The run of ours that this process belongs to; ends with exit code 4 when it is watched."""
    pid = trainer.identity.pid
    for run in all_runs():
        attempts = sorted(run.attempts.iterdir()) if run.attempts.is_dir() else []
        if any((target := find_attempt(folder)) and target.trainer == trainer.identity for folder in attempts):
            _refuse_watched(run.id, f"process {pid} belongs to run {run.id}")
            return run
    if trainer.attempt is None or not Path(trainer.attempt).is_dir():
        return None
    run = RunDirectory(Path(trainer.attempt).parents[1])
    state = "looked after by a supervisor" if is_held(run.lock) else "not watched now"
    raise CliError(
        ExitCode.OWNED,
        f"process {pid} is a part of run {run.id} ({state}); see TRAINWATCH_HOME={run.path.parents[1]} trainwatch runs",
    )


def _pane_to_copy(trainer: Trainer, place: LogPlace, pane: PaneSeen | None, tmux: Tmux) -> PaneSeen:
    if pane is None or pane.tty != place.tty:
        pane = pane_on(tmux, place.tty or "", os.environ)
    if pane is None:
        raise unreadable_terminal(trainer, place)
    if pane.piped:
        raise AdoptionError("unclear", piped_already(pane))
    return pane


def _spec(
    args: argparse.Namespace, settings: Settings, trainer: Trainer, place: LogPlace, pane: PaneSeen | None
) -> RunSpec:
    command = tuple(args.command_after_dashes or trainer.argv)
    if not command:
        raise AdoptionError(
            "unclear",
            f"process {trainer.identity.pid} has overwritten its command line, so it could not be started again; "
            "give the command behind --",
        )
    cwd = Path(trainer.cwd)
    config = here() / args.config if args.config else config_of(command, trainer.cwd)
    try:
        spec = spec_for_command(
            command,
            identify=lambda name: new_run_id(home(), name, cwd),
            # Checkpoints newer than this are its own, also after the first restart.
            created_wall=trainer.started_wall,
            cwd=cwd,
            presets=load_presets(cwd / FILE_NAME),
            profiles=load_profiles(cwd / FILE_NAME),
            overrides=Overrides(
                name=args.name or _session_name(args, pane),
                preset=args.preset,
                config=None if config is None else str(config),
                output_dir=str(here() / args.output_dir),
                interval_s=args.interval,
                max_restarts=args.max_restarts,
            ),
        )
    except ConfigError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    return msgspec.structs.replace(
        spec,
        env=trainer.env,
        logs=place.more,
        settings=settings_with(settings, Overrides(interval_s=args.interval, max_restarts=args.max_restarts)),
    )


def _session_name(args: argparse.Namespace, pane: PaneSeen | None) -> str | None:
    """A session that a person named says more than ``train.py``; tmux itself numbers them."""
    name = pane.session if pane is not None and args.session is not None else ""
    return name if name and not name.isdecimal() else None


def _remarks(spec: RunSpec, trainer: Trainer, log: str, *, own_words: bool) -> Iterator[str]:
    yield (
        f"adopts process {trainer.identity.pid} ({' '.join(trainer.argv[:6])}) as run {spec.id}, preset {spec.preset}; "
        f"log {log}"
    )
    if spec.output_dir is not None and not Path(spec.output_dir).exists():
        yield f"{spec.output_dir} does not exist yet: is it where the trainer saves? Only checkpoints can be resumed"
    if spec.preset == "generic" and not any("{resume}" in word for word in spec.command):
        again = "put {resume} into it" if own_words else "give the command behind -- with {resume} in it"
        yield f"how this command resumes is not known: a restart would begin anew; {again}, or choose a --preset"


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two who adopt the same process at once must not make two runs of it."""
    path = make_private(home()) / "adopt.lock"
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
