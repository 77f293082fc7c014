"""The judge: ``step(state, observation) -> (state, entries)``, a pure fold.

What one step does, in this order:

1. Move the run's time; after a suspend, restart all waits.
2. Pass the observation to its handler, ``f(builder, observation)``: ``handlers/`` for log, samples and checkpoints,
   ``recovery/`` for starts, exits, commands and outcomes.
3. Go through ``DUE``: what has become due, whatever was observed.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..model import observation as seen
from ..model.fact import CommandReceived, MetricFilesKnown
from ..model.observation import Reply
from ..model.story import RunStory
from . import run_states
from . import state as unseen
from .failure.catalogue import is_of_run, names_lost_gpu
from .failure.diagnosis import kernel_evidence
from .handlers import checkpoint_jobs, hang_check, hints, on_checkpoints, on_log, on_samples
from .hang import deadlines, pauses
from .hang.liveness import GpuFault
from .knowledge import Knowledge
from .memory import PolicyMemory
from .recovery import apply, attempts, commands, exits, gate, restarts, resume_choice, takeover
from .state import JudgeState, Result, StepBuilder

replace = msgspec.structs.replace

SIGNS_ARE_BACK = "signs of life are back: nothing was ended"


class Judge:
    """Pure: the same knowledge, state and observation always give the same answer."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

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
            return JudgeState(policy=PolicyMemory(profile=profile))
        return takeover.from_story(story, snapshot, profile, newest_folder)

    def begin(self, state: JudgeState, t: float, *, ended: seen.Exit | None = None) -> Result:
        """Decide about a run that a supervisor just took over.

        If its trainer runs, pass ``Start(adopted=True)`` first; then this does nothing. ``ended``: it ended without a
        supervisor and its runner left the exit status (pass the tail of the log first). In any other case a run that
        never started starts with the user's command from the beginning, whatever checkpoints exist; one whose trainer
        disappeared is restarted by policy without a charge; one that was stopped, given up or finished waits for a
        command.
        """
        builder, _ = self._at(state, t)
        if not builder.state.taken_over:
            if ended is not None and run_states.is_live(builder.machine):
                _on_exit(builder, ended)
            else:
                takeover.go_on(builder)
        return builder.state, tuple(builder.entries)

    def answer(self, state: JudgeState, command: seen.Command) -> Reply:
        """Return the reply to a command; ``step`` then acts as the reply announces."""
        builder, _ = self._at(state, command.t)
        if _is_too_late(builder, command):
            return Reply(ok=False, message=_too_late(builder, command))
        reply = commands.on_command(builder, command)  # on a step that is thrown away
        return Reply(ok=reply.ok, message=f"{command.verb}: {reply.message or 'accepted'}")

    def step(self, state: JudgeState, observation: seen.Observation) -> Result:
        """Take one observation. An earlier time counts as now."""
        builder, slept_s = self._at(state, observation.t)
        if slept_s > 0.0 and run_states.is_watched(builder.machine):
            _after_sleep(builder, slept_s, adopted=isinstance(observation, seen.Start))
        HANDLERS[type(observation)](builder, observation)
        for is_due, then in DUE:
            if is_due(builder, observation):
                then(builder)
        return builder.state, tuple(builder.entries)

    def _at(self, state: JudgeState, t: float) -> tuple[StepBuilder, float]:
        """The step that begins at ``t``, and the seconds of a suspend before it; 0 = there was none."""
        slept_s = 0.0
        if t > state.time.t:
            time, slept_s = pauses.advance(state.time, t)
            state = replace(state, time=time)
        return StepBuilder(self.knowledge, state), slept_s


def _after_sleep(builder: StepBuilder, slept_s: float, *, adopted: bool) -> None:
    state = builder.state
    builder.state = unseen.begin(state, slept_s, adopted=adopted)
    builder.set(watch=deadlines.after_gap(state.watch, builder.now))
    builder.note(f"nothing was seen for {slept_s:.0f} s (was the machine suspended?); it counts towards no deadline")


def _on_metrics(builder: StepBuilder, found: seen.MetricValues) -> None:
    """Nothing is decided by metrics; where their files are is told once."""
    known = builder.state.journal.metric_folders
    if found.folder and found.folder not in known:
        builder.change("journal", metric_folders=(*known, found.folder))
        builder.fact(MetricFilesKnown(folder=found.folder, source=found.source))


def _on_learned(builder: StepBuilder, learned: seen.Learned) -> None:
    builder.state = hints.with_habits(builder.state, learned.habits)
    builder.note(hints.describe_habits(learned.habits))


def _on_kernel(builder: StepBuilder, line: seen.KernelLine) -> None:
    catalogue, state = builder.catalogue, builder.state
    builder.change("log", diagnosis=kernel_evidence(state.log.diagnosis, line.text, catalogue))
    for text in line.text.splitlines() if state.watch.gpu_fault is None else ():
        if names_lost_gpu(text, catalogue) and is_of_run(text, state.health.gpus_seen):
            builder.change("watch", gpu_fault=GpuFault(text=text.strip(), at=builder.now))
            return


def _on_exit(builder: StepBuilder, observation: seen.Exit) -> None:
    on_checkpoints.accept_outputs(builder, over=True)
    exits.on_exit(builder, observation)


def _on_command(builder: StepBuilder, command: seen.Command) -> None:
    if _is_too_late(builder, command):
        builder.fact(CommandReceived(verb=command.verb, by=command.by))
        commands.withdraw(builder, SIGNS_ARE_BACK)
        builder.note(_too_late(builder, command), "refusal")
    else:
        commands.on_command(builder, command)


def _is_too_late(builder: StepBuilder, command: seen.Command) -> bool:
    """Whether a command answers the question about a hang that is over by now: it is judged again before it ends."""
    answers = command.verb in {"restart", "resume"} and commands.is_answer(builder.state, command)
    return answers and hang_check.is_over(builder)


def _too_late(builder: StepBuilder, command: seen.Command) -> str:
    ends = builder.typed("restart")
    return f"{command.verb}: {SIGNS_ARE_BACK}, and the run is watched as before; `{ends}` ends it all the same"


def _on_outcome(builder: StepBuilder, outcome: seen.Outcome) -> None:
    """Pass an outcome to the state that waits for it; of any other only a failure is noted."""
    if outcome.action == "at_end":
        builder.change("saved", end=None)
    state = builder.state
    match state.machine:
        case _ if state.saved.planned_deletion == outcome.decision:
            on_checkpoints.on_planned(builder, outcome)
        case _ if (quiet := state.watch.quiet) is not None and quiet.capture == outcome.decision:
            hang_check.on_quiet_evidence(builder, quiet, outcome)
        case _ if (job := state.saved.backups.running) is not None and job.order == outcome.decision:
            checkpoint_jobs.on_backup_outcome(builder, job, outcome)
        case _ if (begun := state.saved.evaluations.running) is not None and begun.order == outcome.decision:
            checkpoint_jobs.on_outcome(builder, begun, outcome)
        case _ if state.attempt.aside == outcome.decision:
            restarts.on_put_aside(builder, outcome)
        case _ if state.watch.loops.order == outcome.decision:
            builder.change("watch", loops=pauses.answered(state.watch.loops, outcome))
        case run_states.Hung(capture=order) as machine if order == outcome.decision:
            hang_check.end_hung(builder, machine, outcome)
        case run_states.Stopping(order=order) as machine if order == outcome.decision:
            restarts.on_stop_outcome(builder, machine, outcome)
        case run_states.Preparing(stage=stage, order=order) as machine if order == outcome.decision:
            STAGES[stage](builder, machine, outcome)
        case run_states.Starting(order=order, launched=False) as machine if (
            order == outcome.decision and not outcome.ok
        ):
            exits.on_launch_failed(builder, machine, outcome)
        case run_states.Starting(order=order, launched=False) as machine if order == outcome.decision:
            attempts.on_launched(builder, machine, outcome)
        case run_states.Paused(order=order) if order == outcome.decision and not outcome.ok:
            builder.note(f"pausing failed: {outcome.detail}")
            commands.awake(builder, "it could not be paused")
        case _:
            if not outcome.ok:
                builder.note(f"{outcome.action} failed: {outcome.detail or 'no detail'}")


STAGES: dict[run_states.Stage, Callable[[StepBuilder, run_states.Preparing, seen.Outcome], None]] = {
    "clear_gpu": restarts.on_clear_outcome,
    "list": resume_choice.on_listed,
    "copy_aside": resume_choice.on_copied,
    "verify": resume_choice.on_verify_outcome,
}
HANDLERS: dict[type[seen.Observation], Callable[[StepBuilder, Any], None]] = {
    seen.Meta: lambda _builder, _meta: None,
    seen.Learned: _on_learned,
    seen.Start: takeover.started,
    seen.GpuSample: on_samples.on_gpu,
    seen.HostSample: on_samples.on_host,
    seen.ProcessSample: on_samples.on_process,
    seen.RankEnded: on_samples.on_rank_ended,
    seen.LogChunk: on_log.on_log,
    seen.CheckpointEvent: on_checkpoints.on_checkpoint,
    seen.CheckpointValues: apply.on_values,
    seen.OutputSeen: on_checkpoints.on_output,
    seen.KernelLine: _on_kernel,
    seen.TerminationNotice: on_samples.on_termination,
    seen.Exit: _on_exit,
    seen.JobSeen: on_samples.on_job,
    seen.OtherTrainersSeen: on_samples.on_other_trainers,
    seen.MetricValues: _on_metrics,
    seen.Tick: lambda builder, _tick: hang_check.check_hang(builder),
    seen.Command: _on_command,
    seen.Outcome: _on_outcome,
}


def _on_wake(builder: StepBuilder) -> None:
    match builder.machine:
        case run_states.Hung() as machine:
            builder.note("the evidence of the hang did not come in time")
            hang_check.end_hung(builder, machine)
        case run_states.Stopping(saving=None) as machine:
            restarts.on_exit_while_stopping(builder, machine, None)
        case run_states.Stopping() as machine:
            restarts.end_saving(builder, machine, "no complete checkpoint came in time after it was asked for")
        case machine:
            assert isinstance(machine, run_states.BackingOff)  # no other state asks to be woken (run_states.wake_t)
            resume_choice.choose(builder, replace(machine.plan, delay_s=0.0))


def _has_come(builder: StepBuilder, t: float | None) -> bool:
    return t is not None and builder.t >= t


def _ask_again(builder: StepBuilder) -> None:
    waiting = builder.state.operator.withheld
    if waiting is None or not _has_come(builder, waiting.again_t):
        return
    if hang_check.is_over(builder):
        commands.withdraw(builder, SIGNS_ARE_BACK)
    else:
        gate.ask_again(builder, waiting)


_MAY_BACK_UP = seen.CheckpointEvent | seen.CheckpointValues | seen.Outcome | seen.HostSample
"""What may let a copy begin: checkpoints and outcomes, and for one that failed the time."""

DUE: tuple[tuple[Callable[[StepBuilder, seen.Observation], bool], Callable[[StepBuilder], None]], ...] = (
    (lambda builder, _: _has_come(builder, builder.state.wake_t), _on_wake),
    (lambda builder, _: apply.nan_is_due(builder.state), apply.on_nan_due),
    (lambda builder, _: unseen.is_due(builder.state), unseen.tell),
    (lambda builder, _: exits.is_due(builder.state, builder.knowledge), exits.end),
    (lambda builder, _: builder.state.operator.withheld is not None, _ask_again),
    (lambda _, what: isinstance(what, _MAY_BACK_UP), checkpoint_jobs.follow_backups),
    (lambda builder, _: builder.settings.evaluate.wanted, checkpoint_jobs.follow),
    (lambda builder, _: builder.state.saved.end is not None, checkpoint_jobs.follow_end),
)
"""What becomes due, whatever was observed: when, and what is done then. In this order."""
