"""Families of runs, healthy and sick: each builds a story for any seed, sampling period and number of GPUs.

A healthy one must pass without a hang or a stop. A sick one says when its trouble began, how it may be called and how
soon it must be found. The latencies are those that trainwatch promises for steps of one to three seconds.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.builders import GpuShape, Story, busy, evaluating, first_only, idle, jumpy, spin

DEAD_S = 150.0
TALKING_S = 420.0
SPIN_S = 420.0
PINNED_S = 900.0
STARTUP_S = 1200.0
PHASE_S = 750.0
EXITING_S = 600.0


@dataclass(frozen=True)
class Sick:
    """``at``: when the trouble began; ``kinds``: names that fit it; ``within_s``: how soon it must be found."""

    at: float
    kinds: tuple[str, ...]
    within_s: float


@dataclass(frozen=True)
class Case:
    """One story with what is expected of it: None = healthy."""

    story: Story
    sick: Sick | None = None


Build = Callable[[int, float, int], Case]
HEALTHY: dict[str, Build] = {}
SICK: dict[str, Build] = {}


def healthy(build: Callable[[Story], Story]) -> Callable[[Story], Story]:
    """Register a healthy family."""
    HEALTHY[build.__name__] = lambda seed, period, gpus: Case(build(new(seed, period, gpus)))
    return build


def sick(kinds: str, within_s: float) -> Callable[[Callable[[Story], Story]], Callable[[Story], Story]]:
    """Register a sick family: the builder marks the moment with ``story.trouble_t``."""

    def register(build: Callable[[Story], Story]) -> Callable[[Story], Story]:
        def make(seed: int, period: float, gpus: int) -> Case:
            story = build(new(seed, period, gpus))
            return Case(story, Sick(story.trouble_t, tuple(kinds.split()), within_s))

        SICK[build.__name__] = make
        return build

    return register


def new(seed: int, period: float, gpus: int) -> Story:
    """A story of this size; its step time depends on the seed."""
    return Story(seed=seed, period_s=period, gpus=gpus, step_s=(1.0, 2.5, 1.7, 3.0)[seed % 4])


def begun(story: Story, steps: int = 200) -> Story:
    """Loaded and training."""
    return story.start().load().train(steps)


def in_trouble(story: Story) -> Story:
    """The trouble begins now."""
    story.trouble_t = story.t
    return story


def scattered(watts: float) -> GpuShape:
    """100 % at a power that scatters by a twelfth."""
    return lambda rng, _gpu: (rng.randint(98, 100), watts * rng.gauss(1.0, 0.06))


# --- healthy ----------------------------------------------------------------------------------------------------


@healthy
def plain(s: Story) -> Story:
    return begun(s, 600)


@healthy
def finished(s: Story) -> Story:
    s.total = 400
    return begun(s, 350).finish(words=True).go(5).exit(0)


@healthy
def slow_save(s: Story) -> Story:
    return begun(s).save(380).train(100)


@healthy
def slow_save_silent(s: Story) -> Story:
    return begun(s).save(300, announce=False).train(100)


@healthy
def mmap_save(s: Story) -> Story:
    return begun(s).save(400, mmap=True).train(100)


@healthy
def unseen_save(s: Story) -> Story:
    return begun(s).save(300, visible=False).train(100)


@healthy
def slow_load(s: Story) -> Story:
    s.start().log("loading model\n")
    return s.go(1900, cpu=0.4, read_per_s=3e7).train(200)


@healthy
def compile_many_cores(s: Story) -> Story:
    s.start().load().log("compiling the model with torch.compile\n")
    return s.go(2200, cpu=3.6).train(200)


@healthy
def compile_one_core(s: Story) -> Story:
    s.start().load().log("compiling the model with torch.compile\n")
    return s.go(1100, cpu=1.0).train(200)


@healthy
def compile_silent(s: Story) -> Story:
    return s.start().load().go(1300, cpu=5.0).train(200)


@healthy
def caching_latents(s: Story) -> Story:
    s.start().load(30).log("caching latents.\n")
    s.go(900, gpu=evaluating, cpu=1.1, read_per_s=2e6)
    return s.train(200)


@healthy
def sparse_20_min(s: Story) -> Story:
    s.start().load()
    for n in range(1, 5):
        s.go(1200, gpu=busy, cpu=1.2, read_per_s=4e6)
        s.log(f"Step {500 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


@healthy
def sparse_50_min_no_reads(s: Story) -> Story:
    s.start().load()
    for n in range(1, 4):
        s.go(3000, gpu=busy, cpu=1.1)
        s.log(f"Step {1000 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


@healthy
def sparse_125_s(s: Story) -> Story:
    return s.start().load().train(600, every=50)


@healthy
def eval_long(s: Story) -> Story:
    return begun(s).evaluate(900).train(100).evaluate(800, bar=False).train(50)


@healthy
def eval_silent(s: Story) -> Story:
    return begun(s).evaluate(600, announce=False, bar=False).train(100)


@healthy
def eval_on_cpu(s: Story) -> Story:
    s = begun(s).log("\nRunning validation\n")
    return s.go(500, gpu=idle, cpu=1.0 * max(1, s.gpus)).train(100)


@healthy
def rank0_evaluates(s: Story) -> Story:
    s = begun(s).log("\n***** Running Evaluation *****\n")
    return s.go(900, gpu=first_only(evaluating, spin), cpu=1.0 * s.gpus).train(100)


@healthy
def rank0_evaluates_silently(s: Story) -> Story:
    return begun(s).go(700, gpu=first_only(evaluating, spin), cpu=1.0 * s.gpus).train(100)


@healthy
def rank0_saves_others_spin(s: Story) -> Story:
    s = begun(s).log("\nsaving checkpoint out/step-200\n")
    return s.go(420, gpu=first_only(idle, spin), cpu=1.0 * s.gpus, write_per_s=6e7).train(100)


@healthy
def dead_pauses_growing(s: Story) -> Story:
    begun(s, 100)
    for pause in (40, 55, 70, 90, 115, 150, 190):
        s.dead(pause).train(30)
    return s


@healthy
def rollouts(s: Story) -> Story:
    s.start().load()
    for n in range(8):
        s.train(20).dead(60 + 10 * s.rng.random() + 6 * n)
    return s.train(5)


@healthy
def data_refill_one_core(s: Story) -> Story:
    begun(s, 100)
    for _ in range(3):
        s.go(400, gpu=idle, cpu=1.0).train(30)
    return s


@healthy
def loader_bound(s: Story) -> Story:
    return s.start().load().train(300, gpu=jumpy, cpu=3.0)


@healthy
def loader_bound_sparse(s: Story) -> Story:
    s.start().load()
    for n in range(1, 6):
        s.go(700, gpu=jumpy, cpu=3.0, read_per_s=2e7)
        s.log(f"Step {200 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


@healthy
def thermal_slow(s: Story) -> Story:
    def hot(rng: object, gpu: int) -> tuple[float, float]:
        return 100, 150

    begun(s)
    return s.train(100, gpu=hot, step_s=3.5 * s.step_s).train(100)


@healthy
def suspended(s: Story) -> Story:
    return begun(s).nothing(5 * 3600).dead(45).train(100)


@healthy
def suspended_in_save(s: Story) -> Story:
    begun(s).log("\nsaving checkpoint\n").go(20, cpu=0.2, write_per_s=1e8)
    return s.nothing(4000).go(60, cpu=0.2, write_per_s=1e8).train(100)


@healthy
def user_stop(s: Story) -> Story:
    return begun(s).go(3000, states={"T": 9}, cpu=0.0).train(100)


@healthy
def user_stop_main_only(s: Story) -> Story:
    return begun(s).go(1500, states={"T": 1, "S": 8}, cpu=0.0).train(100)


@healthy
def telemetry_lost(s: Story) -> Story:
    return begun(s).train(700, see_gpu=False, see_process=False).train(50)


@healthy
def gpu_lost_from_sight_in_save(s: Story) -> Story:
    begun(s).log("\nsaving checkpoint\n")
    return s.go(300, see_gpu=False, cpu=0.2, write_per_s=1e8).train(100)


@healthy
def everything_unseen(s: Story) -> Story:
    return begun(s).ticks(1500).train(100)


@healthy
def no_gpu_numbers(s: Story) -> Story:
    s.util = s.power = False
    return begun(s, 400).evaluate(400).train(100)


@healthy
def no_power_eval(s: Story) -> Story:
    s.power = False
    return begun(s).evaluate(600).train(100)


@healthy
def upload(s: Story) -> Story:
    begun(s).save(30).log("\nUploading model to the hub...\n")
    return s.dead(900, cpu=0.03).train(100)


@healthy
def exit_work(s: Story) -> Story:
    s.total = 400
    begun(s, 350).finish().log("\nUploading 3 files to storage\n")
    return s.dead(1100, cpu=0.02).exit(0)


@healthy
def final_eval(s: Story) -> Story:
    s.total = 400
    return begun(s, 350).finish().evaluate(1500).exit(0)


@healthy
def slow_exit(s: Story) -> Story:
    s.total = 400
    return begun(s, 350).finish(words=True).dead(240).exit(0)


@healthy
def warm_up_slow(s: Story) -> Story:
    s.start().load().train(1, step_s=200)
    return s.train(1, step_s=120).train(200)


@healthy
def epochs_with_pauses(s: Story) -> Story:
    s.total = 60

    def line(step: int) -> str:
        epoch, at = divmod(step - 1, 60)
        return f"\rEpoch {epoch + 1}/10: {100 * (at + 1) // 60}%|  | {at + 1}/60 [01:00<01:00,  2.50s/it, loss=0.1]"

    s.start().load()
    for _ in range(4):
        s.train(60, line=line).go(70, cpu=1.5, read_per_s=1e6)
    return s


@healthy
def sampling_images(s: Story) -> Story:
    begun(s).log("\ngenerating sample images at step: 200\n")
    return s.go(500, gpu=busy, cpu=1.0).train(100)


@healthy
def second_attempt_slow_load(s: Story) -> Story:
    begun(s).log("\nTraceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n").exit(1)
    s.go(30).start()
    return s.go(700, cpu=0.9, read_per_s=5e7).train(200)


@healthy
def eval_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    begun(s).log("\n***** Running Evaluation *****\n")
    return s.dead(800, cpu=0.12).train(50)


@healthy
def sparse_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    s.start().load()
    for n in range(1, 3):
        s.go(3000, gpu=busy, cpu=1.1 * s.gpus)
        s.log(f"Step {1000 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


@healthy
def upload_by_other_words(s: Story) -> Story:
    begun(s).save(30).log("\ntransferring checkpoint to storage node\n")
    return s.dead(700, cpu=0.03).train(50)


@healthy
def woken_up_slowly(s: Story) -> Story:
    begun(s).nothing(1800).dead(100)
    return s.train(40).nothing(240).dead(60).train(20)


@healthy
def two_stages(s: Story) -> Story:
    s.total = 220
    begun(s).train(20).save(20, "out/stage1.safetensors").log("\nloading model for stage 2\n")
    s.step = 0
    return s.go(200, cpu=1.0, read_per_s=5e7).train(100)


@healthy
def helper_died_long_ago(s: Story) -> Story:
    s.start().load()
    for _ in range(4):
        s.train(60).go(100, cpu=0.35, states={"Z": 1, "S": 8})
    return s


@healthy
def eval_asks_a_remote_model(s: Story) -> Story:
    begun(s).log("\n***** Running Evaluation *****\n")
    logs = [(6.0 * n, f"\rEvaluating: {n}%|  | {n}/150 [00:10<00:10, 6.00s/it]") for n in range(150)]
    return s.go(900, cpu=0.03, logs=logs).train(60)


@healthy
def eval_decodes_at_low_power(s: Story) -> Story:
    begun(s).log("\n***** Running Evaluation *****\n")
    logs = [(6.0 * n, f"\rEvaluating: {n}%|  | {n}/200 [00:10<00:10, 6.00s/it]") for n in range(200)]
    return s.spinning(1200, logs=logs).train(60)


@healthy
def download_that_shows_only_its_bar(s: Story) -> Story:
    logs = [(5.0 * n, f"\rmodel.bin: {n // 6}%|  | {n / 60:.2f}G/9.90G [01:00<40:00, 3.4MB/s]") for n in range(500)]
    return s.start().go(2500, cpu=0.02, logs=logs).train(60)


@healthy
def writes_in_bursts(s: Story) -> Story:
    begun(s)
    for _ in range(9):
        s.go(35, cpu=0.05).go(2.5 * s.period_s, cpu=0.4, write_per_s=4e8)
    return s.train(60)


@healthy
def eval_wavers_about_the_power_of_a_spin(s: Story) -> Story:
    begun(s, 300).log("\nRunning validation\n").go(1000, gpu=scattered(157), cpu=1.1)
    return s.train(100)


@healthy
def sparse_on_gpus_not_marked_as_its_own(s: Story) -> Story:
    s.own = False
    s.start().load()
    for _ in range(4):
        s.go(1500, gpu=busy, cpu=1.2)
        s.step += 500
        s.log(f"Step {s.step}, Loss: 0.5\n")
    return s


@healthy
def pauses_at_half_its_power(s: Story) -> Story:
    begun(s, 200)
    for seconds in (90, 140, 200):
        s.go(seconds, gpu=scattered(180), cpu=1.1).train(60)
    return s


@healthy
def small_model_on_one_big_gpu(s: Story) -> Story:
    def light(rng: object, gpu: int) -> tuple[float, float]:
        return 99, 118

    s.gpus = 1
    s.start().load()
    for n in range(1, 4):
        s.go(700, gpu=light, cpu=1.1)
        s.log(f"Step {500 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


@healthy
def waits_for_its_peers_to_come(s: Story) -> Story:
    return s.start().log("waiting for 1 more worker\n").dead(950).load().train(100)


# --- sick -------------------------------------------------------------------------------------------------------


@sick("idle", DEAD_S)
def dies(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900)


@sick("idle", DEAD_S)
def dies_with_metrics_thread(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900, cpu=lambda t: 0.05 + 0.15 * ((t * 7) % 10) / 10)


@sick("idle", DEAD_S)
def dies_with_bursts(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900, cpu=lambda t: 1.0 if t % 60 < 3 else 0.01)


@sick("idle", TALKING_S)
def dies_talking(s: Story) -> Story:
    return in_trouble(begun(s)).dead(1500, talk=lambda t: f"[monitor] {t:.0f} s: memory 15.4 GB, queue 0\n")


@sick("idle", TALKING_S)
def dies_redrawing(s: Story) -> Story:
    begun(s)
    bar = s.bar(s.step)
    return in_trouble(s).dead(1500, talk=lambda _t: bar, every_s=10)


@sick("idle", TALKING_S)
def dies_talking_of_saving(s: Story) -> Story:
    return in_trouble(begun(s)).dead(1500, talk=lambda t: f"warning: waiting for peers since {t:.0f} s\n", every_s=15)


@sick("idle", DEAD_S)
def dies_without_power_reading(s: Story) -> Story:
    s.power = False
    return in_trouble(begun(s)).dead(900)


@sick("idle", DEAD_S * 2)
def dies_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    return in_trouble(begun(s)).dead(900)


@sick("idle", DEAD_S)
def dies_with_more_after_eval(s: Story) -> Story:
    return in_trouble(begun(s).evaluate(300).train(100)).dead(900)


@sick("spin", SPIN_S)
def spins(s: Story) -> Story:
    return in_trouble(begun(s)).spinning(1500)


@sick("spin", SPIN_S)
def spins_talking(s: Story) -> Story:
    logs = [(30.0 * n, "heartbeat ok\n") for n in range(1, 49)]
    return in_trouble(begun(s)).spinning(1500, logs=logs)


@sick("spin", SPIN_S)
def spins_but_one_idle(s: Story) -> Story:
    s.gpus = max(2, s.gpus)
    return in_trouble(begun(s)).spinning(1500, gpu=first_only(idle, spin))


@sick("spin", PINNED_S)
def spins_power_unknown(s: Story) -> Story:
    s.power = False
    return in_trouble(begun(s)).spinning(2500)


@sick("spin", PINNED_S)
def spins_before_first_step(s: Story) -> Story:
    return in_trouble(s.start().load()).spinning(2500)


@sick("spin", PHASE_S)
def spins_in_eval(s: Story) -> Story:
    begun(s).log("\n***** Running Evaluation *****\n")
    s.go(60, gpu=evaluating, cpu=1.2)
    return in_trouble(s).spinning(2000)


@sick("idle starved", STARTUP_S)
def dies_loading(s: Story) -> Story:
    return in_trouble(s.start().load()).dead(2500)


@sick("idle starved", STARTUP_S)
def dies_at_once(s: Story) -> Story:
    return in_trouble(s.start()).dead(2500)


@sick("idle starved", STARTUP_S)
def dies_loading_talking(s: Story) -> Story:
    return in_trouble(s.start().load()).dead(2500, talk=lambda t: "waiting for lock file\n", every_s=60)


@sick("idle", STARTUP_S)
def dies_compiling(s: Story) -> Story:
    s.start().load().log("compiling the model with torch.compile\n").go(120, cpu=4.0)
    return in_trouble(s).dead(2500)


@sick("idle starved", PHASE_S)
def dies_in_eval(s: Story) -> Story:
    begun(s).evaluate(60)
    return in_trouble(s).dead(2000)


@sick("idle starved", PHASE_S)
def dies_in_save(s: Story) -> Story:
    begun(s).save(40, complete=False)
    return in_trouble(s).dead(2000)


@sick("idle starved", PHASE_S)
def dies_in_blocked_save(s: Story) -> Story:
    begun(s).save(40, complete=False)
    return in_trouble(s).dead(2000, states={"D": 1, "S": 8})


@sick("idle", DEAD_S)
def dies_after_save(s: Story) -> Story:
    begun(s).save(40).train(10)
    return in_trouble(s).dead(2000)


@sick("starved", DEAD_S)
def starves_blocked(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900, states={"D": 3, "S": 6})


@sick("starved", DEAD_S)
def starves_zombies(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900, states={"Z": 4, "S": 5})


@sick("starved", DEAD_S)
def starves_workers_gone(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900, procs=3)


@sick("starved", DEAD_S)
def starves_polling(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900, states={"Z": 4, "S": 5}, cpu=0.4)


@sick("spin", PHASE_S)
def spins_in_save(s: Story) -> Story:
    begun(s).save(40, complete=False)
    return in_trouble(s).spinning(2000)


@sick("idle", PHASE_S)
def dies_in_sampling(s: Story) -> Story:
    begun(s).log("\ngenerating sample images at step: 200\n").go(30, gpu=busy, cpu=1.0)
    return in_trouble(s).dead(1500)


@sick("idle", DEAD_S * 2)
def dies_after_pauses(s: Story) -> Story:
    begun(s)
    for pause in (40, 50, 60):
        s.dead(pause).train(20)
    return in_trouble(s).dead(900)


@sick("exiting", EXITING_S)
def does_not_exit_per_epoch(s: Story) -> Story:
    def line(step: int) -> str:
        epoch, at = divmod(step - 1, 50)
        return f"\rEpoch {epoch + 1}/4: {2 * (at + 1)}%|  | {at + 1}/50 [01:00<01:00,  2.50s/it, loss=0.1]"

    s.start().load().train(200, line=line).save(20, "out/model.safetensors", size=8e8)
    return in_trouble(s).dead(1500)


@sick("exiting", EXITING_S)
def does_not_exit(s: Story) -> Story:
    s.total = 400
    return in_trouble(begun(s, 350).finish()).dead(1500)


@sick("exiting", EXITING_S)
def does_not_exit_after_words(s: Story) -> Story:
    s.total = 400
    return in_trouble(begun(s, 350).finish(words=True)).dead(1500, cpu=0.1)


@sick("exiting", EXITING_S)
def does_not_exit_spinning(s: Story) -> Story:
    s.total = 400
    return in_trouble(begun(s, 350).finish()).spinning(1500)


@sick("idle", DEAD_S)
def second_attempt_dies(s: Story) -> Story:
    begun(s).log("\nTraceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n").exit(1)
    s.go(30).start().load().train(6)
    return in_trouble(s).dead(900)


@sick("idle", 600.0)
def dies_after_few_steps(s: Story) -> Story:
    s.start().load().train(3)
    return in_trouble(s).dead(1500)


@sick("idle", 600.0)
def sparse_dies(s: Story) -> Story:
    s.start().load().train(500, every=50)
    return in_trouble(s).dead(1500)


@sick("idle", DEAD_S)
def dies_after_suspend(s: Story) -> Story:
    begun(s).nothing(3600).train(50)
    return in_trouble(s).dead(900)


@sick("spin", SPIN_S)
def second_attempt_spins(s: Story) -> Story:
    begun(s).log("\nTraceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n").exit(1)
    s.go(30).start().load().train(6)
    return in_trouble(s).spinning(1500)


@sick("idle", TALKING_S)
def dies_redrawing_in_pieces(s: Story) -> Story:
    def line(step: int) -> str:
        return f"\rEpoch 0: {step // 5}%|  | {step}/500 [01:00<12:30,  2.50s/it, v_num=3, train_loss=0.555]"

    s.start().load().train(200, line=line)
    bar = line(s.step)
    logs = [
        (20.0 * n + after, piece) for n in range(1, 70) for after, piece in ((0, bar[: 5 + n]), (0.1, bar[5 + n :]))
    ]
    return in_trouble(s).go(1500, logs=logs)


@sick("spin", SPIN_S)
def spins_at_half_its_power(s: Story) -> Story:
    def dim(rng: object, gpu: int) -> tuple[float, float]:
        return 100, 185

    return in_trouble(begun(s, 300)).spinning(2000, gpu=dim)


@sick("spin", SPIN_S)
def spins_at_a_power_that_scatters(s: Story) -> Story:
    return in_trouble(begun(s, 300)).spinning(900, gpu=scattered(195))


@sick("spin", PINNED_S)
def spins_with_power_unknown_after_long_evaluations(s: Story) -> Story:
    s.power = False
    return in_trouble(begun(s, 100).evaluate(700).train(100).evaluate(600).train(60)).spinning(1200)


@sick("spin", SPIN_S)
def spins_at_half_its_power_with_processes_unseen(s: Story) -> Story:
    s.processes = False
    return in_trouble(begun(s, 300)).spinning(900, gpu=scattered(185))


@sick("idle", DEAD_S)
def dies_after_telemetry_came_back(s: Story) -> Story:
    begun(s)
    s.util = s.power = s.processes = False
    s.train(400)
    s.util = s.power = s.processes = True
    return in_trouble(s.train(60)).dead(900)


@sick("spin", PINNED_S)
def spins_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    return in_trouble(begun(s)).spinning(2000)


@sick("idle", DEAD_S)
def dies_under_a_desktop(s: Story) -> Story:
    def desktop(rng: random.Random, gpu: int) -> tuple[float, float]:
        return rng.choice([0, 0, 3, 7, 12]), 50

    s.power = False
    return in_trouble(begun(s)).go(900, gpu=desktop, cpu=0.01)


@sick("idle", DEAD_S)
def dies_at_the_end_of_its_first_epoch(s: Story) -> Story:
    def line(step: int) -> str:
        head = "Epoch 1/50\n" if step == 1 else ""
        return f"{head}\r{step}/250 [====>.........] - ETA: 3:12 - loss: 0.5023"

    return in_trouble(s.start().load().train(250, line=line)).dead(900)


@sick("exiting", EXITING_S)
def does_not_exit_but_named_its_save_final(s: Story) -> Story:
    def line(step: int) -> str:
        return f"iter {step}: loss 2.5{step % 10}, time 250.12ms, mfu 31.20%\n"

    s.start().load().train(200, line=line).save(20, "out/model_final.pth", announce=False)
    return in_trouble(s).dead(1500)


@sick("exiting", EXITING_S)
def does_not_exit_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    s.total = 400
    return in_trouble(begun(s, 350).finish()).spinning(1500)


@sick("idle", DEAD_S)
def dies_but_flushes_its_metrics(s: Story) -> Story:
    in_trouble(begun(s))
    for _ in range(15):
        s.dead(60 - s.period_s).dead(s.period_s, cpu=0.1, write_per_s=5e6 / s.period_s)
    return s


@sick("idle", PHASE_S)
def dies_after_its_eval_bar_stood_still(s: Story) -> Story:
    begun(s).evaluate(600)
    return in_trouble(s).dead(2000)


@sick("spin", STARTUP_S)
def spins_before_first_step_power_unknown(s: Story) -> Story:
    s.power = False
    return in_trouble(s.start().load()).spinning(2500)


@sick("idle", 1900.0)
def dies_while_others_use_the_gpus(s: Story) -> Story:
    s.own = False
    return in_trouble(begun(s)).go(2400, gpu=busy, cpu=0.0)
