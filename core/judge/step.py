"""The judge: ``step(state, observation) -> (state, entries)``, a pure fold.

This module only passes each observation to its handler. What one step does, in this order:

1. Move the run's time; after a suspend, restart all waits.
2. Pass the observation to its handler: ``handlers/`` for log, samples and checkpoints, ``recovery/`` for starts, exits,
   commands and outcomes.
3. If the run's state has become due, handle that as well; so NaN weights with which the trainer goes on, and the time
   at which the run is to end.
4. If checkpoints are to be evaluated, begin or end an evaluation.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..model.control_messages import Reply
from ..model.fact import CommandReceived, MetricFilesKnown, Note
from ..model.observation import (
    CheckpointEvent,
    CheckpointValues,
    Command,
    Exit,
    GpuSample,
    HostSample,
    JobSeen,
    KernelLine,
    Learned,
    LogChunk,
    Meta,
    MetricValues,
    Observation,
    OtherTrainersSeen,
    Outcome,
    OutputSeen,
    ProcessSample,
    RankEnded,
    Start,
    TerminationNotice,
    Tick,
)
from ..model.story import RunStory
from . import state as unseen
from .failure.circumstances import is_of_run, names_lost_gpu
from .failure.log_evidence import kernel_evidence
from .handlers import checkpoint_jobs, hang_check, hints, on_checkpoints, on_log, on_samples
from .handlers import on_checkpoints as deletion_plan
from .handlers import on_checkpoints as on_output
from .handlers import on_samples as on_job
from .handlers import on_samples as on_other_trainers
from .handlers import on_samples as on_ranks
from .hang import activity, deadlines, liveness, pauses
from .hang.evidence import GpuFault
from .knowledge import Knowledge
from .recovery import attempts, commands, exits, gate, nan_rollback, restarts, resume_choice, takeover, unclear_states
from .recovery import commands as command_replies
from .recovery import commands as question
from .recovery import exits as end_time
from .recovery.takeover import from_story
from .run_states import (
    BackingOff,
    Cleaning,
    Copying,
    Hung,
    Listing,
    Paused,
    Starting,
    Stopping,
    Verifying,
    WaitingForRoom,
    is_live,
    is_watched,
)
from .state import NOTHING, JudgeState, Result, StepBuilder, due

replace = msgspec.structs.replace

_MAY_BACK_UP = CheckpointEvent | CheckpointValues | Outcome | HostSample
"""What may let a copy begin: checkpoints and outcomes, and for one that failed the time."""

SIGNS_ARE_BACK = "signs of life are back: nothing was ended"


def too_late(knowledge: Knowledge) -> str:
    """The reply to a yes to the question about a hang that is over."""
    return f"{SIGNS_ARE_BACK}, and the run is watched as before; `{knowledge.typed('restart')}` ends it all the same"


class Judge:
    """Pure: the same knowledge, state and observation always give the same answer."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self._handlers: dict[type[Observation], Callable[[Knowledge, JudgeState, Any], Result]] = {
            Meta: _on_nothing,
            Learned: _on_learned,
            Start: _on_start,
            GpuSample: on_samples.on_gpu,
            HostSample: on_samples.on_host,
            ProcessSample: on_samples.on_process,
            RankEnded: on_ranks.on_rank_ended,
            LogChunk: on_log.on_log,
            CheckpointEvent: on_checkpoints.on_checkpoint,
            CheckpointValues: on_checkpoints.on_values,
            OutputSeen: on_output.on_output,
            KernelLine: _on_kernel,
            TerminationNotice: on_samples.on_termination,
            Exit: _on_exit,
            JobSeen: on_job.on_job,
            OtherTrainersSeen: on_other_trainers.on_other_trainers,
            MetricValues: _on_metrics,
            Tick: _on_tick,
            Command: _on_command,
            Outcome: _on_outcome,
        }

    def start(
        self,
        story: RunStory | None = None,
        snapshot: Mapping[str, Any] | None = None,
        newest_folder: int | None = None,
    ) -> JudgeState:
        """Return the state of a new run, or of one that has a journal.

        ``snapshot``: the newest one of the state, for what was learned; one of another version is not used.
        ``newest_folder``: the highest number of an attempt that has a folder, 0 = none has, None = not known.
        """
        profile = self.knowledge.settings.profiles.use
        if story is None or story.seq == 0:
            return JudgeState(profile=profile)
        return from_story(story, snapshot, profile, newest_folder)

    def begin(self, state: JudgeState, t: float, *, ended: Exit | None = None) -> Result:
        """Decide about a run that a supervisor just took over.

        If its trainer runs, pass ``Start(adopted=True)`` first; then this does nothing. ``ended``: it ended without a
        supervisor and its runner left the exit status (pass the tail of the log first). In any other case a run that
        never started starts with the user's command from the beginning, whatever checkpoints exist; one whose trainer
        disappeared is restarted by policy without a charge; one that was stopped, given up or finished waits for a
        command.
        """
        state, _ = _at(state, t)
        if state.taken_over:
            return state, NOTHING
        if ended is not None and is_live(state.machine):
            return _on_exit(self.knowledge, state, ended)
        builder = StepBuilder(self.knowledge, state)
        takeover.go_on(builder)
        return builder.state, tuple(builder.entries)

    def answer(self, state: JudgeState, command: Command) -> Reply:
        """Return the reply to a command; ``step`` then acts as the reply announces."""
        state, _ = _at(state, command.t)
        if _is_too_late(self.knowledge, state, command):
            return Reply(ok=False, message=f"{command.verb}: {too_late(self.knowledge)}")
        reply = command_replies.reply_to(state, self.knowledge, command)
        return Reply(ok=reply.ok, message=f"{command.verb}: {reply.message or 'accepted'}")

    def step(self, state: JudgeState, observation: Observation) -> Result:
        """Take one observation. An earlier time counts as now."""
        state, slept_s = _at(state, observation.t)
        if slept_s > 0.0:
            return self._after_sleep(state, observation, slept_s)
        state, entries = self._handlers[type(observation)](self.knowledge, state, observation)
        if isinstance(observation, LogChunk) and state.outputs.seen:
            builder = StepBuilder(self.knowledge, state)
            on_output.on_lines(builder, observation.text)
            state, entries = builder.state, (*entries, *builder.entries)
        if state.wake_t is not None and due(state):
            state, more = _on_due(self.knowledge, state)
            entries = (*entries, *more)
        if nan_rollback.is_due(state):
            state, more = _on_lost(self.knowledge, state)
            entries = (*entries, *more)
        if state.unseen is not None and unseen.is_due(state):
            builder = StepBuilder(self.knowledge, state)
            unseen.tell(builder)
            state, entries = builder.state, (*entries, *builder.entries)
        if end_time.is_due(state, self.knowledge):
            state, more = _on_time(self.knowledge, state)
            entries = (*entries, *more)
        if state.withheld is not None and state.withheld.again_t is not None and state.time.t >= state.withheld.again_t:
            state, more = _on_unanswered(self.knowledge, state)
            entries = (*entries, *more)
        if self.knowledge.settings.backup.wanted and isinstance(observation, _MAY_BACK_UP):
            builder = StepBuilder(self.knowledge, state)
            checkpoint_jobs.follow_backups(builder)
            state, entries = builder.state, (*entries, *builder.entries)
        if self.knowledge.settings.evaluate.wanted:
            state, more = _on_evaluations(self.knowledge, checkpoint_jobs.observe(state, observation))
            entries = (*entries, *more)
        return state, entries

    def _after_sleep(self, state: JudgeState, observation: Observation, slept_s: float) -> Result:
        before = NOTHING
        if is_watched(state.machine):
            now = pauses.now(state.time)
            state = replace(
                unseen.begin(state, slept_s, adopted=isinstance(observation, Start)),
                clock=deadlines.after_gap(state.clock, now),
                liveness=liveness.after_gap(state.liveness, now),
                log_activity=activity.after_gap(state.log_activity, now),
            )
            text = f"nothing was seen for {slept_s:.0f} s (was the machine suspended?); it counts towards no deadline"
            before = (Note(text=text),)
        state, entries = self.step(state, observation)
        return state, (*before, *entries)


def _at(state: JudgeState, t: float) -> tuple[JudgeState, float]:
    if t <= state.time.t:
        return state, 0.0
    time, slept_s = pauses.advance(state.time, t)
    return replace(state, time=time), slept_s


def _on_nothing(_knowledge: Knowledge, state: JudgeState, _observation: Observation) -> Result:
    return state, NOTHING


def _on_metrics(_knowledge: Knowledge, state: JudgeState, found: MetricValues) -> Result:
    """Nothing is decided by metrics; where their files are is told once."""
    if not found.folder or found.folder in state.metric_folders:
        return state, NOTHING
    state = replace(state, metric_folders=(*state.metric_folders, found.folder))
    return state, (MetricFilesKnown(folder=found.folder, source=found.source),)


def _on_learned(_knowledge: Knowledge, state: JudgeState, learned: Learned) -> Result:
    return hints.with_habits(state, learned.habits), (Note(text=hints.describe_habits(learned.habits)),)


def _on_tick(knowledge: Knowledge, state: JudgeState, _tick: Tick) -> Result:
    return hang_check.check_hang(knowledge, state, NOTHING)


def _on_kernel(knowledge: Knowledge, state: JudgeState, line: KernelLine) -> Result:
    state = replace(state, diagnosis=kernel_evidence(state.diagnosis, line.text, knowledge.catalogue))
    for text in line.text.splitlines():
        if names_lost_gpu(text, knowledge.catalogue) and is_of_run(text, state.gpus_seen):
            fault = GpuFault(text=text.strip(), at=pauses.now(state.time))
            state = replace(state, gpu_fault=state.gpu_fault or fault)
    return state, NOTHING


def _on_start(knowledge: Knowledge, state: JudgeState, start: Start) -> Result:
    builder = StepBuilder(knowledge, state)
    takeover.started(builder, start)
    return builder.state, tuple(builder.entries)


def _on_exit(knowledge: Knowledge, state: JudgeState, observation: Exit) -> Result:
    builder = StepBuilder(knowledge, state)
    on_output.at_end(builder)
    exits.on_exit(builder, observation)
    return builder.state, tuple(builder.entries)


def _on_command(knowledge: Knowledge, state: JudgeState, command: Command) -> Result:
    builder = StepBuilder(knowledge, state)
    if _is_too_late(knowledge, state, command):
        builder.fact(CommandReceived(verb=command.verb, by=command.by))
        question.withdraw(builder, SIGNS_ARE_BACK)
        builder.note(f"{command.verb}: {too_late(knowledge)}", "refusal")
    else:
        commands.on_command(builder, command)
    return builder.state, tuple(builder.entries)


def _is_too_late(knowledge: Knowledge, state: JudgeState, command: Command) -> bool:
    """Whether a command answers the question about a hang that is over by now: it is judged again before it ends."""
    answers = command.verb in {"restart", "resume"} and question.is_answer(state, command)
    return answers and hang_check.is_over(knowledge, state)


def _on_evaluations(knowledge: Knowledge, state: JudgeState) -> Result:
    builder = StepBuilder(knowledge, state)
    checkpoint_jobs.follow(builder)
    return builder.state, tuple(builder.entries)


def _on_unanswered(knowledge: Knowledge, state: JudgeState) -> Result:
    builder = StepBuilder(knowledge, state)
    assert state.withheld is not None
    if hang_check.is_over(knowledge, state):
        question.withdraw(builder, SIGNS_ARE_BACK)
    else:
        gate.ask_again(builder, state.withheld)
    return builder.state, tuple(builder.entries)


def _on_outcome(knowledge: Knowledge, state: JudgeState, outcome: Outcome) -> Result:
    """Pass an outcome to the state that waits for it; of any other only a failure is noted."""
    builder = StepBuilder(knowledge, state)
    if outcome.decision == state.planned_deletion:
        deletion_plan.on_planned(builder, outcome)
        return builder.state, tuple(builder.entries)
    match state.machine:
        case _ if (quiet := state.quiet) is not None and quiet.capture == outcome.decision:
            hang_check.on_quiet_evidence(builder, quiet, outcome)
        case _ if checkpoint_jobs.is_backup_awaited(state, outcome):
            checkpoint_jobs.on_backup_outcome(builder, outcome)
        case _ if checkpoint_jobs.is_awaited(state, outcome):
            checkpoint_jobs.on_outcome(builder, outcome)
        case _ if state.attempt.aside == outcome.decision:
            restarts.on_put_aside(builder, outcome)
        case _ if state.loops.order == outcome.decision:
            hang_check.on_look(builder, outcome)
        case Hung(capture=order) as machine if order == outcome.decision:
            hang_check.end_hung(builder, machine, outcome)
        case Stopping(order=order) as machine if order == outcome.decision:
            restarts.on_stop_outcome(builder, machine, outcome)
        case Cleaning(order=order) as machine if order == outcome.decision:
            restarts.on_clear_outcome(builder, machine, outcome)
        case Listing(order=order) as machine if order == outcome.decision:
            resume_choice.on_listed(builder, machine, outcome)
        case Copying(order=order) as machine if order == outcome.decision:
            unclear_states.on_copied(builder, machine, outcome)
        case Verifying(order=order) as machine if order == outcome.decision:
            resume_choice.on_verify_outcome(builder, machine, outcome)
        case Starting(order=order, launched=False) as machine if order == outcome.decision and not outcome.ok:
            exits.on_launch_failed(builder, machine, outcome)
        case Starting(order=order, launched=False) as machine if order == outcome.decision:
            attempts.on_launched(builder, machine, outcome)
        case Paused(order=order) if order == outcome.decision and not outcome.ok:
            builder.note(f"pausing failed: {outcome.detail}")
            commands.awake(builder, "it could not be paused")
        case _:
            if not outcome.ok:
                builder.note(f"{outcome.action} failed: {outcome.detail or 'no detail'}")
    return builder.state, tuple(builder.entries)


def _on_lost(knowledge: Knowledge, state: JudgeState) -> Result:
    builder = StepBuilder(knowledge, state)
    nan_rollback.on_due(builder)
    return builder.state, tuple(builder.entries)


def _on_time(knowledge: Knowledge, state: JudgeState) -> Result:
    builder = StepBuilder(knowledge, state)
    end_time.end(builder)
    return builder.state, tuple(builder.entries)


def _on_due(knowledge: Knowledge, state: JudgeState) -> Result:
    builder = StepBuilder(knowledge, state)
    match state.machine:
        case Hung() as machine:
            builder.note("the evidence of the hang did not come in time")
            hang_check.end_hung(builder, machine)
        case Stopping(saving=None) as machine:
            restarts.on_status_lost(builder, machine)
        case WaitingForRoom(plan=plan):
            resume_choice.choose(builder, plan)
        case Stopping() as machine:
            restarts.end_saving(builder, machine, "no complete checkpoint came in time after it was asked for")
        case machine:
            assert isinstance(machine, BackingOff)  # no other state asks to be woken (run_machine.wake_t)
            resume_choice.after_delay(builder, machine.plan)
    return builder.state, tuple(builder.entries)
