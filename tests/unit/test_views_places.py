"""What the numbered screens are drawn from: incidents in detail, stacks, checkpoints, profiles, prices."""

import msgspec
import pytest

from tests.fakes.feed import PROFILES, checkpoint, crashed, empty, finished, given_up, healthy
from tests.fakes.screen_jobs import FILES, LADDER, FakeLaunch, dump, overview, troubled
from tests.unit.test_views_header import HOT, NAN, with_incidents
from trainwatch.core.model.attempt import EvidenceFile
from trainwatch.core.model.preset import Change
from trainwatch.core.model.story import Situation
from trainwatch.core.views.checkpoint_list import Verification, checkpoint_rows
from trainwatch.core.views.screens.checkpoint_details import overview_facts
from trainwatch.core.views.screens.confirmation import (
    kill_price,
    profile_price,
    resume_price,
    stop_price,
)
from trainwatch.core.views.screens.incident_card import evidence_pages
from trainwatch.core.views.screens.profiles import (
    profiles_view,
    switch_differences,
)
from trainwatch.core.views.timeline import RANK, event_words, events, timeline_view
from trainwatch.tui.panes.timeline_pane import MARK_STYLES

pytestmark = pytest.mark.usefixtures("utc")


def test_looks_at_a_process_show_what_moved_and_other_files_follow() -> None:
    pages = list(evidence_pages(FILES))
    assert [page.title for page in pages][:2] == ["process 4202 · first look", "process 4202 · last look"]
    assert pages[0].verdict == "It was at the same place in both looks."
    moved = [page for page in pages if page.verdict == "It moved between the looks."]
    assert moved
    assert all(page.differs for page in moved)
    assert not any(page.verdict for page in pages if not page.title.startswith("process "))


def test_a_thread_that_only_changed_from_idle_to_active_did_not_move() -> None:
    texts = (dump(7), dump(7).replace("(idle)", "(active)"))
    files = [EvidenceFile(name=f"stacks-7-{number}.txt", text=text) for number, text in enumerate(texts, 1)]
    assert {page.verdict for page in evidence_pages(files)} == {"It was at the same place in both looks."}


def test_one_look_tells_nothing_of_a_move_and_a_cut_file_says_so() -> None:
    (page,) = evidence_pages([EvidenceFile(name="stacks-7-1.txt", text=dump(7), cut=True)])
    assert page.verdict == "One look only: whether it moved is unknown."
    assert page.cut


def test_a_verification_moves_the_resume_point_until_the_checkpoint_is_rewritten() -> None:
    newest, older = checkpoint(200, 20.0), checkpoint(100, 10.0)
    bad = msgspec.structs.replace(newest, verdict="nonfinite", reason="12 values are NaN")
    verifications = {newest.path: Verification(checkpoint=bad, deep=True, wall=newest.mtime + 60)}
    rows = checkpoint_rows((newest, older), verifications, newest.mtime + 120)
    assert [(r.verdict, r.resume) for r in rows] == [("nonfinite", False), ("complete", True)]
    assert rows[0].verified.startswith("every byte read")
    anew = msgspec.structs.replace(newest, mtime=newest.mtime + 90)
    rows = checkpoint_rows((anew, older), verifications, newest.mtime + 120)
    assert [(r.verdict, r.resume) for r in rows] == [("complete", True), ("complete", False)]
    assert rows[0].verified == ""


def test_checkpoint_view_shows_contents() -> None:
    compiled = {f.label: f for f in overview_facts(overview(checkpoint(1, 1.0), compiled=True))}
    assert compiled["note"].style == "warning"


def test_the_ladder_shows_which_profile_runs_and_which_is_next() -> None:
    view = profiles_view(troubled(), PROFILES, LADDER)
    assert [(r.name, r.now, r.next) for r in view.rungs] == [
        ("conservative", False, True), ("balanced", True, False), ("aggressive", False, False),
    ]  # fmt: skip


def test_before_the_first_launch_no_profile_is_in_use() -> None:
    view = profiles_view(empty(), PROFILES, LADDER)
    assert not any(r.now for r in view.rungs)
    assert view.why == ("Not launched yet.",)


@pytest.mark.parametrize(
    ("now", "over"), [(healthy(), False), (crashed(), False), (finished(), True), (given_up(), True)]
)
def test_the_profile_of_a_run_that_is_over_is_its_last_one_and_not_that_of_now(now: Situation, *, over: bool) -> None:
    view = profiles_view(now, PROFILES, LADDER)
    assert view.over is over
    assert any(rung.now for rung in view.rungs)


def test_an_incident_of_level_danger_is_red_in_the_timeline_as_elsewhere() -> None:
    now = healthy()
    marks = timeline_view(with_incidents(now, NAN, HOT)).marks
    kinds = {mark.text: mark.kind for mark in marks}
    assert (kinds[NAN.reason], kinds[HOT.reason]) == ("incident", "danger")
    assert (MARK_STYLES["incident"], MARK_STYLES["danger"]) == ("warning", "danger")
    assert RANK["incident"] < RANK["danger"], "in one column the worse one is drawn"


def test_a_profile_switch_is_compared_with_the_running_values_not_the_config() -> None:
    running = [Change(where="config", key="batch", before=4, after=1, why="CUDA out of memory"),
               Change(where="flag", key="--resume", before=None, after="/old", why="go on from old", of="resume")]  # fmt: skip
    wanted = [Change(where="config", key="workers", before=0, after=2, why="profile x")]
    told = [(d.key, d.before, d.after) for d in switch_differences(running, wanted)]
    assert told == [("batch", "1", "4"), ("workers", "0", "2")]
    assert switch_differences(running, running) == ()
    assert FakeLaunch().changes(None) == ()


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


def test_selected_event_moves_in_time_order() -> None:
    view = timeline_view(healthy())
    walked = events(view)
    assert [m.t for m in walked] == sorted(m.t for m in walked)
    crash = next(m for m in walked if m.kind == "crash")
    assert event_words(view, crash).startswith("00:57:48 · crash · exit code 1")
