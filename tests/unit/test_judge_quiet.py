"""The incident *quiet*: people are told of a silence before anything is decided."""

from typing import Any

import msgspec
import pytest

from tests.builders import Story, World, judge
from tests.unit.test_judge_recovery import running, save
from trainwatch.core.judge.failure.catalogue import SeenGpu, is_of_run, names_lost_gpu
from trainwatch.core.judge.handlers.hang_check import loss_s
from trainwatch.core.model.observation import Exit, KernelLine, ProcessSample, Start
from trainwatch.core.model.run import Incident
from trainwatch.core.model.settings import Act, Hang, Restart, Settings

FELL_OFF = "NVRM: Xid (PCI:0000:01:00): 79, pid=4242, GPU has fallen off the bus."


def of_kind(world: World, kind: str) -> list[Incident]:
    return [incident for incident in world.incidents if incident.kind == kind]


LOADER = ["select (selectors.py:416)", "_try_get_data (torch/utils/data/dataloader.py:1291)"]
SYNC = ["cudaStreamSynchronize (libcudart.so.12)", "item (train.py:3)"]
KERNELS = "process 7 waits for the GPU to finish its kernels: cuEventSynchronize (libcuda.so.1)"


@pytest.mark.parametrize(
    ("frames", "more", "kind", "said"),
    [
        (LOADER, {}, "starved", "process 7 waits for a data loader worker"),
        (SYNC, {}, "spin", "process 7 waits "),
        (["poll (libc.so.6)", "ncclAllReduce (libnccl.so.2)", "step (train.py:8)"], {}, "spin", "process 7 waits "),
        (["all_reduce (torch/distributed/distributed_c10d.py:2501)"], {}, "spin", "process 7 waits "),
        (["synchronize (torch/cuda/__init__.py:985)", "step (train.py:8)"], {}, "spin", "process 7 waits "),
        (
            ["0x7f739dbd3697 (libcuda.so.580.159.04)"],
            {},
            "spin",
            "process 7 waits ",
        ),  # an H200: the driver has no names
        (["item (train.py:3)"], {"native": {"7": ["cuEventSynchronize (libcuda.so.1)"]}}, "spin", KERNELS),
        (SYNC, {"frames": {"7": SYNC, "8": LOADER}}, "starved", "process 7 waits "),
        (LOADER, {"moved": {"7": True}}, "idle", ""),
    ],
)
def test_stacks_of_the_silence_name_the_kind_of_the_hang(
    frames: list[str], more: dict[str, Any], kind: str, said: str
) -> None:
    world = running(steps=100).answer("capture_stacks", **{"frames": {"7": frames}, **more})
    world.watch(Story(meta=False).dead(200))
    assert world.hangs[0].class_ == kind
    assert any(said in e.what for e in of_kind(world, "quiet")[0].evidence)


def test_stopped_rank_names_the_kind_whatever_the_others_wait_for() -> None:
    world = running(steps=100)
    collective = {"7": ["all_reduce (torch/distributed/distributed_c10d.py:3252)"]}
    world.answer("capture_stacks", frames=collective).answer("capture_stacks", frames=collective)
    world.watch(Story(meta=False).go(200, states={"T": 1, "S": 1}, computing=2, held=1))
    assert world.hangs[0].class_ == "starved"


def test_exit_and_new_supervisor_close_it() -> None:
    ended = running(steps=100).watch(Story(meta=False).dead(120))
    ended.see(Exit(t=ended.t, code=1))
    assert of_kind(ended, "quiet")[0].ending == "the attempt ended"
    taken = running(steps=100).watch(Story(meta=False).dead(120))
    taken.see(Start(t=taken.t, attempt=1, pid=9, adopted=True))
    assert of_kind(taken, "quiet")[0].ending == "a new supervisor took over"


def test_signal_that_stops_the_trainer_closes_it() -> None:
    world = running(steps=100).watch(Story(meta=False).dead(120)).watch(Story(meta=False).dead(30, states={"T": 9}))
    assert of_kind(world, "quiet")[0].ending == "a signal stopped every computing process (state T)"


def test_what_ending_a_run_costs_counts_from_its_newest_checkpoint() -> None:
    world = running(steps=100)
    before = loss_s(world.state)
    save(world)
    assert before == pytest.approx(100 * 2.5 + 2 * 10, rel=0.1)
    assert loss_s(world.state) < 20.0
    assert loss_s(World().begin().state) == 0.0


# --- a lost GPU ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "before", "after", "ends"), [("all", "", "", 1), ("all", "snooze", "", 0), ("ask", "", "restart", 1)]
)
def test_lost_gpu_ends_the_wait_and_is_the_cause(act: Act, before: str, after: str, ends: int) -> None:
    world = running(judge(Settings(restart=Restart(act=act))), steps=100)
    world = (world.command(before) if before else world).see(KernelLine(t=world.t, text=FELL_OFF))
    world.watch(Story(meta=False).dead(60))
    world = world.command(after) if after else world
    assert [(h.class_, "fallen off the bus" in h.evidence[0].what) for h in world.hangs] == [("idle", True)] * ends
    assert [known.class_ for known in world.state.policy.history] == ["gpu_lost"] * ends
    assert (world.decisions.count("stop_attempt"), len(of_kind(world, "quiet"))) == (ends, 1 - ends)


@pytest.mark.parametrize(
    ("text", "gpus", "lost"),
    [
        (FELL_OFF, ((True, None),), True),
        (FELL_OFF, ((None, None),), True),
        (FELL_OFF, ((False, None),), False),
        (FELL_OFF, ((True, None), (True, None)), True),
        (FELL_OFF, ((True, None), (False, None)), False),
        (FELL_OFF, ((None, None), (None, None)), False),
        (FELL_OFF, ((True, "00000000:01:00.0"), (False, "00000000:02:00.0")), True),
        (FELL_OFF, ((False, "00000000:01:00.0"), (True, "00000000:02:00.0")), False),
        (FELL_OFF, (), False),
        ("NVRM: GPU at PCI:0000:01:00: GPU has fallen off the bus.", ((True, None),), True),
        ("NVRM: Xid (PCI:0000:01:00): 31, MMU fault", ((True, None),), False),
        ("NVRM: Xid (PCI:0000:01:00): 119, Timeout waiting for RPC from GSP!", ((True, None),), True),
        ("oom-kill: out of memory", ((True, None),), False),
    ],
)
def test_which_kernel_line_is_a_lost_gpu_of_this_run(
    text: str, gpus: tuple[tuple[bool | None, str | None], ...], lost: bool
) -> None:
    shipped = judge().knowledge.catalogue
    seen = tuple(SeenGpu(*gpu) for gpu in gpus)
    assert (names_lost_gpu(text, shipped) and is_of_run(text, seen)) is lost


# --- a process that is blocked in the kernel -------------------------------------------------------------------------


def blocked(world: World, seconds: float, mounts: tuple[str, ...] | None) -> World:
    for _ in range(int(seconds / 5)):
        sample = ProcessSample(t=world.t + 5.0, cpu_cores=0.0, read_bytes=1e8, states={"D": 1}, procs=1)
        world.see(msgspec.structs.replace(sample, silent_mounts=mounts))
    return world


def test_stop_waits_for_the_mount_and_then_for_a_full_deadline() -> None:
    world = blocked(running(steps=100), 1500.0, ("/mnt/nas",))
    assert (world.word, "stop_attempt" in world.decisions) == ("hung", False)
    assert "until /mnt/nas answers" in world.text()
    assert any("/mnt/nas" in e.what for e in world.hangs[0].evidence)
    world.watch(Story(meta=False).dead(90))
    assert (world.word, "stop_attempt" in world.decisions) == ("running", False)
    world.watch(Story(meta=False).dead(120))
    assert "stop_attempt" in world.decisions


def test_blocked_process_is_stopped_a_deadline_after_its_mounts_answer() -> None:
    world = blocked(running(steps=100), 1000.0, ("/mnt/nas",))
    blocked(world, 550.0, ())
    assert (world.word, "stop_attempt" in world.decisions) == ("hung", False)
    blocked(world, 100.0, ())
    assert "stop_attempt" in world.decisions


def test_short_deadline_does_not_end_a_process_that_is_blocked() -> None:
    """With ``hang.min_s = 6`` it was ended after 80 s."""
    world = World(judge(Settings(hang=Hang(min_s=6.0, max_s=60.0)))).begin().watch(Story(meta=False).load(10).train(40))
    blocked(world, 590.0, ())
    (quiet,) = of_kind(world, "quiet")
    assert quiet.t - (world.state.attempt.beat_t or 0.0) < 30.0
    assert world.hangs == []
    blocked(world, 30.0, ())
    assert [i.class_ for i in world.hangs] == ["starved"]
    blocked(world, 560.0, ())
    assert "stop_attempt" not in world.decisions
    blocked(world, 60.0, ())
    assert "stop_attempt" in world.decisions


def test_process_that_is_freed_gets_a_full_deadline_of_its_own() -> None:
    world = World(judge(Settings(hang=Hang(min_s=6.0, max_s=60.0)))).begin().watch(Story(meta=False).load(10).train(40))
    blocked(world, 700.0, ("/mnt/nas",)).watch(Story(meta=False).dead(5))
    assert (world.word, "stop_attempt" in world.decisions) == ("running", False)


# --- no new highest step ---------------------------------------------------------------------------------------------


def test_loop_whose_stop_waits_for_evidence_is_not_over_by_its_steps() -> None:
    world = World(judge(Settings(hang=Hang(max_s=100.0, min_s=30.0))), silent={"capture_stacks"}).begin()
    story = Story(meta=False).load(10).train(100)
    world.watch(story)
    for _ in range(6):
        world.watch(Story(meta=False, step=60).train(40))
        if world.word == "hung":
            break
    world.wait(40)
    assert of_kind(world, "stall")[0].class_ == "no_progress"
    assert "stop_attempt" in world.decisions


def test_a_training_that_a_script_began_again_once_is_no_loop_until_it_falls_back_again() -> None:
    """``until python train.py --resume; do :; done`` went back two hours, and was ended after 45 min of good steps."""
    world = World(judge(Settings(hang=Hang(max_s=100.0, min_s=30.0)))).begin()
    world.watch(Story(meta=False, total=1000).load(10).train(200))
    for _ in range(2):
        assert (world.word, of_kind(world, "stall")) == ("running", [])
        world.watch(Story(meta=False, total=1000, step=60).train(130))  # 325 s
    assert [i.class_ for i in world.hangs] == ["spin"]


# --- a long pause at one place ---------------------------------------------------------------------------------------


def unread(total: int) -> Story:
    return Story(meta=False, period_s=5.0, util=False, power=False, total=total, step_s=1.0)


@pytest.mark.parametrize(("total", "least", "most"), [(40_000, 2.0, 4.0), (420, 1.0, 1.5)])
def test_a_second_silence_at_one_place_is_ended_later_the_more_is_left_of_the_run(
    total: int, least: float, most: float
) -> None:
    # Given a young run that works on a third of a core and prints nothing: it was ended, because little was lost by it
    world = World().begin().watch(unread(total).load(10).train(200).go(1200, cpu=0.42))
    silent_s = world.hangs[0].detect_s or 0.0

    # When the next attempt is silent at the same step, so that to end it may give the run up
    world.watch(unread(total).load(10).train(200).go(4.0 * silent_s, cpu=0.42))

    # Then it is ended, too, the later the more is left of the run
    assert least * silent_s < (world.hangs[1].detect_s or 0.0) < most * silent_s


@pytest.mark.parametrize(
    ("story", "cpu", "told"),
    [
        (Story(meta=False).load(10), 0.0, 1),
        (Story(meta=False, total=100).load(10).train(60).finish(), 0.0, 1),
        (Story(meta=False, gpus=0, step_s=1.0).load(10).train(100, cpu=0.1), 0.05, 1),
        (Story(meta=False, step_s=1.0).load(10).train(100, cpu=0.1), 0.05, 1),
        (Story(meta=False, step_s=1.0).load(10).train(100, cpu=0.32), 0.2, 0),
    ],
    ids=["before the first step", "after the end", "faint", "faint beside an idle GPU", "a little"],
)
def test_people_are_told_within_three_minutes_where_nothing_is_ended_yet(story: Story, cpu: float, told: int) -> None:
    began_t = story.t
    world = World().begin().watch(story.go(300, cpu=cpu))
    assert [120.0 < quiet.t - began_t < 180.0 for quiet in of_kind(world, "quiet")] == [True] * told
    assert world.hangs == []


def test_a_start_that_was_given_hours_is_not_ended_sooner_where_nothing_is_read() -> None:
    world = World(judge(Settings(hang=Hang(startup_s=9000.0)))).begin().watch(Story(meta=False).ticks(8000))
    assert of_kind(world, "hang") == []


def test_an_open_question_is_among_the_evidence() -> None:
    (quiet,) = of_kind(running(steps=100).watch(Story(meta=False).log("\nOverwrite? [y/N] ").dead(120)), "quiet")
    assert 'the log ends with a question: "Overwrite? [y/N]"' in [each.what for each in quiet.evidence]


def test_silent_evaluation_of_an_hour_ends_the_run_once_at_most() -> None:
    def part(step: int) -> Story:
        return Story(meta=False, period_s=10.0, step=step)

    world = World().begin().watch(part(0).load(20).train(200).evaluate(3600, announce=False, bar=False))
    assert [i.class_ for i in world.hangs] == ["spin"]
    for step in (0, 200, 400):
        world.watch(part(step).train(200).evaluate(3600, announce=False, bar=False))
    world.watch(part(600).train(20))
    assert len(world.hangs) == 1
    assert world.word == "running"
