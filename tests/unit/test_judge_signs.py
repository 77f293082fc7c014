"""Hangs, slow-downs and ends that no scenario covers, and the pace of a run."""

import msgspec
import pytest

from tests.builders import Story, World, busy, judge, spin
from tests.scenarios.cases import Case, opened, replayed
from tests.unit.test_judge_recovery import crash, running
from trainwatch.core.judge.handlers.hang_check import outlook_of
from trainwatch.core.judge.hang import liveness, rules
from trainwatch.core.judge.resume import checkpoint_index
from trainwatch.core.judge.run_states import Machine, Paused
from trainwatch.core.model.observation import (
    CheckpointEvent,
    GpuReading,
    GpuSample,
    HostSample,
    LogChunk,
    ProcessSample,
)
from trainwatch.core.model.settings import Hang, Settings


def test_checkpoint_of_the_same_size_is_no_sign_of_life() -> None:
    def seen(world: World, size_bytes: float | None) -> float | None:
        world.see(CheckpointEvent(t=world.t + 2.0, path="a", event="growing", size_bytes=size_bytes))
        return world.state.watch.liveness.file_at

    world = running()
    began = seen(world, 10.0)
    assert began is not None
    assert seen(world, 10.0) == began
    assert seen(world, None) == began + 4.0


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


@pytest.mark.parametrize("line", ["global step {}", "step {}: loss 0.{}21"])
@pytest.mark.parametrize("label", ["", "Training: "])
def test_steps_below_a_bar_of_long_epochs_are_progress(line: str, label: str) -> None:
    """A trainer with epochs of over 45 min was ended at 2766 s while it worked and its steps rose."""
    logs = [(5.0 * n, "\n" + line.format(10 * n, n % 7 + 1) + "\n") for n in range(1, 800)]
    bar = f"{label}  0%|          | 0/300 [00:00<?, ?it/s]\n"
    world = World().begin()
    world.watch(Story(meta=False).load().go(4000.0, logs=[(1.0, bar), *logs], cpu=1.2, gpu=lambda *_: (98.0, 300.0)))
    assert not world.hangs


def test_nan_on_a_line_without_a_step_is_reported() -> None:
    world = running().see(LogChunk(t=120.0, text="\nloss: nan\n"))
    assert [i.class_ for i in world.incidents] == ["nan"]


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


def test_old_checkpoint_restarts_only_if_set_and_never_an_advancing_run() -> None:
    asked = Settings(hang=Hang(checkpoint_age_s=300.0))
    story = Story(meta=False).load(10).train(200)
    assert World(judge(asked)).begin().watch(story).incidents == []
    stuck = Story(meta=False).load(10).train(200).go(200, cpu=1.0)
    world = World(judge(asked)).begin().watch(stuck)
    assert [i.class_ for i in world.hangs] == ["idle"]
    assert World().begin().watch(stuck).incidents == []


def test_new_checkpoint_resets_the_checkpoint_age() -> None:
    asked = Settings(hang=Hang(checkpoint_age_s=600.0))
    story = Story(meta=False).load(10).train(200).checkpoint("out/a").train(20).go(200, cpu=1.0)
    assert World(judge(asked)).begin().watch(story).incidents == []


def test_step_while_evidence_is_taken_cancels_the_stop() -> None:
    world = World(silent={"capture_stacks"}).begin().watch(Story(meta=False).load(10).train(100).dead(144))
    assert world.word == "hung"
    world.watch(Story(meta=False, step=100).train(2))
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


def test_a_rescan_that_finds_the_same_file_changes_nothing() -> None:
    world = running()
    for n in range(3):
        world.see(CheckpointEvent(t=130.0 + n, path="a", event="complete", step=40, mtime=50.0, size_bytes=9.0))
    assert [known.t for known in world.state.saved.checkpoints.known] == [130.0]
    world.see(CheckpointEvent(t=140.0, path="a", event="complete", step=60, mtime=50.0, size_bytes=8.0))
    assert [(known.t, known.step) for known in world.state.saved.checkpoints.known] == [(140.0, 60)]
    assert checkpoint_index.find(world.state.saved.checkpoints, None) is None


def test_a_trainer_without_measurable_cpu_is_not_alive_by_using_none() -> None:
    """A step of a GPU or of a remote service may cost less than a clock tick."""
    sleeper = Story(meta=False, gpus=0).load(20).train(200, cpu=0.0).dead(900, cpu=0.0)
    assert World().begin().watch(sleeper).hangs[0].class_ == "idle"


def test_how_likely_a_silent_run_is_dead_grows_with_the_silence_and_is_never_certain() -> None:
    told = [
        rules.Case(weight=weight, silent_s=140.0, deadline_s=140.0).likelihood
        for weight in ("weak", "even", "strong", "certain")
    ]
    assert told == sorted(told)
    assert told[0] > 0.15
    late = rules.Case(weight="weak", silent_s=90_000.0, deadline_s=140.0).likelihood
    assert told[-1] == rules.CERTAIN == late
    (hang,) = World().begin().watch(Story(meta=False).load(60).train(200).dead(400)).hangs
    assert (hang.confidence or 0.0) > 0.9


@pytest.mark.parametrize(("min_s", "step_s"), [(15.0, 0.2), (30.0, 0.2), (90.0, 0.2), (60.0, 2.5)])
def test_a_silence_counts_down_to_its_hang_from_its_first_seconds(min_s: float, step_s: float) -> None:
    trained = Story(meta=False, step_s=step_s).load(60).train(60)
    world = World(judge(Settings(hang=Hang(min_s=min_s)))).begin().watch(trained)
    assert outlook_of(world.judge.knowledge, world.state).hang_t is None
    assert outlook_of(world.judge.knowledge, world.state).usual_s == pytest.approx(step_s, rel=0.2)
    began = world.state.watch.clock.last
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
    def due(story: Story, asks_since: float | None = None, **more: Machine) -> float | None:
        world = World().begin().watch(Story(meta=False, step_s=0.2).load(60).train(60)).watch(story)
        world.change("watch", asks_since=asks_since).change("", **more)
        return outlook_of(world.judge.knowledge, world.state).hang_t

    assert due(Story(meta=False).dead(20)) is not None
    assert due(Story(meta=False).go(20, gpu=busy, cpu=1.0)) is None
    assert due(Story(meta=False).dead(2)) is None
    assert due(Story(meta=False).dead(20), asks_since=80.0) is None
    assert due(Story(meta=False).dead(20), machine=Paused(order=1)) is None


def test_a_person_who_waits_puts_the_hang_off_and_is_told_until_when() -> None:
    world = World().begin().watch(Story(meta=False).load(60).train(200)).command("snooze")
    until_t = outlook_of(world.judge.knowledge, world.state).patient_t
    assert until_t == pytest.approx(world.t + 600.0)
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


def test_sampling_period_is_the_distance_of_rounds() -> None:
    world = World().begin()
    for n in range(3):
        world.see(HostSample(t=2.0 * n), GpuSample(t=2.0 * n + 0.1))
    assert world.state.time.period_s == pytest.approx(2.0)


def test_pause_is_learned_apart_from_the_pace() -> None:
    story = Story(meta=False, step_s=2.0).load(10).train(40).go(100, gpu=busy).train(4).go(50, gpu=busy).train(4)
    clock = World().begin().watch(story).state.watch.clock
    assert clock.slow_s == pytest.approx(2.0, rel=0.3)
    assert clock.pause_s == pytest.approx(90.0, rel=0.1), "a shorter pause makes it fade"


@pytest.mark.parametrize(("util", "power_w", "state"), [(8, 60, "idle"), (8, 110, "active"), (None, 50, "idle")])
def test_gpu_state_follows_from_utilisation_and_power(util: float | None, power_w: float, state: str) -> None:
    usual = liveness.GpuNormal(index=0, rest_w=44.0, busy_w=290.0, util_pct=97.0)
    reading = GpuReading(index=0, util_pct=util, power_w=power_w, power_limit_w=320)
    assert liveness.read(usual, reading) == state
