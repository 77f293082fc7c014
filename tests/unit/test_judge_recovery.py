"""From failure to proof of life: order, choice of checkpoint, budget, giving up."""

import pytest

from tests.builders import Story, World, judge
from tests.shipped import CATALOGUE
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import AttemptEnded, BudgetChanged, PhaseChanged, ProgressMade, StateChanged
from trainwatch.core.model.observation import CheckpointEvent, Exit, HostSample, KernelLine, LogChunk, Outcome
from trainwatch.core.model.preset import Preset, ResumeSupport
from trainwatch.core.model.settings import Restart, Settings

CUDA = "\nRuntimeError: CUDA error: unknown error\n"


def story(steps: int = 40) -> Story:
    return Story(meta=False, period_s=5.0).load(10).train(steps)


def running(mind: Judge | None = None, steps: int = 40) -> World:
    return World(mind).begin().watch(story(steps))


def crash(world: World, text: str = CUDA, code: int = 1) -> World:
    return world.see(LogChunk(t=world.t, text=text), Exit(t=world.t + 0.5, code=code, died_t=world.t + 0.1))


def save(world: World, path: str = "out/step-40", step: int | None = 40, event: str = "complete") -> World:
    return world.see(CheckpointEvent(t=world.t, path=path, event=event, step=step, size_bytes=1e6))  # type: ignore[arg-type]


def judge_of_everything(settings: Settings | None = None) -> Judge:
    """A judge with the shipped catalogue."""
    return judge(settings, catalogue=CATALOGUE)


def quick(**restart: object) -> Settings:
    return Settings(restart=Restart(**restart))  # type: ignore[arg-type]


def loading(mind: Judge | None = None) -> World:
    """A trainer that has not made a step."""
    return World(mind).begin().watch(Story(meta=False, period_s=5.0).load(10))


def test_giving_up_shows_what_a_person_needs() -> None:
    world = running(judge(quick(max_restarts=1, backoff_s=(0.0,))))
    crash(world).watch(story(12))
    crash(world.see(KernelLine(t=world.t, text="misc dxg: make_resident: -12")))
    assert "1 restart without a new checkpoint" in world.of(GiveUp)[0].reason
    body = world.of(NotifyPeople)[-1].body
    assert "attempt 1: crash (cuda_unknown_error) at step 40; attempt 2: crash" in body
    assert "kernel log" in body
    assert "trainwatch report" in body


def test_the_same_hang_at_the_same_step_is_deterministic_too() -> None:
    world = running(judge(quick(max_restarts=9)), steps=100).watch(Story(meta=False).dead(200))
    world.watch(story(100)).watch(Story(meta=False).dead(200))
    assert [i.kind for i in world.incidents] == ["quiet", "hang", "quiet", "hang"]
    assert world.decisions[-4:] == ["capture_stacks", "stop_attempt", "give_up", "end_watch"]
    assert "hang at step 100 again" in world.of(GiveUp)[0].reason


def test_only_a_new_checkpoint_pays_the_budget_back() -> None:
    world = running(judge(quick(max_restarts=1, backoff_s=(0.0,))))
    at = 0
    for n in range(4):
        crash(world)
        more = Story(meta=False, step=at)
        world.watch(more.load(10).train(25))
        at = more.step
        save(world, f"out/step-{at}", at)
        assert world.word == "running", n
    assert [b.used for b in world.of(BudgetChanged)] == [1, 0, 1, 0, 1, 0, 1, 0]
    world = running(judge(quick(max_restarts=1, backoff_s=(0.0,))))
    save(world, "out/step-40", 40)
    for _ in range(2):
        crash(world)
        world.watch(story(40))
        save(world, "out/step-40", 40)
    assert world.word == "given_up"


def test_a_resume_that_went_further_shows_a_checkpoint_that_nobody_saw() -> None:
    """Saves in a container, or of an unknown make: a run that lost an hour a night was given up at its seventh end."""
    world = World(judge(quick(backoff_s=(0.0,)), resume_support=ResumeSupport(by_itself=True))).begin()
    for n in range(9):
        for step in range(100 * n + 1, 100 * n + 121):
            world.see(LogChunk(t=world.t + 1.0, text=f"\nstep {step}/10260 loss: 0.5"))
        crash(world)
    assert (world.word, world.state.policy.budget.unsaved) == ("starting", 1)


def test_backoff_waits_longer_each_time() -> None:
    world = running(judge(quick(max_restarts=4, backoff_s=(0.0, 10.0, 60.0))))
    waits = []
    for n in range(4):
        crash(world)
        due = [s.until_t - world.t for s in world.of(StateChanged) if s.state == "backing_off" and s.until_t]
        waits.append(due[-1] if world.word == "backing_off" else 0.0)
        world.wait(waits[-1] + 1.0)
        world.watch(story(5 + 5 * n))
    assert waits == pytest.approx([0.0, 10.0, 60.0, 60.0])


def test_one_that_stands_still_and_is_not_whole_is_told_when_its_writer_is_gone() -> None:
    world = save(running(), "out/step-20", 20).wait(1.0)
    world.see(CheckpointEvent(t=world.t, path="out/step-40", event="created", verdict="torn", reason="cut off"))
    assert world.incidents == []
    crash(world)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-20"
    told = [(i.kind, i.class_, i.reason) for i in world.incidents][1:]
    assert told == [("checkpoint", "torn", "step-40 cannot be resumed from: cut off")]


def test_without_a_good_checkpoint_it_starts_over() -> None:
    world = save(running(), "out/step-40", 40).answer("verify_checkpoint", ok=False, verdict="gone")
    crash(world)
    assert [s.resume_from for s in world.of(StartAttempt)] == [None, None]
    assert not any(i.kind == "checkpoint" for i in world.incidents), "one that was removed is not bad"


def test_a_checkpoint_written_before_a_nan_and_seen_after_it_counts() -> None:
    world = running(judge(created_wall=1000.0))
    written = world.t + 1000.0
    nan = "\rsteps: 1%| | 60/10260 [01:00<1:00:00, 2.5s/it, avr_loss=nan]\n"
    world.wait(5.0).see(LogChunk(t=world.t, text=nan)).wait(1.0)
    world.see(CheckpointEvent(t=world.t, path="out/step-59", event="complete", step=59, size_bytes=1e6, mtime=written))
    crash(world, "\nloss is nan, stopping\n")
    assert world.of(StartAttempt)[-1].resume_from == "out/step-59"


def test_a_checkpoint_that_the_trainer_could_not_read_is_not_tried_again() -> None:
    world = save(running(), "out/step-20", 20)
    world.wait(1.0)
    crash(save(world, "out/step-40", 40))
    world.watch(Story(meta=False).load(5))
    crash(world, "\nRuntimeError: invalid header in checkpoint\n").wait(11.0)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-20"


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: the flux capacitor is not aligned",
        "FileNotFoundError: [Errno 2] No such file or directory: '/nas/images/0001.jpg'",
        "KeyError: 'caption'",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "sqlite3.OperationalError: database is locked",
        "zipfile.BadZipFile: File is not a zip file",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: CUDA error: device-side assert triggered",
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        "PIL.UnidentifiedImageError: cannot identify image file '/nas/images/0002.jpg'",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ],
)
def test_one_failure_after_verified_progress_is_restarted_whatever_its_class(text: str) -> None:
    world = save(running(judge_of_everything()), "out/step-40", 40)
    crash(world, f"\nTraceback (most recent call last):\n{text}\n").wait(31.0)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    assert world.word == "starting"
    further = Story(meta=False, period_s=5.0, step=40)
    crash(world.watch(further.load(10).train(20)), f"\nTraceback (most recent call last):\n{text}\n").wait(61.0)
    assert len(world.of(StartAttempt)) == 3, "another step"


@pytest.mark.parametrize(
    ("text", "code", "launches"),
    [
        ("train.py: error: unrecognized arguments: --epocs 3", 2, 1),
        ("ModuleNotFoundError: No module named 'apex'", 1, 1),
        ("python: can't open file '/job/trian.py': [Errno 2] No such file or directory", 2, 1),
        ("RuntimeError: the flux capacitor is not aligned", 1, 4),
        ("KeyError: 'caption'", 1, 4),
        ("", 1, 4),
    ],
)
def test_a_start_that_never_trained_is_given_up_at_once_only_if_its_cause_is_certain(
    text: str, code: int, launches: int
) -> None:
    world = loading(judge_of_everything())
    for _ in range(5):
        crash(world, f"\n{text}\n", code).wait(61.0).watch(Story(meta=False, period_s=5.0).load(10))
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) == launches


def test_bars_that_show_where_counting_begins_are_no_training() -> None:
    world = World(judge_of_everything()).begin()
    world.see(LogChunk(t=5.0, text="\nepoch 1/10\n\rsteps:   0%|  | 0/10260 [00:00<?, ?it/s]"))
    crash(world, "\nModuleNotFoundError: No module named 'apex'\n")
    assert world.word == "given_up"


def test_a_launcher_that_ends_its_other_ranks_is_no_person() -> None:
    world = save(running(judge_of_everything()))
    closing = "W0101 torch/distributed/elastic: Sending process 77 closing signal SIGTERM"
    crash(world, f"\n{closing}\nChildFailedError: train.py FAILED\n")
    assert len(world.of(StartAttempt)) == 2


def test_files_from_before_the_run_are_not_resumed_from() -> None:
    world = running(judge(created_wall=1000.0))
    world.see(CheckpointEvent(t=world.t, path="out/old", event="complete", step=900, mtime=500.0))
    assert crash(world).of(StartAttempt)[-1].resume_from is None


def test_weights_only_counts_on_over_attempts() -> None:
    world = save(running(judge(preset=Preset(name="kohya", resume="weights"))))
    crash(world).watch(story(30))
    assert world.position == 70
    assert world.incidents[0].lost_steps == 0


def test_a_launch_that_fails_is_tried_again_within_the_budget_unless_it_can_never_start() -> None:
    world = World().answer("start_attempt", ok=False, detail="trian: command not found", retryable=False).begin()
    assert world.word == "given_up"
    assert "command not found" in world.of(GiveUp)[0].reason
    world = World().answer("start_attempt", ok=False, detail="no space left").begin()
    assert world.word == "starting"
    assert len(world.of(StartAttempt)) == 2
    assert [b.used for b in world.of(BudgetChanged)] == [1]
    world = World(judge(quick(max_restarts=1, backoff_s=())))
    world.answer("start_attempt", ok=False).answer("start_attempt", ok=False).begin()
    assert world.word == "given_up"


def test_a_gpu_that_is_not_clear_is_gone_on_with_and_told_unless_a_person_is_to_decide() -> None:
    world = save(running()).answer("clear_gpu", ok=False, detail="3.1 GB held by pid 77")
    crash(world)
    assert "the GPU memory is not released (3.1 GB held by pid 77)" in world.text()
    assert world.decisions[-1] == "start_attempt"
    world = running(judge(quick(if_gpu_not_clear="wait"))).answer("clear_gpu", ok=False)
    crash(world)
    assert world.word == "stopped"
    assert world.of(NotifyPeople)[-1].event == "warning"


def test_a_stop_that_fails_becomes_a_kill_and_then_a_person_and_nothing_is_launched_beside_what_is_left() -> None:
    world = running().answer("stop_attempt", ok=False, detail="2 left").answer("stop_attempt", ok=False, detail="D")
    world.command("stop")
    assert world.decisions == ["start_attempt", "stop_attempt", "stop_attempt", "give_up", "end_watch"]
    assert world.word == "given_up"
    world = running()
    for _ in range(2):
        world.answer("stop_attempt", ok=False, detail="stuck in the kernel")
        world.answer("end_leftovers", ok=False, detail="stuck in the kernel")
    world.command("stop").command("restart")
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) == 1
    world.command("restart")
    assert len(world.of(StartAttempt)) == 2


def test_outcomes_of_another_time_change_nothing() -> None:
    world = running()
    before = world.word
    world.see(_late_outcome(world.t, ok=True))
    assert world.word == before
    world.see(_late_outcome(world.t, ok=False))
    assert "stop_attempt failed: too late" in world.text()


def _late_outcome(t: float, *, ok: bool) -> Outcome:
    return Outcome(t=t, decision=999, action="stop_attempt", ok=ok, detail="too late")


def test_no_room_at_the_launch_holds_it_until_there_is() -> None:
    world = World().answer("start_attempt", ok=False, detail="no room", need_bytes=1e9, fresh=True).begin()
    assert world.word == "backing_off"
    assert "the disk is full" in world.text()
    assert world.incidents == []
    world.see(HostSample(t=1.0, disk_free_bytes=0.5e9)).wait(60.0)
    assert len(world.of(StartAttempt)) == 1
    world.see(HostSample(t=world.t, disk_free_bytes=2e9))
    assert [s.attempt for s in world.of(StartAttempt)] == [1, 2]
    assert world.of(BudgetChanged) == []


def test_where_a_trainer_is_that_trains_on_while_it_is_being_ended_stays_known() -> None:
    world = running(steps=40)
    world.silent.add("stop_attempt")
    world.command("stop")
    assert world.word == "stopping"
    told = len(world.of(ProgressMade))
    for step in (44, 48, 52):
        bar = f"\rsteps:   1%|   | {step}/10260 [01:00<1:00:00, 2.50s/it, avr_loss=0.1026]"
        world.see(LogChunk(t=world.t + 6.0, text=bar))
    assert [made.progress.step for made in world.of(ProgressMade)[told:]] == [44, 48, 52]
    world.see(LogChunk(t=world.t + 0.1, text="\nsaving checkpoint: out/x.pt\n"))
    assert world.of(PhaseChanged)[-1].phase == "save"
    world.see(Exit(t=world.t + 1.0, signal=15))
    assert world.of(AttemptEnded)[-1].last_step == 52
    assert world.incidents == []


def test_an_exit_that_is_told_after_the_tree_was_gone_ends_the_attempt() -> None:
    world = running()
    world.silent.add("stop_attempt")
    world.command("stop")
    world.see(Outcome(t=world.t, decision=world.of(StopAttempt)[-1].id, action="stop_attempt", ok=True))
    assert world.word == "stopping"
    world.see(Exit(t=world.t + 0.5, signal=2))
    assert world.word == "stopped"
    assert [end.signal for end in world.of(AttemptEnded)] == [2]


def test_what_else_is_wrong_is_told_when_it_gives_up_and_stays_open() -> None:
    world = loading().see(HostSample(t=500.0, ram_used_bytes=99e9, ram_total_bytes=100e9))
    world.see(HostSample(t=501.0, disk_free_bytes=1.0), HostSample(t=520.0, disk_free_bytes=1.0))
    crash(world, "\nAttributeError: no such thing\n")
    assert world.word == "given_up"
    assert "still open: " in world.text()
    assert {i.kind for i in world.incidents if i.open} & {"disk", "health"}


def test_a_verdict_that_is_not_known_is_a_bad_one() -> None:
    world = save(running()).answer("verify_checkpoint", ok=False, verdict="haunted", reason="it moves")
    crash(world)
    assert any(i.class_ == "haunted" and "it moves" in i.reason for i in world.incidents)
