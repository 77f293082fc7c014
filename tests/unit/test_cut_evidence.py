"""A line of the log that is too long to be kept: it says that it was cut, and is not told twice."""

from tests.fakes.feed import healthy
from tests.unit.test_views_header import with_incidents
from trainwatch.core.judge.failure.evidence_state import kept_text
from trainwatch.core.model.run import Evidence, Incident
from trainwatch.core.views.incidents import incident_card, incident_view

LINE = "torch.OutOfMemoryError: CUDA out of memory. " + "Tried to allocate 2.00 GiB. " * 30


def test_the_reason_and_the_line_that_it_was_cut_from_are_told_once() -> None:
    incident = Incident(
        id=1, t=1.0, wall=1.0, kind="crash", class_="cuda_oom", severity="danger", attempt=1,
        reason=f"exit code 1: {LINE[:150]}…", evidence=(Evidence(what=kept_text(LINE), line=14),),
    )  # fmt: skip
    card = incident_card(with_incidents(healthy(), incident), 1)
    assert card is not None
    assert " ".join(row.text for row in card.rows).count("OutOfMemoryError") == 1


def test_an_end_in_a_narrow_list_is_a_word_and_no_bare_time() -> None:
    quiet = Incident(
        id=2, t=1.0, wall=1.0, kind="quiet", class_="idle", severity="warning", attempt=1, reason="no step", open=False,
        closed_t=51.0, ending="it became a hang (incident 3)",
    )  # fmt: skip
    assert incident_view(quiet, healthy()).endings[-2:] == ("it became a hang", "over")
