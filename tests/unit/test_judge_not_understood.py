"""State that is not understood: told at the first save, resumed from if the command takes it, else held; never "none"."""

import pytest

from tests.builders import World, judge
from tests.unit.test_judge_branches import ANYWHERE, GENERIC, HF, NOWHERE, at_step, notes, resumed, run_of, saved
from tests.unit.test_judge_recovery import crash, quick, running
from tests.unit.test_judge_takeover import from_journal, journal_of
from tests.unit.test_loss_divergence import now_of
from trainwatch.core.judge.run_states import Stopped
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model.checkpoint import Form, Verdict
from trainwatch.core.model.decision import CopyAside, GiveUp, NotifyPeople, StartAttempt
from trainwatch.core.model.fact import CheckpointKnown, CheckpointsSetAside
from trainwatch.core.model.observation import CheckpointEvent, Command
from trainwatch.core.model.preset import Preset, ResumeStyle, resume_support
from trainwatch.core.model.progress import Why
from trainwatch.core.views.run_summary import needs

UNKNOWN = "unknown format (binary): only its trainer can tell whether it is whole"


def unknown(
    world: World,
    name: str,
    *,
    size: float | None = 1e6,
    mtime: float | None = None,
    form: Form = "file",
    verdict: Verdict = "opaque",
) -> World:
    """The sensor reports an entry of an unknown make that no longer changes."""
    event = CheckpointEvent(
        t=world.t,
        path=f"out/{name}",
        event="created",
        size_bytes=size,
        mtime=world.t if mtime is None else mtime,
        form=form,
        verdict=verdict,
        reason=UNKNOWN,
        understood=False,
        unknown_make=True,
    )
    return world.see(event).wait(1.0)


def opaque(world: World, path: str) -> World:
    """The sensor reports a file of torch whose objects are not listed."""
    event = CheckpointEvent(
        t=world.t, path=path, event="complete", size_bytes=1e6, mtime=world.t, form="file", verdict="opaque",
        reason="calls __main__.State, which no known framework stores", understood=False,
    )  # fmt: skip
    return world.see(event).wait(1.0)


def torn(world: World, path: str, *, unfinished: bool = False, size: float = 1e6) -> World:
    """The sensor reports a folder that lacks a member by the rules of a layout: any, or the one written last."""
    event = CheckpointEvent(
        t=world.t, path=path, event="created", size_bytes=size, mtime=world.t, form="directory", verdict="torn",
        reason="optimizer.pt is missing: training cannot go on without it", understood=False, unfinished=unfinished,
    )  # fmt: skip
    return world.see(event).wait(1.0)


def is_held(world: World) -> bool:
    return isinstance(world.state.machine, Stopped) and len(world.of(StartAttempt)) == 1


def told(world: World) -> list[NotifyPeople]:
    return [n for n in world.of(NotifyPeople) if "not understood" in n.title]


@pytest.mark.parametrize("name", ["whatever.q7", "model.keras", "last.weights.h5", "state_0030"])
def test_a_run_whose_saves_are_of_an_unknown_make_is_held_and_does_not_begin_anew(name: str) -> None:
    world = crash(at_step(unknown(run_of(GENERIC, NOWHERE), name), 60))

    assert is_held(world)
    assert world.why == Why("not_understood", world.incidents[0].id)
    held = world.of(NotifyPeople)[-1]
    assert held.title.endswith("held: what is saved is not understood")
    assert name in held.body
    assert "`trainwatch resume --from" in held.body
    assert "--fresh`" in held.body
    assert "copy_and_restart" in held.body
    assert world.of(GiveUp) == []
    reply = world.judge.answer(world.state, Command(t=world.t, verb="resume"))
    assert not reply.ok
    assert f"{name} cannot be resumed from" in reply.message
    assert f"--from out/{name}" in reply.message


def test_five_folders_that_are_torn_while_the_trainer_goes_on_are_not_none() -> None:
    world = run_of(HF)
    for step in (60, 90, 120):
        world = at_step(torn(world, f"out/checkpoint-{step}", unfinished=True), step)

    known = [c.checkpoint for c in world.of(CheckpointKnown)]
    assert [(c.name, c.verdict, c.understood) for c in known[:2]] == [
        ("checkpoint-60", "torn", False),
        ("checkpoint-90", "torn", False),
    ]
    assert is_held(crash(world))


def test_a_folder_without_any_step_in_the_log_is_told_by_how_long_its_trainer_lived_on() -> None:
    def of(wait_s: float) -> World:
        world = World(judge(quick(), HF, resume_support=resume_support(HF, NOWHERE))).begin()
        return crash(torn(world, "out/checkpoint-60", unfinished=True).wait(wait_s))

    assert len(of(2.0).of(StartAttempt)) == 2
    assert is_held(of(60.0))


def test_it_is_told_at_the_first_save_that_it_is_not_understood() -> None:
    world = unknown(run_of(GENERIC, NOWHERE), "whatever.q7")
    assert [c.checkpoint.name for c in world.of(CheckpointKnown)] == ["whatever.q7"]
    assert told(world) == []

    world = at_step(world, 60, steps=8)

    (notice,) = told(world)
    assert "whatever.q7 is not understood" in notice.body
    assert "held" in notice.body
    world = at_step(unknown(world, "whatever.q7"), 90)
    assert len(told(world)) == 1


def test_nothing_is_told_if_a_checkpoint_that_is_understood_came_with_it() -> None:
    world = unknown(run_of(GENERIC, ANYWHERE), "slots.q7")
    world = at_step(saved(world, "out/model-20.safetensors", 20, form="file"), 60)

    assert told(world) == []
    assert resumed(crash(world)) == "out/model-20.safetensors"


def test_an_opaque_checkpoint_is_resumed_from_and_the_trainer_reads_it() -> None:
    world = at_step(opaque(run_of(GENERIC, ANYWHERE), "out/all.pt"), 60)
    assert world.of(CheckpointKnown)[0].checkpoint.understood is False
    world.answer("verify_checkpoint", ok=False, verdict="opaque", reason="calls __main__.State")

    world = crash(world)

    assert resumed(world) == "out/all.pt"
    assert "all.pt cannot be verified (calls __main__.State): the trainer is given it" in notes(world)


@pytest.mark.parametrize("odd", ["it was being written", "it is much smaller", "two names for a state"])
def test_one_that_may_not_be_whole_or_the_right_one_is_held(odd: str) -> None:
    support = resume_support(GENERIC, ANYWHERE)
    world = running(judge(quick(), GENERIC, resume_support=support, created_wall=1000.0))
    world = at_step(unknown(world, "params.q7", mtime=1000.0 + world.t - 1.0), 60)
    match odd:
        case "it was being written":
            world = unknown(world, "params.q7", mtime=1000.0 + world.t - 0.1)
        case "it is much smaller":
            world = unknown(world, "params.q7", size=1e5, mtime=1000.0 + world.t - 1.0)
        case "two names for a state":
            world = unknown(world, "moments_state.q7", mtime=1000.0 + world.t - 1.0)
            world = unknown(world, "moments_state.q7", mtime=1000.0 + world.t - 1.0)

    assert is_held(crash(world))


@pytest.mark.parametrize("again", [False, True], ids=["never again", "at the start of every attempt"])
def test_what_was_written_before_the_first_step_alone_is_no_state(again: bool) -> None:
    world = World(judge(quick(), GENERIC, resume_support=resume_support(GENERIC, NOWHERE))).begin()
    world = crash(at_step(unknown(world, "pieces.q7").wait(60.0), 0))
    assert len(world.of(StartAttempt)) == 2

    second = unknown(world.wait(30.0), "pieces.q7").wait(10.0) if again else at_step(world, 30)
    world = crash(second).wait(20.0)

    assert told(world) == []
    assert len(world.of(StartAttempt)) == 3


@pytest.mark.parametrize("name", ["last.q7", "whatever.q7"])
def test_what_is_written_again_or_named_as_state_counts_whenever_it_came(name: str) -> None:
    world = World(judge(quick(), GENERIC, resume_support=resume_support(GENERIC, NOWHERE))).begin()
    world = unknown(world, name).wait(5.0)
    world = unknown(world, name)

    assert world.state.saved.checkpoints.known[0].is_state


def test_a_person_begins_anew_and_the_old_state_holds_no_later_restart() -> None:
    world = crash(at_step(unknown(run_of(GENERIC, NOWHERE), "whatever.q7"), 60))
    assert is_held(world)

    world = world.command("resume", fresh=True).wait(1.0)

    assert len(world.of(StartAttempt)) == 2
    assert world.of(CheckpointsSetAside)[-1].paths == ("out/whatever.q7",)
    world = crash(at_step(world, 10))
    assert len(world.of(StartAttempt)) == 3


def test_a_person_names_it_and_it_is_given_to_the_trainer() -> None:
    world = crash(at_step(torn(at_step(run_of(HF), 60), "out/checkpoint-60"), 90))
    assert is_held(world)
    world.answer("verify_checkpoint", ok=False, verdict="torn", reason="no optimizer", understood=False)

    world = world.command("resume", checkpoint="out/checkpoint-60").wait(1.0)

    assert resumed(world) == "out/checkpoint-60"
    assert [i.class_ for i in world.state.journal.incidents] == ["not_understood"]
    world = at_step(world, 71)
    assert "resume verified" in notes(world)
    assert world.state.journal.incidents == ()
    assert list(needs(now_of(world))) == []
    assert resumed(crash(world)) == "out/checkpoint-60"
    assert len(world.of(StartAttempt)) == 3


def test_it_is_copied_aside_before_the_run_begins_anew() -> None:
    settings = {"if_not_understood": "copy_and_restart"}
    world = at_step(unknown(run_of(GENERIC, NOWHERE, **settings), "whatever.q7"), 60)
    world.answer("copy_aside", ok=True, folder="/runs/out.kept/1")

    world = crash(world)

    (order,) = world.of(CopyAside)
    assert order.paths == ("out/whatever.q7",)
    assert len(world.of(StartAttempt)) == 2
    assert resumed(world) is None
    assert any("kept a copy of whatever.q7 as /runs/out.kept/1" in n.body for n in world.of(NotifyPeople))
    assert all(i.class_ != "not_understood" for i in world.state.journal.incidents)


def test_without_room_for_the_copies_it_is_held() -> None:
    settings = {"if_not_understood": "copy_and_restart"}
    world = at_step(unknown(run_of(GENERIC, NOWHERE, **settings), "whatever.q7"), 60)
    world.answer("copy_aside", ok=False, detail="the disk has 0.10 GB free")

    world = crash(world)

    assert is_held(world)
    assert "cannot be copied aside: the disk has 0.10 GB free" in world.of(NotifyPeople)[-1].body


def test_a_trainer_that_finds_its_checkpoints_by_itself_is_started() -> None:
    world = at_step(unknown(run_of(GENERIC, NOWHERE, if_not_told="go_on"), "whatever.q7"), 60)

    assert len(crash(world).of(StartAttempt)) == 2


@pytest.mark.parametrize(("by_itself", "starts"), [(True, 2), (False, 1)])
def test_a_trainer_known_to_find_its_checkpoint_is_started_whatever_else_it_saves(by_itself: bool, starts: int) -> None:
    style = ResumeStyle(args=("--resume", "{path}"), by_itself=by_itself)
    world = run_of(Preset(name="script", resume_file=style), NOWHERE)
    for step in (20, 40):
        world = unknown(unknown(at_step(world, step), f"model-{step}.keras"), "latest.weights.h5")

    assert len(crash(world).of(StartAttempt)) == starts


def test_a_new_supervisor_knows_it_from_the_journal() -> None:
    world = at_step(unknown(run_of(GENERIC, NOWHERE), "whatever.q7"), 60)

    again = from_journal(world)

    (known,) = again.state.saved.checkpoints.known
    assert (known.is_state, known.unknown_make, known.complete, known.bad) == (True, True, False, None)
    assert journal_of(world).checkpoints[0].understood is False
    snapshot = from_snapshot(to_snapshot(world.state))
    assert snapshot is not None
    assert snapshot.saved.checkpoints == world.state.saved.checkpoints


def test_after_two_starts_that_could_not_read_it_the_run_is_held() -> None:
    world = at_step(unknown(run_of(GENERIC, ANYWHERE), "last.q7"), 60)
    for _ in range(4):
        world.answer("verify_checkpoint", ok=False, verdict="opaque", reason=UNKNOWN)
    world = crash(world).wait(30.0)
    world = crash(world, "KeyError: 'w'\n").wait(700.0, every_s=5.0)
    world = crash(world, "KeyError: 'w'\n").wait(700.0, every_s=5.0)

    assert [s.resume_from for s in world.of(StartAttempt)] == [None, "out/last.q7", "out/last.q7"]
    assert isinstance(world.state.machine, Stopped)
    assert "last.q7: the trainer could not read it" in notes(world)


def test_a_series_without_a_telling_name_is_state_if_the_log_shows_no_step() -> None:
    world = World(judge(quick(), GENERIC, resume_support=resume_support(GENERIC, NOWHERE))).begin()
    world = unknown(world, "run1.q7").wait(5.0)
    assert not world.state.saved.checkpoints.known[0].is_state

    world = unknown(world, "run2.q7")

    assert all(k.is_state for k in world.state.saved.checkpoints.known)


@pytest.mark.parametrize(
    ("first", "second", "wait_s", "size", "held"),
    [
        ("checkpoint-last", "checkpoint-last", 2.0, 1e6, True),
        ("checkpoint-last", "checkpoint-last", 20.0, 1e6, True),
        ("checkpoint-last", "checkpoint-last", 0.0, 2e6, False),
        ("checkpoint-60", "checkpoint-90", 5.0, 1e6, True),
    ],
    ids=["replaced at once", "after it counted as state", "still being written", "a newer one of its kind"],
)
def test_an_unfinished_folder_counts_once_another_came_though_its_trainer_died_at_once(
    first: str, second: str, wait_s: float, size: float, held: bool
) -> None:
    """``checkpoint-last`` is renamed into its place, and never has the file that its layout writes last."""
    world = torn(at_step(run_of(HF), 60), f"out/{first}", unfinished=True).wait(wait_s)
    world = crash(torn(world, f"out/{second}", unfinished=True, size=size))
    assert is_held(world) is held


@pytest.mark.parametrize("size", [1e6, None])
def test_one_save_without_a_telling_name_is_held_and_a_second_is_given_to_the_trainer(size: float | None) -> None:
    once = at_step(unknown(run_of(GENERIC, ANYWHERE), "whatever.q7", size=size), 60)
    world = at_step(unknown(run_of(GENERIC, ANYWHERE), "run-60.q7", size=size), 60)
    twice = at_step(unknown(world, "run-90.q7", size=size), 90)
    twice.answer("verify_checkpoint", ok=False, verdict="opaque", reason=UNKNOWN)

    assert is_held(crash(once))
    assert resumed(crash(twice)) == "out/run-90.q7"


def magic(world: World, path: str, head: str, size: float = 1e6) -> World:
    """The sensor reports a file with a suffix of torch whose first bytes are of no format of torch."""
    event = CheckpointEvent(
        t=world.t, path=path, event="created", size_bytes=size, mtime=world.t, form="file", verdict="corrupt",
        reason=f"model.pt: is in no format that torch writes (byte 0: {head})", understood=False,
    )  # fmt: skip
    return world.see(event).wait(1.0)


def test_what_all_saves_have_is_no_damage_and_the_trainer_is_given_the_newest() -> None:
    world = run_of(GENERIC, ANYWHERE)
    for step, head in ((60, "54 4f 59 31 9a"), (90, "54 4f 59 31 07")):
        world = at_step(magic(world, f"out/model-{step}.pt", head), step)
    assert len(told(world)) == 1
    assert world.state.journal.incidents == (), "it was told at the first save that the run would be held"

    why = "in no format that torch writes"
    world = crash(world.answer("verify_checkpoint", ok=False, verdict="corrupt", understood=False, reason=why))

    assert resumed(world) == "out/model-90.pt"
    assert "model-90.pt cannot be verified" in notes(world)


@pytest.mark.parametrize("second", ["size", "unfinished"])
def test_a_save_that_differs_from_the_one_before_is_not_given(second: str) -> None:
    world = at_step(magic(run_of(GENERIC, ANYWHERE), "out/model-60.pt", "54 4f"), 60)
    if second == "size":
        world = magic(world, "out/model-90.pt", "54 4f", size=1e5)
    else:
        world = torn(world, "out/model-90.pt", unfinished=True)

    world = crash(at_step(world, 90))

    assert resumed(world) != "out/model-90.pt"
    assert len(world.of(GiveUp)) == 0


@pytest.mark.parametrize(
    ("main", "beside"),
    [
        ("agent_{}_steps.zip", "agent_replay_buffer_{}_steps.pkl"),
        ("round{}.ubj", "epoch{}.json"),
        ("w{}.q7", "rng_{}.q7"),
    ],
)
def test_the_main_file_of_each_save_is_given_newest_first_and_then_the_one_before(main: str, beside: str) -> None:
    world = run_of(GENERIC, ANYWHERE)
    for step in (60, 90):
        world = unknown(world, main.format(step), mtime=world.t - 1.0)
        world = at_step(unknown(world, beside.format(step), mtime=world.t - 1.0), step)
    for _ in range(9):
        world.answer("verify_checkpoint", ok=False, verdict="opaque", reason=UNKNOWN, understood=False)

    world = crash(world)
    assert resumed(world) == f"out/{main.format(90)}"
    for _ in range(2):  # the trainer cannot read it
        world = crash(world.wait(1.0), text="ValueError: bad archive\n").wait(700.0, every_s=5.0)

    assert resumed(world) == f"out/{main.format(60)}"
