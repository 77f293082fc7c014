"""What the numbered screens are drawn from: incidents in detail, stacks, checkpoints, profiles, prices."""

import pytest

from tests.fakes.feed import checkpoint, finished, healthy
from tests.fakes.screen_jobs import dump, overview
from tests.unit.test_views_header import HOT, NAN, with_incidents
from trainwatch.core.model.run import EvidenceFile
from trainwatch.core.views.incidents import evidence_pages
from trainwatch.core.views.screens.checkpoint_details import overview_facts
from trainwatch.core.views.screens.confirmation import kill_price, profile_price, resume_price, stop_price
from trainwatch.core.views.timeline import RANK, timeline_view
from trainwatch.tui.panes.timeline_pane import MARK_STYLES

pytestmark = pytest.mark.usefixtures("utc")


def test_a_thread_that_only_changed_from_idle_to_active_did_not_move() -> None:
    texts = (dump(7), dump(7).replace("(idle)", "(active)"))
    files = [EvidenceFile(name=f"stacks-7-{number}.txt", text=text) for number, text in enumerate(texts, 1)]
    assert {page.verdict for page in evidence_pages(files)} == {"It was at the same place in both looks."}


def test_one_look_tells_nothing_of_a_move_and_a_cut_file_says_so() -> None:
    (page,) = evidence_pages([EvidenceFile(name="stacks-7-1.txt", text=dump(7), cut=True)])
    assert page.verdict == "One look only: whether it moved is unknown."
    assert page.cut


def test_checkpoint_view_shows_contents() -> None:
    compiled = {f.label: f for f in overview_facts(overview(checkpoint(1, 1.0), compiled=True))}
    assert compiled["note"].style == "warning"


def test_an_incident_of_level_danger_is_red_in_the_timeline_as_elsewhere() -> None:
    now = healthy()
    marks = timeline_view(with_incidents(now, NAN, HOT)).marks
    kinds = {mark.text: mark.kind for mark in marks}
    assert (kinds[NAN.reason], kinds[HOT.reason]) == ("incident", "danger")
    assert (MARK_STYLES["incident"], MARK_STYLES["danger"]) == ("warning", "danger")
    assert RANK["incident"] < RANK["danger"], "in one column the worse one is drawn"


def test_yes_must_be_typed_only_if_steps_are_lost() -> None:
    now = healthy()
    assert kill_price(now).typed
    assert stop_price(now).typed
    assert profile_price(now, "x", at_once=True).typed
    assert not profile_price(now, "x", at_once=False).typed
    over = finished()
    newest = over.story.checkpoints[-1]
    assert not resume_price(over, newest.path).typed, "going on from the newest gives nothing away"
    assert resume_price(over, over.story.checkpoints[0].path).typed
    assert resume_price(over, None).typed
