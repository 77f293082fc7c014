"""Exit status 0: proven as the end, contradicted, or neither. Each log is read with the shipped tables."""

import msgspec
import pytest

from tests.builders import World
from tests.shipped import CATALOGUE
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.progress import Former
from trainwatch.core.judge.recovery.ending import ended_well, run_total
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import EndWatch, NotifyPeople, StartAttempt
from trainwatch.core.model.fact import AttemptEnded, StateChanged
from trainwatch.core.model.observation import CheckpointEvent, Exit, HostSample, KernelLine, LogChunk
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.progress import ToldLength
from trainwatch.core.model.settings import Restart, Settings

SENTENCE = "nothing in the log says that this was the end"
HF = Preset(name="hf", title="Hugging Face Trainer")
TRACEBACK = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    main()\n{}\n'
BOOM = TRACEBACK.format("RuntimeError: boom")
CUDA = TRACEBACK.format("RuntimeError: CUDA error: unknown error")


def steps(until: int, total: int | None = 1000, every: int = 0, text: str = "step {}{} loss: 0.25") -> str:
    """``every``: a line each so many; 0 = each step of a short log, each tenth of a long one."""
    of, every = "" if total is None else f"/{total}", every or (1 if until < 100 else 10)
    return "".join(f"{text.format(n, of)}\n" for n in range(every, until + 1, every))


def batches(last: int, total: int = 100, every: int = 1) -> str:
    """As a loop prints them that counts from 0."""
    return "".join(f"batch {n}/{total} loss: 0.25\n" for n in range(0, last + 1, every))


def epochs(until: int, total: int, line: str = "Epoch {}/{}, loss: 0.5, val_loss: 0.6") -> str:
    return "".join(f"{line.format(n, total)}\n" for n in range(1, until + 1))


def bar(label: str, until: int, total: int, step_s: float = 0.1) -> str:
    drawn = (
        f"\r{label}{100 * n // total:3d}%|###   | {n}/{total} [00:{n % 60:02d}<00:01, {step_s:.2f}s/it]"
        for n in range(1, until + 1)
    )
    return "".join(drawn) + "\n"


def keras(until: int, total: int, last: int = 32) -> str:
    text = ""
    for epoch in range(1, until + 1):
        done = last if epoch == until else 32
        text += f"Epoch {epoch}/{total}\n"
        text += "".join(f"\r{n}/32 [====>.....] - ETA: 1s - loss: 0.5" for n in range(1, done + 1)) + "\n"
    return text


def yolo(until: int, total: int) -> str:
    lines = ""
    for epoch in range(1, until + 1):
        head = f"      {epoch}/{total}         0G      1.310      0.900      1.210         31        640: "
        lines += f"\r{head} 50%|#####     | 4/8 [00:01<00:01,  2.00it/s]\r{head}100%|##########| 8/8 [00:02<00:00,  2.00it/s]\n"
        lines += "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|##########| 4/4 [00:01<00:00,  2.00it/s]\n"
        lines += "                   all          4         17      0.5       0.5      0.5      0.25\n"
    return lines


def begun(preset: Preset | None = None, status_hidden: str = "", settings: Settings | None = None) -> World:
    preset = preset or Preset(name="generic")
    known = Knowledge(catalogue=CATALOGUE, preset=preset, status_hidden=status_hidden)
    mind = Judge(known if settings is None else msgspec.structs.replace(known, settings=settings))
    return World(mind).begin()


def see(world: World, text: str) -> World:
    """The log, a line or redraw each second."""
    for line in text.replace("\r", "\n").splitlines(keepends=True):
        world.see(LogChunk(t=world.t + 1.0, text=line))
    return world


def save(world: World, path: str, step: int | None = None, event: str = "complete", **more: object) -> World:
    fields = {"size_bytes": 1e6, "step": step, **more}
    return world.see(CheckpointEvent(t=world.t + 1.0, path=path, event=event, **fields))  # type: ignore[arg-type]


def leave(world: World, code: int | None = 0, signal: int | None = None) -> World:
    return world.see(Exit(t=world.t + 1.0, code=code, signal=signal))


def ended(text: str, preset: Preset | None = None) -> World:
    return leave(see(begun(preset), text))


def reason(world: World) -> str:
    return str(world.of(StateChanged)[-1].reason)


HANDED = "`docker run -d img` hands the training to the container daemon and ends"


@pytest.mark.parametrize("text", ["", "9f3c0e7a1b\n", "Submitted batch job 4242\n", "training started\n"])
def test_the_end_of_a_command_that_handed_its_training_on_is_not_the_end_of_the_training(text: str) -> None:
    mind = Judge(Knowledge(catalogue=CATALOGUE, handed_over=HANDED))
    world = leave(see(World(mind).begin(), text))
    assert world.of(StateChanged)[-1].state == "ended_early"
    assert reason(world) == f"exit code 0, but it made no step, and {HANDED}"
    assert world.of(EndWatch)[-1].exit_code == 1


def test_a_command_that_follows_the_training_that_it_handed_on_is_judged_by_its_log() -> None:
    mind = Judge(Knowledge(catalogue=CATALOGUE, handed_over=HANDED))
    assert leave(see(World(mind).begin(), steps(1000))).of(StateChanged)[-1].state == "finished"


PROVEN = {
    "last step": steps(1000),
    "words where no total is printed": steps(40, None) + "Training complete in 0h 3m 20s\n",
    "HF summary after early stopping": bar("", 400, 1000)
    + "{'train_runtime': 90.5, 'train_loss': 1.5, 'epoch': 2.0}\n",
    "Keras early stopping": keras(7, 100) + "Epoch 7: early stopping\n",
    "early stopping that names its best loss": epochs(7, 100) + "Early stopping, best val_loss: 0.4312 at epoch 4\n",
    "a counter of patience that is full": epochs(7, 100) + "EarlyStopping counter: 5 out of 5\n",
    "Lightning": bar("Epoch 4: ", 30, 30) + "`Trainer.fit` stopped: `max_epochs=5` reached.\n",
    "Lightning, and a thread that failed before the last line": "Epoch 4:  67%|##   | 20/30 [00:09<00:05, 2.0it/s]\n"
    "Exception in thread NetStatThr:\n"
    + TRACEBACK.format("BrokenPipeError: [Errno 32] Broken pipe")
    + "Epoch 4: 100%|#####| 30/30 [00:15<00:00, 2.0it/s]\n`Trainer.fit` stopped: `max_epochs=5` reached.\n",
    "Ultralytics": yolo(5, 5) + "\n5 epochs completed in 0.002 hours.\n",
    "all epochs": epochs(60, 60),
    "all epochs of Keras": keras(5, 5),
    "epochs counted from 0": epochs(0, 9) + "".join(f"epoch {n}/10 loss 0.5\n" for n in range(10)),
    "a validation bar after the last step": steps(1000) + "Validating...\n" + bar("Validation: ", 25, 50),
    "an exception in a finaliser": steps(1000)
    + "Exception ignored in: <function Foo.__del__ at 0x7f>\n"
    + TRACEBACK.format("AttributeError: 'NoneType' object has no attribute 'close'"),
    "target reached": steps(300) + "Target accuracy 0.95 reached, stopping\n",
}


@pytest.mark.parametrize("text", PROVEN.values(), ids=PROVEN)
def test_exit_0_with_proof_of_the_end_is_finished(text: str) -> None:
    world = ended(text)
    assert world.word == "finished", reason(world)
    assert reason(world).startswith("the training is done: ")
    assert world.of(EndWatch)[0].exit_code == 0


EARLY = {
    "a pipe that hides a death at step 390 of 1000": steps(390),
    "a bar that stops": bar("steps: ", 399, 1000),
    "epochs that remain": epochs(12, 60),
    "Keras in the middle of an epoch": keras(5, 5, last=11),
    "Ultralytics at epoch 3 of 60": yolo(3, 60),
    "bars that begin again in each epoch": "".join(f"Epoch {n}/60\n" + bar("", 20, 20) for n in range(1, 4)),
    "the end of the first of several epochs": "Epoch 1/60\n" + bar("", 20, 20),
    "a handler that finishes its step and says so": steps(400, None)
    + "caught SIGUSR1: will save and stop\n"
    + "step 401 loss: 0.25\nstep 402 loss: 0.25\ncheckpoint saved, bye\n",
    "another program says done after it": steps(390) + "training finished\n",
    "wandb says where to look": steps(390) + "wandb: View run x at: https://example.org/x\n",
    "time to go that the trainer printed": "".join(
        f"Epoch(train) [3][{n}/50]  lr: 1.0e-04  eta: 3:10:0{n % 10}  time: 0.5  loss: 0.5\n" for n in range(10, 51, 10)
    ),
}


PIPE = "train.sh: a pipe without pipefail hides the exit status of python"


def test_exit_0_of_a_pipe_before_the_end_is_a_crash() -> None:
    """A trainer behind `| tee` that was killed at step 24 of 48 ended the night: its status is not known."""
    world = leave(save(see(begun(status_hidden=PIPE), steps(600)), "out/step_600.pt"))
    (crash,) = (i for i in world.incidents if i.kind == "crash")
    assert (crash.class_, world.word in {"cleaning", "backing_off", "starting", "listing"}) == ("unknown", True), (
        reason(world)
    )
    assert PIPE in crash.reason
    proven = leave(save(see(begun(status_hidden=PIPE), steps(1000)), "out/step_1000.pt"))
    assert proven.word == "finished"


@pytest.mark.parametrize("text", EARLY.values(), ids=EARLY)
def test_exit_0_before_the_end_without_a_cause_is_ended_early(text: str) -> None:
    world = ended(text)
    assert world.word == "ended_early", reason(world)
    assert world.of(AttemptEnded)[0].how == "ended_early"
    assert world.of(EndWatch)[0].exit_code == 1
    assert [n.event for n in world.of(NotifyPeople)] == ["give_up"]
    assert "trainwatch resume" in world.of(NotifyPeople)[0].body
    assert "exit code 0, but" in world.incidents[0].reason


CRASHES = {
    "python fail.py; echo bye": (steps(40) + BOOM + "bye\n", "code_bug"),
    "a failure before the first step": (BOOM + "bye\n", "code_bug"),
    "tee after running out of GPU memory": (
        steps(40) + TRACEBACK.format("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
        "cuda_oom",
    ),
    "an exception of a type without a name that is known": (steps(40) + TRACEBACK.format("zap.Zapped: 3"), "code_bug"),
    "a shell that reports a kill": (
        steps(40) + "bash: line 1:  1234 Killed                  python t.py\n",
        "host_oom",
    ),
    "a shell that reports a segmentation fault": (steps(40) + "Segmentation fault (core dumped)\n", "segfault"),
    "no such command": ("bash: line 1: pyton: command not found\n", "config_error"),
    "usage text and no step": (
        "usage: t.py [-h] [--lr LR]\n\noptions:\n  -h, --help  show this help\n",
        "config_error",
    ),
    "make goes on": (steps(40, None) + "make: *** [Makefile:3: train] Error 1\n", "unknown"),
    "an error without total, then words of another program": (steps(40, None) + BOOM + "all jobs done\n", "code_bug"),
    "gradients that are NaN, whose losses Hugging Face's Trainer prints as zero": (
        "".join(f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0001, 'epoch': 0.{n}}}\n" for n in range(7, 10))
        + bar("", 500, 500)
        + "{'train_runtime': 551.0, 'train_loss': 0.08, 'epoch': 1.0}\n",
        "nan_loss",
    ),
    "NaN to the end": (steps(40) + "".join(f"step {n}/69 loss: nan\n" for n in range(41, 70)), "nan_loss"),
}


@pytest.mark.parametrize(("text", "class_"), CRASHES.values(), ids=CRASHES)
def test_exit_0_with_a_failure_in_the_last_lines_is_a_crash(text: str, class_: str) -> None:
    world = ended(text)
    assert [i.class_ for i in world.incidents if i.kind == "crash"] == [class_]
    assert world.of(AttemptEnded)[0].how == "crashed"
    assert world.word != "finished"


UNPROVEN = {
    "steps without a total": steps(40, None),
    "a bar that ends at 998 of 1000": bar("steps: ", 998, 1000),
    "a bar that ends at 99 of 100": bar("steps: ", 99, 100),
    "two lines before the end": steps(9980, 10000, every=10),
    "the last batches of an epoch of unknown number": batches(90, every=10) * 2,
    "a logged error that was handled": steps(40, None) + "ERROR - ConnectionError: could not upload, going on\n",
    "a traceback at the start, after which it trained": BOOM + steps(40, None),
    "no step at all of a command that nobody knows": "hello\n",
    "a process of Ray that died while the command went on": steps(40, None)
    + "(raylet) *** SIGSEGV received at time=1740556811 on cpu 22 ***\n(raylet) PC: @ 0x7f2a (unknown) mj_step\n"
    + "Restored remote worker 5\nclosing\n(pid=7001) *** SIGTERM received at time=1740559271 ***\n",
    "a program in Java that an evaluation started": steps(40, None)
    + 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n\tat Meteor.main(Meteor.java:113)\n'
    + "METEOR failed: skipped\nBLEU-4=0.361 CIDEr=1.190\n",
    "epochs without a total": "".join(f"epoch {n} loss 0.5\n" for n in range(1, 9)),
}


@pytest.mark.parametrize("text", UNPROVEN.values(), ids=UNPROVEN)
def test_exit_0_without_proof_either_way_is_finished_and_says_so(text: str) -> None:
    world = ended(text)
    assert world.word == "finished", reason(world)
    assert f"exit 0; {SENTENCE}" in reason(world)
    assert world.why.kind == "unproven"
    assert SENTENCE in world.of(NotifyPeople)[-1].body


LAST_LINE = {
    "each step from 0": batches(99),
    "each tenth step from 0": batches(90, every=10),
    "each fiftieth step": steps(100, 120, every=50),
    "batches of the last epoch": "".join(f"Epoch {n}/3\n" + batches(90, every=10) for n in (1, 2, 3)),
    "batches of the last epoch from 0": "".join(f"Epoch {n}/3\n" + batches(90, every=10) for n in (0, 1, 2)),
}


@pytest.mark.parametrize("text", LAST_LINE.values(), ids=LAST_LINE)
def test_exit_0_after_the_last_line_that_a_whole_training_prints_is_finished_without_a_doubt(text: str) -> None:
    world = ended(text)
    assert world.word == "finished", reason(world)
    assert reason(world).endswith("is the last printed step, within one print interval of the end")
    assert SENTENCE not in world.text()


def test_the_last_lines_of_an_epoch_that_is_not_the_last_one_are_no_end() -> None:
    assert ended("".join(f"Epoch {n}/3\n" + batches(90, every=10) for n in (1, 2))).word == "ended_early"


def test_no_step_is_no_end_if_the_preset_or_an_earlier_attempt_prints_steps() -> None:
    assert ended("model loaded\n", HF).word == "ended_early"
    world = see(begun(), steps(40, None) + CUDA)
    leave(world, 1)
    assert leave(see(world, "nothing to do\n")).word == "ended_early"


def test_an_attempt_that_resumed_at_the_last_step_is_finished_without_a_step() -> None:
    world = save(see(begun(), steps(1000)), "out/step-1000.pt", 1000)
    world.see(LogChunk(t=world.t, text="\nLoading test set\n" + CUDA))
    assert leave(world, 1).word == "starting"
    assert leave(see(world, "Loading test set\n")).word == "finished"
    assert "resumed from the end" in reason(world)


@pytest.mark.parametrize("code", [0, 1])
def test_a_late_error_does_not_restart_a_training_whose_last_step_is_saved(code: int) -> None:
    world = save(see(begun(), steps(1000)), "out/step-1000.pt", 1000)
    assert leave(see(world, CUDA), code).word == "finished"
    assert f"exit code {code}" in reason(world)
    world = save(see(begun(), steps(1000)), "out/step-1000.pt", 1000)
    assert world.see(Exit(t=world.t + 1.0, code=143, job="time_limit")).word == "finished"
    world = save(see(begun(), steps(1000)), "out/step-700.pt", 700)
    assert leave(see(world, CUDA), code).word == "starting"
    world = save(see(begun(), steps(1000)), "out/step-700.pt", 700)
    assert leave(see(world, CUDA + "all done\n"), code).word == ("starting" if code else "finished"), "said last"


def test_weights_that_are_nan_are_no_end_even_if_the_last_step_is_saved() -> None:
    world = save(see(begun(), steps(1000)), "out/a.pt", 1000, "created", verdict="nonfinite", reason="w: 3 NaN")
    leave(world)
    assert world.incidents[0].class_ == "nan_loss"
    assert "not finite" in world.incidents[0].reason


def test_the_kernel_explains_an_end_before_the_last_step() -> None:
    world = see(begun().see(HostSample(t=0.1, oom_kills=3)), "")
    world.see(HostSample(t=world.t + 1.0, oom_kills=3))
    see(world, steps(390)).see(HostSample(t=world.t + 1.0, oom_kills=4))
    assert leave(world).incidents[0].class_ == "host_oom"
    world = see(begun(), steps(390))
    world.see(KernelLine(t=world.t, text="NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."))
    assert leave(world).incidents[0].class_ == "gpu_lost"


def test_a_save_that_is_not_complete_does_not_outweigh_an_error() -> None:
    world = save(see(begun(), steps(1000)), "out/step-1000.pt", 1000, "growing")
    assert leave(see(world, CUDA)).word == "starting"


def test_a_lost_status_without_proof_is_no_success_whatever_other_programs_print() -> None:
    world = leave(see(begun(), steps(390) + "training finished\n"), None)
    assert world.of(AttemptEnded)[0].how == "lost"
    assert leave(see(begun(), steps(1000) + "training finished\n"), None).word == "finished"


def test_what_is_loaded_after_the_last_step_may_be_another_stage() -> None:
    world = save(see(begun(), steps(1000)), "out/step-1000.pt", 1000)
    assert leave(see(world, "Loading dataset of stage 2\n" + CUDA)).word == "starting"


@pytest.mark.parametrize(
    ("text", "well"),
    [
        (yolo(3, 60), False),
        (yolo(3, 60) + "Results saved to runs/train\nall done\n", False),
        ("Epoch 3/60\n" + bar("", 20, 20), False),
        (yolo(5, 5), True),
        (steps(40, None) + "Training complete\n", True),
    ],
    ids=["Ultralytics at epoch 3 of 60", "with words", "a bar of each epoch", "the last epoch", "words"],
)
def test_a_trainer_that_hangs_is_done_only_after_its_last_epoch(text: str, well: bool) -> None:
    assert ended_well(see(begun(), text).state) is well


def test_an_end_waits_for_the_save_that_is_under_way() -> None:
    world = see(begun(), steps(1000))
    assert ended_well(world.state)
    assert not ended_well(save(world, "out/model.safetensors", event="growing").state)
    assert ended_well(save(world, "out/model.safetensors").state)


def test_a_save_called_final_in_the_middle_is_not_the_end() -> None:
    assert not ended_well(save(see(begun(), steps(40)), "out/stage1_final.safetensors").state)


def test_the_end_of_an_epoch_is_not_the_end_where_nobody_says_how_many_there_are() -> None:
    bars = (f"\rEpoch 0: {n}%|  | {n}/100 [01:00<01:00,  1.00it/s, v_num=3, train_loss=0.5]" for n in range(1, 101))
    assert not ended_well(see(begun(), "".join(bars)).state)


@pytest.mark.parametrize(
    ("told", "well"),
    [(ToldLength(epochs=9), False), (None, False), *((ToldLength(epochs=n, steps=100), True) for n in (9, None))],
)
def test_a_bar_without_a_name_may_be_of_the_first_epoch_unless_the_settings_tell_its_total(
    told: ToldLength | None, well: bool
) -> None:
    """The first validation is where ranks wait for each other: it was called the end of the training."""
    world = see(begun(), bar("", 100, 100).replace("s/it]", "s/it, loss=0.5]"))
    assert ended_well(world.state, told), "nothing is saved that a restart could go on from"
    assert ended_well(save(world, "out/epoch-1.pt").state, told) is well


@pytest.mark.parametrize("name", ["", "Training: "])
@pytest.mark.parametrize(
    ("told", "code", "word"),
    [
        ({"": ToldLength(epochs=9)}, 1, "starting"),
        ({"": ToldLength(epochs=9)}, 0, "starting"),
        ({}, 1, "starting"),
        ({}, -9, "starting"),
        ({}, None, "starting"),
        ({}, 0, "finished"),
        ({"": ToldLength(epochs=1)}, 1, "finished"),
        ({"": ToldLength(steps=100)}, 1, "finished"),
    ],
)
def test_an_error_in_the_first_validation_does_not_come_after_the_end(
    told: dict[str, ToldLength], code: int | None, word: str, name: str
) -> None:
    """Out of memory there, with exit status 1, was told as a finished training; so was its next start, at once.

    A traceback before status 0 is one of a logger or a thread, unless several epochs are known: it was trained again.
    """
    world = World(Judge(Knowledge(catalogue=CATALOGUE, told=told))).begin()
    save(see(world, bar(name, 100, 100).replace("s/it]", "s/it, loss=0.5]")), "out/epoch-1.pt")
    for _ in range(2):
        assert leave(see(world, CUDA if code in {0, 1} else ""), code).wait(11.0).word == word


@pytest.mark.parametrize(
    "said", ["", "Training complete\n", "{'train_runtime': 90.5, 'train_loss': 1.5, 'epoch': 2.0}\n"]
)
@pytest.mark.parametrize(("code", "word"), [(1, "starting"), (-9, "starting"), (None, "starting"), (0, "finished")])
def test_the_end_of_one_of_several_trainings_is_not_that_of_the_run(said: str, code: int | None, word: str) -> None:
    """run.sh: the first reached its total and saved it, the second died of an import: the run was "finished"."""
    world = World(Judge(Knowledge(catalogue=CATALOGUE, stages=True))).begin()
    save(see(world, steps(1000)), "out/step-1000.pt", 1000)
    see(world, said + (TRACEBACK.format("ModuleNotFoundError: No module named 'peft'") if code == 1 else ""))
    assert leave(world, code).word == word


def test_helpers_that_are_left_are_named() -> None:
    world = see(begun(), steps(1000))
    world.see(Exit(t=world.t + 1.0, code=0, left=("tensorboard --logdir runs (pid 77)",)))
    assert "left alone, because nothing shows that it trains: tensorboard --logdir runs (pid 77)" in world.text()


@pytest.mark.parametrize(
    ("made", "of", "whole", "word"),
    [
        (24, {"offset": 24}, 48, "finished"),
        (16, {"offset": 24}, 48, "ended_early"),
        (24, {"offset": 24}, 40, "ended_early"),  # another length
        (24, {"offset": 24, "weights_only": True}, 48, "ended_early"),
        (24, {"offset": 0}, 48, "ended_early"),
    ],
)
def test_an_attempt_counting_anew_ends_where_the_run_does(made: int, of: dict[str, int], whole: int, word: str) -> None:
    """sd-scripts resumed at 24 of 48, printed 24/48 at its end, and a done training was told as ended early."""
    world = begun().change("attempt", former=Former(total=whole, run_total=whole), **of)
    bar = "\rsteps: {0:3d}%|###   | {0}/48 [00:{0:02d}<00:24, 1.92it/s, avr_loss=1.08]"
    for n in range(1, made + 1):
        world.see(LogChunk(t=world.t + 1.0, text=bar.format(n)))
    if of["offset"] and whole == 48:
        assert run_total(world.state) == (48 if "weights_only" not in of else 48 + of["offset"])
    assert leave(world).word == word, reason(world)


def silent_from(step: int, *saved: int, name: str = "out/model-{:06d}.pt", every: int = 1) -> World:
    """A log that ends at ``step``, beside saves at each hundredth step before it and at ``saved``."""
    world, at = begun(), 0
    for save_at in range(100, step, 100):
        part = "".join(line + "\n" for line in steps(save_at, every=every).splitlines()[at // every :])
        at = save_at
        save(see(world, part), name.format(save_at), save_at)
    see(world, "".join(line + "\n" for line in steps(step, every=every).splitlines()[at // every :]))
    for save_at in saved:
        world.wait(60.0, 30.0)
        save(world, name.format(save_at), save_at)
    return world


@pytest.mark.parametrize(("name", "every"), [("out/model-{:06d}.pt", 1), ("ckpt/epoch_end_{}.safetensors", 10)])
def test_save_of_the_last_step_is_the_end_although_the_log_stopped_before(name: str, every: int) -> None:
    """Its output was closed, or a process without it trained on."""
    world = leave(silent_from(340, *range(400, 1001, 100), name=name, every=every))
    assert world.word == "finished"
    assert "step 1000 of 1000, as " in reason(world)
    assert "is saved" in reason(world)


AGAIN = Settings(restart=Restart(ended_early="restart", backoff_s=(0.0,)))


@pytest.mark.parametrize("last", ["", "closing data server\n"])
def test_exit_0_in_the_middle_is_restarted_once_if_the_settings_say_so(last: str) -> None:
    world = leave(see(save(see(begun(settings=AGAIN), steps(300)), "out/step-300.pt", 300), last))
    assert [a.resume_from for a in world.of(StartAttempt)] == [None, "out/step-300.pt"]
    see(world, "".join(f"step {n}/1000 loss: 0.25\n" for n in range(301, 600)))
    assert leave(save(world, "out/step-600.pt", 600)).word == "ended_early"


@pytest.mark.parametrize(
    "last",
    [
        "Early stopping: no improvement for 5 evaluations\n",
        "patience of 3 is used up, leaving\n",
        "time limit of 8 h reached\n",
        "reached max_steps, leaving\n",
        "wall clock budget exceeded: saving and leaving\n",
        "Training complete\n",
    ],
)
def test_end_on_purpose_is_never_restarted(last: str) -> None:
    world = leave(see(save(see(begun(settings=AGAIN), steps(300)), "out/step-300.pt", 300), last))
    assert len(world.of(StartAttempt)) == 1
