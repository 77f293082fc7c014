"""Placeholders and options: what the command line of an attempt becomes."""

import pytest

from trainwatch.core.act.config.edits import REMOVED
from trainwatch.core.act.config.flags import fill, set_option

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
