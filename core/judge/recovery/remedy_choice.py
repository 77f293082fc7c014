"""Remedies in a run: which one may be applied, which wait for a person, and how they are taken back."""

from typing import Any

from ...model.fact import ProfileChanged, RemediesDropped, RemedyApplied, RemedyProposed
from ...model.patterns import LazyPattern
from ...model.preset import NO_PROFILE
from ...model.shipped import AppliedRemedy, Remedy
from ..resume import checkpoint_index
from ..resume.checkpoint_index import base_name
from ..state import StepBuilder
from . import remedies
from .remedies import Circumstances, Option


def circumstances(builder: StepBuilder, seen: int = 0, said: str = "") -> Circumstances:
    """What the choice of a remedy depends on, now.

    ``seen``: how often the failure ended an attempt before; ``said``: what it says.
    """
    state, knowledge = builder.state, builder.knowledge
    pending = state.profile_pending
    profile = state.profile if pending is None else None if pending == NO_PROFILE else pending
    ladder = knowledge.settings.profiles.ladder
    return Circumstances(
        preset=knowledge.preset.kin[-1],
        profile=profile,
        ladder=ladder or knowledge.usual_ladders.get(knowledge.families.get(profile or "", ""), ()),
        families=knowledge.families,
        traits=knowledge.traits,
        options=knowledge.options,
        values=knowledge.values,
        applied=state.applied,
        seen=seen,
        said=said,
        own_file=_loaded_own_file(builder),
    )


def _loaded_own_file(builder: StepBuilder) -> bool:
    """Whether the last traceback is of a load, and the last file that the log names before it is a checkpoint.

    It must be the one that the attempt was given, and one that this run wrote.
    """
    state = builder.state
    known = checkpoint_index.find(state.checkpoints, state.attempt.resume_from)
    blocks = [block for block in state.diagnosis.blocks if block.raised is not None]
    if known is None or not known.own or not any("load" in f"{block.code} {block.last}" for block in blocks):
        return False
    before = f"{state.diagnosis.tail}{state.diagnosis.fold.rest}".rpartition("Traceback (most recent call last)")[0]
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
    failed = {rung.profile for rung in builder.state.ramp.failed}
    here = circumstances(builder, seen, said)
    found = remedies.options(builder.knowledge.remedies, failure, here)
    fitting = [
        o
        for o in found
        if (o.profile is None or o.profile not in failed) and o.remedy.name not in builder.state.withdrawn
    ]
    allowed = [o for o in fitting if remedies.is_allowed(o.remedy, apply, again=again, own_file=here.own_file)]
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
    builder.set(proposed=tuple(name for name in state.proposed if name != row.name))
    if option.changes:
        builder.set(applied=(*state.applied, AppliedRemedy(name=row.name, changes=option.changes)))
    if option.profile is not None:
        builder.set(profile_pending=option.profile)
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
        if row.name in builder.state.proposed:
            continue
        builder.set(proposed=(*builder.state.proposed, row.name))
        builder.fact(
            RemedyProposed(
                failure=failure,
                why=why or (late if remedies.is_allowed(row, apply) else asked),
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
    here = circumstances(builder)
    option = next((o for o in (remedies.fit(row, here) for row in rows) if o is not None), None)
    if option is not None:
        take(builder, option, f"asked for by {by}", None)
    else:
        builder.note(f"remedy {name}: it would change nothing here, or its settings are not known")


def restore(builder: StepBuilder, applied: tuple[AppliedRemedy, ...], why: str, incident: int | None) -> None:
    """The next launch has exactly these remedies, as an attempt before it had."""
    if builder.state.applied == applied:
        return
    drop(builder, why)
    rows = {row.name: row for row in builder.knowledge.remedies}
    for known in applied:
        row = rows.get(known.name)
        told = {"name": known.name, "title": ""} if row is None else _told(row, "equivalent")
        builder.fact(RemedyApplied(failure=why, changes=known.changes, incident=incident, **told))
    builder.set(applied=applied)


def drop(builder: StepBuilder, why: str) -> None:
    """The next launch has the user's own values again."""
    names = tuple(dict.fromkeys(a.name for a in builder.state.applied))
    if names:
        builder.set(applied=())
        builder.fact(RemediesDropped(names=names, why=why))
