"""The list of runs for the screen."""

from collections.abc import Sequence

import msgspec

from ...model.edge import EDGE
from ...model.run import LIVE_STATES
from ...model.situation import RunCard
from ...store.journal import JournalTooNew
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...store.run_lookup import list_runs
from ...views.run_summary import summarise
from ...views.screens.run_list import with_summary
from ..runs.known_runs import example_verb, home, queued_entries
from ..runs.run_status import read_situation
from .run_picker import QUEUED


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
        now, _ = read_situation(run)
        now = msgspec.structs.replace(now, story=EDGE.value(now.story))
    except (JournalTooNew, OSError):
        return known
    return with_summary(known, summarise(now, spec.name), now)


def hide(run: RunDirectory, hidden: bool) -> None:
    """Leave the run out of the list, or show it again; nothing else changes. Raises OSError."""
    if hidden:
        run.hidden.touch(mode=0o600)
    else:
        run.hidden.unlink(missing_ok=True)
