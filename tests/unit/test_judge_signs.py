"""Signs of life, step clock, active time, loss and pace, each by itself; hangs that no scenario covers."""

from typing import get_args

import msgspec
import pytest

from tests.builders import Story, World, busy, judge, spin
from tests.scenarios.cases import Case, opened, replayed
from tests.unit.test_judge_recovery import crash, running
from trainwatch.core.judge import memory
from trainwatch.core.judge.attempt_progress import AttemptProgress, lost_steps, with_beat, with_saved
from trainwatch.core.judge.findings import loss, slow
from trainwatch.core.judge.findings import pace as eta
from trainwatch.core.judge.findings.health import Band
from trainwatch.core.judge.hang import activity, deadlines, detector, liveness, pauses
from trainwatch.core.judge.hang import evidence as gpu_signs
from trainwatch.core.judge.hang.activity import GpuNormal
from trainwatch.core.judge.hang.deadlines import StepClock
from trainwatch.core.judge.hang.liveness import Liveness
from trainwatch.core.judge.hang.pauses import ActiveTime
from trainwatch.core.judge.next_step import outlook_of
from trainwatch.core.judge.recovery.commands import SNOOZE_S
from trainwatch.core.judge.resume import checkpoint_index
from trainwatch.core.judge.run_states import Paused
from trainwatch.core.model.observation import (
    CheckpointEvent,
    GpuReading,
    GpuSample,
    HostSample,
    KernelLine,
    LogChunk,
    ProcessSample,
    Tick,
)
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.settings import Hang, Restart, Settings

LEARNED = GpuNormal(index=0, rest_w=44.0, busy_w=290.0, util_pct=97.0)
NEW = GpuNormal(index=0)


@pytest.mark.parametrize(
    ("normal", "util", "power", "limit", "state"),
    [
        (LEARNED, 97, 288, 320, "busy"),
        (LEARNED, 60, 200, 320, "busy"),
        (LEARNED, 100, 115, 320, "spin"),
        (LEARNED, 50, 110, 320, "active"),
        (LEARNED, 8, 60, 320, "idle"),
        (LEARNED, 8, 110, 320, "active"),
        (LEARNED, 1, 46, 320, "idle"),
        (LEARNED, None, 280, None, "busy"),
        (LEARNED, None, 50, None, "idle"),
        (LEARNED, None, 120, None, "active"),
        (LEARNED, None, None, None, "unknown"),
        (LEARNED, 99, None, None, "pinned"),
        (LEARNED, 40, None, None, "active"),
        (LEARNED, 3, None, None, "idle"),
        (NEW, 100, 115, 320, "spin"),
        (NEW, 96, 115, 320, "active"),
        (NEW, 97, 250, 320, "busy"),
        (NEW, 99, 115, None, "pinned"),
        (NEW, 50, 115, None, "active"),
        (NEW, None, 115, None, "unknown"),
        (NEW, 0, 40, 320, "idle"),
        (GpuNormal(index=0, rest_w=285.0, busy_w=290.0), 100, 115, 320, "spin"),
    ],
)
def test_gpu_state_follows_from_utilisation_and_power(
    normal: GpuNormal, util: float | None, power: float | None, limit: float | None, state: str
) -> None:
    reading = GpuReading(index=0, util_pct=util, power_w=power, power_limit_w=limit)
    assert activity.read(normal, reading, idle_util_pct=5.0) == state


def test_power_share_is_unknown_without_power() -> None:
    assert activity.power_share(LEARNED, GpuReading(index=0)) is None


def test_usual_power_is_learned_from_samples_before_a_step() -> None:
    normals: tuple[GpuNormal, ...] = ()
    for util, power in [(0, 40.0), *[(97, 300.0)] * 6, (None, None)]:
        normals = activity.watch(normals, (GpuReading(index=0, util_pct=util, power_w=power),))
    (normal,) = activity.learn(normals)
    assert (normal.rest_w, normal.busy_w, normal.util_pct) == (40.0, 300.0, 97.0)
    assert activity.drop_samples(activity.watch((normal,), (GpuReading(index=0, util_pct=90),)))[0].count == 0


def test_gpu_that_appears_later_is_learned_too() -> None:
    two = activity.watch((LEARNED,), (GpuReading(index=0, util_pct=90), GpuReading(index=1, util_pct=90)))
    assert [n.busy_w for n in two] == [290.0, None]


def test_own_gpus_are_those_marked_as_own() -> None:
    mine, other = GpuReading(index=0, own=True), GpuReading(index=1, own=False)
    assert activity.own_gpus(GpuSample(t=0.0, gpus=(mine, other))) == (mine,)
    assert len(activity.own_gpus(GpuSample(t=0.0, gpus=(other, other)))) == 2


def test_sample_without_gpus_changes_nothing() -> None:
    assert gpu_signs.with_gpus(Liveness(), GpuSample(t=1.0), 1.0, Hang()) == Liveness()
    unknown = gpu_signs.with_gpus(Liveness(), GpuSample(t=1.0, gpus=(GpuReading(index=0),)), 1.0, Hang())
    assert unknown.gpu_at is None


def test_checkpoint_of_the_same_size_is_no_sign_of_life() -> None:
    def seen(world: World, size_bytes: float | None) -> float | None:
        world.see(CheckpointEvent(t=world.t + 2.0, path="a", event="growing", size_bytes=size_bytes))
        return world.state.liveness.file_at

    world = running()
    began = seen(world, 10.0)
    assert began is not None
    assert seen(world, 10.0) == began
    assert seen(world, None) == began + 4.0


def test_io_counters_that_restart_are_no_sign_of_life() -> None:
    first = liveness.with_process(Liveness(), ProcessSample(t=0.0, read_bytes=1e9, cpu_cores=None), 0.0, Hang())
    second = liveness.with_process(first, ProcessSample(t=1.0, read_bytes=5.0), 1.0, Hang())
    assert second.io_at is None


@pytest.mark.parametrize(("idle_cpu_cores", "alive"), [(0.25, False), (0.15, True)])
def test_cpu_below_the_setting_idle_cpu_cores_is_no_sign_of_life(idle_cpu_cores: float, alive: bool) -> None:
    signs = Liveness()
    for second in range(10):
        t = float(second)
        signs = liveness.with_process(signs, ProcessSample(t=t, cpu_cores=0.2), t, Hang(idle_cpu_cores=idle_cpu_cores))
    assert (signs.cpu_alive_at == 9.0) is alive


# --- time -----------------------------------------------------------------------------------------------------------


def test_jump_in_time_is_a_suspend_and_a_long_sampling_period_is_not() -> None:
    line = ActiveTime(t=10.0, period_s=2.0)
    assert pauses.advance(line, 45.0)[1] == 0.0
    line, slept = pauses.advance(line, 3610.0)
    assert slept == 3598.0
    assert pauses.now(line) == 12.0
    assert pauses.advance(ActiveTime(t=10.0, period_s=30.0), 200.0)[1] == 0.0


def test_active_time_does_not_go_back_and_stops_with_the_trainer() -> None:
    line = ActiveTime(t=10.0)
    assert pauses.advance(line, 5.0) == (line, 0.0)
    stopped, _ = pauses.advance(ActiveTime(t=10.0, stopped=True), 500.0)
    assert pauses.now(stopped) == 10.0


def test_sampling_period_is_the_distance_of_rounds() -> None:
    line = ActiveTime()
    for t in (0.0, 0.1, 2.0, 2.1, 4.0, 4.1):
        line, _ = pauses.advance(line, t)
        line = pauses.sampled(line)
    assert line.period_s == pytest.approx(2.0)


def beats(intervals: list[float], announced: bool = False) -> StepClock:
    clock, now = StepClock(), 0.0
    for interval in intervals:
        now += interval
        clock = deadlines.beat(clock, now, 1, 3, announced=announced)
    return clock


def test_no_pace_is_learned_from_warm_up_steps() -> None:
    assert beats([200.0, 90.0, 30.0]).slow_s is None
    assert beats([200.0, 90.0, 30.0, *[2.0] * 16]).slow_s == 2.0


def test_the_wait_for_the_first_line_is_no_usual_distance_of_lines_for_people() -> None:
    """Imports took 14 s, lines come each second: 'usually one every 14.0 s' hid a silence of 40 s."""
    early = beats([14.0, 1.0, 1.2, 1.1, 1.0])
    assert deadlines.told_usual_s(early) == pytest.approx(1.1)
    assert deadlines.usual_s(early) == 14.0, "the deadline allows for it"
    assert deadlines.told_usual_s(beats([14.0, 1.0])) == 14.0, "the first lines compile"
    assert deadlines.told_usual_s(beats([])) is None


def test_one_odd_step_does_not_lengthen_the_deadline() -> None:
    assert beats([2.0] * 40 + [7.0] + [2.0] * 40).slow_s == 2.0


def test_pause_is_learned_apart_from_the_pace() -> None:
    clock = beats([2.0] * 40 + [100.0] + [2.0] * 10)
    assert (clock.slow_s, clock.pause_s) == (2.0, 100.0)
    assert beats([2.0] * 40 + [100.0, 2.0, 50.0]).pause_s == 90.0


def test_pauses_in_a_row_are_the_new_pace() -> None:
    clock = beats([2.0] * 20 + [30.0] * 24)
    assert clock.typical_s == 30.0


def test_announced_phase_does_not_change_the_pace() -> None:
    clock = beats([2.0] * 4 + [60.0], announced=True)
    assert (clock.pause_s, clock.slow_s) == (0.0, None)


# --- how far --------------------------------------------------------------------------------------------------------


def test_position_counts_over_epochs_and_attempts() -> None:
    attempt = AttemptProgress()
    for step in (1, 100, 101, 150):
        attempt = with_beat(attempt, step, 1.0)
    assert attempt.position == 150
    assert with_beat(attempt, 120, 1.0).position == 120  # its workers began again from a checkpoint
    weights = with_beat(AttemptProgress(weights_only=True, resume_position=400), 3, 1.0)
    assert weights.position == 403
    assert with_beat(AttemptProgress(), None, 7.0).beat_t == 7.0


def test_lost_steps_are_unknown_if_a_position_is_unknown() -> None:
    assert lost_steps(None, 3) is None
    assert lost_steps(3, None) is None
    assert lost_steps(10, 4) == 6


def test_stride_of_a_bar_that_counts_batches_follows_from_checkpoints() -> None:
    attempt = AttemptProgress()
    for position, stored in ((83, 40), (165, 80)):  # two batches a step, each noticed a few batches late
        attempt = with_saved(with_beat(attempt, position, 1.0), stored)
    assert attempt.stride == 2
    assert with_saved(attempt, 80) is attempt
    assert lost_steps(260, 240, attempt.stride) == 10


def test_checkpoint_noticed_late_changes_no_stride() -> None:
    attempt = AttemptProgress()
    for position, stored in ((43, 40), (84, 80), (122, 120)):
        attempt = with_saved(with_beat(attempt, position, 1.0), stored)
    assert attempt.stride == 1
    assert with_saved(AttemptProgress(), 40).saved_at is None


def test_eta_follows_from_the_runs_own_pace() -> None:
    pace = eta.Pace()
    progress = Progress(run_step=10, run_total_steps=100, eta_s=77.0)
    assert eta.eta_s(pace, progress) == 77.0
    for n in range(20):
        pace = eta.with_step(pace, n * 10, n * 40.0)
    assert eta.eta_s(pace, progress) == pytest.approx(360.0)
    assert eta.with_step(pace, 5, 900.0).from_step == 5
    assert eta.begin_attempt(pace).s_per_step == pace.s_per_step


def test_the_first_seconds_of_a_run_give_a_time_left() -> None:
    """A run of 12 s had none, and sd-scripts prints a third of the time that is left."""
    progress = Progress(run_step=10, run_total_steps=100, eta_s=30.0)
    pace = eta.with_step(eta.Pace(), 4, 10.0)
    assert eta.eta_s(pace, progress) == 30.0
    assert eta.eta_s(eta.with_step(pace, 5, 11.0), progress) == 30.0  # too short to say
    assert eta.eta_s(eta.with_step(pace, 9, 15.0), progress) == pytest.approx(90.0)
    assert eta.with_step(pace, 4, 15.0) is pace


def test_an_attempt_with_another_pace_gives_its_own_time_left() -> None:
    progress = Progress(run_step=0, run_total_steps=100)
    known = eta.Pace(s_per_step=1.0)
    slower = eta.with_step(eta.with_step(known, 10, 0.0), 20, 40.0)
    assert eta.eta_s(slower, progress) == pytest.approx(400.0)
    once = eta.with_step(slower, 30, 60.0)  # a stretch that is faster for once counts little
    assert 375.0 < (eta.eta_s(once, progress) or 0.0) <= 400.0
    alike = eta.with_step(eta.with_step(known, 10, 0.0), 40, 36.0)
    assert eta.eta_s(alike, progress) == pytest.approx(102.0)


def test_backoff_may_be_empty() -> None:
    assert memory.charge(memory.Budget(used=2), Restart(backoff_s=()))[1] == 0.0


# --- loss, pace -----------------------------------------------------------------------------------------------------


def test_lasting_loss_spike_is_reported_once() -> None:
    trend = loss.Loss()
    for n in range(60):
        trend = loss.with_loss(trend, 0.1 + 0.001 * (n % 3))
    told = 0
    for _ in range(30):
        trend = loss.with_loss(trend, 5.0)
        told += loss.is_spike(trend)
    assert told == 1


def test_loss_spike_and_nan_step_stop_nothing() -> None:
    world = World().begin()
    line = "\rsteps: 1%| | {}/9000 [01:00<1:00:00, 1.0s/it, avr_loss={}]"
    for n in range(1, 101):
        world.see(LogChunk(t=float(n), text=line.format(n, 0.1 if n < 80 else 9.0)))
    world.see(LogChunk(t=101.0, text=line.format(101, "nan")), LogChunk(t=102.0, text=line.format(102, "nan")))
    world.see(LogChunk(t=103.0, text=line.format(103, 0.1)))
    assert [(i.kind, i.class_, i.open) for i in world.incidents] == [("loss", "spike", False), ("loss", "nan", False)]
    assert world.decisions == ["start_attempt"]
    assert world.state.attempt.nan_t is None


def test_nan_on_a_line_without_a_step_is_reported() -> None:
    world = running().see(LogChunk(t=120.0, text="\nloss: nan\n"))
    assert [i.class_ for i in world.incidents] == ["nan"]


def test_slow_down_is_classified_by_what_the_gpus_show() -> None:
    seen = Liveness(normals=(LEARNED,), gpu=("spin",))
    assert slow.classify_slow(seen, {"gpu0.vram": Band(level="warning")}) == "spilling"
    assert slow.classify_slow(seen, {"gpu0.temp": Band(level="danger")}) == "throttled"
    assert slow.classify_slow(seen, {}) == "slow"
    hot = GpuReading(index=0, util_pct=97, power_w=200, throttle=("power cap", "thermal (hardware)"))
    held = gpu_signs.with_gpus(Liveness(), GpuSample(t=0.0, gpus=(hot,)), 0.0, Hang())
    assert held.throttle == ("thermal (hardware)",)
    assert slow.classify_slow(held, {}) == "throttled"
    told = slow.describe_slow(slow.Stall(usual_s=1.0), StepClock(means=(4.0,)), held)
    assert told == "a progress line every 4 s instead of 1 s; the GPU's clocks are held down: thermal (hardware)"


def test_a_slow_down_names_a_fall_of_gpu_utilisation() -> None:
    """A loader that fell behind: 97 % became 45 %, and nothing said so."""
    waiting = (
        Story(meta=False).load(10).train(100).train(60, step_s=8.0, gpu=lambda rng, _: (45 + rng.randint(-2, 2), 120.0))
    )
    (incident,) = World().begin().watch(waiting).incidents
    assert "; GPU utilisation 4" in incident.reason
    assert incident.reason.partition("% instead of ")[2].startswith("9")
    steady = (
        Story(meta=False).load(10).train(100).train(60, step_s=8.0, gpu=lambda rng, _: (83 + rng.randint(-2, 2), 290.0))
    )
    (incident,) = World().begin().watch(steady).incidents
    assert "utilisation" not in incident.reason
    unread = Story(meta=False).load(10).train(100).train(60, step_s=8.0, gpu=lambda *_: (None, 120.0))
    assert "utilisation" not in World().begin().watch(unread).incidents[0].reason


@pytest.mark.parametrize(
    ("step_s", "util", "classes"),
    [(4.2, 30, ["slow"]), (4.2, 60, []), (4.2, 97, []), (2.6, 30, [])],
    ids=["slower and waiting", "slower and partly waiting", "slower", "waiting"],
)
def test_a_smaller_slow_down_is_reported_if_gpu_utilisation_fell_to_less_than_half(
    step_s: float, util: int, classes: list[str]
) -> None:
    story = Story(meta=False).load(10).train(100)
    story.train(60, step_s=step_s, gpu=lambda rng, _: (util + rng.randint(-2, 2), 290.0))
    assert [incident.class_ for incident in World().begin().watch(story).incidents] == classes


def test_slow_down_is_reported_and_closed() -> None:
    story = Story(meta=False).load(10).train(100).train(60, step_s=8.0, gpu=spin).train(40)
    world = World().begin().watch(story)
    (incident,) = world.incidents
    assert (incident.kind, incident.class_, incident.open) == ("stall", "slow", False)
    assert world.decisions == ["start_attempt"]


def test_slow_down_is_closed_when_its_attempt_ends() -> None:
    world = World().begin().watch(Story(meta=False).load(10).train(100).train(60, step_s=8.0))
    crash(world)
    assert world.incidents[0].ending == "the attempt ended"


# --- hang: what the families do not reach ---------------------------------------------------------------------------


def test_old_checkpoint_restarts_only_if_set_and_never_an_advancing_run() -> None:
    asked = Settings(hang=Hang(checkpoint_age_s=300.0))
    story = Story(meta=False).load(10).train(200)
    assert World(judge(asked)).begin().watch(story).incidents == []
    stuck = Story(meta=False).load(10).train(200).go(200, cpu=1.0)
    world = World(judge(asked)).begin().watch(stuck)
    assert [i.class_ for i in world.hangs] == ["idle"]
    assert World().begin().watch(stuck).incidents == []


def test_restart_for_an_old_checkpoint_mentions_a_busy_gpu() -> None:
    asked = Settings(hang=Hang(checkpoint_age_s=300.0, max_s=300.0))
    stuck = Story(meta=False).load(10).train(200).go(800, gpu=busy, cpu=1.0)
    world = World(judge(asked)).begin().watch(stuck)
    assert world.incidents[0].class_ == "spin"
    assert world.incidents[0].reason.startswith("no step although the GPU is busy, and the newest checkpoint is older")
    waits = Story(meta=False).load(10).train(200).go(400, cpu=1.0)
    world = World(judge(asked)).begin().watch(waits)
    assert world.incidents[0].reason.startswith("no step although the CPU is busy")


def test_new_checkpoint_resets_the_checkpoint_age() -> None:
    asked = Settings(hang=Hang(checkpoint_age_s=600.0))
    story = Story(meta=False).load(10).train(200).checkpoint("out/a").train(20).go(200, cpu=1.0)
    assert World(judge(asked)).begin().watch(story).incidents == []


def test_hang_without_any_readings_is_found_after_max_s() -> None:
    blind = Story(meta=False, telemetry=False)
    world = World().begin().watch(blind.train(50).ticks(1700))
    assert world.hangs == []
    world.watch(Story(meta=False, telemetry=False).ticks(300))
    assert [i.class_ for i in world.hangs] == ["idle"]


def test_polling_loop_on_one_core_is_found_after_max_s() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10).train(100).go(2000, cpu=1.0))
    assert [i.reason.split(" (")[0] for i in world.hangs] == ["no step for long, and only one core is busy"]


def test_polling_loop_on_many_cores_is_found_after_twice_max_s() -> None:
    slow = Story(meta=False, period_s=5.0).load(10).train(30, step_s=120.0).checkpoint("out/a")
    world = World().begin().watch(slow.go(3900, cpu=4.0))
    assert "cores are busy, but no GPU works" in world.hangs[0].reason


def test_step_while_evidence_is_taken_cancels_the_stop() -> None:
    world = World(silent={"capture_stacks"}).begin().watch(Story(meta=False).load(10).train(100).dead(144))
    assert world.word == "hung"
    after = Story(meta=False)
    after.step = 100
    world.watch(after.train(2))
    assert world.word == "running"
    assert not world.incidents[0].open
    assert "stop_attempt" not in world.decisions


def test_stop_does_not_wait_for_evidence_longer_than_30_s() -> None:
    world = World(silent={"capture_stacks"}).begin().watch(Story(meta=False).load(10).train(100).dead(200))
    assert "did not come in time" in world.text()
    assert "stop_attempt" in world.decisions


def test_hung_trainer_that_exits_is_a_crash() -> None:
    world = World(silent={"capture_stacks"}).begin().watch(Story(meta=False).load(10).train(100).dead(144))
    crash(world)
    assert [(i.kind, i.ending is not None) for i in world.incidents] == [
        ("quiet", True),
        ("hang", True),
        ("crash", False),
    ]


@pytest.mark.parametrize(
    ("save", "words", "word"), [(True, True, "finished"), (True, False, "finished"), (False, False, "starting")]
)
def test_crash_after_the_training_is_done_counts_as_finished(save: bool, words: bool, word: str) -> None:
    story = Story(meta=False, total=100)
    world = World().begin().watch(story.load(10).train(60).finish(save=save, words=words))
    crash(world, "\n", 139)
    assert world.word == word


@pytest.mark.parametrize(("save", "word"), [(True, "finished"), (False, "starting")])
def test_error_after_the_last_step_does_not_restart_a_training_whose_last_save_is_there(save: bool, word: str) -> None:
    story = Story(meta=False, total=100)
    world = World().begin().watch(story.load(10).train(20).save(5.0, "out/step-20").train(40).finish(save=save))
    crash(world, "\nTraceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n")
    assert world.word == word
    assert "CUDA error" in world.text()


def test_run_killed_by_a_person_is_not_restarted() -> None:
    world = running().see(LogChunk(t=130.0, text="\nKeyboardInterrupt\n"))
    from trainwatch.core.model.observation import Exit

    world.see(Exit(t=131.0, signal=2))
    assert world.word == "stopped"
    assert world.incidents[0].class_ == "killed_by_user"
    assert "signal SIGINT" in world.text()


def test_kernel_lines_and_memory_kills_are_kept_for_the_diagnosis() -> None:
    world = running().see(
        KernelLine(t=130.0, text="NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."),
        HostSample(t=131.0, oom_kills=3),
        HostSample(t=132.0, oom_kills=4),
    )
    crash(world, "\n", 1)
    assert world.incidents[0].kind == "crash"


def test_steps_in_further_logs_are_progress() -> None:
    world = World().begin()
    for n in range(1, 30):
        text = f"Step {n}, Loss: 0.1{n}, LR: 1.00e-04\n"
        world.see(LogChunk(t=5.0 * n, text=text, source="train.log"))
    world.see(LogChunk(t=150.0, text="still here\n", source="train.log"))
    assert world.word == "running"
    assert world.state.attempt.step == 29


def test_removal_of_an_unknown_checkpoint_is_ignored() -> None:
    world = World().see(CheckpointEvent(t=0.0, path="x", event="removed"))
    assert world.entries == []


def test_a_rescan_that_finds_the_same_file_changes_nothing() -> None:
    world = running()
    for n in range(3):
        world.see(CheckpointEvent(t=130.0 + n, path="a", event="complete", step=40, mtime=50.0))
    (known,) = world.state.checkpoints.known
    assert known.t == 130.0
    assert checkpoint_index.find(world.state.checkpoints, None) is None


def test_tick_without_a_wait_does_nothing() -> None:
    world = World().see(Tick(t=5.0))
    assert world.entries == []


# --- power limits and scatter ----------------------------------------------------------------------------------------


def watched(normal: GpuNormal, *, util_pct: float, power_w: float, power_limit_w: float | None = None) -> GpuNormal:
    reading = GpuReading(index=0, util_pct=util_pct, power_w=power_w, power_limit_w=power_limit_w)
    (seen,) = activity.watch((normal,), (reading,))
    return seen


def test_usual_power_is_forgotten_with_another_power_limit() -> None:
    known = GpuNormal(index=0, rest_w=40.0, busy_w=300.0)
    limited = watched(known, util_pct=100.0, power_w=299.0, power_limit_w=320.0)
    assert (limited.busy_w, limited.limit_w) == (300.0, 320.0)
    shifted = watched(limited, util_pct=100.0, power_w=299.0, power_limit_w=330.0)
    assert (shifted.busy_w, shifted.limit_w) == (300.0, 320.0)
    lowered = watched(limited, util_pct=100.0, power_w=199.0, power_limit_w=200.0)
    assert (lowered.busy_w, lowered.limit_w, lowered.rest_w) == (None, 200.0, 40.0)


def test_power_near_100_percent_is_smoothed_until_it_jumps_or_the_gpu_rests() -> None:
    known = GpuNormal(index=0, rest_w=40.0, busy_w=300.0)
    first = watched(known, util_pct=100.0, power_w=180.0)
    assert first.steady_w == 180.0
    second = watched(first, util_pct=100.0, power_w=220.0)
    assert second.steady_w == 188.0
    assert watched(second, util_pct=100.0, power_w=290.0).steady_w == 290.0
    assert watched(second, util_pct=60.0, power_w=200.0).steady_w is None
    assert watched(second, util_pct=0.0, power_w=50.0).steady_w is None


def test_a_trainer_without_measurable_cpu_is_not_alive_by_using_none() -> None:
    """A step of a GPU or of a remote service may cost less than a clock tick."""
    sleeper = Story(meta=False, gpus=0).load(20).train(200, cpu=0.0).dead(900, cpu=0.0)
    assert World().begin().watch(sleeper).hangs[0].class_ == "idle"


def test_the_silence_from_which_ending_is_worth_it_is_the_one_at_which_it_is_decided() -> None:
    for weight in get_args(detector.Weight):
        for loss_s in (0.0, 30.0, 6000.0):
            due_s = detector.worth_ending_from(weight, deadline_s=140.0, loss_s=loss_s)
            assert due_s >= 140.0
            assert detector.is_worth_ending(weight, silent_s=due_s + 0.01, deadline_s=140.0, loss_s=loss_s)
            if due_s > 140.0:
                assert not detector.is_worth_ending(weight, silent_s=due_s - 0.01, deadline_s=140.0, loss_s=loss_s)


def test_how_likely_a_silent_run_is_dead_grows_with_the_silence_and_is_never_certain() -> None:
    for weight in get_args(detector.Weight):
        told = [detector.likelihood(weight, silent_s=s, deadline_s=140.0) for s in (140.0, 200.0, 400.0, 90_000.0)]
        assert told == sorted(told)
        assert 0.15 < told[0] <= told[-1] == detector.CERTAIN
    at_deadline = {w: detector.likelihood(w, silent_s=140.0, deadline_s=140.0) for w in get_args(detector.Weight)}
    assert at_deadline["certain"] > at_deadline["strong"] > at_deadline["even"] > at_deadline["weak"]


def test_a_hang_says_how_likely_it_is() -> None:
    world = World().begin().watch(Story(meta=False).load(60).train(200)).watch(Story(meta=False).dead(400))
    (hang,) = world.hangs
    assert hang.confidence is not None
    assert hang.confidence > 0.9


def test_a_silence_says_when_it_becomes_a_hang() -> None:
    world = World().begin().watch(Story(meta=False).load(60).train(200))
    assert outlook_of(world.judge.knowledge, world.state).hang_t is None
    assert outlook_of(world.judge.knowledge, world.state).usual_s == pytest.approx(2.5, rel=0.2)
    told: list[float] = []
    shift = world.t
    for sample in Story(meta=False).dead(400).observations:
        world.see(msgspec.structs.replace(sample, t=sample.t + shift))
        due_t = outlook_of(world.judge.knowledge, world.state).hang_t
        if due_t is not None and not world.hangs:
            told.append(due_t)
    assert told
    assert told[-1] == pytest.approx(world.hangs[0].t, abs=5.0)
    assert max(told) - min(told) < 10.0


@pytest.mark.parametrize("min_s", [15.0, 30.0, 90.0])
def test_a_silence_counts_down_to_its_hang_from_its_first_seconds(min_s: float) -> None:
    world = (
        World(judge(Settings(hang=Hang(min_s=min_s)))).begin().watch(Story(meta=False, step_s=0.2).load(60).train(60))
    )
    began = world.state.clock.last
    told: list[tuple[float, float]] = []
    shift = world.t
    for sample in Story(meta=False).dead(400).observations:
        world.see(msgspec.structs.replace(sample, t=sample.t + shift))
        due_t = outlook_of(world.judge.knowledge, world.state).hang_t
        if due_t is not None and not world.hangs:
            told.append((world.t - began, due_t))
    assert told[0][0] < 0.5 * min_s + 4.0
    assert all(abs(due_t - world.hangs[0].t) < 5.0 for _, due_t in told)


def test_a_silence_with_signs_of_life_has_no_countdown() -> None:
    def due(story: Story, **more: object) -> float | None:
        world = World().begin().watch(Story(meta=False, step_s=0.2).load(60).train(60))
        state = msgspec.structs.replace(world.watch(story).state, **more)
        return outlook_of(world.judge.knowledge, state).hang_t

    assert due(Story(meta=False).dead(20)) is not None
    assert due(Story(meta=False).go(20, gpu=busy, cpu=1.0)) is None
    assert due(Story(meta=False).dead(2)) is None
    assert due(Story(meta=False).dead(20), asks_since=1.0) is None
    assert due(Story(meta=False).dead(20), machine=Paused(order=1)) is None


def test_a_person_who_waits_puts_the_hang_off_and_is_told_until_when() -> None:
    world = World().begin().watch(Story(meta=False).load(60).train(200)).command("snooze")
    until_t = outlook_of(world.judge.knowledge, world.state).patient_t
    assert until_t == pytest.approx(world.t + SNOOZE_S)
    world.watch(Story(meta=False).dead(200))
    assert outlook_of(world.judge.knowledge, world.state).hang_t == pytest.approx(until_t, abs=5.0)


def test_the_evidence_of_a_hang_says_when_its_sockets_carried_the_last_traffic() -> None:
    waits = (
        Story().start().load().train(200).log("\n***** Running Evaluation *****\n").go(240, net_per_s=5e6).dead(1500)
    )
    (hang,) = [incident for _, incident in opened(replayed(Case(waits)), "hang")]
    assert any(evidence.what.startswith("last traffic of its sockets") for evidence in hang.evidence)


def test_the_steps_of_a_further_log_are_those_of_the_run_if_the_output_shows_none() -> None:
    """``status`` showed no step, no loss and no end of a run whose ``logs`` had all of them."""
    world = World(judge()).begin()
    for step in range(1, 9):
        world.see(LogChunk(t=5.0 * step, text=f"step {step}/100 loss 0.{step}\n", source="out/train.log"))
        world.see(LogChunk(t=5.0 * step + 1.0, text=f"step {step}/100 loss 9\n", source="out/copy.log"))
    assert (world.state.progress.step, world.state.progress.total_steps, world.state.progress.loss) == (8, 100, 0.8)

    for step in (50, 51, 52):
        world.see(LogChunk(t=5.0 * step, text=f"step {step}/100 loss 0.5\n"))
    world.see(LogChunk(t=300.0, text="step 9/100 loss 0.9\n", source="out/train.log"))
    assert world.state.progress.step == 52


def test_the_evidence_of_a_hang_dates_the_last_bytes_by_the_newest_sample_with_any() -> None:
    """A few megabytes beside a dead trainer are no sign of life, and it was said that nothing had moved since long."""
    world = running(steps=100).watch(Story(meta=False).dead(60).dead(2, write_per_s=5e6).dead(140))
    (hang,) = world.hangs
    (told,) = [evidence.what for evidence in hang.evidence if "bytes moved" in evidence.what]
    ago_s = int(told.split()[3])
    assert told == f"last bytes moved {ago_s} s ago (less than 65.5 kB/s since)"
    assert ago_s < (hang.detect_s or 0.0) - 50.0


def test_the_evidence_of_a_hang_says_nothing_of_bytes_that_cannot_be_read() -> None:
    story = Story(meta=False).load(60).train(300).dead(300)
    story.observations = [
        msgspec.structs.replace(seen, read_bytes=None, write_bytes=None) if isinstance(seen, ProcessSample) else seen
        for seen in story.observations
    ]
    (hang,) = World().begin().watch(story).hangs
    unknown = ("read and written", "bytes moved", "nothing read")
    assert not [e.what for e in hang.evidence if any(words in e.what for words in unknown)]
