"""The runs whose journals are recorded: each kind of end, of incident and of place, judged by the real judge."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from tests.builders import GB, Story, World, judge
from tests.scenarios import test_flows as flows
from tests.scenarios.sick import SICK
from tests.shipped import CATALOGUE
from trainwatch.core.model.observation import (
    CheckpointEvent,
    CheckpointValues,
    Exit,
    GpuReading,
    GpuSample,
    HostSample,
    JobSeen,
    KernelLine,
    LogChunk,
    MetricValues,
    Start,
    TerminationNotice,
)
from trainwatch.core.model.settings import Backup, Evaluate, Nan, Profiles, Restart, Settings

WALL0 = 1_763_767_200.0
"""When each of them began, epoch seconds."""
OOM = (
    "\nTraceback (most recent call last):\n"
    '  File "train.py", line 9, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB\n"
)
CUDA = "\nRuntimeError: CUDA error: unknown error\n"
BUG = "\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'labels'\n"
NETWORK = (
    "\nrequests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded "
    "(Caused by NameResolutionError: Temporary failure in name resolution)\n"
)
FULL = "\nOSError: [Errno 28] No space left on device: 'out/step-40/model.safetensors'\n"


class Told(NamedTuple):
    """A run to record. ``spec``: further fields of its RunSpec. ``watched``: a supervisor lives when it is looked at."""

    world: World
    watched: bool = False
    spec: Mapping[str, Any] = {}


def part(step: int = 0, steps: int = 60) -> Story:
    told = Story(meta=False, period_s=5.0)
    told.step = step
    return told.load(20).train(steps)


def begun(settings: Settings | None = None, steps: int = 60, **knows: Any) -> World:
    return World(judge(settings, catalogue=CATALOGUE, created_wall=WALL0, **knows)).begin().watch(part(0, steps))


def saved(world: World, step: int, **more: Any) -> World:
    path = f"out/step-{step}"
    mtime = WALL0 + world.t
    return world.see(
        CheckpointEvent(t=world.t, path=path, event="complete", step=step, size_bytes=1e9, mtime=mtime, **more)
    )


def crashed(world: World, text: str = CUDA, code: int = 1) -> World:
    return world.see(LogChunk(t=world.t, text=text), Exit(t=world.t + 0.4, code=code, died_t=world.t + 0.1))


def quiet(seconds: float) -> Story:
    return Story(meta=False, period_s=5.0).dead(seconds)


def restart(**fields: Any) -> Settings:
    return Settings(restart=Restart(**fields))


def of_case(case: Any) -> World:
    """A scenario, as a run that was supervised."""
    return World(judge(case.story.settings, catalogue=CATALOGUE, created_wall=WALL0)).begin().watch(case.story)


def losses(world: World, values: list[float], first: int = 1) -> World:
    for step, loss in enumerate(values, first):
        world.wait(1.0)
        world.see(LogChunk(t=world.t, text=f"step {step}/10260 loss: {loss}\n"))
    return world


# --- runs that go on ------------------------------------------------------------------------------------------------


def healthy() -> Told:
    world = saved(begun(), 60).watch(part(60, 60))
    for n in range(6):
        world.see(MetricValues(t=world.t, values={"grad_norm": 2.0 - n / 4, "val_loss": 0.5 - n / 50}, step=60 + n))
        world.wait(5.0)
    return Told(saved(world, 120).watch(part(120, 20)), watched=True)


def two_gpus_hot() -> Told:
    world = begun()
    for _ in range(60):
        both = tuple(
            GpuReading(index=n, util_pct=97.0, temp_c=88.0 + n, power_w=300.0, mem_used_bytes=15.9 * GB,
                       mem_total_bytes=16 * GB, own=True, throttle=("thermal (hardware)",) if n else ())
            for n in (0, 1)
        )  # fmt: skip
        world.see(GpuSample(t=world.t + 2.0, gpus=both))
    return Told(world, watched=True)


def gpu_lost() -> Told:
    world = begun()
    world.see(KernelLine(t=world.t, text="NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."))
    for _ in range(20):
        lost = GpuReading(index=0, own=True, trouble="lost: it no longer answers on the bus; reboot to get it back")
        world.see(GpuSample(t=world.t + 2.0, gpus=(lost,)))
    return Told(world, watched=True)


def disk_fills() -> Told:
    world = begun()
    for n in range(4):
        world.watch(part(60 * (n + 1), 60))
        saved(world, 60 * (n + 2))
        world.see(HostSample(t=world.t, ram_used_bytes=12 * GB, ram_total_bytes=32 * GB, disk_free_bytes=(4 - n) * GB))
    return Told(world, watched=True)


def paused() -> Told:
    world = begun().command("pause")
    return Told(world.watch(Story(meta=False, period_s=5.0).go(120, states={"T": 9}, cpu=0.0)), watched=True)


def suspended() -> Told:
    return Told(begun().watch(Story(meta=False, period_s=5.0).go(240, states={"T": 9}, cpu=0.0)), watched=True)


def backing_off() -> Told:
    return Told(crashed(saved(begun(restart(backoff_s=(600.0,))), 60)).wait(10.0), watched=True)


def hang_snoozed() -> Told:
    return Told(begun(steps=100).watch(quiet(60)).command("snooze").watch(quiet(120)), watched=True)


def hang_asks() -> Told:
    world = saved(begun(restart(act="ask"), steps=100), 90)
    return Told(world.watch(quiet(300)), watched=True)


def hang_only_told() -> Told:
    world = saved(begun(restart(act="notify"), steps=100), 90)
    return Told(world.watch(quiet(300)), watched=True)


def loss_diverges() -> Told:
    falling = [4.0 - n / 200 for n in range(600)]
    return Told(losses(begun(), falling + [4.0 + n / 20 for n in range(400)], 61), watched=True)


def evaluated() -> Told:
    world = begun(Settings(evaluate=Evaluate(command=("eval.py", "{checkpoint}"))), steps=40)
    for step, score in ((40, 0.71), (80, 0.83), (120, 0.79)):
        world.answer("evaluate_checkpoint", score=score, values={"accuracy": score}, metric="accuracy")
        saved(world, step).watch(part(step, 40))
    return Told(world, watched=True)


def backed_up() -> Told:
    world = begun(Settings(backup=Backup(to="/mnt/other")))
    saved(world, 60).watch(part(60, 20))
    world.answer("back_up", ok=False, detail="/mnt/other: No space left on device")
    return Told(saved(world, 80).watch(part(80, 20)), watched=True)


# --- other places ---------------------------------------------------------------------------------------------------

SLURM = {"engine": "slurm"}


def job(world: World, phase: str, **more: Any) -> World:
    return world.see(msgspec.convert({"kind": "job", "t": world.t, "job": "4711", "phase": phase, **more}, JobSeen))


def slurm_queued() -> Told:
    world = World(judge(catalogue=CATALOGUE, created_wall=WALL0)).begin()
    return Told(job(world, "queued", reason="Resources", state="PENDING").wait(3600.0, every_s=60.0), True, SLURM)


def slurm_never_starts() -> Told:
    world = World(judge(catalogue=CATALOGUE, created_wall=WALL0)).begin()
    return Told(job(world, "queued", reason="PartitionNodeLimit", state="PENDING").wait(60.0), True, SLURM)


def slurm_preempted() -> Told:
    world = saved(job(begun(), "running", state="RUNNING", nodes="n1", left_s=3600.0), 60)
    world.see(Exit(t=world.t + 1.0, code=143, job="preempted"))
    return Told(job(world.wait(30.0), "queued", reason="Priority", state="PENDING").wait(60.0), True, SLURM)


def slurm_time_limit() -> Told:
    world = job(begun(), "running", state="RUNNING", nodes="n[1-2]", left_s=30.0)
    world.see(Exit(t=world.t + 1.0, code=143, job="time_limit"))
    return Told(world.wait(30.0).watch(part(0, 30)), True, SLURM)


def adopted() -> Told:
    world = World(judge(catalogue=CATALOGUE, created_wall=WALL0))
    world.see(Start(t=0.0, attempt=1, pid=5001, adopted=True)).begin()
    return Told(world.watch(part(0, 60)), watched=True)


def adopted_and_lost() -> Told:
    world = saved(adopted().world, 60)
    return Told(world.see(Exit(t=world.t + 1.0)).wait(30.0).watch(part(60, 20)))


def spot_machine_ends() -> Told:
    world = saved(begun(), 60).watch(part(60, 10))
    world.see(TerminationNotice(t=world.t, text="the cloud ends this machine at 12:00"))
    return Told(world.see(Exit(t=world.t + 20.0, code=0, signal=None)))


def never_started() -> Told:
    return Told(World(judge(catalogue=CATALOGUE, created_wall=WALL0)))


# --- ends -----------------------------------------------------------------------------------------------------------


def finished() -> Told:
    told = Story(meta=False, period_s=5.0, total=100).load(20).train(60).finish(words=True)
    world = World(judge(catalogue=CATALOGUE, created_wall=WALL0)).begin().watch(told)
    return Told(world.see(Exit(t=world.t + 2.0, code=0)))


def finished_without_proof() -> Told:
    told = Story(meta=False, period_s=5.0).load(20)
    told.train(60, line=lambda n: f"step {n} loss {4 - n / 30:.3f}\n")
    world = World(judge(catalogue=CATALOGUE, created_wall=WALL0)).begin().watch(told)
    return Told(world.see(Exit(t=world.t + 2.0, code=0)))


def ended_early() -> Told:
    world = saved(begun(), 60)
    return Told(world.see(Exit(t=world.t + 2.0, code=0)))


def stopped() -> Told:
    return Told(saved(begun(), 60).command("stop").wait(5.0))


def killed() -> Told:
    return Told(saved(begun(), 60).watch(part(60, 20)).command("kill").wait(5.0))


def shut_down() -> Told:
    return Told(saved(begun(), 60).command("shutdown", stop_trainer=True).wait(5.0))


def interrupted() -> Told:
    """Its supervisor is gone, and so is the trainer."""
    return Told(saved(begun(), 60).watch(part(60, 20)))


def crash_held() -> Told:
    return Told(crashed(saved(begun(restart(act="notify")), 60)).wait(10.0))


def crash_asks() -> Told:
    return Told(crashed(saved(begun(restart(act="ask")), 60)).wait(10.0), watched=True)


def out_of_memory() -> Told:
    world = crashed(begun(), OOM).watch(part())
    return Told(crashed(world, OOM))


def code_bug() -> Told:
    world = crashed(saved(begun(), 60), BUG).wait(60.0).watch(part(60, 20))
    return Told(crashed(world, BUG).wait(60.0))


def network() -> Told:
    return Told(crashed(saved(begun(), 60), NETWORK).wait(120.0).watch(part(60, 30)), watched=True)


def disk_full() -> Told:
    world = saved(begun(), 40)
    world.see(HostSample(t=world.t, disk_free_bytes=0.0, ram_used_bytes=12 * GB, ram_total_bytes=32 * GB))
    return Told(crashed(world, FULL).wait(60.0), watched=True)


def memory_killed() -> Told:
    world = saved(begun(), 60)
    world.see(
        KernelLine(
            t=world.t, text="Out of memory: Killed process 5001 (python) total-vm:90000000kB, anon-rss:60000000kB"
        )
    )
    world.see(Exit(t=world.t + 0.4, signal=9, died_t=world.t + 0.1))
    return Told(world.wait(60.0).watch(part(60, 20)), watched=True)


def budget_runs_out() -> Told:
    world = begun(restart(max_restarts=2, backoff_s=(0.0, 30.0)))
    for n in range(3):
        world.watch(part(0, 50 - 2 * n))
        crashed(world).wait(40.0)
    return Told(world)


def nan() -> Told:
    world = losses(begun(Settings(nan=Nan()), steps=40), [0.5 + n % 7 / 50 for n in range(100)], 41)
    saved(world, 140)
    losses(world, [0.5 + n % 5 / 50 for n in range(40)], 141)
    losses(world, [float("nan")] * 120, 181)
    return Told(world.wait(30.0).watch(part(140, 20)), watched=True)


def weights_are_nan() -> Told:
    world = saved(begun(), 60).watch(part(60, 10))
    path, mtime = "out/step-60", next(e.mtime for e in world.seen if isinstance(e, CheckpointEvent))
    assert mtime is not None
    world.see(CheckpointValues(t=world.t, path=path, mtime=mtime, nonfinite=("unet.a",), nan=("unet.a",), reason="NaN"))
    return Told(crashed(world.wait(5.0)).wait(30.0), watched=True)


def torn_checkpoint() -> Told:
    world = saved(begun(), 40)
    world.wait(1.0)
    saved(world, 60)
    world.answer("verify_checkpoint", verdict="torn", reason="ends after 1.2 of 8.7 MB")
    return Told(crashed(world).watch(part(40, 20)), watched=True)


def profile_changed() -> Told:
    ladder = Settings(profiles=Profiles(use="safe", ladder=("safe", "fast")))
    world = begun(ladder, profiles=("safe", "fast")).command("profile", profile="fast")
    return Told(saved(world, 60).watch(part(60, 20)), watched=True)


def flow(build: Callable[[], World], *, watched: bool = True) -> Callable[[], Told]:
    return lambda: Told(build(), watched)


def sick(name: str, *, watched: bool = True) -> Callable[[], Told]:
    return lambda: Told(of_case(SICK[name](1, 5.0, 1)), watched)


STORIES: dict[str, Callable[[], Told]] = {
    each.__name__: each
    for each in (
        healthy, two_gpus_hot, gpu_lost, disk_fills, paused, suspended, backing_off, hang_snoozed, hang_asks,
        hang_only_told, loss_diverges, evaluated, backed_up, slurm_queued, slurm_never_starts, slurm_preempted,
        slurm_time_limit, adopted, adopted_and_lost, spot_machine_ends, never_started, finished, finished_without_proof, ended_early,
        stopped, killed, shut_down, interrupted, crash_held, crash_asks, out_of_memory, code_bug, network, disk_full,
        memory_killed, budget_runs_out, nan, weights_are_nan, torn_checkpoint, profile_changed,
    )
} | {
    "hang_and_recovery": flow(flows.hang_and_recovery),
    "resume_ignored": flow(flows.resume_is_ignored_by_the_trainer),
    "counts_anew": flow(flows.epoch_is_trained_again_after_a_resume),
    "no_step_is_read": flow(flows.steps_are_not_read),
    "does_not_exit": flow(flows.done_but_does_not_exit, watched=False),
    "only_checkpoint_torn": flow(flows.only_checkpoint_is_torn),
    "hang_held": sick("dies_in_blocked_save"),
    "hang_spins": sick("spins"),
    "slower": sick("becomes_three_times_slower"),
    "starved": sick("starves_polling"),
}  # fmt: skip
