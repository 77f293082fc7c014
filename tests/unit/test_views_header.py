"""The sentence of the head: it says all that is wrong, and of values it says those of now."""

import msgspec
import pytest

from tests.fakes.feed import (
    WALL0,
    StoryTeller,
    crashed,
    finished,
    given_up,
    healthy,
    hung,
    in_state,
    readings,
    situation,
    started,
    training,
    unwatched,
)  # fmt: skip
from trainwatch.core.model.fact import AttemptEnded, Fact, IncidentOpened
from trainwatch.core.model.preset import ResumeWay
from trainwatch.core.model.progress import Outlook, Why
from trainwatch.core.model.run import Incident
from trainwatch.core.model.story import Situation, Trouble
from trainwatch.core.views import quantity
from trainwatch.core.views.checkpoint_list import Verification, checkpoint_rows, checkpoint_views, how_many
from trainwatch.core.views.dashboard import header_view
from trainwatch.core.views.screens.checkpoint_details import checkpoint_facts, count_text
from trainwatch.core.views.state.concerns import concerns
from trainwatch.core.views.state.run_progress import usually
from trainwatch.core.views.state.verdict import Verdict, verdict
from trainwatch.tui.dialogs.choose import choose_checkpoint
from trainwatch.tui.panes.head import sentence_rows, verdict_rows

replace = msgspec.structs.replace


pytestmark = pytest.mark.usefixtures("utc")


def stepped(age_s: float, *, usual_s: float = 2.5, pause_s: float = 0.0, phase: str = "train") -> Situation:
    """A training whose newest step is this old."""
    now = healthy()
    story = replace(now.story, progress=replace(now.story.progress, phase=phase))
    return replace(now, story=story, step_t=now.now_t - age_s, outlook=Outlook(usual_s=usual_s, pause_s=pause_s))


def incident(number: int, kind: str, class_: str, reason: str, **more: object) -> Incident:
    t = healthy().now_t - 600
    fields = {"id": number, "t": t, "wall": WALL0 + t, "attempt": 2, "kind": kind, "class": class_, "reason": reason}
    return msgspec.convert(fields | more, Incident)


NAN = incident(7, "loss", "nan", "the loss is not a number at step 100", severity="warning", step=100)
NAN_CRASH = incident(8, "crash", "nan_loss", "checkpoint-110 holds NaN", title="loss is NaN", step=110)
HOT = incident(9, "health", "gpu0.temp", "GPU 0 temperature 86 °C (danger)", severity="danger")


def told(now: Situation, *facts: Fact) -> Situation:
    teller = StoryTeller()
    teller.story, teller._seq = now.story, 30_000
    return replace(now, story=teller.tell(now.story.t, *facts).story)


def with_incidents(now: Situation, *incidents: Incident) -> Situation:
    return told(now, *(IncidentOpened(incident=i) for i in incidents))


def said(now: Situation) -> Verdict:
    return verdict(now)


@pytest.mark.parametrize(
    ("usual_s", "step_s", "words"),
    [
        (2.5, 2.5, "usually 2.50 s/step"),
        (0.6, 0.2, "usually 5.00 steps/s"),
        (0.6, None, "usually 1.67 steps/s"),
        (None, 0.2, "usually 5.00 steps/s"),
        (40.0, 0.8, "usually one every 40.0 s"),
        (None, None, ""),
    ],
)
def test_what_is_usual_is_told_in_the_unit_of_the_pace(usual_s: float | None, step_s: float | None, words: str) -> None:
    assert usually(usual_s, step_s) == words


def test_a_pause_is_no_warning_while_it_is_as_long_as_earlier_ones_and_of_unknown_length_unknown() -> None:
    assert said(stepped(200.0, pause_s=180.0)).level == "safe"
    assert said(stepped(240.0, pause_s=180.0)).level == "warning"
    found = said(stepped(200.0, phase="eval"))
    assert (found.level, found.clauses[0]) == ("unknown", "Last step 3 min ago, usually 2.50 s/step")
    assert said(stepped(200.0, phase="eval", pause_s=190.0)).level == "safe"


def test_a_step_of_an_earlier_attempt_is_none_of_this_one() -> None:
    now = stepped(0.0)
    assert now.story.attempt is not None
    assert "last step" not in said(replace(now, step_t=now.story.attempt.t - 5)).sentence.lower()


def test_an_acknowledged_incident_is_a_warning_and_not_green() -> None:
    now = with_incidents(healthy(), replace(HOT, acknowledged=True))
    assert said(now).level == "warning"
    assert said(now).clauses[0].endswith(", acknowledged")


def test_two_incidents_about_the_same_nan_are_one_concern() -> None:
    assert [c.text for c in concerns(with_incidents(healthy(), NAN, NAN_CRASH))] == ["Loss is NaN since step 100"]
    assert said(with_incidents(in_state("backing_off"), NAN, NAN_CRASH)).sentence.lower().count("nan") == 1


def test_nan_of_an_average_is_a_warning_and_counts_from_its_first_sign_once_it_is_known() -> None:
    average = replace(NAN, id=6, t=NAN.t - 9, step=92, reason="the average loss is not a number", average=True)
    found = said(with_incidents(healthy(), average))
    assert found.level == "warning"
    assert found.clauses[0].startswith("The average loss is not a number")
    assert "Loss is NaN" not in found.sentence
    assert "Loss is NaN since step 92" in said(with_incidents(healthy(), average, NAN)).sentence
    over = replace(average, open=False, closed_t=NAN.t - 5, ending="the loss is finite again")
    assert "Loss is NaN since step 100" in said(with_incidents(healthy(), over, NAN)).sentence


def test_a_finished_run_carries_what_was_wrong_at_its_end_and_nothing_that_was_cured() -> None:
    closed = replace(NAN, open=False, closed_t=7.4 * 3600, ended_by="attempt")
    found = said(with_incidents(finished(), closed))
    assert found.level == "danger"
    assert found.clauses[:2] == ("Finished 06:44", "Loss is NaN since step 100 ([e] what to do)")
    well = replace(closed, ended_by="", ending="the loss is a number again")
    assert said(with_incidents(finished(), well)).level == "safe"
    assert said(with_incidents(finished(), HOT)).level == "danger"
    cured = replace(NAN, attempt=1, open=False, closed_t=100.0, ended_by="attempt")
    assert said(with_incidents(finished(), cured)).level == "safe", "by a restart"


def test_what_a_card_tells_in_full_is_cut_in_the_head() -> None:
    long = incident(8, "checkpoint", "other_trainer", "another trainer writes there: " + "a long command line " * 9)
    first, state = said(with_incidents(healthy(), long)).clauses[:2]
    assert (first[-19:], len(first) < 110, state) == (" … ([e] what to do)", True, "Training")


def test_a_late_step_counts_down_if_nothing_shows_life() -> None:
    now = stepped(30.0)
    dead = replace(now, outlook=replace(now.outlook, hang_t=now.now_t + 110))
    clause = "Last step 30 s ago, usually 2.50 s/step; the trainer will be ended and restarted within 1:50 ([w] wait)"
    assert said(dead).clauses[0] == clause
    swift = stepped(8.0, usual_s=0.2)
    assert said(swift).level == "safe"
    assert said(replace(swift, outlook=replace(swift.outlook, hang_t=swift.now_t + 3))).level == "warning"


def test_nothing_far_from_usual_is_shown_as_fine() -> None:
    now, idle = healthy(8), {"util_pct": 0.0, "power_w": 90.0}
    assert now.gpu is not None
    busy = [replace(g, util_pct=95.0, power_w=600.0, own_mem_bytes=7e10) for g in now.gpu.gpus]
    gpus = [replace(g, **idle) if g.index == 6 else g for g in busy]
    found = verdict(replace(now, gpu=replace(now.gpu, gpus=tuple(gpus))))
    assert found.clauses[0] == "GPU 6 does not work: 0 % beside 7 at 70 % or more"
    high = replace(now.story.progress, loss=0.9)
    found = verdict(replace(now, story=replace(now.story, progress=high, loss_floor=0.1), progress=high))
    assert (found.level, found.clauses[0]) == ("warning", "Loss 0.900 is 9.0 times its lowest (0.100)")
    start = replace(now, story=replace(now.story, state="starting", state_t=now.now_t - 300, incidents=()))
    assert (verdict(start).level, verdict(start).clauses[2]) == ("unknown", "no step seen for 5 min")
    assert "its trainer lives (pid 4202)" in verdict(unwatched()).sentence


@pytest.mark.parametrize(("width", "most"), [(80, 4), (40, 7)])
def test_what_is_wrong_is_never_cut(width: int, most: int) -> None:
    long = incident(
        14, "health", "gpu5.lost", "GPU 5 lost: it no longer answers on the bus; reboot to get it back " * 2
    )
    for now in (
        hung(),
        crashed(),
        given_up(),
        with_incidents(healthy(), replace(long, severity="danger")),
        unwatched(),
    ):
        found = verdict(now)
        rows = sentence_rows(header_view(now), width)
        text = " ".join(rows)
        assert len(rows) <= most
        for clause in found.clauses[: found.vital]:
            assert clause in text, (clause, rows)


def test_restarts_are_told_with_the_last_recovery_and_are_shortened_before_they_are_left_out() -> None:
    now, t = healthy(), healthy().story.t
    assert said(now).aside == "1 restart, recovered 00:58, 180 steps redone"
    end = {"open": False, "closed_t": t - 60, "ending": "given up"}
    over = IncidentOpened(incident=incident(3, "crash", "cuda_oom", "CUDA out of memory", **end))
    resumed = told(now, over, AttemptEnded(attempt=2, how="crashed", code=1, last_step=7300), *started(3, 7230))
    resumed = told(resumed, *training(3, 7231))
    at = quantity.clock(WALL0 + t, resumed.now_wall)
    assert said(resumed).aside == f"2 restarts, the last at {at}, 250 steps redone", "nothing recovered at the give-up"
    for width, shown in ((24, "2 restarts"), (44, f"2 restarts, the last at {at}")):
        (row,) = verdict_rows(header_view(resumed).verdict, width, 1, 1)
        assert row.endswith(f" · {shown}")


def test_a_hang_names_what_follows_and_when() -> None:
    now = hung()
    assert " · will be ended and restarted from step 6,148 in 0:54" in said(now).sentence
    assert now.story.run is not None
    never = replace(now, story=replace(now.story, run=replace(now.story.run, resume=ResumeWay(will="no"))))
    assert " · will be ended in 0:54" in said(never).sentence
    assert not any("restarts left" in fact for fact in header_view(never).facts)
    assert " · you are told in 0:54" in said(replace(hung(), story=replace(hung().story, act="notify"))).sentence


def test_what_trainwatch_itself_cannot_do_comes_first() -> None:
    trouble = Trouble(kind="journal", level="danger", text="the journal cannot be written: the disk is full")
    now = replace(with_incidents(healthy(), NAN), troubles=(trouble,))
    assert said(now).clauses[0] == "The journal cannot be written: the disk is full (+1 more)"


@pytest.mark.parametrize(
    ("change", "level", "part"),
    [
        ({"trouble": "lost: it no longer answers on the bus", "own": True}, "danger", "GPU 0 lost"),
        ({"trouble": "no permission to read this GPU", "own": None}, "warning", "GPU 0 no permission"),
        ({"trouble": "lost: it no longer answers on the bus", "own": False}, "safe", "done"),
        ({"throttle": ("thermal (hardware)",)}, "warning", "GPU 0 is slowed down by thermal (hardware)"),
        ({"throttle": ("power brake",), "own": False}, "warning", "slowed down by power brake"),
        ({"throttle": ("power cap", "clock setting")}, "safe", "done"),
    ],
)
def test_gpus_that_are_lost_or_slowed_by_a_fault_are_told(change: dict[str, object], level: str, part: str) -> None:
    now = healthy()
    sample = readings(now.now_t)
    gpu = replace(sample.gpus[0], **change)
    seen = replace(now, gpu=replace(sample, gpus=(gpu,)))
    assert said(seen).level == level
    assert part in said(seen).sentence
    old = replace(seen, gpu=replace(sample, gpus=(gpu,), t=now.now_t - 120))
    assert said(old).level == "safe"


def test_a_paused_run_with_an_open_trouble_names_both() -> None:
    found = said(with_incidents(in_state("paused"), HOT))
    assert found.clauses[0].startswith("Paused")
    assert found.level == "danger"
    assert (found.first_level, found.worst) == ("warning", found.clauses[1]), "the pause is not red for what is"


def test_a_sentence_about_a_crash_does_not_repeat_it() -> None:
    base = situation(healthy().story, healthy().now_t)
    crash = incident(13, "crash", "cuda_oom", "exit code 1", title="CUDA out of memory")
    now = with_incidents(replace(base, story=replace(base.story, state="backing_off", until_t=base.now_t + 9)), crash)
    assert said(now).sentence.count("CUDA out of memory") == 1


def test_before_the_first_look_nothing_is_said_about_the_run() -> None:
    assert said(Situation()).clauses == ("Reading …",)
    assert said(replace(Situation(), now_wall=1.0)).clauses[0].startswith("Not started yet")


def test_an_attempt_that_is_launched_has_the_next_number_and_why() -> None:
    now = crashed()
    story = replace(now.story, state="starting", state_t=now.now_t)
    found = said(replace(now, story=story))
    assert found.clauses[0] == "Starting attempt 2"
    assert found.clauses[1].startswith("crashed 00:57: CUDA out of memory")
    assert found.level == "warning"


def test_a_held_restart_says_how_much_is_free_now() -> None:
    """And only that: the head did not say that the disk is nearly full, too."""
    now = with_incidents(healthy(), incident(3, "disk", "disk_free", "disk free"))
    reason, why = "the disk is full; it continues when 5 GB are free", Why("disk_full")
    story = replace(now.story, state="cleaning", state_reason=reason, state_why=why)
    assert said(replace(now, story=story)).clauses == (
        "Held: the disk is full; it continues when 5 GB are free", "now 212 GB are free",
    )  # fmt: skip


def test_a_checkpoint_of_after_the_nan_is_not_offered_and_no_safe_row_of_the_list() -> None:
    now = with_incidents(healthy(), replace(NAN, step=5_000))
    views = checkpoint_views(now)
    assert views[0].after_nan
    (offered,) = [view for view in views if view.resume]
    assert offered == next(view for view in views if not view.after_nan and view.verdict == "complete")
    found = checkpoint_rows(tuple(reversed(now.story.checkpoints)), {}, now.now_wall, now.story)
    assert [row.path for row in found if row.resume] == [offered.path]
    dialog = choose_checkpoint(views)
    assert dialog.chosen == offered.path
    assert all("saved after the loss became NaN" in text for path, text in dialog.rows if path == views[0].path)
    late = [row for row in found if row.after_nan]
    assert late
    assert all(row.level == "warning" and row.word == "loss was NaN" for row in late)
    assert all(checkpoint_facts(row)[0].text.startswith("saved after the loss became NaN; as a file") for row in late)
    assert count_text(found).endswith(f", {len(late)} of them saved after the loss became NaN")
    assert all(row.judged.step is None or row.judged.step < 5_000 for row in found if not row.after_nan)


def test_checkpoints_are_counted_with_those_that_are_damaged_or_that_nobody_can_read() -> None:
    assert how_many(["opaque"] * 13) == "13 unverified"
    assert how_many(["complete", "opaque", "torn"]) == "1 of 3 complete, 1 unverified"
    assert how_many(["complete"] * 5, "checkpoint") == "5 checkpoints complete"
    assert how_many(["torn"], "checkpoint") == "0 of 1 checkpoint complete"
    now = finished()
    bad = replace(now.story.checkpoints[-1], verdict="nonfinite")
    story = replace(now.story, checkpoints=(*now.story.checkpoints[:-1], bad))
    count = len(story.checkpoints)
    assert f"{count - 1} of {count} checkpoints complete" in said(replace(now, story=story)).sentence


def test_the_screen_knows_the_damage_that_the_run_knows() -> None:
    """The list of the folder has the quick verdict only: "6 complete", where the command line said "NaN or Inf"."""
    now = healthy()
    listed = now.story.checkpoints
    known = (replace(listed[0], verdict="nonfinite", reason="NaN in w"), *listed[1:])
    story = replace(now.story, checkpoints=known)
    row = checkpoint_rows(listed, {}, now.now_wall, story)[0]
    assert (row.verdict, row.word, row.level) == ("nonfinite", "NaN or Inf", "danger")
    again = replace(listed[0], mtime=listed[0].mtime + 1)
    assert checkpoint_rows((again,), {}, now.now_wall, story)[0].verdict == "complete"
    deep = {again.path: Verification(checkpoint=listed[0], deep=True, wall=0.0)}
    assert checkpoint_rows((listed[0],), deep, now.now_wall, story)[0].verdict == "complete"
