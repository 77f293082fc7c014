"""The only place that knows all rooms of core: it builds a run's supervisor, screen doors and views out of them."""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from trainwatch import __version__

from ..act.actor import RunActor
from ..act.config.derive import Derived
from ..act.gpu.gpu_clearing import GpuHelp
from ..act.launch.launching import find_attempt, settle_launch
from ..act.view import tmux
from ..act.view.attach import attach_command
from ..checkpoints import inspect, list_checkpoints, verify
from ..config.shipped import load_failures, load_log_shapes, load_remedies
from ..judge.failure.catalogue import CompiledCatalogue
from ..judge.failure.log_evidence import is_news
from ..judge.knowledge import Knowledge
from ..judge.state import SNAPSHOT_VERSION, to_snapshot
from ..judge.step import Judge
from ..judge.text.shape_table import ShapeTable
from ..model.decision import StartAttempt
from ..model.fact import BudgetChanged, RunCreated
from ..model.launch.resume_forms import telling
from ..model.observation import Learned, Meta
from ..model.ports import AttemptTarget, Inbox, Sensor
from ..model.preset import Preset
from ..model.profile import Profile
from ..model.record import Record
from ..model.run import RunSpec
from ..model.settings import Settings
from ..model.story import RunStory
from ..sense.files.checkpoint_directory import CheckpointDir
from ..sense.gpu.gpu_sensor import GpuSensor
from ..sense.gpu.simulated_gpu import SimulatedGpu
from ..sense.host.filesystem_type import is_network_filesystem
from ..sense.host.host_sensor import Host
from ..sense.host.kernel_log import KernelLog, kernel_tail
from ..sense.host.wsl import is_wsl
from ..sense.log.log_tail import LogTail
from ..sense.process.exit_watch import ExitWatch
from ..sense.process.process_tree import ProcessTree
from ..store.clock import RunClock
from ..store.habits_file import HabitsFile
from ..store.history import HistoryWriter
from ..store.journal import JournalWriter, latest_snapshot, read_journal
from ..store.run_directory import RunDirectory
from ..store.trace import TraceWriter
from ..supervisor.inbox import BoundedInbox
from ..supervisor.loop import Supervisor
from .preflight.checklist import ReadinessCheck
from .start.definitions import definitions_of
from .start.launch_plan import LaunchPlan, plan_launch
from .start.trainer_values import trainer_values, traits
from .supervise.recorder import RunRecorder
from .supervise.run_retention import FolderRetention

log = logging.getLogger(__name__)

UNJUDGED = frozenset({"notify", "tmux", "screen"})
"""Sections of the settings that no judgement depends on; the first holds secrets."""


def build_supervisor(
    run: RunDirectory, story: RunStory, plan: LaunchPlan | None, *, on_records: Callable[[Sequence[Record]], None]
) -> Supervisor:
    """The supervisor of one run, ready to ``run()``. The caller holds the run's lock.

    ``plan``: of the first launch, if it was computed already.
    """
    plan = plan if plan is not None else _plan(run, story)
    spec, preset, profiles = plan.spec, plan.preset, plan.profiles
    clock = RunClock(spec.created_wall, not_before=story.t)
    inbox = BoundedInbox()
    journal = JournalWriter(run.journal)
    if story.run is None:
        on_records(journal.append_all(clock.now(), clock.wall(), (_created(plan, run.path.parents[1]),)))
    elif story.budget_max != spec.settings.restart.max_restarts:  # the settings were changed since
        changed = BudgetChanged(used=story.budget_used, max=spec.settings.restart.max_restarts)
        on_records(journal.append_all(clock.now(), clock.wall(), (changed,)))
    habits = HabitsFile(run.path.parents[1], spec.command, spec.cwd, _config_of(spec))
    recorder = RunRecorder(
        HistoryWriter(run.history, network=_on_network(run.path)),
        TraceWriter(run.trace),
        _meta(spec) if story.run is None else None,
        habits,
    )
    snapshot = latest_snapshot(run.journal)
    judge = Judge(_knowledge(spec, preset, profiles))
    live = live_attempt(run, story)
    actor = RunActor(
        spec=spec,
        preset=preset,
        profiles=profiles,
        attempt_folder=run.attempt,
        incident_folder=run.incident,
        verify=lambda path, deep: verify(path, deep=deep),
        gpus_now=recorder.gpus_now,
        show=lambda target: tmux.show(spec, target).detail,
        base_env=os.environ,
        ready=ReadinessCheck(plan, lambda text: supervisor.note(text)),  # noqa: PLW0108  made below
        planned=plan.derived_for,
        retention=FolderRetention(Path(spec.output_dir), preset.checkpoint_globs) if spec.output_dir else None,
        kernel_tail=kernel_tail,
        gpu_help=GpuHelp(
            read=recorder.gpus_now,
            users=_gpu_users,
            python=lambda: _trainer_python(spec),
            touching=not spec.labels.get("simulated_gpu") and not is_wsl(),
        ),
        wsl=is_wsl(),
        misfit=lambda resume, derived: _misfit(spec, resume, derived),
        remember=lambda folder, derived: _remember(spec, folder, derived),
    )
    if (newest := _newest_attempt(run)) is not None:
        actor.follow(newest)  # also a dead one: it may have left workers, which are to be ended before the next starts
    supervisor = Supervisor(
        judge=judge,
        state=judge.start(story, snapshot.state if snapshot is not None else None),
        snapshot=to_snapshot,
        snapshot_version=SNAPSHOT_VERSION,
        journal=journal,
        recorder=recorder,
        inbox=inbox,
        clock=clock,
        actor=actor,
        pid=os.getpid(),
        live=live,
        learned=_learned(habits, clock.now()) if snapshot is None else None,
        live_order=None if live is None else _unwritten_order(run, story, live.number),
        on_records=on_records,
        answer=judge.answer,
    )
    supervisor.sense_with(_sensors(spec, preset.checkpoint_globs, inbox, clock, supervisor.note))
    return supervisor


def _learned(file: HabitsFile, t: float) -> Learned | None:
    """For the judge's first observation. A snapshot holds all of it, so a run is told once."""
    habits = file.read()
    return Learned(t=t, habits=habits) if habits is not None else None


def _config_of(spec: RunSpec) -> Path | None:
    return None if spec.config is None else Path(spec.cwd, spec.config)


def _misfit(spec: RunSpec, resume: Path, derived: Derived) -> str | None:
    from .preflight.model_checks import resume_misfit

    try:
        return resume_misfit(spec, resume, derived)
    except Exception:  # a look that fails must not cost the launch
        log.exception("comparing the model with %s failed", resume)
        return None


def _remember(spec: RunSpec, folder: Path, derived: Derived) -> None:
    """Beside everything else: counting a large data set takes seconds, and the trainer runs already."""
    from .preflight.model_checks import remember_data

    def count() -> None:
        try:
            remember_data(spec, folder, derived)
        except Exception:  # what is not remembered is not compared later
            log.exception("the data set of %s could not be counted", folder)

    threading.Thread(target=count, name="count-data", daemon=True).start()


def _gpu_users() -> Sequence[str]:
    from .preflight.gpu_survey import named_users

    return named_users()


def _trainer_python(spec: RunSpec) -> Sequence[str] | None:
    from .preflight.gpu_checks import interpreter

    return interpreter(spec)


def _catalogue(spec: RunSpec) -> CompiledCatalogue:
    """The failure catalogue and the line shapes, with the run's own patterns."""
    shapes = ShapeTable(load_log_shapes(), spec.settings.progress.shapes)
    return CompiledCatalogue(load_failures(), shapes, spec.settings.diagnose.patterns)


def _knowledge(spec: RunSpec, preset: Preset, profiles: Mapping[str, Profile]) -> Knowledge:
    catalogue = _catalogue(spec)
    return Knowledge(
        catalogue=catalogue,
        shapes=catalogue.shapes,
        settings=spec.settings,
        preset=preset,
        profiles=tuple(profiles),
        run=spec.name,
        created_wall=spec.created_wall,
        output_dir=spec.output_dir,
        remedies=load_remedies(),
        values=trainer_values(spec, preset, profiles, load_remedies(), os.environ),
        families={name: profile.family for name, profile in profiles.items()},
        traits=traits(),
        telling=telling(preset, spec.command),
    )


def _plan(run: RunDirectory, story: RunStory) -> LaunchPlan:
    """With the derived first launch if there was none yet."""
    spec = run.load_spec()
    definitions = definitions_of(spec)
    if not story.attempts:
        return plan_launch(spec, definitions, run.path.parents[1])
    return LaunchPlan(spec=spec, preset=definitions.preset_of(spec), profiles=definitions.profiles)


def _created(plan: LaunchPlan, home: Path) -> RunCreated:
    from .preflight.length_check import expected_of_run

    spec = plan.spec
    return RunCreated(
        run=spec.id,
        name=spec.name,
        command=spec.command,
        cwd=spec.cwd,
        preset=spec.preset,
        output_dir=spec.output_dir,
        profile=spec.settings.profiles.use,
        max_restarts=spec.settings.restart.max_restarts,
        trainwatch_version=__version__,
        expected=expected_of_run(plan, home),
    )


def live_attempt(run: RunDirectory, story: RunStory) -> AttemptTarget | None:
    """The newest launched attempt, unless its end is in the journal. It may have died while nobody watched.

    Waits for one that the last supervisor was just launching. The caller holds the run's lock.
    """
    ended = {a.number for a in story.attempts if a.ended_t is not None}
    newest = _newest_attempt(run, settle_launch)
    return None if newest is None or newest.number in ended else newest


def _unwritten_order(run: RunDirectory, story: RunStory, number: int) -> StartAttempt | None:
    """The decision to launch this attempt, where the journal does not tell that it began."""
    if any(attempt.number == number for attempt in story.attempts):
        return None
    decisions = (r.decision for r in read_journal(run.journal) if isinstance(r.decision, StartAttempt))
    return max((d for d in decisions if d.attempt == number), key=lambda d: d.id, default=None)


def _newest_attempt(
    run: RunDirectory, find: Callable[[Path], AttemptTarget | None] = find_attempt
) -> AttemptTarget | None:
    """The attempt that was launched last, dead or alive."""
    folders = sorted(run.attempts.iterdir(), reverse=True) if run.attempts.is_dir() else []
    return next((target for target in map(find, folders) if target is not None), None)


def _sensors(
    spec: RunSpec, checkpoint_globs: Sequence[str], inbox: Inbox, clock: RunClock, on_trouble: Callable[[str], None]
) -> list[Sensor]:
    watch = spec.settings.watch
    catalogue = _catalogue(spec)
    log = LogTail(
        inbox=inbox,
        clock=clock,
        logs=spec.logs,
        is_news=lambda line: is_news(line, catalogue),
        on_trouble=on_trouble,
    )
    checkpoints = CheckpointDir(
        inbox=inbox,
        clock=clock,
        watch=watch,
        directory=spec.output_dir,
        inspect=inspect,
        list_directory=lambda folder: list_checkpoints(folder, checkpoint_globs).checkpoints,
        globs=checkpoint_globs,
        on_trouble=on_trouble,
    )

    def last_look() -> None:
        """The log's last lines say why it ended; a checkpoint it has just saved is one to resume from."""
        log.drain()
        checkpoints.drain()

    return [
        log,
        checkpoints,
        ExitWatch(inbox=inbox, clock=clock, before_exit=last_look, on_trouble=on_trouble),
        ProcessTree(inbox=inbox, clock=clock, interval_s=watch.interval_s, on_trouble=on_trouble),
        Host(
            inbox=inbox,
            clock=clock,
            interval_s=watch.interval_s,
            output_dir=spec.output_dir or spec.cwd,
            on_trouble=on_trouble,
        ),
        KernelLog(inbox=inbox, clock=clock, on_trouble=on_trouble),
        SimulatedGpu(inbox=inbox, clock=clock, interval_s=watch.interval_s)
        if spec.labels.get("simulated_gpu")
        else GpuSensor(inbox=inbox, clock=clock, watch=watch, own_gpus=spec.gpus),
    ]


def _on_network(path: Path) -> bool:
    try:
        return is_network_filesystem(str(path.resolve()), Path("/proc/self/mountinfo").read_text())
    except OSError:
        return False


def _meta(spec: RunSpec) -> Meta:
    """The first line of the trace: with the settings that differ from the defaults a replay judges as we did."""
    settings = msgspec.to_builtins(spec.settings)
    usual = msgspec.to_builtins(Settings())
    told = {
        section: {key: value for key, value in values.items() if value != usual[section][key]}
        for section, values in settings.items()
        if section not in UNJUDGED
    }
    return Meta(
        t=0.0,
        command=spec.command,
        preset=spec.preset,
        output_dir=spec.output_dir,
        settings={section: values for section, values in told.items() if values},
    )


def close_view(run: RunDirectory) -> None:
    """A finished run needs no window; one that somebody looks at stays."""
    tmux.close(run.load_spec(), unless_attached=True)


def attach_argv(run: RunDirectory) -> list[str]:
    """The command that shows the trainer's terminal or log. Raises RuntimeError with a sentence."""
    return attach_command(run.load_spec(), _newest_attempt(run))
