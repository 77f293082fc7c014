"""Builds the supervisor of a run."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path

from ...act.actor import RunActor
from ...act.evaluator import CheckpointCommands
from ...act.gpu_clearing import GpuHelp
from ...act.local_engine import AttemptLauncher, engine_of
from ...act.view import tmux
from ...act.view.tmux import attach_command
from ...checkpoints.formats.byte_range import BESIDE_TRAINING_BYTES_PER_S
from ...checkpoints.inspection import verify
from ...checkpoints.listing import parts_in
from ...checkpoints.manage.copies import backup, copy_aside, folder_for_copies
from ...judge.handlers.hang_check import outlook_of
from ...judge.recovery.attempts import cannot_be_told, shown_progress
from ...judge.state import SNAPSHOT_VERSION, to_snapshot
from ...judge.step import Judge
from ...model.checkpoint import CopiedAside
from ...model.decision import Record
from ...model.fact import ActChanged, BudgetChanged, Fact, OutputKnown, ResumeWayKnown
from ...model.observation import Command, Learned
from ...model.run import RunSpec
from ...model.story import RunStory, ways_on
from ...model.story_fold import apply
from ...model.text import typed
from ...processes import status_of
from ...sense.host.host_sensor import is_wsl
from ...sense.host.kernel_log import kernel_tail
from ...store.control_client import take_order
from ...store.history_writer import HistoryWriter
from ...store.home import write_atomically
from ...store.journal import latest_snapshot
from ...store.learned import HabitsFile
from ...store.run_directory import RunDirectory, RunUnreadable
from ...store.supervision import RunClock
from ...store.trace import TraceWriter
from ...supervisor.action_threads import BoundedInbox
from ...supervisor.loop import TICK_S, Supervisor
from ..errors import CliError, ExitCode
from ..gpu_survey import named_users
from ..plan.launch_plan import LaunchPlan, plan_launch
from ..plan.resume_plan import as_declared, in_this_environment, with_way_now
from ..plan.specs import definitions_of
from ..plan.trainer_settings import save_request
from ..preflight.checklist import ReadinessCheck
from ..preflight.other_trainer import refusal_at_launch
from ..preflight.resume_checks import resume_misfit
from ..runs.checkpoint_quality import rated_well
from ..runs.ended_attempt import live_attempt, newest_attempt, newest_folder, unwritten_order
from ..runs.output_claim import OutputClaim, is_network
from ..runs.output_folder import OutputLists
from ..supervise.machine_end import keep_alive_order
from ..supervise.recorder import LogMetrics, RunRecorder, harmless, run_created, script_now, trace_head
from ..supervise.run_output import RunOutput, RunRetention
from ..supervise.state_keeper import Vitality
from .sensors import build_sensors, knowledge


def build_supervisor(
    run: RunDirectory,
    story: RunStory,
    plan: LaunchPlan | None,
    claim: OutputClaim,
    *,
    on_records: Callable[[Sequence[Record]], None],
    vitality: Vitality,
    gives_way: Callable[[], bool] | None,
) -> Supervisor:
    """The supervisor of one run, ready to ``run()``. The caller holds the run's lock and ``claim``.

    ``plan``: of the first launch, if it was computed already. ``vitality``: shows that it lives and keeps its files.
    ``gives_way``: whether another version of trainwatch is to go on; None: never.
    """
    plan = plan if plan is not None else _plan(run, story)
    spec, preset, profiles = plan.spec, plan.preset, plan.profiles
    notes: deque[str] = deque()
    note = notes.append
    output = RunOutput(run, spec, story, note)
    spec = in_this_environment(output.spec, preset)
    clock = RunClock(spec.created_wall, not_before=story.t)
    inbox = BoundedInbox(patient=spec.settings.watch.interval_s >= 2 * TICK_S)
    keeper = vitality.keeper
    journal = keeper.journal
    created = story.run if story.run is not None else run_created(plan, run.path.parents[1])
    if story.run is None:
        # what a journal that was lost had of the folders that the trainer was seen to save to
        known = [OutputKnown(folder=place.folder, why=place.why) for place in spec.outputs]
        on_records(journal.append_all(clock.now(), clock.wall(), (created, *known)))
    elif changes := tuple(_changed_settings(story, spec)):
        records = journal.append_all(clock.now(), clock.wall(), changes)
        on_records(records)
        story = reduce(apply, records, story)
    config = None if spec.config is None else Path(spec.cwd, spec.config)
    habits = HabitsFile(run.path.parents[1], spec.command, spec.cwd, config)
    metrics = LogMetrics()
    judge = Judge(knowledge(spec, preset, profiles, created.expected, metrics.add))
    recorder = RunRecorder(
        HistoryWriter(run.history, network=is_network(str(run.path))),
        TraceWriter(run.trace, run.trace_wanted),
        trace_head(spec) if story.run is None else None,
        habits,
        room=keeper.room,
        metrics=metrics,
        shown=partial(shown_progress, judge.knowledge),
        outlook=partial(outlook_of, judge.knowledge),
        seen=vitality.observation.seen,
    )
    snapshot = latest_snapshot(run.journal)
    state = judge.start(story, snapshot.state if snapshot is not None else None, newest_folder(run))
    engine = engine_of(
        spec,
        base_env=os.environ,
        save=save_request(spec, preset),
        gpus_now=recorder.gpus_now,
        kernel_tail=kernel_tail,
        wsl=is_wsl(),
    )
    live = live_attempt(run, story, engine.adopt)
    lists = OutputLists(run.folders, preset.checkpoint_globs, note)
    if live is None and not story.attempts and not run.attempt_folders():
        lists.take(output.folders, before_launch=True)
    newest = newest_attempt(run)
    sensed = build_sensors(
        plan,
        output,
        run,
        inbox,
        clock,
        claim,
        recorder,
        lists,
        catalogue=judge.knowledge.catalogue,
        known=[each.path for each in state.saved.checkpoints.known],
        last=newest,
        note=note,
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
            plan, note, lambda: keeper.refusal() or claim.refusal(), lambda now: refusal_at_launch(now, run)
        ),
        planned=plan.derived_for,
        misfit=harmless("comparing the model with the checkpoint", partial(resume_misfit, spec)),
        script=harmless("reading the script of the command", partial(script_now, spec)),
        locks=claim.order,
        keep_alive=keep_alive_order(run, spec),
    )

    actor = RunActor(
        spec=spec,
        engine=engine,
        launcher=launcher,
        incident_folder=run.incident,
        verify=lambda path, deep: verify(path, deep=deep, layout=preset.layout),
        list_checkpoints=sensed.list_all,
        retention=RunRetention(
            lambda: [Path(folder) for folder in output.folders],
            preset.checkpoint_globs,
            partial(rated_well, run.path.parents[1]),
        ),
        copy_aside=partial(_copy_aside, output, run),
        gpu_help=GpuHelp(read=recorder.gpus_now, peaks=lambda: recorder.gpu_peaks, users=named_users),
        end_in_words=partial(_end_in_words, run),
        outbox=vitality.outbox,
        commands=CheckpointCommands(
            spec=spec,
            folders=run.evaluations,
            verify=lambda path, deep, progress=None: verify(
                path,
                deep=deep,
                layout=preset.layout,
                progress=progress,
                rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S,
            ),
            base_env=os.environ,
            write=write_atomically,
            copy=partial(backup, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S),
        ),
    )
    if newest is not None:
        actor.follow(newest)  # also a dead one: workers that it left are ended before the next attempt starts
    habit = habits.read() if snapshot is None else None  # a snapshot has been told of them
    learned = None if habit is None else Learned(t=clock.now(), habits=habit)
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
        learned=learned,
        notes=notes,
        live_order=None if live is None else unwritten_order(run, story, live.number),
        on_records=(output.on_records, recorder.on_records, on_records),
        turning=vitality.turn,
        resting=claim.give_away,
        gives_way=gives_way or (lambda: False),
        starts_again=(
            f"to start it again: {ways_on((run.id,))}"
            if cannot_be_told(judge.knowledge)
            else f"`{typed('resume', run.id)}` starts it again"
        ),
        answer=judge.answer,
        left=partial(_left, run, str(run.order)),
    )
    claim.tell(note)
    claim.tell_shared = lambda text: keeper.tell("folder_shared", text, over="no other run writes there any more")
    for folder in output.folders:
        claim.add_folder(folder)
    output.tell(claim.add_folder)
    keeper.live = lambda: supervisor.live
    vitality.newest = lambda: recorder.newest
    keeper.end = lambda why: supervisor.end(ExitCode.OWNED, why)
    output.tell(sensed.checkpoints.watch)
    output.tell(sensed.host.save_to)
    supervisor.sensors = sensed.all
    return supervisor


def _left(run: RunDirectory, place: str) -> Command | None:
    """``place``: of the order. Each turn asks, and nearly never is there one."""
    return None if status_of(place) is None else take_order(run)


def _end_in_words(run: RunDirectory) -> str:
    """What a notice at the end of a run says beside its reason; empty if the run cannot be read."""
    from ..runs.report import short_report_of  # the report is loaded only at the end

    try:
        return short_report_of(run)
    except (CliError, RunUnreadable, OSError, ValueError):
        return ""


def _changed_settings(story: RunStory, spec: RunSpec) -> Iterator[Fact]:
    """What the journal has of settings, and of the way to resume, that were changed since."""
    restart = spec.settings.restart
    if story.run is not None and spec.resume_way is not None and spec.resume_way != story.run.resume:
        yield ResumeWayKnown(way=spec.resume_way)
    if story.budget_max != restart.max_restarts:
        yield BudgetChanged(used=story.budget_used, max=restart.max_restarts)
    if story.act_settings != restart.act:
        yield ActChanged(act=restart.act, by="the settings", settings=restart.act)


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
    place = folder_for_copies(beside, run.path / "kept", output.spec.second_start.empties)
    return copy_aside(list(dict.fromkeys((*paths, *parts))), place, link=link)


def close_view(run: RunDirectory) -> None:
    """Close the tmux window of a run that has ended, unless a terminal is attached to it or it never had one."""
    spec = run.load_spec()
    if spec.settings.tmux.enabled:
        tmux.close(spec, unless_attached=True)


def attach_argv(run: RunDirectory) -> list[str]:
    """The command that shows the trainer's terminal or log. Raises RuntimeError with a sentence."""
    return attach_command(run.load_spec(), newest_attempt(run))
