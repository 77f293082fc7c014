"""What a report tells one by one is the same in one part or in several."""

from trainwatch.core.model.decision import Decision, EndWatch, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import CommandReceived, Fact, Note, RampMoved
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.particulars import ActionResult, IncidentAction, Particulars, joined, particulars_of
from trainwatch.core.model.record import Record
from trainwatch.core.store.journal import record_of

ASKED = CommandReceived(verb="stop", by="luca")
MOVED = RampMoved(direction="up", before="a", after="b", why="no trouble")


def ended(decision: int, detail: str = "") -> Outcome:
    return Outcome(t=1.0, decision=decision, action="stop_attempt", ok=True, detail=detail)


def records(*bodies: Fact | Decision | Outcome) -> list[Record]:
    return [record_of(seq, float(seq), 100.0 + seq, body) for seq, body in enumerate(bodies, 1)]


def test_actions_for_incidents_their_results_and_changes_are_kept() -> None:
    found = particulars_of(
        records(
            StopAttempt(id=1, reason="end it", incident=4, attempt=1),
            StartAttempt(id=2, reason="for no incident", attempt=2),
            NotifyPeople(id=3, reason="tell", incident=4, event="incident", title="crash"),
            EndWatch(id=5, reason="over", incident=4, exit_code=1),
            MOVED,
            *map(ended, (1, 2, 3, 5)),
            Note(text="a note"),
            ASKED,
        )
    )
    assert found.actions == (IncidentAction(1, 4, 101.0, "end it"),)
    assert found.results == (ActionResult(1, True, False, ""),)
    assert [(change.t, change.fact) for change in found.changes] == [(5.0, MOVED), (11.0, ASKED)]


def test_a_result_may_be_of_a_decision_in_an_earlier_part() -> None:
    first = particulars_of(records(StopAttempt(id=1, reason="end it", incident=4, attempt=1)))
    second = particulars_of(records(ended(1, "late"), ASKED))
    whole = joined((first, Particulars(), second))
    assert (whole.actions, whole.results) == (first.actions, (ActionResult(1, True, False, "late"),))
    assert len(whole.changes) == 1
    assert not Particulars()
    assert first
