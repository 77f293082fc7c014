"""Healthy runs: none of them may be called hung or stopped. The name states why it could be."""

from collections.abc import Callable

from tests.builders import Story, busy, evaluating, first_only, idle, jumpy, spin
from tests.scenarios.cases import (
    EVALUATION,
    Build,
    Case,
    begun,
    blind,
    given,
    level,
    near_its_end,
    new,
    scattered,
    wavering,
)
from trainwatch.core.model.observation import Learned
from trainwatch.core.model.run import Habits, PhaseHabit
from trainwatch.core.model.settings import Hang, Settings


def healthy(build: Callable[[Story], Story], *, calm: bool = False) -> Build:
    """A healthy scenario. ``calm``: there is nothing to report, either."""
    return lambda seed, period, gpus: Case(build(new(seed, period, gpus)), calm=calm)


def _stalled_save(s: Story, seconds: float, name: str) -> Story:
    """A mount uploads as the file is closed: half of it was written before, and nothing moves in the trainer."""
    s.checkpoint(name, "created", size=0.0).go(6, cpu=0.3, write_per_s=1e8).checkpoint(name, "growing", size=4e8)
    return s.dead(seconds).checkpoint(name, size=8e8, step=s.step).train(60)


def each_save_stalls_for_four_minutes(s: Story) -> Story:
    begun(s)
    for n in range(3):
        _stalled_save(s, 220, f"out/model-{n}.safetensors")
    return s


def sparse_20_min(s: Story) -> Story:
    s.start().load()
    for n in range(1, 5):
        s.go(1200, gpu=busy, cpu=1.2, read_per_s=4e6)
        s.log(f"Step {500 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


def sparse_50_min_no_reads(s: Story) -> Story:
    s.start().load()
    for n in range(1, 4):
        s.go(3000, gpu=busy, cpu=1.1)
        s.log(f"Step {1000 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


def dead_pauses_growing(s: Story) -> Story:
    begun(s, 100)
    for pause in (40, 55, 70, 90, 115, 150, 190):
        s.dead(pause).train(30)
    return s


def rollouts(s: Story) -> Story:
    s.start().load()
    for n in range(8):
        s.train(20).dead(60 + 10 * s.rng.random() + 6 * n)
    return s.train(5)


def data_refill_one_core(s: Story) -> Story:
    begun(s, 100)
    for _ in range(3):
        s.go(400, gpu=idle, cpu=1.0).train(30)
    return s


def loader_bound_sparse(s: Story) -> Story:
    s.start().load()
    for n in range(1, 6):
        s.go(700, gpu=jumpy, cpu=3.0, read_per_s=2e7)
        s.log(f"Step {200 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


def a_stopped_helper_stays_stopped_while_it_trains(s: Story) -> Story:
    s.start().load()
    for _ in range(100):
        s.train(3, states={"T": 1, "S": 8})
    return s


def its_ranks_are_stopped_and_continued_twice(s: Story) -> Story:
    """The launcher is not stopped; it does not compute."""
    begun(s)
    for _ in range(2):
        s.go(800, states={"T": 4, "S": 5}, cpu=0.0, computing=4, held=4).train(40)
    return s


def epochs_with_pauses(s: Story) -> Story:
    s.total = 60

    def line(step: int) -> str:
        epoch, at = divmod(step - 1, 60)
        return f"\rEpoch {epoch + 1}/10: {100 * (at + 1) // 60}%|  | {at + 1}/60 [01:00<01:00,  2.50s/it, loss=0.1]"

    s.start().load()
    for _ in range(4):
        s.train(60, line=line).go(70, cpu=1.5, read_per_s=1e6)
    return s


def sparse_without_gpu_readings(s: Story) -> Story:
    s.util = s.power = False
    s.start().load()
    for n in range(1, 3):
        s.go(3000, gpu=busy, cpu=1.1 * s.gpus)
        s.log(f"Step {1000 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


def two_stages(s: Story) -> Story:
    s.total = 220
    begun(s).train(20).save(20, "out/stage1.safetensors").log("\nloading model for stage 2\n")
    s.step = 0
    return s.go(200, cpu=1.0, read_per_s=5e7).train(100)


def helper_died_long_ago(s: Story) -> Story:
    s.start().load()
    for _ in range(4):
        s.train(60).go(100, cpu=0.35, states={"Z": 1, "S": 8})
    return s


def writes_in_bursts(s: Story) -> Story:
    begun(s)
    for _ in range(9):
        s.go(35, cpu=0.05).go(2.5 * s.period_s, cpu=0.4, write_per_s=4e8)
    return s.train(60)


def sparse_on_gpus_not_marked_as_its_own(s: Story) -> Story:
    s.own = False
    s.start().load()
    for _ in range(4):
        s.go(1500, gpu=busy, cpu=1.2)
        s.step += 500
        s.log(f"Step {s.step}, Loss: 0.5\n")
    return s


def pauses_at_half_its_power(s: Story) -> Story:
    begun(s, 200)
    for seconds in (90, 140, 200):
        s.go(seconds, gpu=scattered(180), cpu=1.1).train(60)
    return s


def small_model_on_one_big_gpu(s: Story) -> Story:
    s.gpus = 1
    s.start().load()
    for n in range(1, 4):
        s.go(700, gpu=level(99, 118), cpu=1.1)
        s.log(f"Step {500 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


def pauses_double(s: Story) -> Story:
    begun(s, 100)
    for pause in (60, 110, 215, 420):
        s.dead(pause).train(30)
    return s


def rollouts_of_varying_length(s: Story) -> Story:
    begun(s, 100)
    for pause in (42, 50, 48, 205):
        s.dead(pause).train(20)
    return s


def sparse_lines_around_a_silent_evaluation(s: Story) -> Story:
    """One line in 20 minutes; rank 0 computes metrics for ten of them."""
    s.start().load()
    for n in range(1, 7):
        s.go(1200, gpu=busy, cpu=1.2)
        s.log(f"Step {500 * n}, Loss: 0.1{n}, LR: 1.00e-04\n")
    s.go(300, gpu=busy, cpu=1.2).go(620, gpu=first_only(idle, spin), cpu=1.0 * s.gpus).go(300, gpu=busy, cpu=1.2)
    return s.log("Step 3500, Loss: 0.14, LR: 1.00e-04\n")


def waits_for_a_remote_service_without_gpu_readings(s: Story) -> Story:
    """Generates data through an API after 500 s of training: a third of a core, no bytes worth naming.

    With less at risk it is ended once, after a quarter of an hour (decision 92).
    """
    s.util = s.power = False
    return begun(s, round(500 / s.step_s)).go(1000, cpu=0.42 * s.gpus).train(60)


def works_on_its_cpu_in_spells(s: Story) -> Story:
    """Twenty-five seconds of work, then a minute of waiting."""
    begun(s)
    for _ in range(6):
        s.dead(65).go(27, cpu=1.2)
    return s.train(60)


def reads_shards_in_bursts(s: Story) -> Story:
    """A remote file system that hands over 30 MB now and then."""
    begun(s)
    for _ in range(8):
        s.dead(55 - s.period_s).dead(s.period_s, cpu=0.05, write_per_s=3e7 / s.period_s)
    return s.train(60)


def power_limit_is_lowered_at_night(s: Story) -> Story:
    begun(s, 300)
    s.limit_w = 180.0
    for n in range(1, 3):
        s.go(1200, gpu=wavering(99, 100, 165, 3), cpu=1.2)
        s.step += 200
        s.log(f"\nStep {s.step}, Loss: 0.1{n}, LR: 1.00e-04\n")
    return s


def evaluates_with_a_long_bar(s: Story) -> Story:
    """The bar ends in 250 characters of metrics."""
    begun(s).log(EVALUATION)
    metrics = ", ".join(f"metric_{n}=0.{n}5432" for n in range(14))
    logs = [(6.0 * n, f"\rEvaluating: {n}%|  | {n}/150 [00:10<00:10, 6.00s/it, {metrics}]") for n in range(150)]
    return s.go(900, cpu=0.03, logs=logs).train(60)


def breathes_under_a_short_floor(s: Story) -> Story:
    """``min_s = 20``; the loader works for most of a pause of 21 s."""
    s.period_s = min(s.period_s, 2.0)
    s.settings = Settings(hang=Hang(min_s=20.0))
    begun(s)
    for _ in range(5):
        s.go(13, gpu=idle, cpu=1.0, read_per_s=3e7).dead(8.0).train(10)
    return s


def _lines(s: Story, *distances: float) -> Story:
    """A progress line after each so many seconds, the GPU near 100 %."""
    for seconds in distances:
        s.go(seconds, gpu=lambda rng, _gpu: (98 + rng.randint(0, 2), 250), cpu=1.2)
        s.step += 10
        s.log(f"\nStep {s.step}, Loss: 0.11, LR: 1.00e-04\n")
    return s


def hours(s: Story, count: float) -> Story:
    """Training without a checkpoint, sampled seldom."""
    period, s.period_s, s.total = s.period_s, 15.0, 60_000
    begun(s, int(3600 * count / s.step_s))
    s.period_s = period
    return s


def makes_a_smaller_pause_at_half_its_power_with_hours_unsaved(s: Story) -> Story:
    hours(s, 1)
    for seconds in (140, 200):
        s.go(seconds, gpu=scattered(180), cpu=1.1).train(60)
    return s.go(1100, gpu=scattered(180), cpu=1.1).train(20)


def each_epoch_counts_to_the_same_total(s: Story) -> Story:
    """No epoch is printed."""
    s.period_s = 10.0
    s.start().load()
    s.total = 400
    for _ in range(3):
        s.step = 0
        s.train(400, step_s=8.0)
    return s


def rounds_without_a_number_end_early(s: Story) -> Story:
    """Folds, trials, epochs that a break ends: each has the bar of the same total."""
    s.period_s, s.total = 10.0, 1000
    s.start().load()
    for steps in (140, 120, 130, 110, 125):
        s.step = 0
        s.train(steps, step_s=8.0).evaluate(60, announce=False, bar=False)
    return s


def a_failure_is_survived_between_its_folds(s: Story) -> Story:
    """Each fold has the bar of the same total, and a broken epoch beside it."""
    s.period_s, s.total = 10.0, 400

    def line(step: int) -> str:
        return f"{s.bar(step)}\n{{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': {step / 200}}}\n"

    s.start().load()
    for _ in range(3):
        s.step = 0
        s.train(400, step_s=8.0, line=line).log("RuntimeError: CUDA error: unknown error\n")
    return s


def _iteration(step: int) -> str:
    return f"iter {step}: loss 2.5{step % 10}, time 8250.12ms, mfu 31.20%\n"


def each_epoch_counts_from_one_without_a_total(s: Story) -> Story:
    s.period_s = 10.0
    s.start().load()
    for _ in range(3):
        s.step = 0
        s.train(400, step_s=8.0, line=_iteration)
    return s


def evaluates_in_each_epoch_of_an_earlier_count(s: Story) -> Story:
    """Goes back by itself to the best step, after an evaluation of half an hour."""
    s.period_s = 5.0
    begun(s)
    for _ in range(2):
        s.evaluate(1700)
        s.step -= 40
        s.train(45)
    return s


HEALTHY: dict[str, Build] = {
    "plain": healthy(lambda s: begun(s, 600)),
    "finished": healthy(lambda s: near_its_end(s).finish(words=True).go(5).exit(0)),
    "slow_save": healthy(lambda s: begun(s).save(380).train(100)),
    "slow_save_silent": healthy(lambda s: begun(s).save(300, announce=False).train(100)),
    "mmap_save": healthy(lambda s: begun(s).save(400, mmap=True).train(100)),
    "unseen_save": healthy(lambda s: begun(s).save(300, visible=False).train(100)),
    "each_save_stalls_for_four_minutes": healthy(each_save_stalls_for_four_minutes),
    "a_later_save_stalls_for_nine_minutes": healthy(
        lambda s: _stalled_save(begun(s).save(20, announce=False).train(60), 560, "weights/epoch-2.pt")
    ),
    "the_first_save_stalls_for_29_minutes": healthy(lambda s: _stalled_save(begun(s), 1740, "out/model.safetensors")),
    "a_slow_save_takes_four_times_as_long_once": healthy(
        lambda s: _stalled_save(
            _stalled_save(begun(s), 300, "out/model-1.safetensors"), 1300, "out/model-2.safetensors"
        )
    ),
    "slow_load": healthy(lambda s: s.start().log("loading model\n").go(1900, cpu=0.4, read_per_s=3e7).train(200)),
    "compile_many_cores": healthy(
        lambda s: s.start().load().log("compiling the model with torch.compile\n").go(2200, cpu=3.6).train(200)
    ),
    "compile_one_core": healthy(
        lambda s: s.start().load().log("compiling the model with torch.compile\n").go(1100, cpu=1.0).train(200)
    ),
    "compile_silent": healthy(lambda s: s.start().load().go(1300, cpu=5.0).train(200)),
    "caching_latents": healthy(
        lambda s: (
            s.start().load(30).log("caching latents.\n").go(900, gpu=evaluating, cpu=1.1, read_per_s=2e6).train(200)
        )
    ),
    "sparse_20_min": healthy(sparse_20_min),
    "sparse_50_min_no_reads": healthy(sparse_50_min_no_reads),
    "sparse_125_s": healthy(lambda s: s.start().load().train(600, every=50)),
    "eval_long": healthy(lambda s: begun(s).evaluate(900).train(100).evaluate(800, bar=False).train(50)),
    "eval_silent": healthy(lambda s: begun(s).evaluate(600, announce=False, bar=False).train(100)),
    "eval_on_cpu": healthy(
        lambda s: begun(s).log("\nRunning validation\n").go(500, gpu=idle, cpu=1.0 * max(1, s.gpus)).train(100)
    ),
    "rank0_evaluates": healthy(
        lambda s: begun(s).log(EVALUATION).go(900, gpu=first_only(evaluating, spin), cpu=1.0 * s.gpus).train(100)
    ),
    "rank0_evaluates_silently": healthy(
        lambda s: begun(s).go(700, gpu=first_only(evaluating, spin), cpu=1.0 * s.gpus).train(100)
    ),
    "rank0_saves_others_spin": healthy(
        lambda s: (
            begun(s)
            .log("\nsaving checkpoint out/step-200\n")
            .go(420, gpu=first_only(idle, spin), cpu=1.0 * s.gpus, write_per_s=6e7)
            .train(100)
        )
    ),
    "dead_pauses_growing": healthy(dead_pauses_growing),
    "rollouts": healthy(rollouts),
    "data_refill_one_core": healthy(data_refill_one_core),
    "loader_bound": healthy(lambda s: s.start().load().train(300, gpu=jumpy, cpu=3.0)),
    "loader_bound_sparse": healthy(loader_bound_sparse),
    "thermal_slow": healthy(lambda s: begun(s).train(100, gpu=level(100, 150), step_s=3.5 * s.step_s).train(100)),
    "suspended": healthy(lambda s: begun(s).nothing(5 * 3600).dead(45).train(100)),
    "suspended_in_save": healthy(
        lambda s: (
            begun(s)
            .log("\nsaving checkpoint\n")
            .go(20, cpu=0.2, write_per_s=1e8)
            .nothing(4000)
            .go(60, cpu=0.2, write_per_s=1e8)
            .train(100)
        )
    ),
    "user_stop": healthy(lambda s: begun(s).go(3000, states={"T": 9}, cpu=0.0).train(100)),
    "user_stop_main_only": healthy(lambda s: begun(s).go(1500, states={"T": 1, "S": 8}, cpu=0.0).train(100)),
    "a_stopped_helper_stays_stopped_while_it_trains": healthy(
        a_stopped_helper_stays_stopped_while_it_trains, calm=True
    ),
    "its_ranks_are_stopped_and_continued_twice": healthy(its_ranks_are_stopped_and_continued_twice),
    "telemetry_lost": healthy(lambda s: begun(s).train(700, see_gpu=False, see_process=False).train(50)),
    "gpu_lost_from_sight_in_save": healthy(
        lambda s: begun(s).log("\nsaving checkpoint\n").go(300, see_gpu=False, cpu=0.2, write_per_s=1e8).train(100)
    ),
    "everything_unseen": healthy(lambda s: begun(s).ticks(3000).train(100)),
    "no_gpu_numbers": healthy(lambda s: begun(blind(s), 400).evaluate(400).train(100)),
    "no_power_eval": healthy(lambda s: begun(given(s, power=False)).evaluate(600).train(100)),
    "upload": healthy(
        lambda s: begun(s).save(30).log("\nUploading model to the hub...\n").dead(900, cpu=0.03).train(100)
    ),
    "exit_work": healthy(
        lambda s: near_its_end(s).finish().log("\nUploading 3 files to storage\n").dead(1100, cpu=0.02).exit(0)
    ),
    "final_eval": healthy(lambda s: near_its_end(s).finish().evaluate(1500).exit(0)),
    "slow_exit": healthy(lambda s: near_its_end(s).finish(words=True).dead(240).exit(0)),
    "warm_up_slow": healthy(lambda s: s.start().load().train(1, step_s=200).train(1, step_s=120).train(200)),
    "epochs_with_pauses": healthy(epochs_with_pauses),
    "sampling_images": healthy(
        lambda s: begun(s).log("\ngenerating sample images at step: 200\n").go(500, gpu=busy, cpu=1.0).train(100)
    ),
    "second_attempt_slow_load": healthy(
        lambda s: (
            begun(s)
            .log("\nTraceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n")
            .exit(1)
            .go(30)
            .start()
            .go(700, cpu=0.9, read_per_s=5e7)
            .train(200)
        )
    ),
    "eval_without_gpu_readings": healthy(lambda s: begun(blind(s)).log(EVALUATION).dead(800, cpu=0.12).train(50)),
    "sparse_without_gpu_readings": healthy(sparse_without_gpu_readings),
    "upload_by_other_words": healthy(
        lambda s: begun(s).save(30).log("\ntransferring checkpoint to storage node\n").dead(700, cpu=0.03).train(50)
    ),
    "woken_up_slowly": healthy(lambda s: begun(s).nothing(1800).dead(100).train(40).nothing(240).dead(60).train(20)),
    "two_stages": healthy(two_stages),
    "helper_died_long_ago": healthy(helper_died_long_ago),
    "eval_asks_a_remote_model": healthy(
        lambda s: (
            begun(s)
            .log(EVALUATION)
            .go(
                900,
                cpu=0.03,
                logs=[(6.0 * n, f"\rEvaluating: {n}%|  | {n}/150 [00:10<00:10, 6.00s/it]") for n in range(150)],
            )
            .train(60)
        )
    ),
    "eval_asks_a_remote_model_about_three_sets": healthy(
        lambda s: (
            begun(s)
            .log(EVALUATION)
            .go(
                2400,
                cpu=0.03,
                logs=[(8.0 * n, f"\rEvaluating: {n}%|  | {n % 100}/100 [00:10<00:10, 8.00s/it]") for n in range(300)],
            )
            .train(60)
        )
    ),
    "eval_decodes_at_low_power": healthy(
        lambda s: (
            begun(s)
            .log(EVALUATION)
            .spinning(
                1200, logs=[(6.0 * n, f"\rEvaluating: {n}%|  | {n}/200 [00:10<00:10, 6.00s/it]") for n in range(200)]
            )
            .train(60)
        )
    ),
    "download_that_shows_only_its_bar": healthy(
        lambda s: (
            s.start()
            .go(
                2500,
                cpu=0.02,
                logs=[
                    (5.0 * n, f"\rmodel.bin: {n // 6}%|  | {n / 60:.2f}G/9.90G [01:00<40:00, 3.4MB/s]")
                    for n in range(500)
                ],
            )
            .train(60)
        )
    ),
    "writes_in_bursts": healthy(writes_in_bursts),
    "eval_wavers_about_the_power_of_a_spin": healthy(
        lambda s: begun(s, 300).log("\nRunning validation\n").go(1000, gpu=scattered(157), cpu=1.1).train(100)
    ),
    "sparse_on_gpus_not_marked_as_its_own": healthy(sparse_on_gpus_not_marked_as_its_own),
    "pauses_at_half_its_power": healthy(pauses_at_half_its_power),
    "small_model_on_one_big_gpu": healthy(small_model_on_one_big_gpu),
    "waits_for_its_peers_to_come": healthy(
        lambda s: s.start().log("waiting for 1 more worker\n").dead(950).load().train(100)
    ),
    # --- each for one deadline ----------------------------------------------------------------------------------------
    # The other ranks wait in a barrier: COCO metrics, FID, confusion matrices.
    "rank0_computes_metrics_on_its_cpu": healthy(
        lambda s: begun(s).go(300, gpu=first_only(idle, spin), cpu=1.0 * s.gpus).train(60)
    ),
    "rank0_computes_metrics_in_an_announced_evaluation": healthy(
        lambda s: begun(s).log(EVALUATION).go(480, gpu=first_only(idle, spin), cpu=1.0 * s.gpus).train(60)
    ),
    "rank0_prints_while_the_others_wait_for_it": healthy(
        lambda s: (
            begun(s)
            .log(EVALUATION)
            .go(
                720,
                gpu=first_only(idle, spin),
                cpu=1.0 * s.gpus,
                logs=[(20.0 * n, f"scored {n} of 40 classes\n") for n in range(1, 36)],
            )
            .train(60)
        )
    ),
    # ``main_process_first``: the others wait in a barrier and their GPUs spin.
    "rank0_tokenizes_before_the_first_step": healthy(
        lambda s: (
            s.start()
            .load()
            .log("Tokenizing the dataset\n")
            .go(700, gpu=first_only(idle, spin), cpu=1.0 * s.gpus)
            .train(60)
        )
    ),
    "evaluates_after_its_end_with_power_unknown": healthy(
        lambda s: near_its_end(given(s, power=False)).finish().go(1300, gpu=level(100, 250), cpu=1.0).exit(0)
    ),
    "evaluates_silently_with_power_unknown": healthy(
        lambda s: begun(given(s, power=False)).go(700, gpu=level(99, 250), cpu=1.2).train(60)
    ),
    "evaluates_at_full_load_with_power_unknown": healthy(
        lambda s: begun(given(s, power=False)).log(EVALUATION).go(1300, gpu=level(100, 250), cpu=1.2).train(60)
    ),
    # An NFS server that restarts: the loader prints its retries, and nothing else moves.
    "retries_a_lost_mount": healthy(
        lambda s: begun(s).dead(300, talk=lambda t: f"read failed, retrying ({t:.0f} s)\n", every_s=20).train(60)
    ),
    "waits_for_a_lock_and_seldom_prints": healthy(
        lambda s: begun(s).dead(320, talk=lambda t: f"waiting for file lock ({t:.0f} s)\n", every_s=66).train(60)
    ),
    # Compilation in a helper process of the machine, such as a compile server.
    "second_step_compiles_unseen": healthy(lambda s: s.start().load().train(2).dead(340).train(200)),
    "asks_a_remote_model_without_a_bar": healthy(lambda s: begun(s).log(EVALUATION).dead(480, cpu=0.03).train(60)),
    # A container whose processes belong to another user.
    "works_where_nothing_is_read": healthy(lambda s: begun(given(s, processes=False)).go(220, gpu=idle).train(60)),
    # ``ssh`` and ``srun``: what trains is not below them, and this machine's GPU rests.
    "evaluates_silently_on_another_machine": healthy(
        lambda s: (
            s.start()
            .dead(500, cpu=0.01, talk=lambda t: s.bar(int(t)), every_s=2.0)
            .dead(1500, cpu=0.0)
            .log(s.bar(600))
            .dead(60, cpu=0.01)
        )
    ),
    "refills_its_buffer_for_two_minutes": healthy(lambda s: begun(s).dead(118).train(60)),
    "pauses_double": healthy(pauses_double),
    "rollouts_of_varying_length": healthy(rollouts_of_varying_length),
    "sparse_lines_around_a_silent_evaluation": healthy(sparse_lines_around_a_silent_evaluation),
    # Five times as slow as this command ever started.
    "starts_with_cold_caches": healthy(
        lambda s: (
            s.add(Learned(t=0.0, habits=Habits(runs=1, start=PhaseHabit(times=1, longest_s=150.0, quiet_s=20.0))))
            .start()
            .dead(750)
            .train(60)
        )
    ),
    "uploads_for_twenty_minutes_after_its_end": healthy(
        lambda s: near_its_end(s).finish().log("\nUploading 3 files to storage\n").dead(1300, cpu=0.02).exit(0)
    ),
    "waits_for_a_remote_service_without_gpu_readings": healthy(waits_for_a_remote_service_without_gpu_readings),
    "wakes_up_slowly_after_a_short_suspend": healthy(lambda s: begun(s).nothing(110).dead(95).train(60)),
    "works_on_its_cpu_in_spells": healthy(works_on_its_cpu_in_spells),
    "reads_shards_in_bursts": healthy(reads_shards_in_bursts),
    # The first thread waits for it; eight GPUs can be seen, and eight loaders were busy.
    "one_thread_computes_beside_many_gpus_and_a_dead_helper": healthy(
        lambda s: (
            given(s, gpus=8)
            .start()
            .load()
            .train(100, cpu=9.0)
            .go(400, cpu=1.05, states={"S": 9})
            .train(30, cpu=9.0)
            .go(400, cpu=1.05, states={"Z": 1, "S": 8})
            .train(30)
        )
    ),
    # A trainer whose loops run in the GPU: it needs a third of a core, and less between epochs.
    "refills_with_little_cpu": healthy(
        lambda s: s.start().load().train(200, cpu=0.32).go(500, gpu=idle, cpu=0.2).train(60, cpu=0.32)
    ),
    "power_limit_is_lowered_at_night": healthy(power_limit_is_lowered_at_night),
    "evaluates_with_a_long_bar": healthy(evaluates_with_a_long_bar),
    "evaluates_after_a_short_silence": healthy(
        lambda s: begun(s).dead(14).log(EVALUATION).dead(450, cpu=0.03).train(60)
    ),
    # An epoch's index over a slow network: 120 kB a second, and hardly any CPU.
    "reads_slowly": healthy(lambda s: begun(s).go(400, gpu=idle, cpu=0.03, read_per_s=1.2e5).train(60)),
    "breathes_under_a_short_floor": healthy(breathes_under_a_short_floor),
    "is_slow_for_forty_seconds": healthy(
        lambda s: begun(s).train(int(42 / (3 * s.step_s)), step_s=3 * s.step_s).train(100), calm=True
    ),
    # A usual step of 25 s and one of 66 s.
    "makes_one_slow_step": healthy(
        lambda s: s.start().load().train(20, step_s=25.0).train(1, step_s=66.0).train(10, step_s=25.0), calm=True
    ),
    # The first batches come from a cache.
    "begins_faster_than_it_goes_on": healthy(
        lambda s: s.start().load().train(3).train(int(20 / s.step_s)).train(150, step_s=2.6 * s.step_s), calm=True
    ),
    # Two of the last sixteen distances are long, so a long one is nothing new.
    "some_lines_come_three_times_as_late": healthy(
        lambda s: _lines(
            given(s, power=False).start().load(), *[100.0] * 8, 320.0, *[100.0] * 4, 320.0, *[100.0] * 7, 1250.0
        )
    ),
    # A curriculum with larger images: from now on this is the pace.
    "gets_ten_times_slower_with_power_unknown": healthy(
        lambda s: _lines(given(s, power=False).start().load(), *[20.0] * 20, *[200.0] * 9, 1100.0)
    ),
    "evaluates_between_sparse_lines_with_power_unknown": healthy(
        lambda s: _lines(given(s, power=False).start().load(), *[450.0] * 7, 1400.0)
    ),
    # --- uploads, blocked mounts, costs, the slow clock -------------------------------------------------------------------
    # For 200 s and longer after a save; sockets show in no I/O counter.
    "uploads_what_it_saved": healthy(lambda s: begun(s).save(30).go(400, cpu=0.03, net_per_s=2.5e5).train(60)),
    "mount_comes_back_after_eight_minutes": healthy(lambda s: begun(s).dead(480, states={"D": 4, "S": 5}).train(60)),
    "mount_comes_back_and_the_next_step_takes_a_while": healthy(
        lambda s: begun(s).dead(400, states={"D": 4, "S": 5}).dead(130).train(60)
    ),
    "rank0_computes_metrics_with_hours_unsaved": healthy(
        lambda s: hours(s, 3).go(450, gpu=first_only(idle, spin), cpu=1.0 * s.gpus).train(20)
    ),
    "computes_on_its_cpu_with_hours_unsaved_and_no_gpu_readings": healthy(
        lambda s: hours(blind(s), 3).go(1500, cpu=1.2 * s.gpus).train(20)
    ),
    "asks_a_service_with_hours_unsaved_and_no_gpu_readings": healthy(
        lambda s: hours(blind(s), 3).go(1900, cpu=0.42 * s.gpus).train(20)
    ),
    "makes_a_smaller_pause_at_half_its_power_with_hours_unsaved": healthy(
        makes_a_smaller_pause_at_half_its_power_with_hours_unsaved
    ),
    "evaluates_for_an_hour": healthy(lambda s: begun(given(s, period_s=5.0)).evaluate(3600).train(60)),
    "saves_for_an_hour": healthy(lambda s: begun(given(s, period_s=5.0)).save(3600).train(60)),
    "evaluates_for_an_hour_without_a_bar": healthy(
        lambda s: begun(given(s, period_s=5.0)).evaluate(3600, bar=False).train(60)
    ),
    "one_line_comes_after_eighty_minutes": healthy(lambda s: _lines(s.start().load(), *[100.0] * 12, 4900.0, 100.0)),
    "each_epoch_counts_to_the_same_total": healthy(each_epoch_counts_to_the_same_total),
    "each_epoch_counts_from_one_without_a_total": healthy(each_epoch_counts_from_one_without_a_total),
    "rounds_without_a_number_end_early": healthy(rounds_without_a_number_end_early),
    "a_failure_is_survived_between_its_folds": healthy(a_failure_is_survived_between_its_folds),
    "evaluates_in_each_epoch_of_an_earlier_count": healthy(evaluates_in_each_epoch_of_an_earlier_count),
    # One core is busy, nothing is printed.
    "prepares_its_data_for_an_hour_without_gpu_readings": healthy(
        lambda s: blind(s, period_s=5.0).start().load().go(3600, cpu=1.0).train(60)
    ),
}
