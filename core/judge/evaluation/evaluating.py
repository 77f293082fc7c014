"""Evaluations of checkpoints (``[evaluate]``): when one begins, when it must end, and what its outcome means.

One at a time, the newest verified checkpoint first. Beside a training only while that makes steps and there is room
(room.py); what found no room is evaluated when the training is finished, before the supervisor ends.
Whatever an evaluation does, the run goes on as if there were none.
"""

from typing import Any

import msgspec

from ...model.checkpoints.evaluation import Evaluation, better_of, score_words
from ...model.decision import EndEvaluation, EndWatch, EvaluateCheckpoint
from ...model.fact import CheckpointEvaluated
from ...model.observation import GpuSample, HostSample, Observation, Outcome, Start
from ..hang import active_time
from ..recovery.ending import at_end
from ..resume.known_checkpoint import KnownCheckpoint, base_name
from ..run_states import Finished, Running
from ..state import JudgeState
from ..step_builder import StepBuilder
from . import evaluations, room
from .evaluations import Begun, EndOfWatch

replace = msgspec.structs.replace

STEPS = 3
"""Steps of an attempt before anything is evaluated beside it: its memory is at its peak after the first ones."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Data of the outcome. ``interrupted``: it was ended for the training, which says nothing about the score."""

    metric: str = ""
    score: float | None = None
    values: dict[str, float] = {}
    why: str = ""
    took_s: float = 0.0
    folder: str = ""
    interrupted: bool = False


def observe(state: JudgeState, observation: Observation) -> JudgeState:
    """Take what an observation says about room."""
    known = state.evaluations
    match observation:
        case GpuSample():
            found = room.with_gpus(known.room, observation, evaluating=known.running is not None)
        case HostSample():
            found = room.with_host(known.room, observation)
        case Start():
            found = room.begin_attempt(known.room)
        case _:
            return state
    return replace(state, evaluations=replace(known, room=found))


def follow(builder: StepBuilder) -> None:
    """Begin the next evaluation if there is room, or end the one that the training must not wait for."""
    finished = isinstance(builder.state.machine, Finished)
    if builder.state.evaluations.end is not None and not finished:
        builder.set(evaluations=replace(builder.state.evaluations, end=None))
    known = builder.state.evaluations
    if known.end is not None and known.end.until_t is not None and builder.t >= known.end.until_t:
        builder.set(evaluations=replace(known, end=None))
        builder.note("no time is left to evaluate the other checkpoints")
        _end_watch(builder, known.end.reason)
        return
    if known.running is not None:
        why = _why_end(builder, known.running)
        if why:
            builder.set(evaluations=replace(known, running=replace(known.running, ending=True)))
            builder.decide(EndEvaluation, f"end the evaluation: {why}", of=known.running.order)
        return
    if finished or _trains(builder.state):
        _begin_next(builder, training=not finished)
        _end_watch_if_done(builder)


def is_awaited(state: JudgeState, outcome: Outcome) -> bool:
    """Whether it is the outcome of the evaluation that runs."""
    return state.evaluations.running is not None and state.evaluations.running.order == outcome.decision


def on_outcome(builder: StepBuilder, outcome: Outcome) -> None:
    """Write the score down, or that it is unknown; tell people once."""
    known = builder.state.evaluations
    begun = known.running
    assert begun is not None
    measured = _measured(outcome)
    if measured.interrupted:
        _, times = known.beginnings.get(begun.path, (begun.mtime, 0))
        builder.set(evaluations=replace(known, running=None))
        if times < evaluations.MOST_BEGINNINGS:
            return
        measured = replace(measured, why=f"it was interrupted {times} times")
    score = measured.score
    settings = builder.knowledge.settings.evaluate
    found = Evaluation(
        path=begun.path,
        mtime=begun.mtime,
        step=begun.step,
        metric=measured.metric,
        score=score,
        values=measured.values,
        better=better_of(measured.metric, settings.better),
        why="" if score is not None else measured.why or outcome.detail or "no score",
        took_s=measured.took_s,
        place=begun.spot.words,
        folder=measured.folder,
    )
    _write(builder, found)


def end_watch(builder: StepBuilder, reason: str) -> None:
    """Run the user's command for the end of a finished training and end the supervisor, after what is to be evaluated.

    The time of ``end_by`` holds for evaluations, too.
    """
    known = builder.state.evaluations
    if builder.knowledge.settings.evaluate.wanted and (known.running is not None or _left(builder)):
        ends = builder.state.ends
        until_t = None if ends is None else ends.t - at_end.SLACK_S
        builder.set(evaluations=replace(known, end=EndOfWatch(reason=reason, until_t=until_t)))
        builder.note("the training is finished; checkpoints without a score are evaluated before the supervisor ends")
    else:
        _end_watch(builder, reason)


def _end_watch(builder: StepBuilder, reason: str) -> None:
    at_end.run_command(builder, "finish")
    builder.decide(EndWatch, reason, exit_code=0)


def _left(builder: StepBuilder) -> list[KnownCheckpoint]:
    return evaluations.waiting(builder.state.evaluations, builder.state.checkpoints.known)


def _trains(state: JudgeState) -> bool:
    """Whether the training makes steps, as far as one can tell."""
    return isinstance(state.machine, Running) and state.quiet is None and state.clock.beats >= STEPS


def _begin_next(builder: StepBuilder, *, training: bool) -> None:
    state, settings = builder.state, builder.knowledge.settings
    left = _left(builder)
    if not left:
        return
    place = room.spot(state.evaluations.room, settings.evaluate, settings.health, training=training)
    if place is None:
        if not training:
            _without_room(builder, left[0])
        return
    chosen = left[0]
    times = evaluations.beginnings(state.evaluations, chosen)
    assert chosen.mtime is not None
    if times >= evaluations.MOST_BEGINNINGS:
        why = f"it began {times} times and did not end"
        _write(builder, Evaluation(path=chosen.path, mtime=chosen.mtime, step=chosen.step, why=why))
        return
    order = builder.decide(
        EvaluateCheckpoint,
        f"evaluate {base_name(chosen.path)} on {place.words}",
        path=chosen.path,
        mtime=chosen.mtime,
        step=chosen.step,
        gpu=place.gpu,
        memory_bytes=place.memory_bytes,
        timeout_s=settings.evaluate.timeout_s,
    )
    begun = Begun(
        order=order,
        path=chosen.path,
        mtime=chosen.mtime,
        step=chosen.step,
        spot=place,
        since=active_time.now(state.time),
    )
    known = builder.state.evaluations
    counted = {**known.beginnings, chosen.path: (chosen.mtime, times + 1)}
    builder.set(evaluations=replace(known, running=begun, beginnings=counted))


def _without_room(builder: StepBuilder, chosen: KnownCheckpoint) -> None:
    """The training is over and there is still no room: the score stays unknown."""
    assert chosen.mtime is not None
    why = "there is no room for it, also after the end of the training"
    _write(builder, Evaluation(path=chosen.path, mtime=chosen.mtime, step=chosen.step, why=why))


def _end_watch_if_done(builder: StepBuilder) -> None:
    known = builder.state.evaluations
    if known.end is not None and known.running is None and not _left(builder):
        builder.set(evaluations=replace(known, end=None))
        _end_watch(builder, known.end.reason)


def _why_end(builder: StepBuilder, begun: Begun) -> str:
    """Why the evaluation that runs must end; empty if it need not."""
    state, settings = builder.state, builder.knowledge.settings
    if begun.ending or isinstance(state.machine, Finished):
        return ""
    if begun.spot.own:
        if not _trains(state):
            return "the GPU is left to the training"
        if active_time.now(state.time) - max(state.clock.last, begun.since) > settings.hang.min_s:
            # A GPU that the evaluation keeps busy would hide a hang.
            return "no step since; whether the training hangs is not seen beside it"
    return room.danger(state.evaluations.room, begun.spot, settings.health)


def _measured(outcome: Outcome) -> Measured:
    data: dict[str, Any] = outcome.data
    try:
        return msgspec.convert(data, Measured)
    except msgspec.ValidationError:
        return Measured(why=outcome.detail)


def _write(builder: StepBuilder, found: Evaluation) -> None:
    told = builder.state.evaluations.told
    builder.fact(CheckpointEvaluated(evaluation=found))
    builder.set(evaluations=evaluations.with_result(builder.state.evaluations, found))
    if found.score is None and not told:
        said = f"the score of {base_name(found.path)} is {score_words(found)}; the training is not affected"
        builder.warn("checkpoint", "evaluation", said, ending="reported")
