"""Adopted trainers: how one is found, and the run that is made of it."""

import contextlib
import fcntl
import os
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from pathlib import Path

import msgspec

from .. import processes, spool
from ..act import adopt as trainers
from ..act.adopt import AdoptionError, LogPlace, PaneSeen, Trainer
from ..act.config.trainer_config import config_of
from ..act.launch.launching import find_attempt
from ..act.local_engine import BASELINE
from ..config.project import FILE_NAME, Overrides, find_project, load_project, settings_with
from ..model.run import RunSpec
from ..model.settings import Profiles, Settings, Tmux
from ..model.text import typed
from ..processes import Process
from ..rank_files import tail_of
from ..sense.gpu.gpu_sensor import pids_are_comparable
from ..sense.process.run_tree import tree_pids
from ..spool import read_start
from ..store.home import make_private, runs_folder
from ..store.lock import holder_pid, is_held
from ..store.run_directory import RunDirectory, new_run_id
from ..views.length_words import resume_line
from .errors import CliError, ExitCode, config_errors
from .gpu_survey import GpuSeen, GpuSurvey, survey
from .logs import progress_in_log
from .plan.resume_plan import decided
from .plan.specs import Definitions, bare_spec, read_definitions
from .plan.trainer_folders import partly_used_when_adopted, with_output_folder
from .runs.ended_attempt import attempts_of
from .runs.known_runs import all_runs, here, home
from .runs.output_claim import require_own_output

# The run of an adopted trainer. Adopting the same process a second time finds the same run.

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
    """The run to supervise, and sentences about it. Raises CliError. Nothing is sent to the trainer.

    An unsupervised run that already has this trainer is used again, with the options that differ now.
    """
    path = make_private(home()) / "adopt.lock"  # two commands that adopt the same process do not make two runs of it
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _adopt(request)
    except AdoptionError as error:
        raise CliError(EXIT_CODES[error.kind], str(error)) from None


def _adopt(request: AdoptRequest) -> tuple[RunDirectory, tuple[str, ...]]:
    settings = _settings(request)
    pid, pane = _process(request, settings.tmux)
    trainer = trainers.look_at(pid)
    known = _run_of(trainer)
    if known is not None:
        log = trainers.log_of(trainer, request.log).log if request.log else None
        changed = take_over_options(known, request.options, request.command, log)
        again = f"process {pid} already belongs to run {known.id}, which had no supervisor; it is supervised again"
        return known, (again, *(f"from now on: {difference}" for difference in changed))
    place = trainers.log_of(trainer, request.log)
    if place.log is None:
        if pane is None or pane.tty != place.tty:
            pane = trainers.pane_on(settings.tmux, place.tty or "", os.environ)
        if pane is None:
            other = "which is not a pane of this tmux server (--socket NAME selects another one) and"
            raise trainers.unreadable(trainer, f"terminal {place.tty}, {other}")
        if pane.piped:
            raise AdoptionError("unclear", trainers.piped_already(pane))
    spec = _spec(request, settings, trainer, place, pane)
    require_own_output(spec)
    run = RunDirectory.create(home(), spec)
    try:
        log = place.log
        if log is None and pane is not None:
            log = str(run.attempt(1) / "train.log")
            make_private(run.attempt(1))
            trainers.tap(settings.tmux, pane, trainer.identity, Path(log), os.environ)
        trainers.record_start(run.attempt(1), trainer, log or "")
    except (OSError, AdoptionError) as error:
        shutil.rmtree(run.path, ignore_errors=True)  # it was made above
        if isinstance(error, AdoptionError):
            raise
        raise CliError(ExitCode.FAILED, f"{run.path}: {error.strerror or error}; nothing was adopted") from None
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
        found = find_training(tmux, survey())
        return found.pid, found.pane
    panes = trainers.panes_of(tmux, request.session, os.environ)
    ours = next((pane.run for pane in panes if pane.run is not None), None)
    if ours is not None:
        _refuse_watched(ours, f"tmux session {request.session} is the window of run {ours}")
        raise CliError(
            ExitCode.USAGE,
            f"tmux session {request.session} shows run {ours}; supervise it again with: {typed('resume', ours)}",
        )
    return trainers.trainer_in(panes, request.session)


def _refuse_watched(run_id: str, what: str) -> None:
    lock = RunDirectory(runs_folder(home()) / run_id).lock
    if is_held(lock):
        raise CliError(ExitCode.OWNED, f"{what}, which a supervisor (pid {holder_pid(lock)}) supervises already")


def _run_of(trainer: Trainer) -> RunDirectory | None:
    """The known run that this process belongs to. Raises CliError (exit code 4) if a supervisor holds it."""
    pid = trainer.identity.pid
    for run in all_runs():
        if any(target.trainer == trainer.identity for target in attempts_of(run)):
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
    # A name that a person gave the session is clearer than `train.py`; tmux numbers the others.
    session = pane.session if pane is not None and request.session and not pane.session.isdecimal() else None
    found = config_of(command, trainer.cwd)
    options = msgspec.structs.replace(request.options, name=request.options.name or session)
    spec, definitions = _of_options(command, options, Path(trainer.cwd), config=found, output_dir=None)
    preset = definitions.preset_of(spec)
    known = msgspec.structs.replace(
        with_output_folder(spec, preset),
        id=new_run_id(home(), spec.name, Path(trainer.cwd)),
        created_wall=trainer.started_wall,  # checkpoints newer than this are this run's own, also after a restart
        env=trainer.env,
        logs=place.more,
        settings=settings_with(settings, request.options),
    )
    return decided(known, preset)


def _of_options(
    command: tuple[str, ...], options: Overrides, cwd: Path, *, config: str | None, output_dir: str | None
) -> tuple[RunSpec, Definitions]:
    """The spec of a command with options whose paths start here. ``config``, ``output_dir``: what they are without."""
    given = msgspec.structs.replace(
        options,
        config=str(here() / options.config) if options.config else config,
        output_dir=output_dir if options.output_dir is None else str(here() / options.output_dir),
    )
    definitions = read_definitions(cwd / FILE_NAME)
    return bare_spec(command, given, definitions, cwd), definitions


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
    if not spec.resumes:
        again = "put {resume} into it" if own_words else "give the command behind -- with {resume} in it"
        yield f"{resume_line(spec.resume_way)}; {again} if the script has an option for it, or choose a --preset"


# ``adopt`` without a session or pid: find the one training that runs on this machine.

_TAIL_BYTES = 256 << 10
"""End of a log that is read for progress."""
_PROGRAMS = ("python", "pypy")
"""Programs that are looked at outside of tmux; others only if they hold GPU memory."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A process that may be a training. ``signs``: why, in words; empty in a pane that only shows that it runs."""

    pid: int
    name: str
    command: str
    signs: tuple[str, ...] = ()
    pane: PaneSeen | None = None


def find_training(tmux: Tmux, gpus: GpuSurvey) -> Candidate:
    """The only training of this user that no supervisor watches. Raises AdoptionError if there is none, or several."""
    known = {each.trainer.pid for run in all_runs() if is_held(run.lock) for each in attempts_of(run)}
    return training_among(trainers.panes_of_server(tmux, os.environ), processes.all_processes(), gpus, known)


def training_among(
    panes: Sequence[PaneSeen], running: Mapping[int, Process], gpus: GpuSurvey, known: Collection[int]
) -> Candidate:
    """The same among these. ``running``: all processes. ``known``: pids of trainers that a supervisor watches."""
    own, found = processes.ancestors(os.getpid(), running), list[Candidate]()
    for pane in panes:
        for process in trainers.topmost(pane.pid, running, own) if pane.run is None else ():
            if process.pid not in known:
                found += _candidate(process, running, gpus, pane)
    return choose([*found, *_elsewhere(panes, running, gpus, known)])


def choose(found: Sequence[Candidate]) -> Candidate:
    """The one with signs of a training; without any, the only program in a pane. Raises AdoptionError."""
    best = [each for each in found if each.signs] or [each for each in found if each.pane is not None]
    if not best:
        raise AdoptionError(
            "missing",
            "no training was found: none runs in a tmux pane, none prints progress into a log, and none holds GPU "
            "memory; name it with --session TMUX or --pid PID",
        )
    if len(best) > 1:
        listed = []
        for each in best:
            pane = [f"tmux session {each.pane.session}"] if each.pane is not None else []
            why = ", ".join((*pane, *each.signs))
            listed.append(f"--pid {each.pid}: {each.command}" + (f" ({why})" if why else ""))
        raise AdoptionError("unclear", f"{len(best)} trainings may be meant; name one: {'; '.join(listed)}")
    return best[0]


def _elsewhere(
    panes: Sequence[PaneSeen], running: Mapping[int, Process], gpus: GpuSurvey, known: Collection[int]
) -> Iterator[Candidate]:
    """Python programs outside of tmux, and what holds GPU memory; only those with signs of a training."""
    shells = {pane.pid for pane in panes}
    users = {user.pid for gpu in gpus.gpus for user in gpu.users or ()}
    may = set[int]()
    for process in running.values():
        place = Path(f"/proc/{process.pid}")
        with contextlib.suppress(OSError):
            own = process.state not in processes.DEAD_STATES and place.stat().st_uid == os.geteuid()
            is_python = own and (place / "exe").readlink().name.startswith(_PROGRAMS)
            words = processes.words_of(process.pid)
            if own and (is_python or process.pid in users) and not processes.is_trainwatch(words):
                may.add(process.pid)
    may -= processes.ancestors(os.getpid(), running)
    for pid in sorted(may - shells - set(known)):
        above = processes.ancestors(pid, running) - {pid}
        if not above & (may | shells):
            yield from (each for each in _candidate(running[pid], running, gpus, None) if each.signs)


def _candidate(
    process: Process, running: Mapping[int, Process], gpus: GpuSurvey, pane: PaneSeen | None
) -> Iterator[Candidate]:
    try:
        trainer = trainers.look_at(process.pid)
    except AdoptionError:
        return
    if trainer.attempt is not None:  # another run's, or of another state folder
        return
    tree = {process.pid, *(each.pid for each in processes.descendants(process.pid, running))}
    signs = tuple(_signs(trainer, tree, gpus))
    yield Candidate(
        pid=process.pid, name=process.name, command=" ".join(trainer.argv[:6]) or process.name, signs=signs, pane=pane
    )


def _signs(trainer: Trainer, tree: Collection[int], gpus: GpuSurvey) -> Iterator[str]:
    held = sorted({gpu.index for gpu in gpus.gpus for user in gpu.users or () if user.pid in tree})
    if held:
        yield f"uses GPU {', '.join(map(str, held))}"
    with contextlib.suppress(AdoptionError):
        log = trainers.log_of(trainer, None).log
        if log is None:
            return
        progress = progress_in_log([tail_of(log, _TAIL_BYTES)], lambda _: None)
        if progress.step is not None and (progress.loss is not None or progress.total_steps is not None):
            of = f" of {progress.total_steps}" if progress.total_steps is not None else ""
            yield f"{Path(log).name} shows step {progress.step}{of}"


# Adopting the trainer of a known run again: options that differ now are stored in the run, or refused.

SHOWN = {
    "output_dir": "output directory",
    "preset": "preset",
    "config": "config",
    "command": "command",
    "logs": "logs",
    "save_signal": "--save-signal",
    "save_file": "--save-file",
    "settings.restart.act": "--act",
    "settings.restart.max_restarts": "--max-restarts",
    "settings.end.end_by": "--end-by",
    "settings.end.at_finish": "--at-finish",
    "settings.end.at_give_up": "--at-give-up",
    "settings.progress.shapes": "--progress-shape",
    "settings.watch.summary_s": "--interval",
}
"""What an option changes in a run, and its name for people."""


def take_over_options(
    run: RunDirectory, options: Overrides, command: tuple[str, ...], log: str | None
) -> tuple[str, ...]:
    """Store the options that differ in the run; returns a sentence for each difference.

    ``log``: the one that was named. No supervisor holds the run. Raises CliError (exit code 2) for a difference that
    cannot be stored: another name, or any if a trainwatch.toml describes the run.
    """
    known = run.load_spec()
    if options.name is not None and options.name != known.name:
        raise CliError(
            ExitCode.USAGE,
            f"run {run.id} has the name {known.name}, and --name {options.name} cannot change it: leave it out",
        )
    wanted = _wanted(run, known, options, command, log)
    values = ((name, attrgetter(field)(known), attrgetter(field)(wanted)) for field, name in SHOWN.items())
    differences = tuple(f"{name} {_text(b)} (was {_text(a)})" for name, a, b in values if a != b)
    if not differences:
        return ()
    if known.project is not None:
        raise CliError(
            ExitCode.USAGE,
            f"run {run.id} is described by {known.project}, and the command line differs: {'; '.join(differences)}; "
            f"change it there, then `{typed('--headless', '--run', known.name)}`",
        )
    require_own_output(wanted)
    run.save_spec(wanted)
    return differences


def _wanted(
    run: RunDirectory, known: RunSpec, options: Overrides, command: tuple[str, ...], log: str | None
) -> RunSpec:
    given = msgspec.structs.replace(options, name=known.name, preset=options.preset or known.preset)
    folder, config = known.output_dir, known.config
    spec, _ = _of_options(command or known.command, given, Path(known.cwd), config=config, output_dir=folder)
    output, before = spec.output_dir, known.output_dir
    if output is not None and before is not None and os.path.realpath(output) == os.path.realpath(before):
        output = before
    start = next((s for s in map(read_start, run.attempt_folders()) if s is not None), None)
    read_already = {*known.logs, start.log if start is not None else ""}
    return msgspec.structs.replace(
        known,
        command=spec.command,
        preset=spec.preset,
        config=spec.config,
        output_dir=output,
        logs=known.logs if log is None or log in read_already else (*known.logs, log),
        save_signal=spec.save_signal or known.save_signal,
        save_file=spec.save_file or known.save_file,
        settings=settings_with(known.settings, options),
    )


def _text(value: str | float | tuple[str, ...] | None) -> str:
    if isinstance(value, tuple):
        value = shlex.join(value)
    return value or "none" if value is None or isinstance(value, str) else f"{value:g}"


# The GPU memory that others held when a trainer was adopted: what is above it after its end is waited for.

UNKNOWN_SHARE = 0.5
"""Share of a GPU's memory that counts as the others' if the driver does not say whose it is (WSL2, containers): a
trainer that ends gives most of it back, and a desktop keeps its part."""


def record_baseline(folder: Path) -> None:
    """Write the file that a launch writes, for an adopted attempt. Asks the driver; raises OSError."""
    target = find_attempt(folder)
    if target is None:
        return
    pids = tree_pids(target) if pids_are_comparable() else None
    baseline = baseline_of(survey(), pids)
    if baseline:
        spool.write(str(folder), BASELINE, {str(index): used for index, used in baseline.items()})


def baseline_of(found: GpuSurvey, pids: AbstractSet[int] | None) -> dict[int, float]:
    """Bytes of others by GPU index. ``pids``: of the trainer's tree; None: not comparable with the driver's."""
    return {gpu.index: used for gpu in found.gpus if (used := _of_others(gpu, pids)) is not None}


def _of_others(gpu: GpuSeen, pids: AbstractSet[int] | None) -> float | None:
    used = gpu.mem_used_bytes
    if used is None:
        return None
    if pids is None or gpu.users is None:
        return UNKNOWN_SHARE * used
    own = [user.mem_bytes for user in gpu.users if user.pid in pids]
    if any(size is None for size in own):
        return UNKNOWN_SHARE * used
    if not own:  # what no process is listed for may be the trainer's
        listed = min(used, sum(user.mem_bytes or 0.0 for user in gpu.users))
        return listed + UNKNOWN_SHARE * (used - listed)
    return max(0.0, used - sum(size or 0.0 for size in own))
