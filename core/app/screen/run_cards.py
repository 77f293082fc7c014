"""The list of runs for the screen."""

import time
from collections.abc import Sequence

from ...model.run import LIVE_STATES
from ...model.run_card import RunCard
from ...model.story import RunStory
from ...model.text.edge import EDGE
from ...store.journal import JournalTooNew, load_story
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, list_runs
from ..runs.known_runs import example_verb, home


def run_cards() -> Sequence[RunCard]:
    """All known runs, newest first; ended ones of demo and drill come last. Reads every journal."""
    own: list[RunCard] = []
    last: list[RunCard] = []
    for run in list_runs(home()):
        card = card_of(run)
        over = card.state not in LIVE_STATES and not card.watched
        (last if over and example_verb(run.load_spec()) else own).append(card)
    return [*own, *last]


def current_story(run: RunDirectory, story: RunStory) -> RunStory:
    """The story, with the state "interrupted" if neither supervisor nor trainer exist."""
    from ..runs.unwatched import as_found  # loads the launching part of core: only if no supervisor runs

    return as_found(run, story)


def card_of(run: RunDirectory) -> RunCard:
    """One run. Reads its journal and its newest samples."""
    spec = run.load_spec()
    try:
        story = current_story(run, load_story(run.journal))
    except (JournalTooNew, OSError):
        return RunCard(id=run.id, name=spec.name, state="idle", watched=is_held(run.lock), created_wall=time.time())
    from ...store.metrics.history_reader import HistoryReader
    from ...views.state.run_progress import over_run

    history = HistoryReader(run.history)
    latest = history.latest()
    history.close()
    progress = over_run(story, latest.progress.progress if latest.progress else story.progress)
    return RunCard(
        id=run.id,
        name=spec.name,
        state=story.state,
        watched=is_held(run.lock),
        created_wall=spec.created_wall,
        step=progress.step,
        total_steps=progress.total_steps,
        last_incident=EDGE.text(story.incidents[-1].reason) if story.incidents else None,
    )
