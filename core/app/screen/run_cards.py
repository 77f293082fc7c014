"""The list of runs for the screen."""

import time
from collections.abc import Sequence

from ...model.edge import EDGE
from ...model.progress import Outlook
from ...model.run import LIVE_STATES
from ...model.situation import RunCard, Situation
from ...store.journal import JournalTooNew, load_story
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...store.run_lookup import list_runs
from ...views.screens.run_list import with_situation
from ..runs.known_runs import example_verb, home, queued_entries
from .run_picker import QUEUED
from .store_feed import current_story


def run_cards() -> Sequence[RunCard]:
    """What waits in the queue, then all known runs, newest first; ended ones of demo and drill come last.

    Reads every journal.
    """
    own: list[RunCard] = []
    last: list[RunCard] = []
    for run in list_runs(home()):
        card = card_of(run)
        over = card.state not in LIVE_STATES and not card.watched
        (last if over and example_verb(run.load_spec()) else own).append(card)
    return [*queued_cards(), *own, *last]


def queued_cards() -> list[RunCard]:
    """The entries of the queue that wait, in their order."""
    return [
        RunCard(
            id=f"{QUEUED}{entry.id}",
            name=entry.name,
            state="idle",
            watched=False,
            created_wall=entry.added_wall,
            last_incident=EDGE.text(entry.why) or None,
            cwd=entry.cwd,
            command=tuple(EDGE.words(entry.command)),
            queued=place,
        )
        for place, entry in enumerate(queued_entries(), 1)
    ]


def card_of(run: RunDirectory) -> RunCard:
    """One run. Reads its journal and its newest samples."""
    spec = run.load_spec()
    known = RunCard(
        id=run.id,
        name=spec.name,
        state="idle",
        watched=is_held(run.lock),
        created_wall=spec.created_wall,
        cwd=spec.cwd,
        command=tuple(EDGE.words(spec.command)),
        hidden=run.hidden.exists(),
    )
    try:
        story = EDGE.value(current_story(run, load_story(run.journal)))
    except (JournalTooNew, OSError):
        return known
    from ...store.latest import latest_without_metrics

    latest = latest_without_metrics(run.history)
    wall = time.time()
    progress = latest.progress
    now = Situation(
        story=story,
        gpu=latest.gpu,
        host=latest.host,
        process=latest.process,
        progress=progress.progress if progress else None,
        progress_t=progress.t if progress else 0.0,
        step_t=progress.step_t if progress else None,
        outlook=progress.outlook if progress and known.watched else Outlook(),
        now_t=max(story.t, wall - (story.wall0 if story.run is not None else spec.created_wall)),
        now_wall=wall,
        supervisor_alive=known.watched,
        health=spec.settings.health,
    )
    return with_situation(known, now)


def hide(run: RunDirectory, hidden: bool) -> None:
    """Leave the run out of the list, or show it again; nothing else changes. Raises OSError."""
    if hidden:
        run.hidden.touch(mode=0o600)
    else:
        run.hidden.unlink(missing_ok=True)
