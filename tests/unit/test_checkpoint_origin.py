"""Whether a run wrote a checkpoint is told by what stood in the folder before, and by more than one time."""

import msgspec
import pytest

from tests.builders import World, judge
from tests.unit.test_judge_recovery import crash, running
from tests.unit.test_judge_resume_listing import resumed
from trainwatch.core.judge.recovery.takeover import from_story
from trainwatch.core.judge.resume.checkpoint_index import CheckpointIndex, with_event
from trainwatch.core.judge.resume.resume_point import left_behind, newest_verified
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.checkpoint import EntryState, FolderList, Made, origin_of
from trainwatch.core.model.decision import CopyAside, GiveUp, NotifyPeople, Record
from trainwatch.core.model.fact import CheckpointKnown
from trainwatch.core.model.observation import CheckpointEvent
from trainwatch.core.model.preset import ResumeSupport
from trainwatch.core.model.settings import Restart, Settings
from trainwatch.core.model.story import RunStory
from trainwatch.core.model.story_fold import apply

BEGUN = 1000.0
LAST = EntryState(size_bytes=100, mtime_ns=5_500_000_001, files=1, inode=7, changed_ns=6, born_ns=5)
LISTED = FolderList(entries={"last.pt": LAST}, before_launch=True)


def with_(**fields: int | None) -> EntryState:
    return msgspec.structs.replace(LAST, **fields)


@pytest.mark.parametrize(
    ("name", "now", "made"),
    [
        ("last.pt", LAST, "before"),
        ("last.pt", with_(changed_ns=9), "unclear"),
        ("last.pt", with_(size_bytes=101, changed_ns=9), "since"),
        ("last.pt", with_(mtime_ns=0, changed_ns=9), "since"),
        ("last.pt", with_(inode=8, mtime_ns=0, changed_ns=9, born_ns=9), "since"),
        ("last.pt", with_(inode=8, changed_ns=9, born_ns=9), "unclear"),
        ("last.pt", with_(inode=8, changed_ns=9, born_ns=None), "unclear"),
        ("old.pt", with_(changed_ns=9), "before"),
        ("old.pt", with_(changed_ns=9, born_ns=9), "unclear"),
        ("copy.pt", with_(inode=8, changed_ns=9, born_ns=9), "unclear"),
        ("step-9.pt", with_(inode=8, mtime_ns=1, changed_ns=9, born_ns=9), "since"),
    ],
    ids=[
        "untouched",
        "other rights, or written in place and given its time",
        "longer",
        "given another time",
        "replaced",
        "replaced by a copy of itself",
        "on a disk that numbers its files anew",
        "renamed",
        "another file with the inode of a deleted one",
        "a copy with the time of its original",
        "new and older than the run",
    ],
)
def test_a_list_of_the_folder_tells_what_was_written_since(name: str, now: EntryState, made: Made) -> None:
    assert LISTED.made(name, now) == made


def test_without_a_list_birth_tells_it_and_a_change_alone_does_not() -> None:
    assert origin_of(BEGUN, mtime=None) == "run"
    assert origin_of(BEGUN, mtime=1000.0) == "run"
    assert origin_of(BEGUN, mtime=5.0, changed=1001.0, born=1001.0) == "run"
    assert origin_of(BEGUN, mtime=5.0, changed=1001.0, born=5.0) == "unknown"
    assert origin_of(BEGUN, mtime=5.0, changed=1001.0) == "unknown"
    assert origin_of(BEGUN, mtime=5.0, changed=999.0, born=5.0) == "earlier"
    assert origin_of(BEGUN, mtime=5.0) == "earlier"


def saved(step: int, t: float, **fields: object) -> CheckpointEvent:
    """A save of a trainer that gives its files the time 5."""
    told: dict[str, object] = {"mtime": 5.0, "changed": BEGUN + t, "made": "since", "absent_t": t - 0.5, **fields}
    return CheckpointEvent(
        t=t + 1.0, path=f"out/step-{step}", event="complete", step=step, size_bytes=1e6, **told  # type: ignore[arg-type]
    )  # fmt: skip


def index(*events: CheckpointEvent) -> CheckpointIndex:
    known = CheckpointIndex()
    for each in events:
        known = with_event(known, each, position=None, created_wall=BEGUN)
    return known


def path_of(index: CheckpointIndex, before_t: float | None = None) -> str | None:
    found = newest_verified(index, before_t=before_t)
    return None if found is None else found.path


@pytest.mark.parametrize(
    ("step", "position", "chosen"),
    [(90, 60, "out/step-50"), (60, 60, "out/step-60"), (40, 60, "out/step-50"), (60, None, "out/step-50")],
    ids=["of a longer training", "where the run is", "older than its last save", "not known where it is"],
)
def test_a_checkpoint_that_came_with_an_old_time_does_not_replace_saves_with_the_present_time(
    step: int, position: int | None, chosen: str
) -> None:
    own = saved(50, 50.0, mtime=BEGUN + 50.0)
    came = with_event(index(own), saved(step, 60.0), position=position, created_wall=BEGUN)
    assert path_of(came) == chosen


@pytest.mark.parametrize("set_back", [{"changed": 5.0}, {"mtime": BEGUN + 2.0, "changed": BEGUN + 2.0}])
def test_a_save_of_a_clock_that_was_set_back_replaces_those_with_the_right_time(set_back: dict[str, float]) -> None:
    own = saved(50, 50.0, mtime=BEGUN + 50.0)
    assert path_of(index(own, saved(60, 60.0, **set_back))) == "out/step-60"


def test_a_save_without_a_step_that_came_with_an_old_time_is_left_out_beside_one_without_a_step() -> None:
    own = msgspec.structs.replace(saved(50, 50.0, mtime=BEGUN + 50.0), step=None)
    came = with_event(index(own), saved(60, 60.0), position=60, created_wall=BEGUN)
    assert path_of(came) == "out/step-50"


@pytest.mark.parametrize("changed", [None, 3.0], ids=["not known", "of a clock of its own"])
def test_saves_of_a_clock_that_is_behind_are_dated_by_when_they_were_seen(changed: float | None) -> None:
    known = index(saved(10, 30.0, mtime=4.0, changed=changed), saved(20, 60.0, mtime=5.0, changed=changed))
    assert [k.t for k in known.known] == [31.0, 61.0]
    assert path_of(known) == "out/step-20"
    assert path_of(known, before_t=50.0) == "out/step-10"


def test_a_save_after_the_nan_is_not_gone_back_to_though_its_time_is_before_it() -> None:
    known = index(saved(10, 30.0), saved(20, 60.0))
    assert path_of(known, before_t=50.0) == "out/step-10"
    set_back = saved(20, 60.0, mtime=BEGUN + 20.0)
    assert path_of(index(saved(10, 30.0), set_back), before_t=50.0) == "out/step-10"


def test_a_copy_of_the_best_state_is_no_newer_than_the_last_one() -> None:
    last = saved(20, 60.0, mtime=BEGUN + 60.0)
    best = msgspec.structs.replace(saved(10, 70.0, mtime=BEGUN + 30.0), path="out/best")
    assert path_of(index(last, best)) == "out/step-20"


def test_a_save_that_replaces_one_of_the_same_time_is_a_new_save() -> None:
    bad = saved(10, 30.0)
    known = index(msgspec.structs.replace(bad, verdict="torn"), saved(10, 60.0))
    assert path_of(known) == "out/step-10"
    again = index(bad, saved(10, 60.0))
    assert [k.t for k in again.known] == [60.0]


def test_a_branch_that_was_left_takes_no_save_with_it_that_came_after() -> None:
    known = msgspec.structs.replace(index(saved(10, 30.0, mtime=BEGUN + 30.0)), went_back=(BEGUN + 30.0, 50.0, "left"))
    for mtime in (BEGUN + 40.0, 5.0):
        later = with_event(known, saved(20, 60.0, mtime=mtime), position=20, created_wall=BEGUN)
        assert path_of(later) == "out/step-20"
    gone = saved(20, 40.0, mtime=BEGUN + 40.0, absent_t=None)
    assert path_of(with_event(known, gone, position=None, created_wall=BEGUN)) == "out/step-10"


def mind(**restart: object) -> Judge:
    return judge(Settings(restart=Restart(**restart)), created_wall=BEGUN)  # type: ignore[arg-type]


UNSURE: dict[str, object] = {"made": "unclear", "absent_t": None}


def crashed(event: CheckpointEvent, mind: Judge) -> World:
    world = running(mind)
    world.see(msgspec.structs.replace(event, t=world.t))
    return crash(world).wait(60.0)


def test_a_run_resumes_from_its_save_that_has_a_time_before_the_run() -> None:
    assert resumed(crashed(saved(40, 40.0), mind())) == ["out/step-40"]


def test_a_run_is_held_over_what_may_be_its_own_save() -> None:
    world = crashed(saved(40, 40.0, **UNSURE), mind())
    assert (resumed(world), world.word, world.of(GiveUp)) == ([], "stopped", [])
    body = world.of(NotifyPeople)[-1].body
    assert "resume --from CHECKPOINT" in body
    assert "--fresh" in body


def test_what_may_be_its_own_save_is_copied_aside_if_the_settings_say_so() -> None:
    world = crashed(saved(40, 40.0, **UNSURE), mind(if_not_understood="copy_and_restart"))
    assert world.of(CopyAside)[-1].paths == ("out/step-40",)
    assert resumed(world) == [None]


def test_a_run_begins_anew_beside_what_stood_there_before_its_launch() -> None:
    world = crashed(saved(40, 40.0, made="before", mtime=BEGUN + 50.0, absent_t=None), mind())
    assert resumed(world) == [None]


def test_what_may_be_its_own_save_is_no_resume_point_and_is_not_left_behind() -> None:
    known = index(saved(40, 40.0, **UNSURE))
    assert path_of(known) is None
    assert left_behind(known, None, ResumeSupport()) == ()


@pytest.mark.parametrize(
    ("fields", "own", "unsure"), [({}, True, False), (UNSURE, False, True)], ids=["of the run", "unknown"]
)
def test_the_journal_keeps_who_wrote_it(fields: dict[str, object], own: bool, unsure: bool) -> None:
    world = running(mind())
    world.see(msgspec.structs.replace(saved(40, 40.0, **fields), t=world.t))
    story = RunStory(wall0=BEGUN, t=world.t)
    for seq, fact in enumerate(world.of(CheckpointKnown), 1):
        story = apply(story, Record(seq=seq, t=world.t, wall=BEGUN + world.t, fact=fact))
    (known,) = from_story(story, None, None).saved.checkpoints.known
    assert (known.own, known.unsure) == (own, unsure)
    assert story.written_t(story.checkpoints[0]) == (40.0 if own else 5.0 - BEGUN)
    gone = CheckpointKnown(checkpoint=story.checkpoints[0], removed=True)
    assert apply(story, Record(seq=99, t=world.t, wall=BEGUN, fact=gone)).origins == {}


def test_what_is_not_understood_keeps_what_was_said_of_it_when_it_is_seen_again() -> None:
    event = saved(40, 40.0, verdict="torn", understood=False)
    known = index(event)
    marked = msgspec.structs.replace(known, known=(msgspec.structs.replace(known.known[0], is_state=True),))
    (again,) = with_event(marked, event, position=None, created_wall=BEGUN).known
    assert again.is_state
