"""A trainer that does not know the option which a resume added: blamed on the option, whatever its parser says."""

import msgspec
import pytest

from tests.builders import World, judge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_branches import GENERIC, at_step, notes, saved
from tests.unit.test_judge_found_resume import FOUND, STYLE, found_run, with_checkpoint
from tests.unit.test_judge_recovery import crash, quick, running
from trainwatch.core.model.decision import GiveUp, StartAttempt
from trainwatch.core.model.observation import Exit, LogChunk
from trainwatch.core.model.preset import Preset, resume_support

KNOWN_STYLE = msgspec.structs.replace(STYLE, found="")
KNOWN = msgspec.structs.replace(GENERIC, resume_file=KNOWN_STYLE, resume_directory=KNOWN_STYLE)
CKPT = "out/step-00200.pt"
TRACED = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n    main()\n'
REFUSED = {
    "argparse": (f"usage: train.py [-h] [--epochs E]\ntrain.py: error: unrecognized arguments: --resume {CKPT}\n", 2),
    "jsonargparse": (f"usage: train.py [--epochs E]\nerror: unrecognized arguments: --resume {CKPT}\n", 2),
    "click": ("Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: No such option '--resume'.\n", 2),
    "click, with a near one": (
        "Usage: train.py [OPTIONS]\n\nError: No such option '--resume'. Did you mean '--resume-from'?\n",
        2,
    ),
    "typer": (
        (
            "Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n╭─ Error ────────────────────╮\n"
            "│ No such option: --resume   │\n╰────────────────────────────╯\n"
        ),
        2,
    ),
    "absl": (
        "FATAL Flags parsing error: Unknown command line flag 'resume'\nPass --helpshort to see help on flags.\n",
        1,
    ),
    "gflags": ("ERROR: unknown command line flag 'resume'\n", 1),
    "fire": (
        "train\nERROR: Could not consume arg: --resume\nUsage: train.py -\n\nFor detailed information, run:\n  train.py --help\n",
        2,
    ),
    "tyro": (
        (
            f"╭─ Unrecognized options ────────────────────────╮\n│ Unrecognized options: --resume, {CKPT} │\n"
            "│ ───────────────────────────────────────────── │\n│ For full helptext, run train.py --help │\n"
            "╰───────────────────────────────────────────────╯\n"
        ),
        2,
    ),
    "getopt": (f"{TRACED}getopt.GetoptError: option --resume not recognized\n", 1),
    "optparse": ("Usage: train.py [options]\n\ntrain.py: error: no such option: --resume\n", 2),
    "HfArgumentParser": (
        f"{TRACED}ValueError: Some specified arguments are not used by the HfArgumentParser: ['--resume', '{CKPT}']\n",
        1,
    ),
    "hydra": (
        "Could not override 'resume'.\nTo append to your config use +resume=x\nKey 'resume' is not in struct\n",
        1,
    ),
    "OmegaConf": (f"{TRACED}omegaconf.errors.ConfigKeyError: Key 'resume' not in 'C'\n    full_key: resume\n", 1),
    "a dataclass": (f"{TRACED}TypeError: C.__init__() got an unexpected keyword argument 'resume'\n", 1),
    "with the report of a launcher below": (
        (
            "train.py: error: unrecognized arguments: --resume x\nsubprocess.CalledProcessError: Command "
            "'['python', 'train.py', '--resume', 'x']' returned non-zero exit status 2.\n"
        ),
        1,
    ),
}
OTHER = {
    "a missing file, and a launcher that repeats its command": (
        f"{TRACED}FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'\n"
        f"subprocess.CalledProcessError: Command '['python', 'train.py', '--resume', '{CKPT}']' returned non-zero exit status 1.\n"
    ),
    "another argument, below a synopsis with the option": (
        "usage: train.py [-h] --data D\n                --lr LR --resume R\ntrain.py: error: argument --data: expected one argument\n"
    ),
    "a list of the options": "Error: Missing option '--data'.\n\nOptions:\n  --data D\n  --resume PATH  go on from\n",
    "advice": "Error: the output folder is not empty; use --resume to go on, or another folder\n",
    "settings that are logged before a silent end": "{'resume': 'out/step-00200.pt', 'lr': 0.1}\nloading\n",
    "the command that is traced": f"+ python train.py --resume {CKPT}\nloading\n",
    "a warning before a silent end": "WARNING: --resume is deprecated\n",
    "a synopsis that has the option": "Usage:\n  train.py [--resume=R] [--epochs=N]\n",
    "a variable of the script": f"{TRACED}NameError: name 'resume' is not defined\n",
    "memory": f"resuming with --resume {CKPT}\n{TRACED}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.44 GiB\n",
}


def restarted(text: str, code: int, preset: Preset = KNOWN) -> World:
    """A run that trained, crashed, and then prints ``text`` at each start."""
    world = crash(with_checkpoint(found_run(preset))).wait(1.0)
    while not world.of(GiveUp) and len(world.of(StartAttempt)) < 9:
        world = world.wait(1.0).see(LogChunk(t=world.t, text=text), Exit(t=world.t, code=code)).wait(300.0, every_s=5.0)
    return world


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_a_refused_option_of_a_known_way_ends_the_run_at_once(text: str, code: int) -> None:
    world = restarted(text, code)

    assert world.of(GiveUp)[0].reason.startswith(
        "the trainer does not take --resume, the option that names the checkpoint"
    )
    assert len(world.of(StartAttempt)) == 2
    assert "the preset generic adds it: correct it, or write {resume} into the command" in notes(world)


@pytest.mark.parametrize(("text", "code"), [REFUSED["argparse"], REFUSED["OmegaConf"]])
def test_a_refused_option_that_was_only_found_is_taken_back(text: str, code: int) -> None:
    world = restarted(text, code, FOUND)

    assert "it is taken back" in world.of(GiveUp)[0].reason
    assert len(world.of(StartAttempt)) == 2


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_an_option_that_is_only_mentioned_is_not_blamed(text: str) -> None:
    for preset in (KNOWN, FOUND):
        world = restarted(text, 1, preset)

        assert not any("does not take" in each.reason or "taken back" in each.reason for each in world.of(GiveUp))
        assert len(world.of(StartAttempt)) > 2


def test_an_option_that_was_found_and_worked_before_is_said_to_have_worked() -> None:
    world = at_step(crash(with_checkpoint(found_run(FOUND))).wait(1.0), 201)
    world = crash(at_step(saved(at_step(world, 300), "out/step-00300.pt", 300), 310)).wait(1.0)

    world = world.see(LogChunk(t=world.t, text=REFUSED["argparse"][0]), Exit(t=world.t, code=2)).wait(
        300.0, every_s=5.0
    )

    assert "the trainer does not take --resume" in world.of(GiveUp)[0].reason
    assert "it was found in the source (train.py:41) and worked before: correct it" in notes(world)


def test_an_attempt_that_trained_with_the_option_does_not_refuse_it() -> None:
    world = at_step(crash(with_checkpoint(found_run(KNOWN))).wait(1.0), 240)

    world = world.see(LogChunk(t=world.t, text=REFUSED["argparse"][0]), Exit(t=world.t, code=2)).wait(
        300.0, every_s=5.0
    )

    assert not world.of(GiveUp)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("bash", "-c", "python train.py --resume {resume} --lr=1"), ("--resume",)),
        (("python", "train.py", "--resume", "{resume}"), ("--resume",)),
        (("python", "train.py", "--ckpt={resume}"), ("--ckpt",)),
        (("python", "train.py", "+model.resume={resume}"), ("model.resume",)),
        (("python", "train.py", "{resume}"), ()),
        (("python", "train.py"), ()),
    ],
)
def test_the_option_before_the_placeholder_is_known(command: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert resume_support(GENERIC, command).names == names
    assert resume_support(GENERIC, command).written == bool(names)


def test_a_command_of_the_user_is_named_instead_of_the_preset() -> None:
    support = resume_support(GENERIC, ("python", "train.py", "--resume", "{resume}"))
    trained = with_checkpoint(running(judge(quick(), GENERIC, catalogue=CATALOGUE, resume_support=support)))
    world = crash(trained).wait(1.0)

    world = world.see(LogChunk(t=world.t, text=REFUSED["argparse"][0]), Exit(t=world.t, code=2)).wait(30.0)

    assert "the trainer does not take --resume" in world.of(GiveUp)[0].reason
    assert "the command has it before {resume}: correct it" in notes(world)
