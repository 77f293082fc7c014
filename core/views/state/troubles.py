"""What is wrong with a run now, the worst first: the supervisor, trainwatch's own files, and the open incidents."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...model.run import TERMINAL_STATES
from ...model.situation import Situation, SupervisorLife, Trouble
from ...model.story import RunStory
from ...model.suggestion import typed
from .. import quantity
from ..withheld_words import commands, would_have
from ..words import title_of
from .concerns import reason_now

ORDER = ("danger", "warning", "info")
ABOUT_READINGS = frozenset({"health", "disk"})
"""Kinds of incidents whose reason says all."""


def troubles(
    now: Situation, life: SupervisorLife, own: Iterable[Trouble] = (), *, run_id: str = ""
) -> tuple[Trouble, ...]:
    """All of them. ``own``: troubles of trainwatch's files; of one kind the supervisor's own report counts."""
    story = now.story
    found = [*_of_supervisor(story, life, run_id, now.now_wall), *life.troubles]
    said = {trouble.kind for trouble in found}
    found += [trouble for trouble in own if trouble.kind not in said]
    found += _of_question(story)
    found += _of_incidents(now)
    return tuple(sorted(found, key=lambda trouble: ORDER.index(trouble.level)))


def shown(found: Iterable[Trouble]) -> list[dict[str, Any]]:
    """The field ``troubles`` of ``status --json``."""
    return [msgspec.to_builtins(trouble) for trouble in found]


def frozen_text(life: SupervisorLife) -> str:
    """One sentence about a supervisor that is alive and does not respond."""
    since = "" if life.age_s is None else f" for {quantity.duration(life.age_s)}"
    if life.stopped:
        return f"the supervisor (pid {life.pid}) is stopped by a signal{since}: kill -CONT {life.pid} lets it go on"
    return (
        f"the supervisor (pid {life.pid or 'unknown'}) does not respond{since}: it is stuck, perhaps in a disk access"
    )


def nobody_watches(frozen: str, *run_id: str) -> str:
    """What follows from a supervisor that does not respond, and what helps. ``frozen``: as by ``frozen_text``."""
    return (
        f"{frozen}; nobody watches the training; else kill it with -9 and start a new one: `{typed('resume', *run_id)}`"
    )


def _of_supervisor(story: RunStory, life: SupervisorLife, run_id: str, wall: float) -> Iterator[Trouble]:
    if life.frozen:
        yield Trouble(
            kind="supervisor_frozen",
            level="danger",
            text=nobody_watches(frozen_text(life), run_id),
            since=None if life.age_s is None else wall - life.age_s,
        )
    elif not life.alive and story.attempts and story.state not in TERMINAL_STATES:
        yield Trouble(
            kind="supervisor_dead",
            level="danger",
            text=f"no supervisor is running, nobody watches the training: `{typed('resume', run_id)}` starts one",
            since=story.wall0 + story.t,
        )


def _of_question(story: RunStory) -> Iterator[Trouble]:
    held = story.question
    if held is not None:
        text = held.action.question if held.action.asks else would_have(held, story.wall0)
        answers = "; ".join(f"{what}: `{command}`" for what, command in commands(story))
        kind = "question" if held.action.asks else "withheld"
        yield Trouble(kind=kind, level="danger", text=f"{text} {answers}", since=story.wall0 + held.t)


def _of_incidents(now: Situation) -> Iterator[Trouble]:
    for incident in now.story.open_incidents:
        yield Trouble(
            kind=incident.kind,
            level=incident.severity,
            text=reason_now(incident, now)
            if incident.kind in ABOUT_READINGS
            else f"{title_of(incident)}: {incident.reason}",
            since=incident.wall,
        )
