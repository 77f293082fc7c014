"""Remedies that apply to a failure: the rows of remedies.toml that fit, with values before and after.

Pure: the trainer's settings come in ``Values``, which wiring fills from profile, command line and config.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...model.change import Change
from ...model.shipped import UNKNOWN, AppliedRemedy, Condition, Remedy, RemedyChange

Values = Mapping[str, Mapping[str, Any]]
"""Profile ("" = none) → key → the value that a launch would have, absent if not set. ``$NAME``: environment."""

SAFE_MODES = "cuda-safe-mode"
_TRUTH = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
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


def options(table: Iterable[Remedy], failure: str, here: Circumstances) -> Iterator[Option]:
    """The remedies for a failure (a class, or ``hang:KIND``), in the order of the table."""
    for remedy in table:
        if failure in remedy.failures and here.seen >= remedy.after and remedy.says in here.said:
            option = fit(remedy, here)
            if option is not None:
                yield option


def fit(remedy: Remedy, here: Circumstances) -> Option | None:
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
        key = _spelled(row.key, here) if row.where == "flag" else row.key
        if key is None:
            continue
        before = _value(here, f"${row.key}" if row.where == "env" else row.key)
        if before == UNKNOWN:
            return None  # a part of a remedy may change the result of the training
        after = _after(row, before)
        if (row.if_known and before is None) or after is None or after == before:
            continue
        why = f"remedy {remedy.name}"
        changes.append(Change(where=row.where, key=key, before=before, after=after, why=why))
    return Option(remedy=remedy, changes=tuple(changes)) if changes else None


def _spelled(key: str, here: Circumstances) -> str | None:
    """The option as the script declares it: ``safe_mode`` or ``safe-mode``; None if it has none."""
    return next((name for name in (key, key.replace("_", "-")) if f"--{name}" in here.options), None)


def is_allowed(remedy: Remedy, apply: str, *, again: bool = False, own_file: bool = True) -> bool:
    """Whether ``[remedies] apply`` lets it be applied automatically.

    ``again``: the failure came back at its place. ``own_file``: as of the circumstances.
    """
    if remedy.own_file and not own_file:
        return False
    if apply == "guide":
        return remedy.equivalent or (remedy.guide and again)
    return apply == "all" or (apply == "equivalent" and remedy.equivalent)


def merged(applied: Iterable[AppliedRemedy]) -> tuple[Change, ...]:
    """All changes of a launch, one for each setting: from its first value to its last."""
    known: dict[tuple[str, str], Change] = {}
    for remedy in applied:
        for change in remedy.changes:
            first = known.pop((change.where, change.key), None)
            known[change.where, change.key] = (
                change if first is None else msgspec.structs.replace(change, before=first.before)
            )
    return tuple(known.values())


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


def _value(here: Circumstances, key: str) -> Any:
    for change in reversed(merged(here.applied)):
        name = change.key.replace("-", "_") if change.where == "flag" else change.key
        if key in {f"${change.key}" if change.where == "env" else change.key, name}:
            return change.after
    values = here.values.get(here.profile or "", here.values.get("", {}))
    value = values.get(key)
    return value if key.startswith("$") else number(value)


def _holds(condition: Condition, here: Circumstances) -> bool:
    value = _value(here, condition.key)
    if value is None:
        value = condition.default
    if condition.is_ is not None and value != condition.is_:
        return False
    if condition.is_not is not None and value == condition.is_not:
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


def _rung_down(here: Circumstances, families: tuple[str, ...]) -> str | None:
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
