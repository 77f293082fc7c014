"""The ramp: up the ladder of profiles while no attempt fails, one rung down when an attempt fails.

It climbs only at a checkpoint, so that nothing is lost by the restart. A rung that failed is remembered and not tried
again unless an operator asks for it. Known limit: what a rung costs shows late (fragmentation, a leak), so a rung that
held for some hours may still fail; then the run steps back.
"""

import msgspec

from ...model.fact import ProfileChanged, RampMoved
from ...model.preset import ALLOWED_AGAIN, FailedRung, RampGoal, goal_of_rung, hours
from ...model.text import plural
from ..memory import Ramp, Rung
from ..resume import checkpoint_index
from ..scales import SMALL_SHARE
from ..state import StepBuilder
from . import gate

replace = msgspec.structs.replace

TOO_MUCH = frozenset({"spilling"})
"""Slowdowns that end a climb although nothing failed: GPU memory that spills into the host's is no gain."""


def begin_attempt(builder: StepBuilder, resumed_epochs: int | None) -> None:
    """An attempt began with the profile of the state. ``resumed_epochs``: epochs of the run at its resume point."""
    ramp, now, profile = builder.state.policy.ramp, builder.state.time.now, builder.state.policy.profile
    if profile == ramp.rung:
        builder.change("policy.ramp", mark=now, climbing=None)
        return
    came = profile is not None and profile == ramp.climbing
    ramp = Ramp(rung=profile, climbed=came, mark=now, epochs_from=resumed_epochs or 0, failed=ramp.failed)
    builder.change("policy", ramp=ramp)


def on_saved(builder: StepBuilder, known: checkpoint_index.KnownCheckpoint) -> None:
    """A complete checkpoint of this run came: climb, step back, or stay."""
    place = _place(builder)
    if place is None:
        return
    (ladder, at), state = place, builder.state
    ramp = _counted(builder)
    ramp = replace(ramp, checkpoints=ramp.checkpoints + 1)
    builder.change("policy", ramp=ramp)
    if state.policy.profile_pending is not None or state.attempt.beat_t is None:
        return  # an operator or a remedy chose already; or no step was made on this rung, so nothing speaks for it
    spilled = next((i for i in state.journal.incidents if i.kind == "stall" and i.class_ in TOO_MUCH), None)
    if spilled is not None and ramp.climbed and at > 0:
        if not _is_withheld(builder, ladder[at - 1], spilled.reason):
            step_down(builder, ladder[at - 1], spilled.class_, spilled.reason, spilled.id)
            builder.change("policy", switch=True)
        return
    goal = goal_of_rung(builder.settings.profiles.ramp, at)
    reached = None if goal is None else _reached(goal, ramp, known.epochs_done)
    progress = state.progress
    made, whole = progress.epoch, progress.total_epochs
    if made is None or not whole:
        made, whole = progress.run_step, progress.run_total_steps
    nearly_done = made is not None and bool(whole) and made >= (1 - SMALL_SHARE) * (whole or 0)
    if reached is None or at + 1 >= len(ladder) or state.journal.incidents or nearly_done:
        return
    now, above = ladder[at], ladder[at + 1]
    why = f"{reached} on {now} without trouble"
    by_preset = builder.knowledge.preset.resume == "weights" and known.shape == "file"
    if known.holds == "weights" or by_preset:
        why += "; the restart resumes from weights alone, so the optimizer state is lost"
    if any(rung.profile == above for rung in ramp.failed) or _is_withheld(builder, above, why):
        return
    step = state.attempt.step
    builder.fact(RampMoved(direction="up", before=now, after=above, why=why, ran_s=ramp.ran_s, step=step))
    builder.change("policy", profile_pending=above, switch=True, ramp=replace(ramp, climbing=above))
    builder.fact(ProfileChanged(profile=above, pending=True, why=f"the ramp climbs: {why}"))


def _is_withheld(builder: StepBuilder, to: str, why: str) -> bool:
    """Whether the ramp may not switch; that it would is recorded once. A person can order it as any switch."""
    ramp = builder.state.policy.ramp
    if gate.is_closed(builder) and ramp.withheld != to:
        builder.change("policy.ramp", withheld=to)
        answers = (f"yes: trainwatch profile {to} {{run}}",)
        what = f"to the profile {to}"
        gate.tell(builder, "switch", f"switch {what}", f"switched {what}", why, answers=answers)
    return gate.is_closed(builder)


def rung(builder: StepBuilder) -> Rung | None:
    """The rung that the run could leave for the one below; None if there is none, or another profile is chosen."""
    place = _place(builder)
    if place is None or place[1] == 0 or builder.state.policy.profile_pending is not None:
        return None
    ladder, at = place
    return Rung(below=ladder[at - 1], climbed=builder.state.policy.ramp.climbed)


def end_stretch(builder: StepBuilder) -> None:
    """An attempt failed and the rung is kept: the stretch without trouble begins anew."""
    if _place(builder) is not None:
        epochs = builder.attempt.resume_epochs
        ramp = replace(_counted(builder), climbing=None, quiet_s=0.0, checkpoints=0, epochs_from=epochs)
        builder.change("policy", ramp=ramp)


def step_down(builder: StepBuilder, to: str, failure: str, reason: str, incident: int) -> None:
    """The run leaves its rung because of a failure, or of trouble: the next attempt has the profile ``to``."""
    ramp = _counted(builder)
    assert ramp.rung is not None
    builder.change("policy", ramp=ramp, profile_pending=to)
    failed = FailedRung(profile=ramp.rung, ran_s=ramp.ran_s, failure=failure, step=builder.attempt.step)
    leave(builder, failed, to, f"{failed.words}: {reason}", incident, ours=True)
    builder.fact(ProfileChanged(profile=to, pending=True, why=f"the ramp steps back: {failed.words}"))


def leave(builder: StepBuilder, failed: FailedRung, to: str, why: str, incident: int, *, ours: bool) -> None:
    """Remember what failed or did not start. ``ours``: the ramp chose it, and steps back."""
    ramp = builder.state.policy.ramp
    others = tuple(rung for rung in ramp.failed if rung.profile != failed.profile)
    builder.change("policy.ramp", climbing=to if ours else None, failed=(*others, failed))
    if ours:
        moved = RampMoved(direction="back", before=failed.profile, after=to, why=why, ran_s=failed.ran_s)
        builder.fact(replace(moved, failure=failed.failure, step=failed.step, incident=incident))


def chosen(builder: StepBuilder, profile: str, by: str) -> None:
    """An operator asks for a profile: it may be tried again although it failed once."""
    ramp = builder.state.policy.ramp
    failed = next((rung for rung in ramp.failed if rung.profile == profile), None)
    if failed is not None:
        why = f"asked for by {by}, although {failed.words}"
        builder.fact(RampMoved(direction=ALLOWED_AGAIN, before=ramp.rung or profile, after=profile, why=why))
    builder.change("policy.ramp", climbing=None, failed=tuple(r for r in ramp.failed if r.profile != profile))


def _place(builder: StepBuilder) -> tuple[tuple[str, ...], int] | None:
    """The ladder and the index of the run's rung; None if there is nothing to climb."""
    profiles, rung = builder.settings.profiles, builder.state.policy.ramp.rung
    if not profiles.ramp or rung not in profiles.ladder:
        return None
    return profiles.ladder, profiles.ladder.index(rung)


def _counted(builder: StepBuilder) -> Ramp:
    """The ramp with the time up to now."""
    ramp, now = builder.state.policy.ramp, builder.state.time.now
    passed_s = max(0.0, now - ramp.mark)
    return replace(ramp, quiet_s=ramp.quiet_s + passed_s, ran_s=ramp.ran_s + passed_s, mark=now)


def _reached(goal: RampGoal, ramp: Ramp, epochs_done: int | None) -> str | None:
    """Which part of the goal is reached, in words; None if none is."""
    if goal.checkpoints is not None and ramp.checkpoints >= goal.checkpoints:
        return plural(ramp.checkpoints, "checkpoint")
    if goal.epochs is not None and epochs_done is not None:
        made = epochs_done - (ramp.epochs_from or 0)
        if made >= goal.epochs:
            return plural(made, "epoch")
    if goal.hours is not None and ramp.quiet_s >= goal.hours * 3600.0:
        return hours(ramp.quiet_s)
    return None
