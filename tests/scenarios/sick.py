"""Sick runs: each marks when its trouble begins, and must be found in time and with the right class."""

import random
from collections.abc import Callable

from tests.builders import Story, busy, evaluating, first_only, idle, spin
from tests.scenarios.cases import (
    BLOCKED_S,
    DEAD_S,
    EXITING_S,
    FIRST_SAVE_S,
    PHASE_S,
    PINNED_S,
    SAVE_S,
    SPIN_S,
    STARTUP_S,
    TALKING_S,
    Build,
    Case,
    Sick,
    begun,
    in_trouble,
    new,
    scattered,
)
from tests.scenarios.healthy import hours
from trainwatch.core.model.observation import Learned, Rank
from trainwatch.core.model.run import Habits, PhaseHabit
from trainwatch.core.model.settings import Hang, Settings

SICK: dict[str, Build] = {}


def sick(
    kinds: str, within_s: float, incident: str = "hang", *, held: bool = False
) -> Callable[[Callable[[Story], Story]], Callable[[Story], Story]]:
    """Register a sick scenario: the builder marks the moment with ``in_trouble``."""

    def register(build: Callable[[Story], Story]) -> Callable[[Story], Story]:
        def make(seed: int, period: float, gpus: int) -> Case:
            story = build(new(seed, period, gpus))
            return Case(story, Sick(story.trouble_t, tuple(kinds.split()), within_s, incident, held))

        SICK[build.__name__] = make
        return build

    return register


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


@sick("idle starved", FIRST_SAVE_S)
def dies_in_save(s: Story) -> Story:
    begun(s).save(40, complete=False)
    return in_trouble(s).dead(2000)


@sick("idle starved", SAVE_S)
def dies_in_a_later_save(s: Story) -> Story:
    begun(s).save(40).train(60).save(30, "out/state-000260", announce=False, complete=False)
    return in_trouble(s).dead(2000)


@sick("idle", DEAD_S)
def dies_although_its_last_words_are_of_a_save_that_is_complete(s: Story) -> Story:
    begun(s).save(40)
    return in_trouble(s).dead(2000)


@sick("spin", SPIN_S)
def spins_although_its_last_words_are_of_a_save_that_is_complete(s: Story) -> Story:
    begun(s).save(40).train(60).save(5, "out/epoch-2.safetensors")
    return in_trouble(s).spinning(2000)


@sick("idle", DEAD_S)
def dies_while_a_save_in_the_background_is_not_complete(s: Story) -> Story:
    begun(s).save(20, announce=False, complete=False).train(60)
    return in_trouble(s).dead(2000)


@sick("starved", FIRST_SAVE_S, held=True)
def dies_in_blocked_save(s: Story) -> Story:
    begun(s).save(40, complete=False)
    return in_trouble(s).dead(2000, states={"D": 1, "S": 8})


@sick("idle", DEAD_S)
def dies_after_save(s: Story) -> Story:
    begun(s).save(40).train(10)
    return in_trouble(s).dead(2000)


@sick("starved", BLOCKED_S, held=True)
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


@sick("idle", DEAD_S)
def dies_beside_a_helper_that_was_stopped_before(s: Story) -> Story:
    """A stopped ``sleep`` in the tree says nothing about the training."""
    s.start().load()
    for _ in range(60):
        s.train(3, states={"T": 1, "S": 8})
    return in_trouble(s).dead(900, states={"T": 1, "S": 8})


@sick("idle", DEAD_S)
def dies_as_a_helper_is_stopped(s: Story) -> Story:
    return in_trouble(begun(s)).go(900, states={"T": 1, "S": 8}, computing=1, held=0)


@sick("starved", DEAD_S)
def one_rank_of_two_is_stopped(s: Story) -> Story:
    return in_trouble(begun(s)).go(900, states={"T": 1, "S": 2}, procs=3, computing=2, held=1)


@sick("starved", DEAD_S)
def one_rank_of_two_is_stopped_and_known(s: Story) -> Story:
    ranks = (Rank(rank=0, pid=101, state="S"), Rank(rank=1, pid=102, state="T"))
    return in_trouble(begun(s)).go(900, states={"T": 1, "S": 2}, procs=3, computing=2, held=1, ranks=ranks)


@sick("starved", DEAD_S)
def one_rank_is_stopped_and_the_others_spin(s: Story) -> Story:
    return in_trouble(begun(s)).spinning(900, states={"T": 1, "S": 8})


@sick("spin", FIRST_SAVE_S)
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


# --- each for one deadline ----------------------------------------------------------------------------------------


@sick("spin", PINNED_S)
def spins_in_an_evaluation_that_prints(s: Story) -> Story:
    begun(s).log("\n***** Running Evaluation *****\n")
    s.go(60, gpu=evaluating, cpu=1.2)
    logs = [(30.0 * n, "heartbeat ok\n") for n in range(1, 60)]
    return in_trouble(s).spinning(2000, logs=logs)


@sick("spin", 1700.0)
def spins_in_an_evaluation_with_power_unknown(s: Story) -> Story:
    s.power = False
    begun(s).log("\n***** Running Evaluation *****\n")
    s.go(60, gpu=evaluating, cpu=1.2)
    return in_trouble(s).spinning(2400)


@sick("idle", PINNED_S)
def dies_in_an_evaluation_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    begun(s).log("\n***** Running Evaluation *****\n").go(30, cpu=1.2)
    return in_trouble(s).dead(2000)


@sick("idle", 1700.0)
def dies_while_uploading(s: Story) -> Story:
    begun(s).save(30).log("\nUploading model to the hub...\n")
    return in_trouble(s).dead(2400)


@sick("idle", 350.0)
def dies_after_a_few_more_words(s: Story) -> Story:
    """The monitor thread prints for two minutes, then nothing does."""
    logs = [(20.0 * n, "queue is empty\n") for n in range(1, 7)]
    return in_trouble(begun(s)).go(900, logs=logs)


@sick("idle", 2 * DEAD_S)
def dies_with_processes_unseen(s: Story) -> Story:
    s.processes = False
    return in_trouble(begun(s)).dead(1200)


@sick("spin", 1000.0)
def spins_between_sparse_lines(s: Story) -> Story:
    """One line in 25 minutes: the next one is not due, but a spin this long is none of the run's habits."""
    s.start().load()
    for n in range(1, 7):
        s.go(1500, gpu=busy, cpu=1.2)
        s.log(f"Step {500 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return in_trouble(s).spinning(2400)


@sick("idle starved", 950.0)
def dies_at_a_start_that_used_to_be_short(s: Story) -> Story:
    s.add(Learned(t=0.0, habits=Habits(runs=1, start=PhaseHabit(times=1, longest_s=145.0, quiet_s=20.0))))
    return in_trouble(s.start()).dead(1500)


@sick("idle", 24.0)
def dies_with_a_short_floor(s: Story) -> Story:
    """``min_s = 20`` for a run of minutes; a metrics thread wakes up once more."""
    s.period_s = min(s.period_s, 2.0)
    s.settings = Settings(hang=Hang(min_s=20.0))
    in_trouble(begun(s))
    return s.go(7, cpu=1.0, read_per_s=3e7).dead(120)


@sick("idle", 3700.0)
def dies_with_all_readings_lost(s: Story) -> Story:
    return in_trouble(begun(s)).ticks(5500)


@sick("idle", 5500.0)
def polls_without_gpu_readings(s: Story) -> Story:
    """Less than a core: a loop that sleeps between its looks at a queue that stays empty."""
    s.util = s.power = False
    s.period_s = 5.0
    return in_trouble(begun(s)).go(8000, cpu=0.4 * s.gpus)


@sick("spin", 2800.0)
def polls_on_many_cores(s: Story) -> Story:
    s.period_s = 5.0
    return in_trouble(begun(s)).go(6000, cpu=4.0)


@sick("idle", 2 * DEAD_S)
def dies_on_a_machine_that_stutters(s: Story) -> Story:
    """Swapping: a sample only every 25 s."""
    in_trouble(begun(s))
    for _ in range(40):
        s.nothing(25).dead(s.period_s)
    return s


@sick("idle", 2 * DEAD_S)
def dies_under_a_slow_sampler_that_stutters(s: Story) -> Story:
    s.period_s = 15.0
    in_trouble(begun(s))
    for _ in range(30):
        s.nothing(70).dead(s.period_s)
    return s


@sick("idle", 2 * DEAD_S)
def dies_with_bursts_under_a_slow_sampler(s: Story) -> Story:
    s.period_s = 20.0
    begun(s)
    s.go((-s.t) % 60.0, gpu=busy, cpu=1.3)
    return in_trouble(s).dead(900, cpu=lambda t: 1.0 if t % 60 < 3 else 0.01)


@sick("idle", DEAD_S)
def dies_but_writes_images_into_its_metrics(s: Story) -> Story:
    in_trouble(begun(s))
    for _ in range(15):
        s.dead(60 - s.period_s).dead(s.period_s, cpu=0.1, write_per_s=1.2e7 / s.period_s)
    return s


@sick("idle", DEAD_S)
def dies_with_a_metrics_thread_in_each_rank(s: Story) -> Story:
    return in_trouble(begun(s)).dead(900, cpu=0.14 * s.gpus)


@sick("idle", DEAD_S)
def dies_although_it_never_used_much_cpu(s: Story) -> Story:
    s.start().load().train(200, cpu=0.32)
    return in_trouble(s).dead(900, cpu=0.06)


@sick("idle", DEAD_S)
def dies_under_a_desktop_with_power(s: Story) -> Story:
    def desktop(rng: random.Random, gpu: int) -> tuple[float, float]:
        return rng.choice([0, 3, 7, 9, 12]), 62

    return in_trouble(begun(s)).go(900, gpu=desktop, cpu=0.01)


@sick("spin", SPIN_S)
def spins_while_the_power_limit_shifts(s: Story) -> Story:
    """A laptop shares its power budget between CPU and GPU."""

    def half(rng: random.Random, gpu: int) -> tuple[float, float]:
        return 99 + rng.randint(0, 1), 145 + rng.uniform(-2, 2)

    in_trouble(begun(s))
    for n in range(40):
        s.limit_w = 320.0 + (24.0 if n % 2 else -12.0)
        s.spinning(30, gpu=half)
    return s


@sick("spin", PHASE_S)
def spins_in_an_evaluation_after_it_was_adopted(s: Story) -> Story:
    """Never seen at rest: the supervisor came while it trained."""

    def half(rng: random.Random, gpu: int) -> tuple[float, float]:
        return 99 + rng.randint(0, 1), 146 + rng.uniform(-2, 2)

    s.start().train(200).log("\n***** Running Evaluation *****\n")
    return in_trouble(s).spinning(1200, gpu=half)


@sick("spin", SPIN_S)
def spins_soon_after_its_first_steps(s: Story) -> Story:
    def half(rng: random.Random, gpu: int) -> tuple[float, float]:
        return 99 + rng.randint(0, 1), 145 + rng.uniform(-2, 2)

    s.start().load(20)
    seconds = 12 * s.period_s
    s.train(int(seconds / s.step_s) + 4)
    return in_trouble(s).spinning(1200, gpu=half)


@sick("idle", 2 * DEAD_S)
def dies_and_its_watchdog_prints_saving(s: Story) -> Story:
    """A phase that a dead trainer prints restarts no wait."""
    logs = [(45.0, "\nsaving checkpoint before abort\n"), (46.0, "done\n")]
    return in_trouble(begun(s)).go(900, logs=logs)


@sick("spin", PINNED_S)
def spins_with_power_unknown_between_lines(s: Story) -> Story:
    s.power = False
    s.start().load().train(600, every=int(110 / s.step_s))
    return in_trouble(s).spinning(2400)


@sick("idle", DEAD_S)
def dies_after_eight_steps(s: Story) -> Story:
    s.start().load().train(8)
    return in_trouble(s).dead(900)


@sick("idle", DEAD_S)
def dies_while_its_gpu_stays_at_full_clocks(s: Story) -> Story:
    """A context keeps the card in P0: 95 W at 2 to 4 %."""

    def waiting(rng: random.Random, gpu: int) -> tuple[float, float]:
        return rng.randint(2, 4), 95 + rng.uniform(-3, 3)

    return in_trouble(begun(s)).go(900, gpu=waiting, cpu=0.01)


@sick("slow throttled", 120.0, "stall")
def becomes_three_times_slower(s: Story) -> Story:
    return in_trouble(begun(s)).train(100, step_s=3 * s.step_s)


@sick("slow throttled", 150.0, "stall")
def wavers_about_half_its_pace(s: Story) -> Story:
    in_trouble(begun(s)).train(int(80 / s.step_s), step_s=2.5 * s.step_s)
    for _ in range(12):
        s.train(int(30 / s.step_s), step_s=1.7 * s.step_s).train(int(80 / s.step_s), step_s=2.4 * s.step_s)
    return s


@sick("slow throttled", 150.0, "stall")
def becomes_slower_after_a_slow_beginning(s: Story) -> Story:
    s.start().load().train(int(70 / s.step_s), step_s=3.3 * s.step_s).train(int(600 / s.step_s))
    return in_trouble(s).train(100, step_s=2.7 * s.step_s)


@sick("spin", PINNED_S)
def spins_with_power_unknown_after_a_slow_beginning(s: Story) -> Story:
    """Lines came every 400 s until caches were warm."""
    s.power = False
    s.start().load()
    for seconds in (*[400] * 8, *[100] * 18):
        s.go(seconds, gpu=busy, cpu=1.2)
        s.step += 10
        s.log(f"\nStep {s.step}, Loss: 0.11, LR: 1.00e-04\n")
    return in_trouble(s).spinning(2600)


@sick("spin", PINNED_S)
def spins_with_power_unknown_after_refills(s: Story) -> Story:
    """Long refills between lines are pauses; they are not its pace."""
    s.power = False
    s.start().load()
    for seconds in (*[25] * 10, 200, *[25] * 4, 200, *[25] * 4, 200, *[25] * 3):
        s.go(seconds, gpu=busy, cpu=1.2)
        s.step += 10
        s.log(f"\nStep {s.step}, Loss: 0.11, LR: 1.00e-04\n")
    return in_trouble(s).spinning(1800)


@sick("spin", PINNED_S)
def spins_without_gpu_readings_soon_after_its_first_steps(s: Story) -> Story:
    s.util = s.power = False
    s.start().load(20).train(4 + int(20 / s.step_s))
    return in_trouble(s).spinning(2000)


@sick("spin", PINNED_S)
def spins_without_gpu_readings_and_names_a_phase_in_each_step(s: Story) -> Story:
    """A trainer that prints a word of an evaluation before each step of 7 s."""

    def line(step: int) -> str:
        return f"\nRunning validation of the batch\nStep {step}, Loss: 0.11, LR: 1.00e-04\n"

    s.util = s.power = False
    s.start().load(20)
    for _ in range(25):
        s.log("\nRunning validation\n").train(1, step_s=7.0, line=line)
    return in_trouble(s).spinning(2400)


# --- uploads, blocked mounts, costs, the slow clock -------------------------------------------------------------------

SLOW_S = 2850.0


@sick("idle", DEAD_S)
def dies_beside_the_heartbeats_of_its_sockets(s: Story) -> Story:
    return in_trouble(begun(s)).go(900, net_per_s=5e4)


@sick("starved", BLOCKED_S, held=True)
def is_blocked_with_half_a_day_unsaved(s: Story) -> Story:
    return in_trouble(hours(s, 12)).dead(1500, states={"D": 4, "S": 5})


@sick("idle", 1100.0)
def dies_after_its_mount_came_back(s: Story) -> Story:
    return in_trouble(begun(s)).dead(500, states={"D": 4, "S": 5}).dead(900)


@sick("idle", DEAD_S)
def dies_with_hours_unsaved(s: Story) -> Story:
    return in_trouble(hours(s, 3)).dead(900)


@sick("spin", 560.0)
def spins_with_hours_unsaved(s: Story) -> Story:
    return in_trouble(hours(s, 3)).spinning(1200)


@sick("spin", 1800.0)
def spins_without_gpu_readings_with_hours_unsaved(s: Story) -> Story:
    s.util = s.power = False
    return in_trouble(hours(s, 3)).spinning(2400)


def _again(s: Story, line: Callable[[int], str] | None = None) -> Story:
    """Workers are lost at step 900 and restarted at 850, for ever."""
    s.period_s = 5.0
    s.start().load()
    s.step = 820
    in_trouble(s.train(80, step_s=2.5, line=line))
    for _ in range(25):
        s.log("\nSignal 11 (SIGSEGV) received by PID 77\nrestarting worker group\nloading checkpoint\n")
        s.go(25, cpu=1.0, read_per_s=8e7)
        s.step = 850
        s.train(50, step_s=2.5, line=line)
    return s


@sick("spin", SLOW_S)
def workers_restart_twenty_times_at_one_place(s: Story) -> Story:
    return _again(s)


@sick("spin", SLOW_S)
def workers_restart_at_one_place_of_an_unknown_total(s: Story) -> Story:
    return _again(s, lambda step: f"iter {step}: loss 2.5{step % 10}, time 2250.12ms, mfu 31.20%\n")


@sick("spin", SLOW_S)
def retries_one_step_out_of_memory(s: Story) -> Story:
    s.period_s = 5.0
    begun(s)
    bar = s.bar(s.step)
    logs = [(20.0 * n, f"\nCUDA out of memory, retrying the batch\n{bar}") for n in range(1, 300)]
    return in_trouble(s).go(6000, gpu=busy, cpu=1.2, logs=logs)


@sick("spin starved", SLOW_S)
def reads_its_own_memory_back_from_the_swap(s: Story) -> Story:
    s.period_s = 5.0
    return in_trouble(begun(s)).go(6000, cpu=0.1, read_per_s=6e6, states={"D": 2, "S": 7})


@sick("idle", 5500.0)
def polls_at_its_start_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    s.period_s = 5.0
    return in_trouble(s.start().load()).go(8000, cpu=0.4 * s.gpus)
