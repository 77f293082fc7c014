"""What the world has to mend is waited for: no room on the disk, no network, a loader that the stacks convict."""

from typing import Any

import pytest

from tests.builders import GB, Story, World, judge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_recovery import CUDA, crash, judge_of_everything, quick, running, story
from tests.unit.test_judge_remedies import mind
from tests.unit.test_judge_takeover import taken_over
from tests.unit.test_loss_divergence import now_of
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StartAttempt
from trainwatch.core.model.fact import BudgetChanged, RemedyApplied, StateChanged
from trainwatch.core.model.observation import CheckpointEvent, GpuReading, GpuSample, HostSample, KernelLine
from trainwatch.core.model.progress import Why
from trainwatch.core.model.text import sizes_apart
from trainwatch.core.views.run_summary import needs

FULL = "\nOSError: [Errno 28] No space left on device\n"
OFFLINE = "\nfailure in name resolution\n"


def free(world: World, bytes_: float, total: float | None = 1000 * GB, inodes: float | None = None) -> World:
    return world.see(HostSample(t=world.t, disk_free_bytes=bytes_, disk_total_bytes=total, disk_free_inodes=inodes))


def saved(world: World, size: float, step: int = 40, **more: object) -> World:
    """A complete checkpoint of this run."""
    path = f"out/step-{step}"
    event = CheckpointEvent(t=world.t, path=path, event="complete", step=step, size_bytes=size, **more)  # type: ignore[arg-type]
    return world.see(event)


def full(mind_: Judge | None = None) -> World:
    return crash(free(saved(running(mind_), 0.5 * GB), 0.3 * GB), FULL)


def test_a_run_that_waits_for_room_names_the_folder_whose_disk_is_full() -> None:
    world = full(judge(output_dir="/data/out"))
    assert "it continues when 1.06 GB are free (300 MB were) in /data/out" in world.text()


def test_a_full_disk_holds_the_restart_until_there_is_room() -> None:
    world = full()
    assert world.word == "backing_off"
    assert "the disk is full; it continues when 1.06 GB are free (300 MB were)" in world.text()
    assert (world.why.kind, world.why.waits_for_room, world.why.free_bytes) == ("disk_full", True, 0.3 * GB)
    assert world.of(NotifyPeople)[-1].event == "warning"
    assert len(world.of(StartAttempt)) == 1
    free(world.wait(5000.0, every_s=50.0), 1.0 * GB)
    assert len(world.of(StartAttempt)) == 1
    free(world, 2.1 * GB)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    assert world.of(BudgetChanged) == []


def test_a_new_supervisor_holds_it_too() -> None:
    new = taken_over(full(), live=False)
    assert new.decisions == []
    assert free(new, 9 * GB).decisions == ["list_checkpoints", "verify_checkpoint", "list_checkpoints", "start_attempt"]


def test_a_person_may_go_on_or_stop_while_it_is_held() -> None:
    assert full().command("stop").word == "stopped"
    assert full().command("resume").word == "starting"


def test_with_room_on_the_disk_something_else_is_full_and_the_budget_counts() -> None:
    world = running(judge(quick(max_restarts=2, backoff_s=(0.0,))))
    for _ in range(3):
        crash(free(world, 50 * GB), FULL).watch(story(9))
    assert world.word == "given_up"
    assert [b.used for b in world.of(BudgetChanged)] == [1, 2]
    assert "another disk or a quota" in world.text()


def test_a_network_failure_is_waited_out_without_charge() -> None:
    world = running(judge(quick(max_restarts=1, network_wait_s=(30.0, 60.0))))
    waits = []
    for _ in range(4):
        crash(world, OFFLINE)
        waits.append([s.until_t - world.t for s in world.of(StateChanged) if s.until_t][-1])
        world.wait(61.0, every_s=5.0).watch(story(9))
    assert waits == pytest.approx([30.0, 60.0, 60.0, 60.0])
    assert world.of(BudgetChanged) == []
    assert world.word == "running"


MISSED = "FileNotFoundError: [Errno 2] No such file or directory: '{}'"


@pytest.mark.parametrize(
    ("line", "first", "waits"),
    [
        (MISSED.format("/mnt/nas/train/meta.json"), "", True),
        (MISSED.format("/mnt/nas/test/meta.json"), MISSED.format("/mnt/nas/test/meta.json"), False),
        (MISSED.format("/data/out/step-40/optimizer.pt"), "", False),
        ("RuntimeError: No CUDA GPUs are available", "", True),
        ("RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.", "", True),
    ],
)
def test_what_an_earlier_attempt_had_and_a_start_misses_is_waited_for(line: str, first: str, waits: bool) -> None:
    """An empty mountpoint, or a driver that came up late, was a config error: given up after two minutes."""
    settings = quick(max_restarts=2, backoff_s=(0.0,), network_wait_s=(30.0, 60.0))
    head = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    main()\n'
    world = saved(running(judge(settings, catalogue=CATALOGUE, output_dir="/data/out")), 1e6)
    crash(world, f"{head}{first}\n" if first else CUDA).wait(0.0)
    before = len(world.of(NotifyPeople))
    for _ in range(8 if waits else 2):
        crash(world, f"{head}{line}\n").wait(61.0, every_s=5.0)
    told = [notice.event for notice in world.of(NotifyPeople)[before:]]
    assert told == (["incident", "restart", "incident"] if waits else ["incident", "restart", "incident", "give_up"])
    assert (world.word, len(world.of(BudgetChanged))) == (("starting", 1) if waits else ("given_up", 2))


def test_a_mount_that_stays_away_for_an_hour_needs_a_person() -> None:
    world = saved(running(judge(quick(network_wait_s=(1500.0,)), catalogue=CATALOGUE)), 1e6)
    kinds = list[list[str]]()
    for _ in range(6):
        world.wait(1501.0 if kinds else 0.0, every_s=30.0)
        crash(world, MISSED.format("/mnt/nas/train/meta.json") + "\n")
        kinds.append([need.kind for need in needs(now_of(world)) if need.urgent])
    assert kinds == [[], [], [], [], [], ["held"]]
    assert world.command("resume").word == "starting"


def test_stacks_that_wait_for_data_name_the_loader() -> None:
    world = running(mind({"max_data_loader_n_workers": 4}), steps=100)
    world.answer("capture_stacks", frames={"4242": ["wait (threading.py:320)", "_try_get_data (dataloader.py:1243)"]})
    world.watch(Story(meta=False).dead(200))
    assert [i.class_ for i in world.hangs] == ["starved"]
    assert [r.name for r in world.of(RemedyApplied)] == ["fewer-workers"]
    assert world.of(StartAttempt)[-1].changes[0].after == 2


def test_unexplained_hang_is_restarted_without_a_remedy() -> None:
    world = running(mind({"max_data_loader_n_workers": 4}), steps=100).watch(Story(meta=False).dead(200))
    assert world.of(RemedyApplied) == []
    assert len(world.of(StartAttempt)) == 2


# --- how much room, and where -----------------------------------------------------------------------------------------


def test_a_small_disk_is_not_asked_for_more_than_it_has() -> None:
    world = crash(free(saved(running(), 64e3), 20e3, total=1 * GB), FULL)
    assert "it continues when 10.1 MB are free" in world.text()
    free(world, 11e6, total=1 * GB)
    assert len(world.of(StartAttempt)) == 2


@pytest.mark.parametrize(
    ("size", "more", "total", "needed"),
    [
        (8e12, {"disk_bytes": 64e3}, 1000 * GB, "64.1 MB"),
        (8e12, {}, 1000 * GB, "64.0 MB"),
        (60e9, {}, 100 * GB, "30.0 GB"),
    ],
    ids=["what a sparse file takes", "a size that no disk has", "what can be free beside a large checkpoint"],
)
def test_how_much_room_is_waited_for(size: float, more: dict[str, Any], total: float, needed: str) -> None:
    world = crash(free(saved(running(), size, **more), 1e6, total=total), FULL)
    assert f"it continues when {needed} are free" in world.text()


def test_files_of_others_and_damaged_ones_are_not_measured() -> None:
    world = saved(running(judge(created_wall=1000.0)), 1e6, mtime=1100.0)
    saved(world, 900 * GB, 20, mtime=500.0)
    saved(world, 900 * GB, 30, mtime=1100.0, verdict="corrupt", reason="ends early")
    crash(free(world, 1e6), FULL)
    assert "it continues when 66.0 MB are free" in world.text()


def test_no_inodes_are_waited_for_like_a_full_disk() -> None:
    world = crash(free(saved(running(), 1e6), 50 * GB, inodes=0), FULL)
    assert "no more files can be created on the disk (no free inodes)" in world.text()
    assert world.why == Why("no_inodes")
    free(world.wait(100.0), 50 * GB, inodes=0)
    assert len(world.of(StartAttempt)) == 1
    free(world, 50 * GB, inodes=5000)
    assert len(world.of(StartAttempt)) == 2
    assert world.of(BudgetChanged) == []


@pytest.mark.parametrize(
    ("detail", "kind", "title"),
    [
        ("/state: No space left on device", "no_room", "a disk is full"),
        ("/state: Read-only file system", "read_only", "a disk is read-only"),
        ("python is gone", "program_gone", "trainwatch was uninstalled"),
        ("[Errno 24] Too many open files", "no_resources", "no process, memory or open file is free"),
        ("the runner did not report", "not_started", "no trainer could be started in time"),
    ],
)
def test_a_launch_that_finds_a_machine_used_up_is_repeated_without_charge(detail: str, kind: str, title: str) -> None:
    world = World(judge(quick(network_wait_s=(30.0, 60.0))))
    for _ in range(3):
        world.answer("start_attempt", ok=False, detail=detail, fresh=True, **{kind: True})
    world.begin()
    assert world.word == "backing_off"
    assert (world.why.kind, world.why.until_t) == (kind, world.t + 30.0)
    free(world, 500 * GB)
    assert len(world.of(StartAttempt)) == 1, "that disk is not the full one"
    world.wait(31.0)
    assert len(world.of(StartAttempt)) == 2
    world.wait(61.0)
    assert len(world.of(StartAttempt)) == 3
    world.wait(61.0)
    assert world.word == "starting"
    assert world.of(BudgetChanged) == []
    assert [n.title for n in world.of(NotifyPeople) if n.event == "warning"] == [f"run: held: {title}"]


# --- a lost GPU -------------------------------------------------------------------------------------------------------

LOST = "\nRuntimeError: CUDA error: GPU is lost\n"


def gpus(world: World, *trouble: str | None, own: bool | None = True) -> World:
    """A sample: each GPU with its trouble."""
    readings = tuple(GpuReading(index=n, own=own, trouble=what) for n, what in enumerate(trouble))
    return world.see(GpuSample(t=world.t, gpus=readings))


def test_nothing_is_started_on_a_lost_gpu_until_it_answers_again() -> None:
    world = gpus(saved(running(judge_of_everything()), 1e6), "GPU is lost")
    crash(world, LOST)
    assert world.word == "backing_off"
    assert "no GPU of this run answers" in world.text()
    assert world.why == Why("gpu_lost")
    gpus(world.wait(3600.0, every_s=60.0), "GPU is lost", own=None)
    world.see(GpuSample(t=world.t, trouble="the driver does not answer"))
    assert len(world.of(StartAttempt)) == 1
    gpus(world, None, own=None)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    assert [b.used for b in world.of(BudgetChanged)] == [1]


def test_another_gpu_of_the_machine_is_none_of_the_run() -> None:
    world = saved(running(judge_of_everything()), 1e6)
    both = (GpuReading(index=0, own=True), GpuReading(index=1, own=False))
    world.see(GpuSample(t=world.t, gpus=both))
    gpus(world, "GPU is lost", None, own=None)
    crash(world, LOST)
    assert len(world.of(StartAttempt)) == 1


def test_a_gpu_that_the_kernel_lost_is_waited_for_whatever_the_log_says() -> None:
    world = gpus(saved(running(judge_of_everything()), 1e6), "missing: the driver no longer lists it")
    world.see(KernelLine(t=world.t, text="NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."))
    crash(world, "\nRuntimeError: NCCL error: unhandled cuda error\n")
    assert "no GPU of this run answers" in world.text()


def test_a_lost_gpu_that_answers_or_that_nobody_can_see_is_restarted() -> None:
    assert len(crash(gpus(running(judge_of_everything()), None), LOST).of(StartAttempt)) == 2
    unseen = Story(meta=False, period_s=5.0, telemetry=False).load(10).train(40)
    assert len(crash(World(judge_of_everything()).begin().watch(unseen), LOST).of(StartAttempt)) == 2


def test_a_new_supervisor_and_a_person_can_end_the_wait_for_a_gpu() -> None:
    world = crash(gpus(saved(running(judge_of_everything()), 1e6), "GPU is lost"), LOST)
    assert taken_over(world, live=False).decisions == []
    assert world.command("resume").word == "starting"


def test_a_gpu_that_is_lost_until_a_reset_is_not_started_on_although_its_driver_answers() -> None:
    world = gpus(saved(running(judge_of_everything()), 1e6), None)
    world.see(KernelLine(t=world.t, text="NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."))
    world.watch(Story(meta=False).dead(400))
    assert world.word == "backing_off"
    assert "the GPU of this run is lost until it is reset" in world.text()
    gpus(world.wait(600.0, every_s=30.0), None, own=None)
    assert len(world.of(StartAttempt)) == 1
    gpus(world, "missing: the driver no longer lists it", own=None)
    gpus(world, None, own=None)
    assert len(world.of(StartAttempt)) == 2


def test_with_a_second_gpu_of_the_run_a_lost_one_does_not_hold_it() -> None:
    world = gpus(saved(running(judge_of_everything()), 1e6), None, None)
    world.see(KernelLine(t=world.t, text="NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."))
    crash(world, LOST)
    assert len(world.of(StartAttempt)) == 2


# --- the GPU channel of WSL2 ------------------------------------------------------------------------------------------

SILENT = "misc dxg: dxgk: dxgvmb_send_sync_msg: wait for completion failed: fffffe00"


def channel(world: World, line: str) -> World:
    """An unknown CUDA error behind a line of the kernel."""
    return crash(world.see(KernelLine(t=world.t, text=line)))


@pytest.mark.parametrize(
    "line",
    ["misc dxg: dxgk: device removed", "misc dxg: dxgk: dxgvmb_send_create_process: create_process failed -75"],
)
def test_a_channel_that_is_gone_is_not_tried_again(line: str) -> None:
    world = channel(running(judge(quick(max_restarts=9, backoff_s=(0.0,)))), line)
    assert world.word == "given_up"
    assert "channel to the GPU is broken" in world.of(GiveUp)[0].reason
    body = world.of(NotifyPeople)[-1].body
    assert "wsl --shutdown" in body
    assert "trainwatch resume" in body


def test_a_message_that_failed_once_is_tried_again_and_twice_is_not() -> None:
    world = channel(running(judge(quick(max_restarts=9, backoff_s=(0.0,)))), SILENT)
    assert len(world.of(StartAttempt)) == 2
    channel(world.watch(story(60)), SILENT)
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) == 2


@pytest.mark.parametrize("call", ["query_adapter_info: Ioctl failed: -22", "make_resident: Ioctl failed: -12"])
def test_another_word_of_the_channel_is_no_end_of_it(call: str) -> None:
    world = channel(running(judge(quick(max_restarts=9, backoff_s=(0.0,)))), f"misc dxg: dxgk: dxgkio_{call}")
    assert len(world.of(StartAttempt)) == 2


def test_two_sizes_that_differ_are_never_told_as_the_same() -> None:
    assert sizes_apart(1.1e9, 0.3e9) == ("1.10 GB", "300 MB")
    assert sizes_apart(5.01e9, 4.99e9) == ("5.01 GB", "4.99 GB")
    assert sizes_apart(0.1004e9, 0.1001e9) == ("100.4 MB", "100.1 MB")
    assert sizes_apart(5e9, 5e9) == ("5.00 GB", "5.00 GB")
    assert sizes_apart(5e9, None) == ("5.00 GB", "")


# --- another trainer --------------------------------------------------------------------------------------------------

OTHER = "`python train.py` (pid 7, since 05:58) was started without trainwatch, and it is the same training in /work"


def test_a_restart_beside_a_trainer_of_nobody_waits_without_charge_until_that_one_is_over() -> None:
    world = saved(running(judge(quick(network_wait_s=(30.0, 60.0)))), 1e6)
    for _ in range(2):
        world.answer("start_attempt", ok=False, detail=OTHER, other_trainer=True, fresh=False)
    crash(world)
    assert world.word == "backing_off"
    assert f"{OTHER}; it is launched again in 30 s" in world.text()
    assert world.why.kind == "other_trainer"
    charged = len(world.of(BudgetChanged))
    world.wait(31.0)
    assert world.word == "backing_off"
    world.wait(61.0)
    assert world.word == "starting"
    assert len(world.of(BudgetChanged)) == charged
    assert [n.title for n in world.of(NotifyPeople) if n.event == "warning"] == ["run: held: another trainer runs"]


def test_a_start_from_the_beginning_is_not_made_later_over_what_the_other_trainer_saves() -> None:
    world = World(judge())
    world.answer("start_attempt", ok=False, detail=OTHER, other_trainer=True, fresh=True)
    world.begin()
    assert world.word == "stopped"
    assert world.why == Why("other_trainer")
    world.wait(4000.0, every_s=5.0)
    assert len(world.of(StartAttempt)) == 1
    assert [n.title for n in world.of(NotifyPeople) if n.event == "warning"] == ["run: held: another trainer runs"]
