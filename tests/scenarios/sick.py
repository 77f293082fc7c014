"""Sick runs: each marks when its trouble begins, and must be found in time and with the right class."""

import random
from collections.abc import Callable

from tests.builders import Story, busy, evaluating, first_only, idle, spin
from tests.scenarios.cases import (
    BLOCKED_S,
    DEAD_S,
    EVALUATION,
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
    blind,
    given,
    in_trouble,
    level,
    near_its_end,
    new,
    scattered,
    wavering,
)
from tests.scenarios.healthy import hours
from trainwatch.core.model.observation import Learned, Rank
from trainwatch.core.model.run import Habits, PhaseHabit
from trainwatch.core.model.settings import Hang, Settings


def sick(
    kinds: str, within_s: float, build: Callable[[Story], Story], *, incident: str = "hang", held: bool = False
) -> Build:
    """A sick scenario: the story marks the moment with ``in_trouble``."""

    def make(seed: int, period: float, gpus: int) -> Case:
        story = build(new(seed, period, gpus))
        return Case(story, Sick(story.trouble_t, tuple(kinds.split()), within_s, incident, held))

    return make


def dies_redrawing(s: Story) -> Story:
    begun(s)
    bar = s.bar(s.step)
    return in_trouble(s).dead(1500, talk=lambda _t: bar, every_s=10)


def dies_beside_a_helper_that_was_stopped_before(s: Story) -> Story:
    """A stopped ``sleep`` in the tree says nothing about the training."""
    s.start().load()
    for _ in range(60):
        s.train(3, states={"T": 1, "S": 8})
    return in_trouble(s).dead(900, states={"T": 1, "S": 8})


def dies_after_pauses(s: Story) -> Story:
    begun(s)
    for pause in (40, 50, 60):
        s.dead(pause).train(20)
    return in_trouble(s).dead(900)


def does_not_exit_per_epoch(s: Story) -> Story:
    def line(step: int) -> str:
        epoch, at = divmod(step - 1, 50)
        return f"\rEpoch {epoch + 1}/4: {2 * (at + 1)}%|  | {at + 1}/50 [01:00<01:00,  2.50s/it, loss=0.1]"

    s.start().load().train(200, line=line).save(20, "out/model.safetensors", size=8e8)
    return in_trouble(s).dead(1500)


def dies_redrawing_in_pieces(s: Story) -> Story:
    def line(step: int) -> str:
        return f"\rEpoch 0: {step // 5}%|  | {step}/500 [01:00<12:30,  2.50s/it, v_num=3, train_loss=0.555]"

    s.start().load().train(200, line=line)
    bar = line(s.step)
    logs = [
        (20.0 * n + after, piece) for n in range(1, 70) for after, piece in ((0, bar[: 5 + n]), (0.1, bar[5 + n :]))
    ]
    return in_trouble(s).go(1500, logs=logs)


def dies_after_telemetry_came_back(s: Story) -> Story:
    begun(s)
    s.util = s.power = s.processes = False
    s.train(400)
    s.util = s.power = s.processes = True
    return in_trouble(s.train(60)).dead(900)


def dies_under_a_desktop(s: Story) -> Story:
    def desktop(rng: random.Random, gpu: int) -> tuple[float, float]:
        return rng.choice([0, 0, 3, 7, 12]), 50

    s.power = False
    return in_trouble(begun(s)).go(900, gpu=desktop, cpu=0.01)


def dies_at_the_end_of_its_first_epoch(s: Story) -> Story:
    def line(step: int) -> str:
        head = "Epoch 1/50\n" if step == 1 else ""
        return f"{head}\r{step}/250 [====>.........] - ETA: 3:12 - loss: 0.5023"

    return in_trouble(s.start().load().train(250, line=line)).dead(900)


def does_not_exit_but_named_its_save_final(s: Story) -> Story:
    def line(step: int) -> str:
        return f"iter {step}: loss 2.5{step % 10}, time 250.12ms, mfu 31.20%\n"

    s.start().load().train(200, line=line).save(20, "out/model_final.pth", announce=False)
    return in_trouble(s).dead(1500)


def dies_but_flushes_its_metrics(s: Story) -> Story:
    in_trouble(begun(s))
    for _ in range(15):
        s.dead(60 - s.period_s).dead(s.period_s, cpu=0.1, write_per_s=5e6 / s.period_s)
    return s


def spins_between_sparse_lines(s: Story) -> Story:
    """One line in 25 minutes: the next one is not due, but a spin this long is none of the run's habits."""
    s.start().load()
    for n in range(1, 7):
        s.go(1500, gpu=busy, cpu=1.2)
        s.log(f"Step {500 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return in_trouble(s).spinning(2400)


def dies_on_a_machine_that_stutters(s: Story) -> Story:
    """Swapping: a sample only every 25 s."""
    in_trouble(begun(s))
    for _ in range(40):
        s.nothing(25).dead(s.period_s)
    return s


def dies_under_a_slow_sampler_that_stutters(s: Story) -> Story:
    s.period_s = 15.0
    in_trouble(begun(s))
    for _ in range(30):
        s.nothing(70).dead(s.period_s)
    return s


def dies_but_writes_images_into_its_metrics(s: Story) -> Story:
    in_trouble(begun(s))
    for _ in range(15):
        s.dead(60 - s.period_s).dead(s.period_s, cpu=0.1, write_per_s=1.2e7 / s.period_s)
    return s


def saving_little(s: Story) -> Story:
    """A small training on CPUs, 0.01 cores and a save of 285 kB each 50 s: its processes wrote that."""
    s.start()
    for n in range(12):
        bars = [(2.0 * m, s.bar(25 * n + m)) for m in range(1, 25)]
        s.go(50, cpu=0.01, write_per_s=6e3, logs=bars).checkpoint(f"out/step-{25 * n}.pt", size=2.85e5, step=25 * n)
    return s


def dies_under_a_desktop_with_power(s: Story) -> Story:
    def desktop(rng: random.Random, gpu: int) -> tuple[float, float]:
        return rng.choice([0, 3, 7, 9, 12]), 62

    return in_trouble(begun(s)).go(900, gpu=desktop, cpu=0.01)


def spins_while_the_power_limit_shifts(s: Story) -> Story:
    """A laptop shares its power budget between CPU and GPU."""

    in_trouble(begun(s))
    for n in range(40):
        s.limit_w = 320.0 + (24.0 if n % 2 else -12.0)
        s.spinning(30, gpu=wavering(99, 100, 145, 2))
    return s


def wavers_about_half_its_pace(s: Story) -> Story:
    in_trouble(begun(s)).train(int(80 / s.step_s), step_s=2.5 * s.step_s)
    for _ in range(12):
        s.train(int(30 / s.step_s), step_s=1.7 * s.step_s).train(int(80 / s.step_s), step_s=2.4 * s.step_s)
    return s


def spins_with_power_unknown_after_a_slow_beginning(s: Story) -> Story:
    """Lines came every 400 s until caches were warm."""
    s.power = False
    s.start().load()
    for seconds in (*[400] * 8, *[100] * 18):
        s.go(seconds, gpu=busy, cpu=1.2)
        s.step += 10
        s.log(f"\nStep {s.step}, Loss: 0.11, LR: 1.00e-04\n")
    return in_trouble(s).spinning(2600)


def spins_with_power_unknown_after_refills(s: Story) -> Story:
    """Long refills between lines are pauses; they are not its pace."""
    s.power = False
    s.start().load()
    for seconds in (*[25] * 10, 200, *[25] * 4, 200, *[25] * 4, 200, *[25] * 3):
        s.go(seconds, gpu=busy, cpu=1.2)
        s.step += 10
        s.log(f"\nStep {s.step}, Loss: 0.11, LR: 1.00e-04\n")
    return in_trouble(s).spinning(1800)


def spins_without_gpu_readings_and_names_a_phase_in_each_step(s: Story) -> Story:
    """A trainer that prints a word of an evaluation before each step of 7 s."""

    def line(step: int) -> str:
        return f"\nRunning validation of the batch\nStep {step}, Loss: 0.11, LR: 1.00e-04\n"

    s.util = s.power = False
    s.start().load(20)
    for _ in range(25):
        s.log("\nRunning validation\n").train(1, step_s=7.0, line=line)
    return in_trouble(s).spinning(2400)


SLOW_S = 2850.0


SIGNAL = "Signal 11 (SIGSEGV) received by PID 77"


def _again(s: Story, line: Callable[[int], str] | None = None, *, at: int = 850, lost: str = SIGNAL) -> Story:
    """Workers are lost 50 steps after the step at which they are restarted, for ever."""
    s.period_s = 5.0
    s.start().load()
    s.step = at - 30
    in_trouble(s.train(80, step_s=2.5, line=line))
    for _ in range(25):
        s.log(f"\n{lost}\nrestarting worker group\nloading checkpoint\n")
        s.go(25, cpu=1.0, read_per_s=8e7)
        s.step = at
        s.train(50, step_s=2.5, line=line)
    return s


def retries_one_step_out_of_memory(s: Story) -> Story:
    s.period_s = 5.0
    begun(s)
    bar = s.bar(s.step)
    logs = [(20.0 * n, f"\nCUDA out of memory, retrying the batch\n{bar}") for n in range(1, 300)]
    return in_trouble(s).go(6000, gpu=busy, cpu=1.2, logs=logs)


SICK: dict[str, Build] = {
    "dies": sick("idle", DEAD_S, lambda s: in_trouble(begun(s)).dead(900)),
    "dies_with_metrics_thread": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s)).dead(900, cpu=lambda t: 0.05 + 0.15 * ((t * 7) % 10) / 10)
    ),
    "dies_with_bursts": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s)).dead(900, cpu=lambda t: 1.0 if t % 60 < 3 else 0.01)
    ),
    "dies_talking": sick(
        "idle",
        TALKING_S,
        lambda s: in_trouble(begun(s)).dead(1500, talk=lambda t: f"[monitor] {t:.0f} s: memory 15.4 GB, queue 0\n"),
    ),
    "dies_redrawing": sick("idle", TALKING_S, dies_redrawing),
    "dies_talking_of_saving": sick(
        "idle",
        TALKING_S,
        lambda s: in_trouble(begun(s)).dead(
            1500, talk=lambda t: f"warning: waiting for peers since {t:.0f} s\n", every_s=15
        ),
    ),
    "dies_without_power_reading": sick("idle", DEAD_S, lambda s: in_trouble(begun(given(s, power=False))).dead(900)),
    "dies_without_gpu_readings": sick("idle", DEAD_S * 2, lambda s: in_trouble(begun(blind(s))).dead(900)),
    "dies_with_more_after_eval": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s).evaluate(300).train(100)).dead(900)
    ),
    "spins": sick("spin", SPIN_S, lambda s: in_trouble(begun(s)).spinning(1500)),
    "spins_talking": sick(
        "spin",
        SPIN_S,
        lambda s: in_trouble(begun(s)).spinning(1500, logs=[(30.0 * n, "heartbeat ok\n") for n in range(1, 49)]),
    ),
    "spins_but_one_idle": sick(
        "spin",
        SPIN_S,
        lambda s: in_trouble(begun(given(s, gpus=max(2, s.gpus)))).spinning(1500, gpu=first_only(idle, spin)),
    ),
    "spins_power_unknown": sick("spin", PINNED_S, lambda s: in_trouble(begun(given(s, power=False))).spinning(2500)),
    "spins_before_first_step": sick("spin", PINNED_S, lambda s: in_trouble(s.start().load()).spinning(2500)),
    "spins_in_eval": sick(
        "spin", PHASE_S, lambda s: in_trouble(begun(s).log(EVALUATION).go(60, gpu=evaluating, cpu=1.2)).spinning(2000)
    ),
    "dies_loading": sick("idle starved", STARTUP_S, lambda s: in_trouble(s.start().load()).dead(2500)),
    "dies_at_once": sick("idle starved", STARTUP_S, lambda s: in_trouble(s.start()).dead(2500)),
    "dies_loading_talking": sick(
        "idle starved",
        STARTUP_S,
        lambda s: in_trouble(s.start().load()).dead(2500, talk=lambda t: "waiting for lock file\n", every_s=60),
    ),
    "dies_compiling": sick(
        "idle",
        STARTUP_S,
        lambda s: in_trouble(s.start().load().log("compiling the model with torch.compile\n").go(120, cpu=4.0)).dead(
            2500
        ),
    ),
    "dies_in_eval": sick("idle starved", PHASE_S, lambda s: in_trouble(begun(s).evaluate(60)).dead(2000)),
    "dies_in_save": sick(
        "idle starved", FIRST_SAVE_S, lambda s: in_trouble(begun(s).save(40, complete=False)).dead(2000)
    ),
    "dies_in_a_later_save": sick(
        "idle starved",
        SAVE_S,
        lambda s: in_trouble(
            begun(s).save(40).train(60).save(30, "out/state-000260", announce=False, complete=False)
        ).dead(2000),
    ),
    "dies_although_its_last_words_are_of_a_save_that_is_complete": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s).save(40)).dead(2000)
    ),
    "spins_although_its_last_words_are_of_a_save_that_is_complete": sick(
        "spin",
        SPIN_S,
        lambda s: in_trouble(begun(s).save(40).train(60).save(5, "out/epoch-2.safetensors")).spinning(2000),
    ),
    "dies_while_a_save_in_the_background_is_not_complete": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s).save(20, announce=False, complete=False).train(60)).dead(2000)
    ),
    "dies_in_blocked_save": sick(
        "starved",
        FIRST_SAVE_S,
        lambda s: in_trouble(begun(s).save(40, complete=False)).dead(2000, states={"D": 1, "S": 8}),
        held=True,
    ),
    "dies_after_save": sick("idle", DEAD_S, lambda s: in_trouble(begun(s).save(40).train(10)).dead(2000)),
    "starves_blocked": sick(
        "starved", BLOCKED_S, lambda s: in_trouble(begun(s)).dead(900, states={"D": 3, "S": 6}), held=True
    ),
    "starves_zombies": sick("starved", DEAD_S, lambda s: in_trouble(begun(s)).dead(900, states={"Z": 4, "S": 5})),
    "starves_workers_gone": sick("starved", DEAD_S, lambda s: in_trouble(begun(s)).dead(900, procs=3)),
    "starves_polling": sick(
        "starved", DEAD_S, lambda s: in_trouble(begun(s)).dead(900, states={"Z": 4, "S": 5}, cpu=0.4)
    ),
    "dies_beside_a_helper_that_was_stopped_before": sick("idle", DEAD_S, dies_beside_a_helper_that_was_stopped_before),
    "dies_as_a_helper_is_stopped": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s)).go(900, states={"T": 1, "S": 8}, computing=1, held=0)
    ),
    "one_rank_of_two_is_stopped": sick(
        "starved", DEAD_S, lambda s: in_trouble(begun(s)).go(900, states={"T": 1, "S": 2}, procs=3, computing=2, held=1)
    ),
    "one_rank_of_two_is_stopped_and_known": sick(
        "starved",
        DEAD_S,
        lambda s: in_trouble(begun(s)).go(
            900,
            states={"T": 1, "S": 2},
            procs=3,
            computing=2,
            held=1,
            ranks=(Rank(rank=0, pid=101, state="S"), Rank(rank=1, pid=102, state="T")),
        ),
    ),
    "one_rank_is_stopped_and_the_others_spin": sick(
        "starved", DEAD_S, lambda s: in_trouble(begun(s)).spinning(900, states={"T": 1, "S": 8})
    ),
    "spins_in_save": sick("spin", FIRST_SAVE_S, lambda s: in_trouble(begun(s).save(40, complete=False)).spinning(2000)),
    "dies_in_sampling": sick(
        "idle",
        PHASE_S,
        lambda s: in_trouble(begun(s).log("\ngenerating sample images at step: 200\n").go(30, gpu=busy, cpu=1.0)).dead(
            1500
        ),
    ),
    "dies_after_pauses": sick("idle", DEAD_S * 2, dies_after_pauses),
    "does_not_exit_per_epoch": sick("exiting", EXITING_S, does_not_exit_per_epoch),
    "does_not_exit": sick("exiting", EXITING_S, lambda s: in_trouble(near_its_end(s).finish()).dead(1500)),
    "does_not_exit_after_words": sick(
        "exiting", EXITING_S, lambda s: in_trouble(near_its_end(s).finish(words=True)).dead(1500, cpu=0.1)
    ),
    "does_not_exit_spinning": sick("exiting", EXITING_S, lambda s: in_trouble(near_its_end(s).finish()).spinning(1500)),
    "second_attempt_dies": sick(
        "idle",
        DEAD_S,
        lambda s: in_trouble(
            begun(s)
            .log("\nTraceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n")
            .exit(1)
            .go(30)
            .start()
            .load()
            .train(6)
        ).dead(900),
    ),
    "dies_after_few_steps": sick("idle", 600.0, lambda s: in_trouble(s.start().load().train(3)).dead(1500)),
    "sparse_dies": sick("idle", 600.0, lambda s: in_trouble(s.start().load().train(500, every=50)).dead(1500)),
    "dies_after_suspend": sick("idle", DEAD_S, lambda s: in_trouble(begun(s).nothing(3600).train(50)).dead(900)),
    "second_attempt_spins": sick(
        "spin",
        SPIN_S,
        lambda s: in_trouble(
            begun(s)
            .log("\nTraceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n")
            .exit(1)
            .go(30)
            .start()
            .load()
            .train(6)
        ).spinning(1500),
    ),
    "dies_redrawing_in_pieces": sick("idle", TALKING_S, dies_redrawing_in_pieces),
    "spins_at_half_its_power": sick(
        "spin", SPIN_S, lambda s: in_trouble(begun(s, 300)).spinning(2000, gpu=level(100, 185))
    ),
    "spins_at_a_power_that_scatters": sick(
        "spin", SPIN_S, lambda s: in_trouble(begun(s, 300)).spinning(900, gpu=scattered(195))
    ),
    "spins_with_power_unknown_after_long_evaluations": sick(
        "spin",
        PINNED_S,
        lambda s: in_trouble(
            begun(given(s, power=False), 100).evaluate(700).train(100).evaluate(600).train(60)
        ).spinning(1200),
    ),
    "spins_at_half_its_power_with_processes_unseen": sick(
        "spin", SPIN_S, lambda s: in_trouble(begun(given(s, processes=False), 300)).spinning(900, gpu=scattered(185))
    ),
    "dies_after_telemetry_came_back": sick("idle", DEAD_S, dies_after_telemetry_came_back),
    "spins_without_gpu_readings": sick("spin", PINNED_S, lambda s: in_trouble(begun(blind(s))).spinning(2000)),
    "dies_under_a_desktop": sick("idle", DEAD_S, dies_under_a_desktop),
    "dies_at_the_end_of_its_first_epoch": sick("idle", DEAD_S, dies_at_the_end_of_its_first_epoch),
    "does_not_exit_but_named_its_save_final": sick("exiting", EXITING_S, does_not_exit_but_named_its_save_final),
    "does_not_exit_without_gpu_readings": sick(
        "exiting", EXITING_S, lambda s: in_trouble(begun(blind(s, total=400), 350).finish()).spinning(1500)
    ),
    "dies_but_flushes_its_metrics": sick("idle", DEAD_S, dies_but_flushes_its_metrics),
    "dies_after_its_eval_bar_stood_still": sick(
        "idle", PHASE_S, lambda s: in_trouble(begun(s).evaluate(600)).dead(2000)
    ),
    "spins_before_first_step_power_unknown": sick(
        "spin", STARTUP_S, lambda s: in_trouble(given(s, power=False).start().load()).spinning(2500)
    ),
    "dies_while_others_use_the_gpus": sick(
        "idle", 1900.0, lambda s: in_trouble(begun(given(s, own=False))).go(2400, gpu=busy, cpu=0.0)
    ),
    # No CUDA_VISIBLE_DEVICES: all count as its own, but only the first one holds its memory.
    "dies_at_its_start_beside_gpus_at_work_for_others": sick(
        "idle",
        1900.0,
        lambda s: in_trouble(given(s, gpus=max(2, s.gpus), held=(0,)).start().load()).go(
            3000, gpu=first_only(idle, busy), cpu=0.0
        ),
    ),
    "dies_in_an_evaluation_beside_gpus_at_work_for_others": sick(
        "idle",
        1900.0,
        lambda s: in_trouble(begun(given(s, gpus=max(2, s.gpus), held=(0,))).log(EVALUATION).go(60, cpu=1.2)).go(
            3000, gpu=first_only(idle, busy), cpu=0.0
        ),
    ),
    # --- each for one deadline ----------------------------------------------------------------------------------------
    "spins_in_an_evaluation_that_prints": sick(
        "spin",
        PINNED_S,
        lambda s: in_trouble(begun(s).log(EVALUATION).go(60, gpu=evaluating, cpu=1.2)).spinning(
            2000, logs=[(30.0 * n, "heartbeat ok\n") for n in range(1, 60)]
        ),
    ),
    "spins_in_an_evaluation_with_power_unknown": sick(
        "spin",
        1700.0,
        lambda s: in_trouble(begun(given(s, power=False)).log(EVALUATION).go(60, gpu=evaluating, cpu=1.2)).spinning(
            2400
        ),
    ),
    "dies_in_an_evaluation_without_gpu_readings": sick(
        "idle", PINNED_S, lambda s: in_trouble(begun(blind(s)).log(EVALUATION).go(30, cpu=1.2)).dead(2000)
    ),
    "dies_while_uploading": sick(
        "idle", 1700.0, lambda s: in_trouble(begun(s).save(30).log("\nUploading model to the hub...\n")).dead(2400)
    ),
    # The monitor thread prints for two minutes, then nothing does.
    "dies_after_a_few_more_words": sick(
        "idle",
        350.0,
        lambda s: in_trouble(begun(s)).go(900, logs=[(20.0 * n, "queue is empty\n") for n in range(1, 7)]),
    ),
    "dies_with_processes_unseen": sick(
        "idle", 2 * DEAD_S, lambda s: in_trouble(begun(given(s, processes=False))).dead(1200)
    ),
    "spins_between_sparse_lines": sick("spin", 1000.0, spins_between_sparse_lines),
    "dies_at_a_start_that_used_to_be_short": sick(
        "idle starved",
        950.0,
        lambda s: in_trouble(
            s.add(
                Learned(t=0.0, habits=Habits(runs=1, start=PhaseHabit(times=1, longest_s=145.0, quiet_s=20.0)))
            ).start()
        ).dead(1500),
    ),
    # ``min_s = 20`` for a run of minutes; a metrics thread wakes up once more.
    "dies_with_a_short_floor": sick(
        "idle",
        24.0,
        lambda s: (
            in_trouble(begun(given(s, period_s=min(s.period_s, 2.0), settings=Settings(hang=Hang(min_s=20.0)))))
            .go(7, cpu=1.0, read_per_s=3e7)
            .dead(120)
        ),
    ),
    "dies_with_all_readings_lost": sick("idle", 3700.0, lambda s: in_trouble(begun(s)).ticks(5500)),
    # Less than a core: a loop that sleeps between its looks at a queue that stays empty.
    "polls_without_gpu_readings": sick(
        "idle", 5500.0, lambda s: in_trouble(begun(blind(s, period_s=5.0))).go(8000, cpu=0.4 * s.gpus)
    ),
    "polls_on_many_cores": sick("spin", 2800.0, lambda s: in_trouble(begun(given(s, period_s=5.0))).go(6000, cpu=4.0)),
    "dies_on_a_machine_that_stutters": sick("idle", 2 * DEAD_S, dies_on_a_machine_that_stutters),
    "dies_under_a_slow_sampler_that_stutters": sick("idle", 2 * DEAD_S, dies_under_a_slow_sampler_that_stutters),
    "dies_with_bursts_under_a_slow_sampler": sick(
        "idle",
        2 * DEAD_S,
        lambda s: in_trouble(begun(given(s, period_s=20.0)).go((-s.t) % 60.0, gpu=busy, cpu=1.3)).dead(
            900, cpu=lambda t: 1.0 if t % 60 < 3 else 0.01
        ),
    ),
    "dies_but_writes_images_into_its_metrics": sick("idle", DEAD_S, dies_but_writes_images_into_its_metrics),
    "dies_with_a_metrics_thread_in_each_rank": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s)).dead(900, cpu=0.14 * s.gpus)
    ),
    "dies_although_it_never_used_much_cpu": sick(
        "idle", DEAD_S, lambda s: in_trouble(s.start().load().train(200, cpu=0.32)).dead(900, cpu=0.06)
    ),
    "dies_although_it_used_next_to_no_cpu": sick(
        "idle",
        DEAD_S,
        lambda s: in_trouble(
            s.start().go(500, gpu=busy, cpu=0.05, logs=[(2.0 * n, s.bar(n)) for n in range(1, 250)])
        ).dead(900, cpu=0.0),
    ),
    "dies_without_a_gpu_after_small_saves": sick(
        "idle", DEAD_S, lambda s: in_trouble(saving_little(given(s, gpus=0))).dead(900, cpu=0.0)
    ),
    "dies_under_a_desktop_with_power": sick("idle", DEAD_S, dies_under_a_desktop_with_power),
    "spins_while_the_power_limit_shifts": sick("spin", SPIN_S, spins_while_the_power_limit_shifts),
    # Never seen at rest: the supervisor came while it trained.
    "spins_in_an_evaluation_after_it_was_adopted": sick(
        "spin",
        PHASE_S,
        lambda s: in_trouble(s.start().train(200).log(EVALUATION)).spinning(1200, gpu=wavering(99, 100, 146, 2)),
    ),
    "spins_soon_after_its_first_steps": sick(
        "spin",
        SPIN_S,
        lambda s: in_trouble(s.start().load(20).train(int(12 * s.period_s / s.step_s) + 4)).spinning(
            1200, gpu=wavering(99, 100, 145, 2)
        ),
    ),
    # A phase that a dead trainer prints restarts no wait.
    "dies_and_its_watchdog_prints_saving": sick(
        "idle",
        2 * DEAD_S,
        lambda s: in_trouble(begun(s)).go(900, logs=[(45.0, "\nsaving checkpoint before abort\n"), (46.0, "done\n")]),
    ),
    "spins_with_power_unknown_between_lines": sick(
        "spin",
        PINNED_S,
        lambda s: in_trouble(given(s, power=False).start().load().train(600, every=int(110 / s.step_s))).spinning(2400),
    ),
    "dies_after_eight_steps": sick("idle", DEAD_S, lambda s: in_trouble(s.start().load().train(8)).dead(900)),
    # A context keeps the card in P0: 95 W at 2 to 4 %.
    "dies_while_its_gpu_stays_at_full_clocks": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s)).go(900, gpu=wavering(2, 4, 95, 3), cpu=0.01)
    ),
    "becomes_three_times_slower": sick(
        "slow throttled", 120.0, lambda s: in_trouble(begun(s)).train(100, step_s=3 * s.step_s), incident="stall"
    ),
    "wavers_about_half_its_pace": sick("slow throttled", 150.0, wavers_about_half_its_pace, incident="stall"),
    "becomes_slower_after_a_slow_beginning": sick(
        "slow throttled",
        150.0,
        lambda s: in_trouble(
            s.start().load().train(int(70 / s.step_s), step_s=3.3 * s.step_s).train(int(600 / s.step_s))
        ).train(100, step_s=2.7 * s.step_s),
        incident="stall",
    ),
    "spins_with_power_unknown_after_a_slow_beginning": sick(
        "spin", PINNED_S, spins_with_power_unknown_after_a_slow_beginning
    ),
    "spins_with_power_unknown_after_refills": sick("spin", PINNED_S, spins_with_power_unknown_after_refills),
    "spins_without_gpu_readings_soon_after_its_first_steps": sick(
        "spin", PINNED_S, lambda s: in_trouble(blind(s).start().load(20).train(4 + int(20 / s.step_s))).spinning(2000)
    ),
    "spins_without_gpu_readings_and_names_a_phase_in_each_step": sick(
        "spin", PINNED_S, spins_without_gpu_readings_and_names_a_phase_in_each_step
    ),
    # --- uploads, blocked mounts, costs, the slow clock -------------------------------------------------------------------
    "dies_beside_the_heartbeats_of_its_sockets": sick(
        "idle", DEAD_S, lambda s: in_trouble(begun(s)).go(900, net_per_s=5e4)
    ),
    "is_blocked_with_half_a_day_unsaved": sick(
        "starved", BLOCKED_S, lambda s: in_trouble(hours(s, 12)).dead(1500, states={"D": 4, "S": 5}), held=True
    ),
    "dies_after_its_mount_came_back": sick(
        "idle", 1100.0, lambda s: in_trouble(begun(s)).dead(500, states={"D": 4, "S": 5}).dead(900)
    ),
    # A thread draws the load of the machine as a bar (tqdm with ``n`` set to it).
    "dies_but_draws_a_gauge": sick(
        "idle",
        PHASE_S,
        lambda s: in_trouble(begun(s)).go(
            3000, logs=[(10.0 * n, f"\rcpu%:  5%|   | {5 + 7 * n % 9}.0/100 [10:00<00:00]") for n in range(1, 300)]
        ),
    ),
    "dies_with_hours_unsaved": sick("idle", DEAD_S, lambda s: in_trouble(hours(s, 3)).dead(900)),
    "spins_with_hours_unsaved": sick("spin", 560.0, lambda s: in_trouble(hours(s, 3)).spinning(1200)),
    "spins_without_gpu_readings_with_hours_unsaved": sick(
        "spin", 1800.0, lambda s: in_trouble(hours(blind(s), 3)).spinning(2400)
    ),
    "workers_restart_twenty_times_at_one_place": sick("spin", SLOW_S, _again),
    "workers_restart_at_one_place_of_an_unknown_total": sick(
        "spin",
        SLOW_S,
        lambda s: _again(s, lambda step: f"iter {step}: loss 2.5{step % 10}, time 2250.12ms, mfu 31.20%\n"),
    ),
    "workers_fail_and_restart_from_the_beginning": sick(
        "spin", SLOW_S, lambda s: _again(s, at=30, lost="RuntimeError: CUDA error: unknown error")
    ),
    "retries_one_step_out_of_memory": sick("spin", SLOW_S, retries_one_step_out_of_memory),
    "reads_its_own_memory_back_from_the_swap": sick(
        "spin starved",
        SLOW_S,
        lambda s: in_trouble(begun(given(s, period_s=5.0))).go(6000, cpu=0.1, read_per_s=6e6, states={"D": 2, "S": 7}),
    ),
    "polls_at_its_start_without_gpu_readings": sick(
        "idle", 5500.0, lambda s: in_trouble(blind(s, period_s=5.0).start().load()).go(8000, cpu=0.4 * s.gpus)
    ),
}
