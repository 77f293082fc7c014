"""The card of an incident: whatever its kind, what it says and what can be done about it."""

from typing import get_args

import msgspec
import pytest

from tests.fakes.feed import CRASH, crashed, given_up, healthy, hung
from tests.unit.test_views_header import incident, told, with_incidents
from trainwatch.core.judge.failure.evidence_state import kept_text
from trainwatch.core.model.decision import CaptureStacks, Record, StopAttempt
from trainwatch.core.model.fact import IncidentUpdated
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.run import Evidence, Incident, IncidentKind
from trainwatch.core.model.story import ActionStory, Situation
from trainwatch.core.model.story_fold import apply
from trainwatch.core.views.incidents import HEADINGS, IncidentCard, card_markdown, incident_card, incident_view

replace = msgspec.structs.replace


def card_of(now: Situation, number: int) -> IncidentCard:
    card = incident_card(now, number)
    assert card is not None
    return card


def acts(card: IncidentCard) -> set[str]:
    return {choice.act for choice in card.choices}


@pytest.mark.parametrize("kind", get_args(IncidentKind))
@pytest.mark.parametrize("open_", [True, False])
def test_every_kind_of_incident_has_a_card_that_explains_it(kind: str, open_: bool) -> None:
    one = incident(20, kind, "some_class", "something was seen (12 s)", explanation="it means this", step=7)
    one = replace(one, open=open_, closed_t=None if open_ else one.t + 60, ending=None if open_ else "over: cured")
    card = card_of(with_incidents(healthy(), one), 20)
    text = card_markdown(card, "luca")
    for part in ("What happened", "Why", "it means this", "What it cost"):
        assert part in text
    assert text.lower().count("something was seen (12 s)") == 1, "the title or the first row says it"
    assert ("acknowledge" in acts(card)) == open_
    assert "copy" in acts(card)


def test_no_fact_stands_on_a_card_twice() -> None:
    for now, number in ((crashed(), 1), (hung(), 2), (given_up(), 1)):
        rows = [row.text for row in card_of(now, number).rows]
        assert len({" ".join(text.lower().split()) for text in rows}) == len(rows)
    why = [row.text for row in card_of(crashed(), 1).rows if row.heading == "why"]
    assert why[0].startswith("torch.OutOfMemoryError")
    assert "exit code 1" not in why  # the first line says it


@pytest.mark.parametrize(("kind", "kept"), [("crash", "see the evidence"), ("hang", "see the stacks")])
def test_a_crash_offers_no_stacks_of_a_process_that_has_ended(kind: str, kept: str) -> None:
    now = with_incidents(healthy(), incident(20, kind, "some_class", "something was seen", step=7))
    action = ActionStory(id=900, t=now.now_t, kind="capture_stacks", reason="", incident=20, done_t=now.now_t, ok=True)
    now = replace(now, story=replace(now.story, actions=(action,)))
    (choice,) = (choice for choice in card_of(now, 20).choices if choice.act == "stacks")
    assert choice.text == kept


def test_what_was_done_has_its_order_seconds_and_outcomes() -> None:
    now, t = hung(), hung().now_t
    records = (
        Record(seq=40_001, t=t - 5, wall=0.0, decision=CaptureStacks(id=901, reason="evidence", incident=2, attempt=2)),
        Record(
            seq=40_002,
            t=t - 1,
            wall=0.0,
            outcome=Outcome(t=t - 1, decision=901, action="capture_stacks", ok=True, detail="at loop.py:88"),
        ),
        Record(seq=40_003, t=t - 1, wall=0.0, decision=StopAttempt(id=902, reason="hang", incident=2, attempt=2)),
    )
    story = now.story
    for record in records:
        story = apply(story, record)
    card = card_of(replace(now, story=story), 2)
    assert [row.text for row in card.rows if row.heading == "done"] == [
        "+1 s  collected evidence (4 s)",
        "+5 s  ended the processes: under way",
    ]
    assert [row.text for row in card.rows if row.heading == "where"] == ["at loop.py:88"]
    assert "stacks" in acts(card)
    incidents = tuple(replace(i, open=False, closed_t=t, ending="recovered") for i in story.incidents)
    over = card_of(replace(now, story=replace(story, incidents=incidents)), 2)
    assert "+5 s  ended the processes" in {row.text for row in over.rows}
    at_once = tuple(replace(a, t=t - 5) if a.id == 902 else a for a in story.actions)  # it waits for the evidence
    waited = card_of(replace(now, story=replace(story, actions=at_once)), 2)
    assert "+5 s  ended the processes: under way" in {row.text for row in waited.rows}


def test_the_card_says_how_likely_the_cause_is() -> None:
    now = crashed()
    sure = replace(now.story.incidents[0], confidence=0.97)
    card = card_of(told(now, IncidentUpdated(incident=sure)), 1)
    why = [row for row in card.rows if row.heading == "why"]
    assert why[0].text.startswith("Very likely (97 %): torch.OutOfMemoryError")
    assert why[0].line == 48_211
    assert "Very likely (97 %)" in card_markdown(card, "luca")
    assert not any("%)" in row.text for row in why[1:])


def test_how_likely_is_said_although_the_first_row_is_the_cause() -> None:
    bare = replace(CRASH, confidence=0.5, explanation="", evidence=())
    card = card_of(told(crashed(), IncidentUpdated(incident=bare)), 1)
    assert [row.text for row in card.rows if row.heading == "why"] == ["Possibly (50 %)"]


def test_a_hang_says_how_likely_it_is_and_then_its_evidence() -> None:
    seen = ("step 430 was 96 s ago", "GPU 0: 0 %, 62 W, usually 300 W", "CPU of 3 processes: 0.00 cores",
            "last bytes moved 95 s ago", "process 77 waits for a data loader worker that brings nothing: f (a.py:1)")  # fmt: skip
    one = incident(
        21, "hang", "idle", "no step and no sign of life (96 s)", confidence=0.92, evidence=[{"what": w} for w in seen]
    )
    why = [row.text for row in card_of(with_incidents(healthy(), one), 21).rows if row.heading == "why"]
    assert why[:2] == ["Very likely (92 %) that it would not go on", seen[0]]
    headings = [row.heading for row in card_of(with_incidents(healthy(), one), 21).rows]
    assert headings == sorted(headings, key=list(HEADINGS).index)
    bare = replace(one, evidence=())
    assert why[0].partition(",")[0] in card_markdown(card_of(with_incidents(healthy(), bare), 21), "luca")


def test_the_reason_and_the_line_that_it_was_cut_from_are_told_once() -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. " + "Tried to allocate 2.00 GiB. " * 30
    cut = Incident(
        id=1, t=1.0, wall=1.0, kind="crash", class_="cuda_oom", severity="danger", attempt=1,
        reason=f"exit code 1: {line[:150]}…", evidence=(Evidence(what=kept_text(line), line=14),),
    )  # fmt: skip
    card = card_of(with_incidents(healthy(), cut), 1)
    assert " ".join(row.text for row in card.rows).count("OutOfMemoryError") == 1


def test_an_end_in_a_narrow_list_is_a_word_and_no_bare_time() -> None:
    quiet = Incident(
        id=2, t=1.0, wall=1.0, kind="quiet", class_="idle", severity="warning", attempt=1, reason="no step", open=False,
        closed_t=51.0, ending="it became a hang (incident 3)",
    )  # fmt: skip
    assert incident_view(quiet, healthy()).endings[-2:] == ("it became a hang", "over")
