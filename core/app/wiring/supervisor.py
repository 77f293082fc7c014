"""Builds the supervisor of a run."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path

from ...act.actor import RunActor
from ...act.elsewhere import ContainerWatch
from ...act.engine import Engine
from ...act.evaluator import CheckpointBackup, Evaluator
from ...act.gpu_clearing import GpuHelp
from ...act.local_engine import AttemptLauncher, engine_of
from ...act.view import tmux
from ...act.view.tmux import attach_command
from ...checkpoints import copy_aside, folder_for_copies, parts_in, verify
from ...checkpoints.formats.byte_range import BESIDE_TRAINING_BYTES_PER_S
from ...judge.handlers.hang_check import outlook_of
from ...judge.recovery.attempts import cannot_be_told, shown_progress
from ...judge.state import SNAPSHOT_VERSION, to_snapshot
from ...judge.step import Judge
from ...model.checkpoint import CopiedAside
from ...model.fact import ActChanged, BudgetChanged, Fact, OutputKnown, ResumeWayKnown
from ...model.observation import Learned
from ...model.preset import Preset
from ...model.record import Record
from ...model.run import RunSpec
from ...model.story import RunStory, ways_on
from ...model.story_fold import apply
from ...model.suggestion import typed
from ...model.supervision_ports import Sensor
from ...sense.host.disk_space import is_network_filesystem
from ...sense.host.host_sensor import is_wsl
from ...sense.host.kernel_log import kernel_tail
from ...sense.process.run_tree import RunTree
from ...store.atomic import write_atomically
from ...store.clock import RunClock
from ...store.detail_files import DetailFiles
from ...store.history import HistoryWriter
from ...store.journal import latest_snapshot
from ...store.learned import HabitsFile
from ...store.run_directory import RunDirectory
from ...store.trace import TraceWriter
from ...supervisor.action_threads import BoundedInbox
from ...supervisor.loop import TICK_S, Supervisor
from ..errors import ExitCode
from ..gpu_survey import named_users
from ..plan.launch_plan import LaunchPlan, plan_launch
from ..plan.resume_plan import as_declared, with_way_now
from ..plan.specs import definitions_of
from ..plan.told_length import save_request
from ..preflight.checklist import ReadinessCheck
from ..preflight.other_trainer import refusal_at_launch
from ..runs.checkpoint_quality import rated_paths
from ..runs.ended_attempt import live_attempt, newest_attempt, newest_folder, unwritten_order
from ..runs.output_claim import OutputClaim
from ..runs.output_lists import OutputLists
from ..supervise.machine_end import SleepInhibitor, keep_alive_order
from ..supervise.recorder import RunRecorder, misfit_of, remember_launch, run_created, script_now, trace_head
from ..supervise.run_output import RunOutput, RunRetention, copy_verified
from ..supervise.state_keeper import Vitality
from .sensors import (
    checkpoint_sensor,
    host_sensor,
    knowledge,
    list_all,
    other_trainers,
    output_search,
    scalar_files,
    sensors,
    values_sensor,
)


def build_supervisor(
    run: RunDirectory,
    story: RunStory,
    plan: LaunchPlan | None,
    claim: OutputClaim,
    *,
    on_records: Callable[[Sequence[Record]], None],
    vitality: Vitality,
    gives_way: Callable[[], bool] = lambda: False,
) -> Supervisor:
    """The supervisor of one run, ready to ``run()``. The caller holds the run's lock and ``claim``.

    ``plan``: of the first launch, if it was computed already. ``vitality``: shows that it lives and keeps its files.
    ``gives_way``: whether another version of trainwatch is to go on.
    """
    plan = plan if plan is not None else _plan(run, story)
    spec, preset, profiles = plan.spec, plan.preset, plan.profiles
    output = RunOutput(run, spec, story, lambda text: supervisor.note(text))  # noqa: PLW0108  made below
    spec = output.spec
    clock = RunClock(spec.created_wall, not_before=story.t)
    inbox = BoundedInbox(patient=spec.settings.watch.interval_s >= 2 * TICK_S)
    keeper = vitality.keeper
    journal = keeper.journal
    created = story.run if story.run is not None else run_created(plan, run.path.parents[1])
    if story.run is None:
        on_records(journal.append_all(clock.now(), clock.wall(), (created, *_outputs_known(spec))))
    elif changes := tuple(_changed_settings(story, spec)):
        records = journal.append_all(clock.now(), clock.wall(), changes)
        on_records(records)
        story = reduce(apply, records, story)
    habits = HabitsFile(run.path.parents[1], spec.command, spec.cwd, _config_of(spec))
    judge = Judge(knowledge(spec, preset, profiles, created.expected))
    recorder = RunRecorder(
        HistoryWriter(run.history, network=is_network_filesystem(str(run.path.resolve()), _mounts())),
        TraceWriter(run.trace, run.trace_wanted, recent=True),
        trace_head(spec) if story.run is None else None,
        habits,
        room=keeper.room,
        shapes=judge.knowledge.shapes,
        shown=partial(shown_progress, judge.knowledge),
        outlook=partial(outlook_of, judge.knowledge),
        seen=vitality.observation.seen,
    )
    snapshot = latest_snapshot(run.journal)
    state = judge.start(story, snapshot.state if snapshot is not None else None, newest_folder(run))
    values = values_sensor(spec, inbox, clock, lambda text: supervisor.note(text))  # noqa: PLW0108  made below
    engine = _engine(spec, preset, recorder)
    live = live_attempt(run, story, engine.adopt)
    lists = OutputLists(run.folders, preset.checkpoint_globs)
    if live is None and not story.attempts and not run.attempt_folders():
        lists.take(output.folders, before_launch=True)
    checkpoints = checkpoint_sensor(
        output,
        preset,
        inbox,
        clock,
        known=[each.path for each in state.checkpoints.known],
        lists=lists,
        whose=lambda path, told: search.whose(path, told=told),
        on_complete=(lambda _path, _mtime: None) if values is None else values.completed,
        on_problem=lambda text: supervisor.note(text),  # noqa: PLW0108  made below
    )
    launcher = AttemptLauncher(
        spec=spec,
        engine=engine,
        preset=preset,
        profiles=profiles,
        attempt_folder=run.attempt,
        gpus_now=recorder.gpus_now,
        show=lambda target: tmux.show(spec, target).detail,
        base_env=os.environ,
        ready=ReadinessCheck(
            plan,
            lambda text: supervisor.note(text),  # noqa: PLW0108  made below
            lambda: keeper.refusal() or claim.refusal(),
            lambda now: refusal_at_launch(now, run),
        ),
        planned=plan.derived_for,
        misfit=lambda resume, derived: misfit_of(spec, resume, derived),
        remember=lambda folder, derived: remember_launch(spec, folder, derived),
        script=lambda: script_now(spec),
        locks=claim.order,
        keep_alive=keep_alive_order(run, spec),
    )
    actor = RunActor(
        spec=spec,
        engine=engine,
        launcher=launcher,
        incident_folder=run.incident,
        verify=lambda path, deep: verify(path, deep=deep, layout=preset.layout),
        gpus_now=recorder.gpus_now,
        list_checkpoints=lambda limit_s, expected: list_all(checkpoints, search, limit_s, expected=expected),
        retention=RunRetention(
            lambda: [Path(folder) for folder in output.folders],
            preset.checkpoint_globs,
            rated=lambda: rated_paths(run.path.parents[1]),
        ),
        copy_aside=partial(_copy_aside, output, run),
        gpu_help=GpuHelp(
            read=recorder.gpus_now,
            peaks=lambda: recorder.gpu_peaks,
            users=named_users,
        ),
        end_in_words=partial(_end_in_words, run),
        outbox=vitality.outbox,
        evaluator=_evaluator(run, spec, preset),
        backup=CheckpointBackup(spec, lambda path, deep: verify(path, deep=deep, layout=preset.layout), copy_verified),
    )
    newest = newest_attempt(run)
    tree = RunTree()
    metrics = scalar_files(output, inbox, clock, tree, on_problem=lambda text: supervisor.note(text))  # noqa: PLW0108  made below
    search = output_search(
        output,
        run,
        inbox,
        clock,
        claim,
        last=newest,
        written=metrics.noticed,
        tree=tree,
        on_problem=lambda text: supervisor.note(text),  # noqa: PLW0108  made below
    )
    if newest is not None:
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
        on_records=_both(_both(output.on_records, recorder.on_records), on_records),
        turning=vitality.turn,
        resting=claim.give_away,
        gives_way=gives_way,
        starts_again=_starts_again(run, judge),
        answer=judge.answer,
    )
    claim.tell(supervisor.note)
    lists.tell(supervisor.note)
    claim.tell_shared(lambda text: keeper.tell("folder_shared", text, over="no other run writes there any more"))
    for folder in output.folders:
        claim.add_folder(folder)
    output.tell(claim.add_folder)
    keeper.live = lambda: supervisor.live
    vitality.newest = lambda: recorder.newest
    keeper.end = lambda why: supervisor.end(ExitCode.OWNED, why)
    details = DetailFiles(run.path)
    host = host_sensor(spec, inbox, clock, details, on_problem=supervisor.note)
    output.tell(checkpoints.watch)
    output.tell(host.save_to)
    supervisor.sense_with(
        [
            claim,
            *_sleep_inhibitor(spec, supervisor.note),
            ContainerWatch(supervisor.note),
            *other_trainers(plan, output, run, inbox, clock, tree=tree, on_problem=supervisor.note),
            *sensors(
                spec,
                (checkpoints, values, search, metrics),
                host,
                inbox,
                clock,
                tree=tree,
                details=details,
                backlog=recorder.tell_backlog,
                log_looked=lambda: recorder.look_at_log(clock.now()),
                has_steps=lambda: supervisor.has_steps,
                on_problem=supervisor.note,
            ),
        ]
    )
    return supervisor


def _starts_again(run: RunDirectory, judge: Judge) -> str:
    if cannot_be_told(judge.knowledge):
        return f"to start it again: {ways_on((run.id,))}"
    return f"`{typed('resume', run.id)}` starts it again"


def _both(
    first: Callable[[Sequence[Record]], None], then: Callable[[Sequence[Record]], None]
) -> Callable[[Sequence[Record]], None]:
    def each(records: Sequence[Record]) -> None:
        first(records)
        then(records)

    return each


def _outputs_known(spec: RunSpec) -> Iterator[Fact]:
    """What a journal that was lost had of the folders that the trainer was seen to save to."""
    for place in spec.outputs:
        yield OutputKnown(folder=place.folder, why=place.why)


def _changed_settings(story: RunStory, spec: RunSpec) -> Iterator[Fact]:
    """What the journal has of settings, and of the way to resume, that were changed since."""
    restart = spec.settings.restart
    if story.run is not None and spec.resume_way is not None and spec.resume_way != story.run.resume:
        yield ResumeWayKnown(way=spec.resume_way)
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


def _plan(run: RunDirectory, story: RunStory) -> LaunchPlan:
    """Add the derived first launch if there was none yet."""
    spec = run.load_spec()
    definitions = definitions_of(spec)
    if not story.attempts:
        return plan_launch(spec, definitions, run.path.parents[1])
    known, spec = spec, with_way_now(spec, definitions.preset_of(spec))
    if spec != known:
        run.save_spec(spec)
    profiles = as_declared(spec, definitions.profiles)
    return LaunchPlan(spec=spec, preset=definitions.preset_of(spec), profiles=profiles)


def _copy_aside(output: RunOutput, run: RunDirectory, paths: Sequence[Path], link: bool) -> CopiedAside:
    folders = [Path(folder) for folder in output.folders]
    parts = [part for folder in folders if folder.is_dir() for part in parts_in(folder)]
    beside = folders[0] if folders else Path(output.spec.cwd)
    place = folder_for_copies(beside, run.path / "kept")
    return copy_aside(list(dict.fromkeys((*paths, *parts))), place, link=link)


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""


def _sleep_inhibitor(spec: RunSpec, tell: Callable[[str], None]) -> list[Sensor]:
    return [SleepInhibitor(spec.name, tell, os.environ)] if spec.settings.supervisor.inhibit_sleep else []


def _evaluator(run: RunDirectory, spec: RunSpec, preset: Preset) -> Evaluator | None:
    if not spec.settings.evaluate.wanted:
        return None
    return Evaluator(
        spec=spec,
        folders=run.evaluations,
        verify=lambda path, deep: verify(
            path, deep=deep, layout=preset.layout, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S
        ),
        base_env=os.environ,
        write=write_atomically,
    )


def _engine(spec: RunSpec, preset: Preset, recorder: RunRecorder) -> Engine:
    return engine_of(
        spec,
        base_env=os.environ,
        save=save_request(spec, preset),
        gpus_now=recorder.gpus_now,
        kernel_tail=kernel_tail,
        wsl=is_wsl(),
    )


def _end_in_words(run: RunDirectory) -> str:
    from ..runs.report import end_in_words  # the report is loaded only at the end

    return end_in_words(run)


# The tmux window of a run, and the command that shows its terminal.


def close_view(run: RunDirectory) -> None:
    """Close the tmux window of a run that has ended, unless a terminal is attached to it or it never had one."""
    spec = run.load_spec()
    if spec.settings.tmux.enabled:
        tmux.close(spec, unless_attached=True)


def attach_argv(run: RunDirectory) -> list[str]:
    """The command that shows the trainer's terminal or log. Raises RuntimeError with a sentence."""
    return attach_command(run.load_spec(), newest_attempt(run))
