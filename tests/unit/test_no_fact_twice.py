"""No card and no head of the screen tells a fact twice: of invented runs, and of every scenario at each of its turns."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.fakes import feed
from tests.fakes.repeated_facts import facts, repeated
from tests.scenarios.cases import SIZES, replayed
from tests.scenarios.sick import SICK
from tests.tiers import SECOND_TIER
from tests.unit.test_report_texts import report
from trainwatch.core.model.decision import Decision, Record
from trainwatch.core.model.fact import IncidentOpened, StateChanged
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.model.story_fold import apply
from trainwatch.core.replay import Replay
from trainwatch.core.views.dashboard import header_view
from trainwatch.core.views.incidents import incident_card
from trainwatch.core.views.report_building import summary
from trainwatch.core.views.words import title_of

WALL0 = 1_700_000_000.0
FIRST = ("dies", "does_not_exit", "becomes_slower_after_a_slow_beginning")
"""The others belong to the second tier."""


def shown(now: Situation) -> Iterator[tuple[str, list[str]]]:
    """(what it is, its texts) of the cards and of the head."""
    head = header_view(now)
    yield "head", [*head.verdict.clauses, head.verdict.aside, *head.facts]
    away = summary(report(now))
    yield "morning card", [away.title, *away.lines, *(need.text for need in away.needs)]
    for incident in now.story.incidents:
        card = incident_card(now, incident.id)
        assert card is not None
        told = (row.text for row in card.rows if row.line is None)  # the others are lines of the log
        texts = [card.title, *told, *(choice.text for choice in card.choices)]
        yield f"card of incident {incident.id}", texts


def check(now: Situation) -> None:
    """A name of a failure may stand where a line of the log has it, or where a change names its reason.

    Two incidents may have the same reason.
    """
    names = {fact for incident in now.story.incidents for fact in facts(title_of(incident))}
    told = Counter(fact for incident in now.story.incidents for fact in set(facts(incident.reason)))
    names |= {fact for fact, incidents in told.items() if incidents > 1}
    for what, texts in shown(now):
        twice = [fact for fact in repeated(texts) if fact not in names]
        assert not twice, (what, twice, texts)


def turns(fold: Replay) -> Iterator[Situation]:
    """The run at each change of its state and at each incident, and at the end."""
    story = RunStory()
    for seq, (t, entry) in enumerate(fold.entries, 1):
        wall = WALL0 + t
        if isinstance(entry, Decision):
            story = apply(story, Record(seq=seq, t=t, wall=wall, decision=entry))
        else:
            story = apply(story, Record(seq=seq, t=t, wall=wall, fact=entry))
        if isinstance(entry, StateChanged | IncidentOpened):
            yield Situation(story=story, now_t=t + 5, now_wall=wall + 5, supervisor_alive=True)
    yield Situation(story=story, now_t=story.t + 60, now_wall=WALL0 + story.t + 60, supervisor_alive=False)


def test_a_repeated_fact_is_found() -> None:
    assert repeated(["held: the disk is full, 8.2 MB are free", "now 8.2 MB are free"]) == ["8.2 MB"]
    assert repeated(["crash: the training is done (it does not end)", "The run is done: wait"]) == []
    assert repeated(["a signal stopped the whole training", "open: a signal stopped the whole training."])
    assert repeated(["GPU 0 at 60 °C", "GPU 1 at 61 °C, 2 restarts left"]) == []


@pytest.mark.parametrize("name", ["hung", "finished", "given_up", "unwatched", "asking"])
def test_invented_runs_tell_nothing_twice(name: str) -> None:
    check(getattr(feed, name)())


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FIRST else SECOND_TIER) for n in sorted(SICK)])
def test_no_scenario_tells_a_fact_twice(name: str) -> None:
    for now in turns(replayed(SICK[name](*SIZES[0]))):
        check(now)
