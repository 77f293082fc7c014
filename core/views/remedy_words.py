"""Remedies as text: applied ones, and those that wait for the user."""

from collections.abc import Sequence

import msgspec

from ..model.fact import RemedyApplied, RemedyProposed
from ..model.launch.change import Change
from ..model.story import RunStory
from .words import shown


class RemedyRow(msgspec.Struct, frozen=True, kw_only=True):
    """``words``: the change, ``vae_batch_size 2 → 1``. ``applied`` False: it waits for the user, and ``why``."""

    name: str
    title: str
    words: str
    cost: str
    applied: bool
    why: str = ""


def remedy_rows(story: RunStory) -> tuple[RemedyRow, ...]:
    """The applied ones, then those that wait."""
    applied = [_row(r, applied=True) for r in story.remedies]
    return (*applied, *(_row(p, applied=False, why=p.why) for p in story.proposals))


def of_incident(story: RunStory, incident: int) -> tuple[RemedyRow, ...]:
    applied = [_row(r, applied=True) for r in story.remedies if r.incident == incident]
    return (*applied, *(_row(p, applied=False, why=p.why) for p in story.proposals if p.incident == incident))


def difference_words(changes: Sequence[Change], profile: str | None) -> str:
    """``vae_batch_size 2 → 1, accumulation 1 → 2``."""
    said = [f"{c.key} {shown(c.before)} → {shown(c.after)}" for c in changes]
    return ", ".join([*said, *([f"profile {profile}"] if profile else [])])


def back_words(story: RunStory) -> str:
    """The change if all remedies are dropped: ``vae_batch_size 1 → 2``."""
    changes = [c for r in story.remedies for c in r.changes]
    return ", ".join(f"{c.key} {shown(c.after)} → {shown(c.before)}" for c in changes)


def _row(fact: RemedyApplied | RemedyProposed, *, applied: bool, why: str = "") -> RemedyRow:
    return RemedyRow(
        name=fact.name, title=fact.title, words=difference_words(fact.changes, fact.profile), cost=fact.cost,
        applied=applied, why=why,
    )  # fmt: skip
