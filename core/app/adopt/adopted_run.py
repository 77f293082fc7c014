"""The run of an adopted trainer. Adopting the same process a second time finds the same run."""

import contextlib
import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...act import processes
from ...act.adopt.adoption import AdoptionError, Trainer, config_of, look_at, record_start
from ...act.adopt.log_place import LogPlace, log_of, pane_log, unreadable_terminal
from ...act.adopt.tmux_panes import PaneSeen, pane_on, panes_of, panes_of_server, piped_already, tap, trainer_in
from ...act.launch.launching import find_attempt
from ...config.project import FILE_NAME, find_project, load_project
from ...config.spec import Overrides, settings_with, spec_for_command
from ...model.run import RunSpec
from ...model.settings import Profiles, Settings, Tmux
from ...model.text.suggestion import typed
from ...source.trainer_source import source_facts
from ...store.home import make_private
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory, new_run_id
from ...views.resume_words import resume_line
from ..errors import CliError, ExitCode, config_errors
from ..gpu_survey import survey
from ..plan.definitions import read_definitions
from ..plan.resume_plan import decided
from ..plan.trainer_folders import with_output_folder
from ..plan.unused_file import partly_used_when_adopted
from ..runs.known_runs import all_runs, here, home
from ..runs.output_owner import require_own_output
from .adopted_again import take_over_options
from .find_training import find_training
from .gpu_baseline import record_baseline

EXIT_CODES = {"missing": ExitCode.NOT_FOUND, "unclear": ExitCode.USAGE, "refused": ExitCode.FAILED}
"""AdoptionError's kinds → exit codes."""


class AdoptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to adopt: a process (``pid``) or what runs in a tmux session. ``command``: replaces the one that is found.

    Without both, the one training that runs. ``log`` relative to the working folder.
    """

    options: Overrides
    session: str = ""
    pid: int | None = None
    socket: str | None = None
    log: Path | None = None
    command: tuple[str, ...] = ()


def adopt(request: AdoptRequest) -> tuple[RunDirectory, tuple[str, ...]]:
    """The run to supervise, and sentences about it. Raises CliError. Nothing is sent to the trainer."""
    try:
        return _adopt(request)
    except AdoptionError as error:
        raise CliError(EXIT_CODES[error.kind], str(error)) from None


def _adopt(request: AdoptRequest) -> tuple[RunDirectory, tuple[str, ...]]:
    """An unsupervised run that already has this trainer is used again, with the options that differ now."""
    settings = _settings(request)
    with _one_at_a_time():
        pid, pane = _process(request, settings.tmux)
        trainer = look_at(pid)
        known = _run_of(trainer)
        if known is not None:
            changed = take_over_options(
                known, request.options, request.command, log_of(trainer, request.log) if request.log else None
            )
            again = f"process {pid} already belongs to run {known.id}, which had no supervisor; it is supervised again"
            return known, (again, *(f"from now on: {difference}" for difference in changed))
        place = log_of(trainer, request.log)
        if place.log is None:
            pane = _pane_to_copy(trainer, place, pane, settings.tmux)
        spec = _spec(request, settings, trainer, place, pane)
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
            shutil.rmtree(run.path, ignore_errors=True)  # it was made above
            raise CliError(ExitCode.FAILED, f"{run.path}: {error.strerror or error}; nothing was adopted") from None
        except AdoptionError:
            shutil.rmtree(run.path, ignore_errors=True)
            raise
        with contextlib.suppress(OSError):  # without it the next launch does not wait for the GPU's memory
            record_baseline(run.attempt(1))
    return run, tuple(_remarks(spec, trainer, log or "", own_words=bool(request.command)))


def _settings(request: AdoptRequest) -> Settings:
    """The settings of the project in this folder, if any; the trainer keeps the profile that it was started with."""
    project = find_project(here())
    settings = Settings()
    if project is not None:
        definitions = read_definitions(project)
        with config_errors():
            settings = load_project(project, profiles=definitions.profiles, presets=definitions.presets).settings
    socket = request.socket if request.socket is not None else settings.tmux.socket
    tmux = Tmux(socket=socket, enabled=settings.tmux.enabled)
    profiles = Profiles(use=None, ladder=settings.profiles.ladder)
    return msgspec.structs.replace(settings, tmux=tmux, profiles=profiles)


def _process(request: AdoptRequest, tmux: Tmux) -> tuple[int, PaneSeen | None]:
    if request.pid is not None:
        return request.pid, None
    if not request.session:
        found = find_training(panes_of_server(tmux, os.environ), processes.all_processes(), survey(), _watched())
        return found.pid, found.pane
    panes = panes_of(tmux, request.session, os.environ)
    ours = next((pane.run for pane in panes if pane.run is not None), None)
    if ours is not None:
        _refuse_watched(ours, f"tmux session {request.session} is the window of run {ours}")
        raise CliError(
            ExitCode.USAGE,
            f"tmux session {request.session} shows run {ours}; supervise it again with: {typed('resume', ours)}",
        )
    return trainer_in(panes, request.session)


def _watched() -> set[int]:
    """Pids of trainers that a supervisor watches."""
    runs = (run for run in all_runs() if is_held(run.lock))
    targets = (find_attempt(folder) for run in runs for folder in run.attempt_folders())
    return {target.trainer.pid for target in targets if target is not None}


def _refuse_watched(run_id: str, what: str) -> None:
    for run in all_runs():
        if run.id == run_id and is_held(run.lock):
            raise CliError(
                ExitCode.OWNED, f"{what}, which a supervisor (pid {holder_pid(run.lock)}) supervises already"
            )


def _run_of(trainer: Trainer) -> RunDirectory | None:
    """The known run that this process belongs to. Raises CliError (exit code 4) if a supervisor holds it."""
    pid = trainer.identity.pid
    for run in all_runs():
        targets = (find_attempt(folder) for folder in run.attempt_folders())
        if any(target is not None and target.trainer == trainer.identity for target in targets):
            _refuse_watched(run.id, f"process {pid} belongs to run {run.id}")
            return run
    if trainer.attempt is None or not Path(trainer.attempt).is_dir():
        return None
    run = RunDirectory(Path(trainer.attempt).parents[1])
    state = "supervised" if is_held(run.lock) else "without a supervisor"
    raise CliError(
        ExitCode.OWNED,
        f"process {pid} belongs to run {run.id} ({state}); see "
        f"TRAINWATCH_HOME={shlex.quote(str(run.path.parents[1]))} {typed('status', run.id)}",
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
    request: AdoptRequest, settings: Settings, trainer: Trainer, place: LogPlace, pane: PaneSeen | None
) -> RunSpec:
    command = tuple(request.command or trainer.argv)
    if not command:
        raise AdoptionError(
            "unclear",
            f"process {trainer.identity.pid} has overwritten its command line, so it could not be started again; "
            "give the command behind --",
        )
    cwd = Path(trainer.cwd)
    config = here() / request.options.config if request.options.config else config_of(command, trainer.cwd)
    output = request.options.output_dir
    definitions = read_definitions(cwd / FILE_NAME)
    with config_errors():
        spec = spec_for_command(
            command,
            identify=lambda name: new_run_id(home(), name, cwd),
            # Checkpoints newer than this are this run's own, also after the first restart.
            created_wall=trainer.started_wall,
            cwd=cwd,
            presets=definitions.presets,
            look=source_facts,
            profiles=definitions.profiles,
            overrides=msgspec.structs.replace(
                request.options,
                name=request.options.name or _session_name(request, pane),
                config=None if config is None else str(config),
                output_dir=None if output is None else str(here() / output),
            ),
        )
    preset = definitions.preset_of(spec)
    known = msgspec.structs.replace(
        with_output_folder(spec, preset),
        env=trainer.env,
        logs=place.more,
        settings=settings_with(settings, request.options),
    )
    return decided(known, preset)


def _session_name(request: AdoptRequest, pane: PaneSeen | None) -> str | None:
    """The tmux session's name, if a person named it (tmux numbers the others): it is clearer than ``train.py``."""
    name = pane.session if pane is not None and request.session else ""
    return name if name and not name.isdecimal() else None


def _remarks(spec: RunSpec, trainer: Trainer, log: str, *, own_words: bool) -> Iterator[str]:
    yield (
        f"adopts process {trainer.identity.pid} ({' '.join(trainer.argv[:6])}) as run {spec.id}, preset {spec.preset}; "
        f"log {log}"
    )
    if (file := partly_used_when_adopted()) is not None:
        yield file
    if spec.output_dir is None:
        yield "where it saves is not known yet; its files are watched for it (--output-dir D says it)"
    elif not Path(spec.output_dir).exists():
        yield f"{spec.output_dir} does not exist yet: is it where the trainer saves? Only checkpoints can be resumed"
    if spec.resume_way is None or spec.resume_way.will in {"no", "unknown"}:
        again = "put {resume} into it" if own_words else "give the command behind -- with {resume} in it"
        yield f"{resume_line(spec.resume_way)}; {again} if the script has an option for it, or choose a --preset"


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock, so that two commands that adopt the same process at once do not make two runs of it."""
    path = make_private(home()) / "adopt.lock"
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
