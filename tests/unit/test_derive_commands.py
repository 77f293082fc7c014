"""Placeholders and options: what the command line of an attempt becomes."""

import pytest

from trainwatch.core.act.config.edits import REMOVED, DeriveError
from trainwatch.core.act.config.flags import (
    fill,
    find_option,
    is_shell_line,
    option_groups,
    set_option,
)
from trainwatch.core.model.wrappers import hides_trainer, lone_config, options_start

NOTHING = {"config": None, "output_dir": "out", "resume": None, "profile": None}
CHECKPOINT = {**NOTHING, "resume": "/c/ck 1", "profile": "safe"}


@pytest.mark.parametrize(
    ("command", "without", "with_one"),
    [
        (["t.py", "--resume", "{resume}", "-v"], ["t.py", "-v"], ["t.py", "--resume", "/c/ck 1", "-v"]),
        (["t.py", "--resume={resume}"], ["t.py"], ["t.py", "--resume=/c/ck 1"]),
        (["t.py", "--verbose", "{resume}"], ["t.py", "--verbose"], ["t.py", "--verbose", "/c/ck 1"]),
        (["t.py", "--ckpt_path", "{resume}"], ["t.py"], ["t.py", "--ckpt_path", "/c/ck 1"]),
        (["t.py", "ckpt={resume}", "a=1"], ["t.py", "a=1"], ["t.py", "ckpt=/c/ck 1", "a=1"]),
        (["t.py", "-p", "{profile}"], ["t.py", "-p"], ["t.py", "-p", "safe"]),
        (["t.py", "--profile", "{profile}"], ["t.py"], ["t.py", "--profile", "safe"]),
        (["t.py", "--out", "{output_dir}/x"], ["t.py", "--out", "out/x"], ["t.py", "--out", "out/x"]),
        (["t.py", '{"lr": 1}', "{other}"], ["t.py", '{"lr": 1}', "{other}"], ["t.py", '{"lr": 1}', "{other}"]),
        (
            ["bash", "-c", "nice python t.py --resume {resume} -v"],
            ["bash", "-c", "nice python t.py -v"],
            ["bash", "-c", "nice python t.py --resume '/c/ck 1' -v"],
        ),
        (
            ["bash", "-c", "python t.py --r={resume}"],
            ["bash", "-c", "python t.py "],
            ["bash", "-c", "python t.py --r='/c/ck 1'"],
        ),
    ],
)
def test_placeholders_are_removed_or_filled(command: list[str], without: list[str], with_one: list[str]) -> None:
    assert [part.replace("  ", " ") for part in fill(command, NOTHING, None)[0]] == without
    assert list(fill(command, CHECKPOINT, None)[0]) == with_one


def test_single_resume_placeholder_becomes_the_presets_arguments() -> None:
    words = ["--resume", "/c/ck 1"]
    assert fill(["t.py", "{resume}", "-v"], CHECKPOINT, words)[0] == ("t.py", "--resume", "/c/ck 1", "-v")
    assert fill(["t.py", "--resume", "{resume}"], CHECKPOINT, words)[0] == ("t.py", "--resume", "/c/ck 1")


def test_single_resume_placeholder_is_removed_if_the_config_sets_it() -> None:
    argv, used = fill(["t.py", "{resume}"], CHECKPOINT, [])
    assert argv == ("t.py",)
    assert "resume" not in used


def test_a_path_with_braces_is_not_filled_again() -> None:
    assert fill(["t.py", "{resume}"], {**NOTHING, "resume": "/a/{output_dir}"}, None)[0] == ("t.py", "/a/{output_dir}")


@pytest.mark.parametrize(
    ("command", "key", "value", "after"),
    [
        ("t.py --lr 1", "lr", 5e-5, "t.py --lr 5.0e-05"),
        ("t.py --lr=1 -v", "lr", 0.5, "t.py --lr=0.5 -v"),
        ("t.py --learning-rate 1", "learning_rate", 2, "t.py --learning-rate 2"),
        ("t.py", "batch_size", 2, "t.py --batch_size 2"),
        ("t.py --x -1 -v", "x", 3, "t.py --x 3 -v"),
        ("t.py --x 1 --y 2 --x 3", "x", 4, "t.py --y 2 --x 4"),
        ("t.py", "lowram", True, "t.py --lowram"),
        ("t.py", "lowram", False, "t.py"),
        ("t.py --lowram data", "lowram", False, "t.py data"),
        ("t.py --lowram true", "lowram", False, "t.py --lowram false"),
        ("t.py --lowram=True", "lowram", False, "t.py --lowram=False"),
        ("t.py --cache 0", "cache", True, "t.py --cache 1"),
        ("t.py --no-cache", "cache", True, "t.py --cache"),
        ("t.py --no_cache", "cache", False, "t.py --no_cache"),
        ("t.py", "vae.use_slicing", True, "t.py --vae.use_slicing true"),
        ("t.py --args a b -v", "args", ["c"], "t.py --args c -v"),
        ("t.py --a 1 -v", "a", REMOVED, "t.py -v"),
        ("t.py --a", "a", REMOVED, "t.py"),
        ("t.py", "a", REMOVED, "t.py"),
        ("t.py training.batch=4 x=1", "training.batch", 2, "t.py training.batch=2 x=1"),
        ("t.py ++opt.lr=1", "opt.lr", 0.1, "t.py ++opt.lr=0.1"),
        ("accelerate launch --lr 9 t.py --lr 1", "lr", 2, "accelerate launch --lr 9 t.py --lr 2"),
        ("python -m pkg.train --lr 1", "lr", 2, "python -m pkg.train --lr 2"),
    ],
)
def test_options_are_set_in_the_users_spelling(command: str, key: str, value: object, after: str) -> None:
    assert " ".join(set_option(command.split(), key, value).argv) == after


def test_previous_value_of_an_option_is_returned() -> None:
    assert set_option(["t.py", "--lr", "1"], "lr", 2).before == "1"
    assert set_option(["t.py", "--lr=1"], "lr", 2).before == "1"
    assert set_option(["t.py"], "lr", 2).before is None
    assert find_option(["t.py", "lr"], "lr") is None


def test_trainer_options_begin_after_the_script() -> None:
    assert options_start(["accelerate", "launch", "--x", "1", "train.py", "--y"]) == 5
    assert options_start(["./run_train.sh", "--y"]) == 1
    assert options_start(["python", "-m", "torch.distributed.run", "--n", "2", "train.py"]) == 6
    assert options_start(["trainer"]) == 1


@pytest.mark.parametrize(
    ("line", "config"),
    [
        ("python train.py cfg.yaml", "cfg.yaml"),
        ("accelerate launch --num_processes 2 train.py runs/args.json", "runs/args.json"),
        ("torchrun --nproc_per_node 2 -m pkg.train cfg.yml", "cfg.yml"),
        ("llamafactory-cli train cfg.yaml", "cfg.yaml"),
        ("python train.py cfg.yaml --lr 3", None),
        ("python train.py cfg.yaml lr=3", None),
        ("python train.py --config cfg.yaml", None),
        ("python train.py data cfg.txt", None),
        ("python train.py", None),
        ("python train.py /data/x cfg.yaml", None),
    ],
)
def test_a_config_that_is_the_only_argument_is_found(line: str, config: str | None) -> None:
    assert lone_config(line.split()) == config


def test_a_shell_script_hides_the_trainers_options() -> None:
    hidden = ("bash train.sh", "./train.sh --x", "sh -c 'python t.py'", "/bin/bash -lc x", "env A=1 bash run.sh")
    assert all(hides_trainer(line.split()) for line in hidden)
    assert not any(hides_trainer(line.split()) for line in ("python t.py", "accelerate launch t.py", "trainer", ""))


def test_shell_lines_are_recognised() -> None:
    assert is_shell_line(["/bin/bash", "-lc", "python t.py"])
    assert not is_shell_line(["bash", "train.sh", "-c"])
    assert not is_shell_line(["python", "-c", "print()"])


def test_flags_of_a_profile_are_read_in_groups() -> None:
    flags = ("--mode", "separated", "--safe_mode", "--lr=-1", "--ids", "1", "2")
    groups = option_groups(flags)
    known = [("mode", "separated"), ("safe_mode", True), ("lr", "-1"), ("ids", ["1", "2"])]
    assert [(group.key, group.value) for group in groups] == known
    assert [word for group in groups for word in group.words] == list(flags)
    with pytest.raises(DeriveError, match="does not begin with a dash"):
        option_groups(("safe_mode",))
