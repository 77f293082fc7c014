"""What the next attempt may have changed: remedies that fit a failure, and the rung of the ladder of profiles."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...model.fact import ProfileChanged, RampMoved, RemediesDropped, RemedyApplied, RemedyProposed
from ...model.preset import ALLOWED_AGAIN, NO_PROFILE, Change, FailedRung, RampGoal, goal_of_rung, hours, one_each
from ...model.shipped import UNKNOWN, AppliedRemedy, Condition, Remedy, RemedyChange
from ...model.text import LazyPattern, plural
from ..knowledge import Values
from ..memory import Ramp, Rung
from ..resume import checkpoint_index
from ..resume.checkpoint_index import base_name
from ..scales import SMALL_SHARE
from ..state import StepBuilder
from . import gate

# Remedies that apply to a failure: the rows of remedies.toml that fit, with values before and after.
#
# Pure: the trainer's settings come in ``Values``, which wiring fills from profile, command line and config.

SAFE_MODES = "cuda-safe-mode"
_TRUTH = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


class RemedyInput(msgspec.Struct, frozen=True, kw_only=True):
    """What the choice of a remedy depends on. ``ladder``: profiles, safest first; ``families``: profile → its family.

    ``traits``: of this machine, such as "wsl2". ``options``: those that the trainer's source declares, with their
    dashes. ``seen``: how often the failure ended an attempt before; ``said``: its line; ``own_file``: the log shows
    that it was the load of a checkpoint of this run.
    """

    preset: str
    profile: str | None = None
    ladder: tuple[str, ...] = ()
    families: Mapping[str, str] = {}
    traits: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    values: Values = {}
    applied: tuple[AppliedRemedy, ...] = ()
    seen: int = 0
    said: str = ""
    own_file: bool = False


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A remedy that can be applied now. ``profile``: the profile to switch to."""

    remedy: Remedy
    changes: tuple[Change, ...] = ()
    profile: str | None = None

    @property
    def words(self) -> str:
        """What it changes, for a sentence."""
        parts = [f"{c.key} {shown(c.before)} -> {shown(c.after)}" for c in self.changes]
        if self.profile is not None:
            parts.append(f"profile {self.profile}")
        return ", ".join(parts)


def options(table: Iterable[Remedy], failure: str, here: RemedyInput) -> Iterator[Option]:
    """The remedies for a failure (a class, or ``hang:KIND``), in the order of the table."""
    for remedy in table:
        if failure in remedy.failures and here.seen >= remedy.after and remedy.says in here.said:
            option = fit(remedy, here)
            if option is not None:
                yield option


def fit(remedy: Remedy, here: RemedyInput) -> Option | None:
    """The remedy with its values; None if it does not fit or would change nothing."""
    if (remedy.presets and here.preset not in remedy.presets) or here.traits.intersection(remedy.not_on):
        return None
    if not all(_holds(condition, here) for condition in remedy.when):
        return None
    if remedy.profile is not None:
        lower = _rung_down(here, remedy.families)
        return None if lower is None else Option(remedy=remedy, profile=lower)
    changes = []
    for row in remedy.changes:
        spellings = (row.key, row.key.replace("_", "-")) if row.where == "flag" else ()
        key = next((name for name in spellings if f"--{name}" in here.options), None) if spellings else row.key
        if key is None:
            continue  # an option that the script does not declare
        before = _value(here, f"${row.key}" if row.where == "env" else row.key)
        if before == UNKNOWN:
            return None  # a part of a remedy may change the result of the training
        after = _after(row, before)
        if (row.if_known and before is None) or after is None or after == before:
            continue
        why = f"remedy {remedy.name}"
        changes.append(Change(where=row.where, key=key, before=before, after=after, why=why))
    return Option(remedy=remedy, changes=tuple(changes)) if changes else None


def is_allowed(remedy: Remedy, apply: str, *, again: bool = False, own_file: bool = True) -> bool:
    """Whether ``[remedies] apply`` lets it be applied automatically.

    ``again``: the failure came back at its place. ``own_file``: as of the circumstances.
    """
    if remedy.own_file and not own_file:
        return False
    return apply == "all" or (
        apply in {"equivalent", "guide"} and (remedy.equivalent or (apply == "guide" and remedy.guide and again))
    )


def merged(applied: Iterable[AppliedRemedy]) -> tuple[Change, ...]:
    """All changes of a launch, one for each setting: from its first value to its last."""
    return tuple(one_each(change for remedy in applied for change in remedy.changes))


def number(value: Any) -> Any:
    """A value as the trainer reads it: command lines and environments have text ("4", "1e-4", "" for a bare flag)."""
    if not isinstance(value, str):
        return value
    if not value:
        return True
    if value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _value(here: RemedyInput, key: str) -> Any:
    for change in reversed(merged(here.applied)):
        name = change.key.replace("-", "_") if change.where == "flag" else change.key
        if key in {f"${change.key}" if change.where == "env" else change.key, name}:
            return change.after
    values = here.values.get(here.profile or "", here.values.get("", {}))
    value = values.get(key)
    return value if key.startswith("$") else number(value)


def _holds(condition: Condition, here: RemedyInput) -> bool:
    value = _value(here, condition.key)
    if value is None:
        value = condition.default
    is_other = condition.is_ is not None and value != condition.is_
    if is_other or (condition.is_not is not None and value == condition.is_not):
        return False
    if condition.above is None and condition.multiple_of is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if condition.above is not None and value <= condition.above:
        return False
    return condition.multiple_of is None or value % condition.multiple_of == 0


def _after(row: RemedyChange, before: Any) -> Any:
    if row.times is None:
        return row.to
    value = before if before is not None else row.default
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value * row.times) if isinstance(value, int) else value * row.times


def _rung_down(here: RemedyInput, families: tuple[str, ...]) -> str | None:
    """The next safer profile.

    Of a profile beside the ladder it is not known which rung it equals: the safest one. Without a profile only the safe
    modes can be placed: their top rung changes nothing.
    """
    if here.profile in here.ladder:
        at = here.ladder.index(here.profile)
    elif here.profile is not None and here.ladder:
        at = 1
    elif here.profile is None and here.ladder and SAFE_MODES in families:
        at = len(here.ladder) - 1
    else:
        return None
    lower = here.ladder[at - 1] if at > 0 else None
    return lower if lower is not None and here.families.get(lower) in families else None


def shown(value: Any) -> str:
    """A value in a sentence."""
    return "(not set)" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def remedy_input(builder: StepBuilder, seen: int = 0, said: str = "") -> RemedyInput:
    """What the choice of a remedy depends on, now. ``seen``, ``said``: of the failure."""
    state, knowledge = builder.state, builder.knowledge
    pending = state.policy.profile_pending
    profile = state.policy.profile if pending is None else None if pending == NO_PROFILE else pending
    ladder = knowledge.settings.profiles.ladder
    return RemedyInput(
        preset=knowledge.preset.kin[-1],
        profile=profile,
        ladder=ladder or knowledge.usual_ladders.get(knowledge.families.get(profile or "", ""), ()),
        families=knowledge.families,
        traits=knowledge.traits,
        options=knowledge.options,
        values=knowledge.values,
        applied=state.policy.applied,
        seen=seen,
        said=said,
        own_file=_loaded_own_file(builder),
    )


def _loaded_own_file(builder: StepBuilder) -> bool:
    """Whether the last traceback is of the load of the checkpoint that was given, which this run wrote."""
    known, log = builder.checkpoint(builder.attempt.resume_from), builder.state.log.diagnosis
    blocks = [block for block in log.blocks if block.raised is not None]
    if known is None or not known.own or not any("load" in f"{block.code} {block.last}" for block in blocks):
        return False
    before = f"{log.tail}{log.fold.rest}".rpartition("Traceback (most recent call last)")[0]
    files = [found.group() for found in _FILE.finditer(before)]
    return bool(files) and base_name(known.path) in files[-1].split("/")


_FILE = LazyPattern(r"[\w./~+@=-]*[\w+@=-]/[\w.+@=-]+|[\w.+@=-]+\.(?:pth?|ckpt|bin|pkl|tar)\b")


def choose(
    builder: StepBuilder, failure: str, seen: int, *, again: bool, said: str = ""
) -> tuple[Option | None, tuple[Option, ...]]:
    """(the first that the settings allow to be applied, those that need a person).

    ``again``: it failed so at this place before, or a restart without a change would.
    """
    apply = builder.settings.remedies.apply
    failed = {rung.profile for rung in builder.state.policy.ramp.failed}
    here = remedy_input(builder, seen, said)
    found = options(builder.knowledge.remedies, failure, here)
    fitting = [
        o
        for o in found
        if (o.profile is None or o.profile not in failed) and o.remedy.name not in builder.state.policy.withdrawn
    ]
    allowed = [o for o in fitting if is_allowed(o.remedy, apply, again=again, own_file=here.own_file)]
    allowed.sort(key=lambda o: not o.remedy.equivalent)  # first what keeps the result
    names = {o.remedy.name for o in allowed}  # a remedy has a row of its own for a framework that keeps its result
    return (allowed[0] if allowed else None), tuple(o for o in fitting if o.remedy.name not in names)


def take(builder: StepBuilder, option: Option, failure: str, incident: int | None) -> None:
    """Every launch from now on has these changes."""
    row = option.remedy
    builder.fact(
        RemedyApplied(
            failure=failure,
            changes=option.changes,
            profile=option.profile,
            incident=incident,
            **_told(row, "equivalent"),
        )
    )
    state = builder.state
    builder.change("policy", proposed=tuple(name for name in state.policy.proposed if name != row.name))
    if option.changes:
        builder.change("policy", applied=(*state.policy.applied, AppliedRemedy(name=row.name, changes=option.changes)))
    if option.profile is not None:
        builder.change("policy", profile_pending=option.profile)
        builder.fact(ProfileChanged(profile=option.profile, pending=True, why=f"remedy {row.name}: {row.title}"))


def propose(
    builder: StepBuilder, waiting: tuple[Option, ...], failure: str, incident: int | None, *, why: str | None = None
) -> None:
    """Record those that a person has to decide, each once. ``why``: if not the settings are the reason."""
    apply = builder.settings.remedies.apply
    late = "no restart is left to apply it automatically"
    asked = f'not applied automatically ([remedies] apply = "{apply}")'
    for option in waiting:
        row = option.remedy
        if row.name in builder.state.policy.proposed:
            continue
        builder.change("policy", proposed=(*builder.state.policy.proposed, row.name))
        builder.fact(
            RemedyProposed(
                failure=failure,
                why=why or (late if is_allowed(row, apply) else asked),
                changes=option.changes,
                profile=option.profile,
                incident=incident,
                **_told(row),
            )
        )


def _told(row: Remedy, *more: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("name", "title", "cost", "source", *more)}


def take_by_name(builder: StepBuilder, name: str, by: str) -> None:
    """An operator chose a remedy, whatever the failure was and whatever the settings allow."""
    rows = [row for row in builder.knowledge.remedies if row.name == name]
    here = remedy_input(builder)
    option = next((o for o in (fit(row, here) for row in rows) if o is not None), None)
    if option is not None:
        take(builder, option, f"asked for by {by}", None)
    else:
        builder.note(f"remedy {name}: it would change nothing here, or its settings are not known")


def restore(builder: StepBuilder, applied: tuple[AppliedRemedy, ...], why: str, incident: int | None) -> None:
    """The next launch has exactly these remedies, as an attempt before it had."""
    if builder.state.policy.applied == applied:
        return
    drop(builder, why)
    rows = {row.name: row for row in builder.knowledge.remedies}
    for known in applied:
        row = rows.get(known.name)
        told = {"name": known.name, "title": ""} if row is None else _told(row, "equivalent")
        builder.fact(RemedyApplied(failure=why, changes=known.changes, incident=incident, **told))
    builder.change("policy", applied=applied)


def drop(builder: StepBuilder, why: str) -> None:
    """The next launch has the user's own values again."""
    names = tuple(dict.fromkeys(a.name for a in builder.state.policy.applied))
    if names:
        builder.change("policy", applied=())
        builder.fact(RemediesDropped(names=names, why=why))


# The ramp: up the ladder of profiles while no attempt fails, one rung down when an attempt fails.
#
# It climbs only at a checkpoint, so that nothing is lost by the restart. A rung that failed is remembered and not tried
# again unless an operator asks for it. Known limit: what a rung costs shows late (fragmentation, a leak), so a rung
# that held for some hours may still fail; then the run steps back.

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
