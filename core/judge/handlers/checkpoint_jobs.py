"""What is done for each verified checkpoint, and at the end of a run: evaluations, copies, ``[end]`` commands."""

from typing import Any

import msgspec

from ...model.checkpoint import Evaluation, better_of, score_words
from ...model.decision import BackUpCheckpoint, EndEvaluation, EndEvent, EndWatch, EvaluateCheckpoint, RunAtEnd
from ...model.fact import CheckpointEvaluated
from ...model.observation import Outcome
from ...model.progress import RAM_SHORT_BYTES
from .. import memory
from ..knowledge import Knowledge
from ..memory import EndOfWatch, EndTime, Job, best_there
from ..resume.checkpoint_index import KnownCheckpoint, base_name
from ..run_states import Finished, Over, Running, Stopped
from ..scales import BUSY_S, SURE_TIMES, TRIES, WHILE_S
from ..slow import long_words
from ..state import JudgeState, StepBuilder

# Evaluations of checkpoints (``[evaluate]``): when one begins, when it must end, and what its outcome means.
#
# One at a time, the newest verified checkpoint first. Beside a training only while that makes steps and there is room
# (memory.py); what found no room is evaluated when the training is finished, before the supervisor ends.

replace = msgspec.structs.replace


def follow(builder: StepBuilder) -> None:
    """Begin the next evaluation if there is room, or end the one that the training must not wait for."""
    finished, known = isinstance(builder.machine, Finished), builder.state.saved.evaluations
    if known.running is not None:
        available = builder.state.health.host.ram_available_bytes
        is_short = available is not None and available < RAM_SHORT_BYTES
        if is_short and not finished and not known.running.ending:
            builder.change("saved.evaluations", running=replace(known.running, ending=True))
            why = "end the evaluation: RAM is short: what is left is for the training"
            builder.decide(EndEvaluation, why, of=known.running.order)
        return
    trains = isinstance(builder.machine, Running) and builder.state.watch.quiet is None
    if finished or (trains and builder.state.watch.clock.beats >= SURE_TIMES):
        _begin_next(builder, training=not finished)


def on_outcome(builder: StepBuilder, begun: Job, outcome: Outcome) -> None:
    """Write the score down, or that it is unknown; tell people once.

    An evaluation that was ended for the training says nothing about the score.
    """
    known, interrupted = builder.state.saved.evaluations, outcome.data.get("interrupted") is True
    times = known.times(begun)
    if interrupted and times < TRIES:
        builder.change("saved.evaluations", running=None)
        return
    of: dict[str, Any] = {"path": begun.path, "mtime": begun.mtime, "step": begun.step, "place": begun.spot.words}
    try:
        found = msgspec.convert({**outcome.data, **of}, Evaluation)
    except msgspec.ValidationError:
        found = Evaluation(**of, why=outcome.detail)
    why = f"it was interrupted {times} times" if interrupted else found.why or outcome.detail or "no score"
    better = better_of(found.metric, builder.settings.evaluate.better)
    _write(builder, replace(found, better=better, why="" if found.score is not None else why))


def _left(builder: StepBuilder) -> list[KnownCheckpoint]:
    return memory.waiting(builder.state.saved.evaluations, builder.index.known)


def _begin_next(builder: StepBuilder, *, training: bool) -> None:
    state, settings = builder.state, builder.settings
    if not (left := _left(builder)):
        return
    chosen, ram_bytes = left[0], state.health.host.ram_available_bytes
    place = memory.spot(state.saved.evaluations.gpus, ram_bytes, settings.evaluate, training=training)
    times, mtime = state.saved.evaluations.times(chosen), chosen.mtime
    assert mtime is not None
    why = f"it began {times} times and did not end" if times >= TRIES else ""
    if place is None:
        why = "" if training else "there is no room for it, also after the end of the training"
    if why:  # the score stays unknown
        _write(builder, Evaluation(path=chosen.path, mtime=mtime, step=chosen.step, why=why))
    if why or place is None:
        return
    order = builder.decide(
        EvaluateCheckpoint,
        f"evaluate {base_name(chosen.path)} on {place.words}",
        path=chosen.path,
        mtime=mtime,
        step=chosen.step,
        gpu=place.gpu,
        memory_bytes=place.memory_bytes,
        timeout_s=settings.evaluate.timeout_s,
    )
    job = Job(order=order, path=chosen.path, mtime=mtime, step=chosen.step, spot=place)
    builder.change("saved", evaluations=memory.begin(builder.state.saved.evaluations, job))


def _write(builder: StepBuilder, found: Evaluation) -> None:
    told = builder.state.saved.evaluations.told
    builder.fact(CheckpointEvaluated(evaluation=found))
    builder.change("saved", evaluations=memory.with_result(builder.state.saved.evaluations, found))
    if found.score is None and not told:
        said = f"the score of {base_name(found.path)} is {score_words(found)}; the training is not affected"
        builder.warn("checkpoint", "evaluation", said, ending="reported")


# When a checkpoint is copied off the machine: the newest verified one, the best, or both; one at a time, never twice.
#
# If several wait, only the newest is copied: a copy that is slower than the saves must not fall behind for ever.
# Nothing is ever deleted, here or there.


def follow_backups(builder: StepBuilder, *, last: bool = False) -> None:
    """Begin the next copy, if one is due. ``last``: the run ends, and all that is not copied yet is."""
    if not builder.settings.backup.wanted or (builder.state.saved.backups.running is not None and not last):
        return
    for chosen in _due(builder, float("inf")) if last else _due(builder, builder.t)[:1]:
        assert chosen.mtime is not None
        name = base_name(chosen.path)
        order = builder.decide(BackUpCheckpoint, f"copy {name} off this machine", path=chosen.path, mtime=chosen.mtime)
        job = Job(order=order, path=chosen.path, mtime=chosen.mtime)
        builder.change("saved", backups=memory.begin(builder.state.saved.backups, job))


def on_backup_outcome(builder: StepBuilder, job: Job, outcome: Outcome) -> None:
    """Note that it is copied, or that it failed: people are told of the first failure in a row."""
    known, name, why = builder.state.saved.backups, base_name(job.path), outcome.detail or "no detail"
    again_t = None if outcome.ok else builder.t + WHILE_S
    builder.change("saved", backups=memory.end(known, job.path, job.mtime, told=not outcome.ok, again_t=again_t))
    if outcome.ok:
        return
    builder.note(f"{name} was not copied: {why}")
    if not known.told:
        body = f"{why}\nit is copied again in {WHILE_S / 60:.0f} min"
        builder.notify("warning", f"{name} was not copied", body)


def _due(builder: StepBuilder, t: float) -> list[KnownCheckpoint]:
    """What is to be copied at ``t``, the best first: it changes less often than the newest one."""
    state, which = builder.state, builder.settings.backup.which
    good = [k for k in state.saved.checkpoints.known if k.own and k.complete and k.bad is None and k.mtime is not None]
    found = []
    if which != "newest":
        found += [k for k in good if k.path == best_there(state.saved.evaluations, good)]
    if which != "best" and good:
        newest = max(good, key=lambda k: (k.mtime or 0.0, k.t))
        found += [] if newest in found else [newest]
    return [k for k in found if state.saved.backups.may_begin(k, t)]


# What the user wants at the end of a run (``[end]``): commands that are run once, and a time at which it ends.
#
# The next supervisor runs a command that was decided and not begun (notify.py). The time is fixed at the first launch,
# and anew by whoever starts a stopped run again; exits.py has the stop.


def end_watch(
    builder: StepBuilder, event: EndEvent, reason: str, *, exit_code: int = 1, incident: int | None = None
) -> None:
    """After what is to be evaluated and copied, run the user's command for the end, and end the supervisor."""
    ends = builder.state.operator.ends
    until_t = builder.t if event == "end_by" else None if ends is None else ends.t - BUSY_S
    builder.change("operator", ends=None)
    end = EndOfWatch(t=builder.t, event=event, reason=reason, exit_code=exit_code, incident=incident, until_t=until_t)
    builder.change("saved", end=end)
    follow_backups(builder)
    follow_end(builder)
    if builder.state.saved.end == end:
        builder.note("the run is over; what is left to copy and to evaluate is done before the supervisor ends")


def follow_end(builder: StepBuilder) -> None:
    """End the watch once nothing is left to be done for checkpoints, or no time; forget it if the run goes on."""
    state, settings, end = builder.state, builder.settings, builder.state.saved.end
    if end is None or not isinstance(builder.machine, Over | Stopped):
        builder.change("saved", end=None)
        return
    if end.ordered:
        return
    scores = settings.evaluate.wanted and isinstance(builder.machine, Finished)
    scores = scores and (state.saved.evaluations.running is not None or bool(_left(builder)))
    copies = settings.backup.wanted and (state.saved.backups.running is not None or bool(_due(builder, float("inf"))))
    if (scores or copies) and (end.until_t is None or builder.t < end.until_t):
        return
    if scores:
        builder.note("no time is left to evaluate the other checkpoints")
    follow_backups(builder, last=True)
    command = settings.end.at_finish if end.event == "finish" else settings.end.at_give_up
    builder.change("saved", end=msgspec.structs.replace(end, ordered=True) if command else None)
    if command:
        why = f"run {command[0]} at the end ({end.event})"
        builder.decide(RunAtEnd, why, event=end.event, command=command, end_t=end.t)
    builder.decide(EndWatch, end.reason, incident=end.incident, exit_code=end.exit_code)


def set_time(builder: StepBuilder, *, after_s: float = 0.0) -> None:
    """Fix when the run ends by ``end_by``, later than ``after_s`` from now, unless that is fixed already."""
    knowledge, known = builder.knowledge, builder.state.operator.ends
    said = knowledge.settings.end.end_by
    if (known.said if known is not None else "") == said:
        return
    wall = knowledge.end_after(knowledge.created_wall + builder.t + after_s)
    if wall is None:
        builder.change("operator", ends=None)
        return
    ends = EndTime(said=said, t=wall - knowledge.created_wall)
    builder.change("operator", ends=ends)
    left, lead_s = long_words(max(0.0, ends.t - builder.t)), stop_takes_s(knowledge, builder.state)
    builder.note(f"it ends by {said} (in {left}): the stop begins {lead_s:.0f} s before, so that it can save")


def stop_takes_s(knowledge: Knowledge, state: JudgeState) -> float:
    """How long a stop may take, the save before it included."""
    # Beside its graces, a stop takes the time to look at its processes.
    restart = knowledge.settings.restart
    return restart.stop_takes_s(saves=knowledge.can_ask_to_save or state.log.beating) + BUSY_S


def over(builder: StepBuilder) -> None:
    """The run is stopped because its time is over: notify, run the command, end the supervisor."""
    said, resume = builder.settings.end.end_by, builder.typed("resume")
    body = f"it was to end by {said}; the training is not done: `{resume}` goes on"
    builder.notify("end_by", "stopped at its time", body)
    end_watch(builder, "end_by", f"stopped at its time ({said}); `{resume}` goes on")
