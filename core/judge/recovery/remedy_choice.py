"""Remedies in a run: which one may be applied, which wait for a person, and how they are taken back."""

from ...model.fact import ProfileChanged, RemediesDropped, RemedyApplied, RemedyProposed
from ...model.profile import NO_PROFILE
from ...model.shipped.remedy import AppliedRemedy
from ..step_builder import Draft
from . import remedies
from .remedies import Circumstances, Option


def circumstances(draft: Draft, seen: int = 0) -> Circumstances:
    """What the choice of a remedy depends on, now. ``seen``: how often the failure ended an attempt before."""
    state, knowledge = draft.state, draft.knowledge
    pending = state.profile_pending
    profile = state.profile if pending is None else None if pending == NO_PROFILE else pending
    return Circumstances(
        preset=knowledge.preset.name,
        profile=profile,
        ladder=knowledge.settings.profiles.ladder,
        families=knowledge.families,
        traits=knowledge.traits,
        values=knowledge.values,
        applied=state.applied,
        seen=seen,
    )


def choose(draft: Draft, failure: str, seen: int) -> tuple[Option | None, tuple[Option, ...]]:
    """(the first that the settings allow to be applied, those that need a person)."""
    apply = draft.knowledge.settings.remedies.apply
    dead = {rung.profile for rung in draft.state.ramp.dead}
    found = remedies.options(draft.knowledge.remedies, failure, circumstances(draft, seen))
    fitting = [o for o in found if o.profile is None or o.profile not in dead]
    allowed = [o for o in fitting if remedies.is_allowed(o.remedy, apply)]
    return (allowed[0] if allowed else None), tuple(o for o in fitting if o not in allowed)


def take(draft: Draft, option: Option, failure: str, incident: int | None) -> None:
    """Every launch from now on has these changes."""
    row = option.remedy
    draft.fact(
        RemedyApplied(
            name=row.name,
            title=row.title,
            failure=failure,
            changes=option.changes,
            profile=option.profile,
            incident=incident,
            equivalent=row.equivalent,
            cost=row.cost,
            source=row.source,
        )
    )
    state = draft.state
    draft.set(proposed=tuple(name for name in state.proposed if name != row.name))
    if option.changes:
        draft.set(applied=(*state.applied, AppliedRemedy(name=row.name, changes=option.changes)))
    if option.profile is not None:
        draft.set(profile_pending=option.profile)
        draft.fact(ProfileChanged(profile=option.profile, pending=True, why=f"remedy {row.name}: {row.title}"))


def propose(draft: Draft, waiting: tuple[Option, ...], failure: str, incident: int | None) -> None:
    """Record those that a person has to decide, each once."""
    apply = draft.knowledge.settings.remedies.apply
    late = "no restarts are left to try it by itself"
    asked = f'not applied by itself ([remedies] apply = "{apply}")'
    for option in waiting:
        row = option.remedy
        if row.name in draft.state.proposed:
            continue
        draft.set(proposed=(*draft.state.proposed, row.name))
        draft.fact(
            RemedyProposed(
                name=row.name,
                title=row.title,
                failure=failure,
                why=late if remedies.is_allowed(row, apply) else asked,
                changes=option.changes,
                profile=option.profile,
                incident=incident,
                cost=row.cost,
                source=row.source,
            )
        )


def take_by_name(draft: Draft, name: str, by: str) -> None:
    """An operator chose a remedy, whatever the failure was and whatever the settings allow."""
    rows = [row for row in draft.knowledge.remedies if row.name == name]
    here = circumstances(draft)
    option = next((o for o in (remedies.fit(row, here) for row in rows) if o is not None), None)
    if option is not None:
        take(draft, option, f"asked for by {by}", None)
    else:
        draft.note(f"remedy {name}: it would change nothing here, or its settings are not known")


def restore(draft: Draft, applied: tuple[AppliedRemedy, ...], why: str, incident: int) -> None:
    """The next launch has exactly these remedies, as an attempt before it had."""
    if draft.state.applied == applied:
        return
    drop(draft, why)
    rows = {row.name: row for row in draft.knowledge.remedies}
    for known in applied:
        row = rows.get(known.name)
        title, cost, source = ("", "", "") if row is None else (row.title, row.cost, row.source)
        draft.fact(
            RemedyApplied(
                name=known.name,
                title=title,
                failure=why,
                changes=known.changes,
                incident=incident,
                equivalent=row is None or row.equivalent,
                cost=cost,
                source=source,
            )
        )
    draft.set(applied=applied)


def drop(draft: Draft, why: str) -> None:
    """The next launch has the user's own values again."""
    names = tuple(dict.fromkeys(a.name for a in draft.state.applied))
    if names:
        draft.set(applied=())
        draft.fact(RemediesDropped(names=names, why=why))
