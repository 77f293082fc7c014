"""Remedies that apply to a failure: the rows of remedies.toml that fit, with values before and after.

Pure: the trainer's settings come in ``Values``, which wiring fills from profile, command line and config.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...model.fact import ProfileChanged, RemediesDropped, RemedyApplied, RemedyProposed
from ...model.preset import NO_PROFILE, Change, one_each
from ...model.shipped import UNKNOWN, AppliedRemedy, Condition, Remedy, RemedyChange
from ...model.text import LazyPattern
from ..knowledge import Values
from ..resume.checkpoint_index import base_name
from ..state import StepBuilder

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
