"""The only module that knows all packages of core: it builds the supervisor of a run from them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Literal

from ..act.actor import RunActor
from ..act.attempt_launcher import AttemptLauncher
from ..act.gpu.gpu_clearing import GpuHelp
from ..act.view import tmux
from ..act.view.attach import attach_command
from ..checkpoints import checkpoint_of, copy_aside, folder_for_copies, inspect_any, parts_in, state_in, verify
from ..checkpoints.formats.reading_pace import BESIDE_TRAINING_BYTES_PER_S
from ..config.shipped import load_failures, load_log_shapes, load_remedies
from ..judge.failure.catalogue import CompiledCatalogue
from ..judge.failure.log_evidence import is_news
from ..judge.knowledge import Knowledge
from ..judge.state import SNAPSHOT_VERSION, to_snapshot
from ..judge.step import Judge
from ..judge.text.shape_table import ShapeTable
from ..model.checkpoints.checkpoint import Checkpoint
from ..model.checkpoints.copied_aside import CopiedAside
from ..model.fact import ActChanged, BudgetChanged, Fact
from ..model.launch.resume_support import resume_support
from ..model.observation import Learned
from ..model.ports import Inbox, Sensor
from ..model.preset import Preset
from ..model.profile import Profile
from ..model.record import Record
from ..model.run import RunSpec
from ..model.settings import Restart
from ..model.story import RunStory, apply
from ..replay import Replay
from ..sense.files.checkpoint_directory import CheckpointDirectory
from ..sense.files.checkpoint_folders import CheckpointFolders
from ..sense.files.checkpoint_values import CheckpointValuesSensor
from ..sense.files.output_search import OutputSearch
from ..sense.gpu.gpu_sensor import GpuSensor
from ..sense.gpu.simulated_gpu import SimulatedGpu
from ..sense.host.filesystem_type import is_network_filesystem
from ..sense.host.host_sensor import Host
from ..sense.host.kernel_log import KernelLog, kernel_tail
from ..sense.host.termination import Cloud, TerminationNotices, cloud_of
from ..sense.host.wsl import is_wsl
from ..sense.log.log_tail import LogTail
from ..sense.process.exit_watch import ExitWatch, nothing
from ..sense.process.process_tree import ProcessTree
from ..store.clock import RunClock
from ..store.habits_file import HabitsFile
from ..store.journal import latest_snapshot
from ..store.metrics.history import HistoryWriter
from ..store.run_directory import RunDirectory
from ..store.trace import TraceWriter
from ..supervisor.inbox import BoundedInbox
from ..supervisor.loop import Supervisor
from .errors import ExitCode
from .gpu_survey import named_users
from .plan.declared_options import declared_options
from .plan.definitions import Definitions, definitions_of
from .plan.launch_plan import LaunchPlan, plan_launch
from .plan.trainer_values import trainer_values, traits
from .preflight.checklist import ReadinessCheck
from .preflight.exit_status_check import what_hides_status
from .preflight.gpu_checks import interpreter
from .preflight.handover_check import handed_over
from .runs.launched_attempts import live_attempt, newest_attempt, unwritten_order
from .runs.output_claim import OutputClaim
from .supervise.first_records import run_created, trace_head
from .supervise.keep_alive_order import keep_alive_order
from .supervise.launch_memory import misfit_of, remember_launch
from .supervise.recorder import RunRecorder
from .supervise.run_output import RunOutput
from .supervise.run_retention import RunRetention
from .supervise.save_request import save_request
from .supervise.vitality import Vitality


def build_supervisor(
    run: RunDirectory,
    story: RunStory,
    plan: LaunchPlan | None,
    claim: OutputClaim,
    *,
    on_records: Callable[[Sequence[Record]], None],
    vitality: Vitality,
) -> Supervisor:
    """The supervisor of one run, ready to ``run()``. The caller holds the run's lock and ``claim``.

    ``plan``: of the first launch, if it was computed already. ``vitality``: shows that it lives and keeps its files.
    """
    plan = plan if plan is not None else _plan(run, story)
    spec, preset, profiles = plan.spec, plan.preset, plan.profiles
    output = RunOutput(run, spec, story, lambda text: supervisor.note(text))  # noqa: PLW0108  made below
    spec = output.spec
    clock = RunClock(spec.created_wall, not_before=story.t)
    inbox = BoundedInbox()
    keeper = vitality.keeper
    journal = keeper.journal
    if story.run is None:
        on_records(journal.append_all(clock.now(), clock.wall(), (run_created(plan, run.path.parents[1]),)))
    elif changes := tuple(_changed_settings(story, spec.settings.restart)):
        records = journal.append_all(clock.now(), clock.wall(), changes)
        on_records(records)
        story = reduce(apply, records, story)
    habits = HabitsFile(run.path.parents[1], spec.command, spec.cwd, _config_of(spec))
    recorder = RunRecorder(
        HistoryWriter(run.history, network=is_network_filesystem(str(run.path.resolve()), _mounts())),
        TraceWriter(run.trace),
        trace_head(spec) if story.run is None else None,
        habits,
        room=keeper.room,
    )
    snapshot = latest_snapshot(run.journal)
    judge = Judge(_knowledge(spec, preset, profiles))
    state = judge.start(story, snapshot.state if snapshot is not None else None)
    known = [each.path for each in state.checkpoints.known]
    values = _values_sensor(spec, inbox, clock, lambda text: supervisor.note(text))  # noqa: PLW0108  made below
    checkpoints = _checkpoint_sensor(
        output,
        preset,
        inbox,
        clock,
        known=known,
        on_complete=(lambda _path, _mtime: None) if values is None else values.completed,
        on_problem=lambda text: supervisor.note(text),  # noqa: PLW0108  made below
    )
    live = live_attempt(run, story)
    launcher = AttemptLauncher(
        spec=spec,
        preset=preset,
        profiles=profiles,
        attempt_folder=keeper.attempt_folder,
        gpus_now=recorder.gpus_now,
        show=lambda target: tmux.show(spec, target).detail,
        base_env=os.environ,
        ready=ReadinessCheck(plan, lambda text: supervisor.note(text), claim.refusal),  # noqa: PLW0108  made below
        planned=plan.derived_for,
        misfit=lambda resume, derived: misfit_of(spec, resume, derived),
        remember=lambda folder, derived: remember_launch(spec, folder, derived),
        locks=claim.order,
        keep_alive=keep_alive_order(run, spec),
    )
    actor = RunActor(
        spec=spec,
        launcher=launcher,
        incident_folder=run.incident,
        verify=lambda path, deep: verify(path, deep=deep, layout=preset.layout),
        gpus_now=recorder.gpus_now,
        base_env=os.environ,
        list_checkpoints=lambda limit_s, expected: checkpoints.list_all(limit_s, expected=expected),
        retention=RunRetention(lambda: [Path(folder) for folder in output.folders], preset.checkpoint_globs),
        save_signal=save_request(spec, preset)[0],
        save_file=save_request(spec, preset)[1],
        copy_aside=partial(_copy_aside, output, run),
        kernel_tail=kernel_tail,
        gpu_help=GpuHelp(
            read=recorder.gpus_now,
            users=named_users,
            python=lambda: interpreter(spec),
            touching=not spec.labels.get("simulated_gpu") and not is_wsl(),
        ),
        wsl=is_wsl(),
    )
    if (newest := newest_attempt(run)) is not None:
        actor.follow(newest)  # also a dead one: workers that it left are ended before the next attempt starts
    supervisor = Supervisor(
        judge=judge,
        state=state,
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
        live_order=None if live is None else unwritten_order(run, story, live.number),
        on_records=_both(output.on_records, on_records),
        turning=vitality.turn,
        answer=judge.answer,
    )
    claim.tell(supervisor.note)
    claim.tell_shared(lambda text: keeper.tell("folder_shared", text, over="no other run writes there any more"))
    for folder in output.folders:
        claim.add_folder(folder)
    output.tell(claim.add_folder)
    keeper.live = lambda: supervisor.live
    vitality.newest = lambda: recorder.newest
    keeper.end = lambda why: supervisor.end(ExitCode.OWNED, why)
    host = _host_sensor(spec, inbox, clock, on_problem=supervisor.note)
    output.tell(checkpoints.watch)
    output.tell(host.save_to)
    search = _output_search(output, run, inbox, clock, on_problem=supervisor.note)
    supervisor.sense_with(
        [claim, host, *_sensors(spec, (checkpoints, values, search), inbox, clock, on_problem=supervisor.note)]
    )
    return supervisor


def _both(
    first: Callable[[Sequence[Record]], None], then: Callable[[Sequence[Record]], None]
) -> Callable[[Sequence[Record]], None]:
    def each(records: Sequence[Record]) -> None:
        first(records)
        then(records)

    return each


def _changed_settings(story: RunStory, restart: Restart) -> Iterator[Fact]:
    """What the journal has of settings that were changed since."""
    if story.budget_max != restart.max_restarts:
        yield BudgetChanged(used=story.budget_used, max=restart.max_restarts)
    if story.act_settings != restart.act:
        yield ActChanged(act=restart.act, by="the settings", settings=restart.act)


def _learned(file: HabitsFile, t: float) -> Learned | None:
    """The judge's first observation. Snapshots contain it, so it is observed once."""
    habits = file.read()
    return Learned(t=t, habits=habits) if habits is not None else None


def _config_of(spec: RunSpec) -> Path | None:
    return None if spec.config is None else Path(spec.cwd, spec.config)


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
        output_dir=spec.without_outputs().output_dir,
        remedies=load_remedies(),
        values=trainer_values(spec, preset, profiles, load_remedies(), os.environ),
        families={name: profile.family for name, profile in profiles.items()},
        traits=traits(),
        options=declared_options(spec, load_remedies()),
        resume_support=resume_support(preset, spec.command),
        begin_from=spec.begin_from,
        handed_over=handed_over(spec),
        status_hidden=what_hides_status(spec),
        can_ask_to_save=any(save_request(spec, preset)),
    )


def replay_of(spec: RunSpec, definitions: Definitions) -> Replay:
    """A judge of this run, with its settings, for observations that are fed to it."""
    return Replay(Judge(_knowledge(spec, definitions.preset_of(spec), definitions.profiles)))


def _plan(run: RunDirectory, story: RunStory) -> LaunchPlan:
    """Add the derived first launch if there was none yet."""
    spec = run.load_spec()
    definitions = definitions_of(spec)
    if not story.attempts:
        return plan_launch(spec, definitions, run.path.parents[1])
    return LaunchPlan(spec=spec, preset=definitions.preset_of(spec), profiles=definitions.profiles)


def _checkpoint_sensor(
    output: RunOutput,
    preset: Preset,
    inbox: Inbox,
    clock: RunClock,
    *,
    known: Sequence[str],
    on_complete: Callable[[Path, float], None],
    on_problem: Callable[[str], None],
) -> CheckpointFolders:
    globs, layout = preset.checkpoint_globs, preset.layout

    def look(path: Path, *, rewritten: bool = False) -> Checkpoint | None:
        if output.holds_output(path):
            return None
        return inspect_any(path, layout=layout, rewritten=rewritten, named=bool(globs))

    def listed(folder: Path) -> tuple[Checkpoint, ...]:
        found = state_in(folder, globs, layout=layout)
        return tuple(checkpoint for checkpoint in found if not output.holds_output(Path(checkpoint.path)))

    def sensor(folder: str) -> CheckpointDirectory:
        return CheckpointDirectory(
            inbox=inbox,
            clock=clock,
            watch=output.spec.settings.watch,
            directory=folder,
            inspect=look,
            inspect_rewritten=partial(look, rewritten=True),
            list_directory=listed,
            globs=globs,
            known=known,
            on_complete=on_complete,
            on_problem=on_problem,
        )

    return CheckpointFolders(sensor, output.folders)


def _output_search(
    output: RunOutput, run: RunDirectory, inbox: Inbox, clock: RunClock, on_problem: Callable[[str], None]
) -> OutputSearch:
    return OutputSearch(
        inbox=inbox,
        clock=clock,
        roots=[output.spec.cwd, *output.folders],
        watched=lambda: output.folders,
        checkpoint_of=checkpoint_of,
        ignored=[str(run.path.parents[1])],
        on_problem=on_problem,
    )


def _host_sensor(spec: RunSpec, inbox: Inbox, clock: RunClock, on_problem: Callable[[str], None]) -> Host:
    return Host(
        inbox=inbox,
        clock=clock,
        interval_s=spec.settings.watch.interval_s,
        output_dir=spec.output_dir or spec.cwd,
        on_problem=on_problem,
    )


def _values_sensor(
    spec: RunSpec, inbox: Inbox, clock: RunClock, on_problem: Callable[[str], None]
) -> CheckpointValuesSensor | None:
    """Reads the values of new checkpoints, unless the settings ask for their structure only."""
    if spec.settings.checkpoints.verify != "deep":
        return None
    return CheckpointValuesSensor(
        inbox=inbox,
        clock=clock,
        verify=lambda path, progress: verify(
            path, deep=True, progress=progress, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S
        ),
        verify_fast=lambda path, progress: verify(path, deep=True, progress=progress),
        on_problem=on_problem,
    )


def _copy_aside(output: RunOutput, run: RunDirectory, paths: Sequence[Path]) -> CopiedAside:
    folders = [Path(folder) for folder in output.folders]
    parts = [part for folder in folders if folder.is_dir() for part in parts_in(folder)]
    beside = folders[0] if folders else Path(output.spec.cwd)
    return copy_aside(list(dict.fromkeys((*paths, *parts))), folder_for_copies(beside, run.path / "kept"))


def _sensors(
    spec: RunSpec,
    files: tuple[CheckpointFolders, CheckpointValuesSensor | None, OutputSearch],
    inbox: Inbox,
    clock: RunClock,
    *,
    on_problem: Callable[[str], None],
) -> list[Sensor]:
    watch = spec.settings.watch
    checkpoints, values, search = files
    catalogue = _catalogue(spec)
    log = LogTail(
        inbox=inbox,
        clock=clock,
        logs=spec.logs,
        is_news=lambda line: is_news(line, catalogue),
        on_problem=on_problem,
    )

    def last_look() -> None:
        """Read the last log lines and checkpoints: they can show why it ended and what to resume from."""
        log.drain()
        checkpoints.drain()
        search.drain()

    return [
        log,
        checkpoints,
        search,
        *(() if values is None else (values,)),
        ExitWatch(
            inbox=inbox,
            clock=clock,
            before_exit=last_look,
            before_success=nothing if values is None else values.finish,
            on_output=log.add,
            on_problem=on_problem,
        ),
        ProcessTree(inbox=inbox, clock=clock, interval_s=watch.interval_s, on_problem=on_problem),
        KernelLog(inbox=inbox, clock=clock, on_problem=on_problem),
        TerminationNotices(
            inbox=inbox,
            clock=clock,
            cloud=_cloud(watch.termination_notices),
            address=watch.metadata_url,
            on_problem=on_problem,
        ),
        SimulatedGpu(inbox=inbox, clock=clock, interval_s=watch.interval_s)
        if spec.labels.get("simulated_gpu")
        else GpuSensor(inbox=inbox, clock=clock, watch=watch, own_gpus=spec.gpus),
    ]


def _cloud(setting: Literal["auto", "off", "aws", "gcp", "azure"]) -> Cloud | None:
    """The cloud whose notices are read."""
    return cloud_of() if setting == "auto" else None if setting == "off" else setting


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""


def close_view(run: RunDirectory) -> None:
    """Close the tmux window of a run that has ended, unless a terminal is attached to it."""
    tmux.close(run.load_spec(), unless_attached=True)


def attach_argv(run: RunDirectory) -> list[str]:
    """The command that shows the trainer's terminal or log. Raises RuntimeError with a sentence."""
    return attach_command(run.load_spec(), newest_attempt(run))
