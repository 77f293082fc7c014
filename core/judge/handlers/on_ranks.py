"""The ranks of a distributed training: restarts of the workers by their launcher, and what ranks left at their end."""

import msgspec

from ...model.observation import ProcessSample, RankEnded
from ...model.text.printable import beginning
from ..failure.log_evidence import read_evidence
from ..hang import active_time, launcher, ranks, step_clock
from ..knowledge import Knowledge
from ..progress.log_progress import begin_attempt
from ..recovery.quiet_incident import close_quiet
from ..run_machine import is_watched
from ..run_states import Hung, Queued
from ..state import NOTHING, JudgeState, Result
from ..step_builder import StepBuilder

replace = msgspec.structs.replace


def on_sample(knowledge: Knowledge, state: JudgeState, sample: ProcessSample) -> Result:
    """Take the ranks and their launchers of a sample, while the run is watched."""
    if not sample.ranks and not state.ranks and not sample.agents:
        return state, NOTHING
    found = ranks.with_processes(state.ranks, sample.ranks, state.time.t)
    known, again = launcher.with_sample(state.launcher, sample)
    state = replace(state, ranks=found, launcher=known)
    most = launcher.most_restarts(known)
    if not again and (known.told or not most):
        return state, NOTHING
    builder = StepBuilder(knowledge, state)
    if most and not known.told:
        builder.set(launcher=replace(known, told=True))
        builder.note(
            f"torchrun starts its workers again by itself, up to {most} times for each agent; "
            "trainwatch restarts when torchrun has ended, or when the run hangs"
        )
    if again and not isinstance(state.machine, Hung):
        _begin_again(builder, ", ".join(str(each) for each in again))
    return builder.state, tuple(builder.entries)


def _begin_again(builder: StepBuilder, who: str) -> None:
    """The launcher started its workers again: the same attempt, whose steps begin at a checkpoint again."""
    state = builder.state
    now = active_time.now(state.time)
    at = state.attempt.step
    number = state.launcher.restarts
    close_quiet(builder, "torchrun started its workers again")
    builder.set(
        launcher=replace(builder.state.launcher, from_step=at),
        reading=replace(begin_attempt(state.reading), fold=state.reading.fold),
        clock=step_clock.begin_attempt(state.clock, now),
    )
    after = "" if at is None else f" after step {at}"
    builder.note(f"torchrun started its workers again{after} (restart {number} by itself, none of trainwatch): {who}")


def on_first_step(builder: StepBuilder) -> None:
    """The first step after a restart of the workers: say how far they went back."""
    state = builder.state
    before, step = state.launcher.from_step, state.attempt.step
    if before is None or step is None:
        return
    builder.set(launcher=replace(state.launcher, from_step=None))
    lost = max(0, before - step + 1)
    builder.note(f"the workers go on at step {step}: {lost} step{'s' * (lost != 1)} are made again")


def on_rank_ended(knowledge: Knowledge, state: JudgeState, ended: RankEnded) -> Result:
    """Take what a rank left: evidence of the cause, also if its output is not in the log."""
    if not is_watched(state.machine) and not isinstance(state.machine, Queued):
        return state, NOTHING
    lines = [line for line in ended.text.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    builder = StepBuilder(knowledge, state)
    builder.note(f"rank {ended.rank}{_process(ended)} ended: {beginning(last, 200)}")
    if last and last not in _shown(state):
        text = "".join(f"[rank{ended.rank}]: {line}\n" for line in lines)
        found = read_evidence(
            replace(state.diagnosis, fold=replace(state.diagnosis.fold, rest="")), text, knowledge.catalogue
        )
        builder.set(diagnosis=replace(found, fold=state.diagnosis.fold))
    return builder.state, tuple(builder.entries)


def _process(ended: RankEnded) -> str:
    return "" if ended.pid is None else f" (pid {ended.pid}{f' on {ended.node}' if ended.node else ''})"


def _shown(state: JudgeState) -> str:
    """What is known of the log as far as an error may stand there."""
    return "\n".join((state.diagnosis.tail, *(each.text for each in state.diagnosis.findings)))
