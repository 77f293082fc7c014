"""Check-lists of the recovery guide (SDXL LoRA with kohya, 16 GB, WSL2), and the wishes of its authors."""

import json
import random
import struct

import pytest

from tests.builders import Story

from .past_runs import PastRun
from .user import User


def waiting(rng: random.Random, _gpu: int) -> tuple[float, float]:
    """A GPU that waits for its data most of the time."""
    return 30 + rng.randint(-2, 2), 140 + rng.uniform(-8, 8)


@pytest.mark.requirement("A8")
def test_slow_steps_with_a_gpu_that_fell_from_97_to_30_per_cent_are_told(user: User) -> None:
    story = Story().start().load().train(200).train(60, step_s=8.0, gpu=waiting)
    user.records("run.jsonl", story.observations)
    said = user.types("replay", "run.jsonl", "--json")
    assert user.reads(said, "incidents", 0, "kind") == "stall"
    assert "GPU utilisation" in user.reads(said, "incidents", 0, "reason")


@pytest.mark.requirement("A8")
def test_a_good_run_that_was_restarted_passes_the_checks_after_it(user: User, night: PastRun) -> None:
    said = user.types("check", "--after", "--json")
    assert said.json["passed"] is True
    assert [check["name"] for check in said.json["checks"] if check["result"] == "fail"] == []
    number = [check["name"] for check in said.json["checks"]].index("final model")
    assert user.reads(said, "checks", number)["result"] == "pass"


def lora(value: float) -> bytes:
    """A LoRA file of four numbers."""
    entry = {"lora.weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}
    header = json.dumps({"__metadata__": {"ss_steps": "10"}} | entry).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + struct.pack("<4f", *(value,) * 4)


@pytest.mark.requirement("A10")
def test_two_checkpoints_are_compared(user: User) -> None:
    user.writes("luca-000002.safetensors", lora(0.5))
    user.writes("luca-000004.safetensors", lora(0.75))
    said = user.types("checkpoints", "compare", "luca-000002.safetensors", "luca-000004.safetensors")
    user.finds(said, r"differ|changed|%")


@pytest.mark.requirement("A10")
def test_what_a_person_has_to_test_is_said_with_how_far_the_newest_differ(user: User, night: PastRun) -> None:
    """The quality itself is not rated; ``evaluate.command`` runs the user's own test on each checkpoint."""
    user.finds(user.types("check", "--after"), r"quality +test the newest ones; .*trainwatch checkpoints compare")


@pytest.mark.requirement("A10")
def test_a_notice_reaches_the_command_that_is_set(user: User) -> None:
    """Telegram, Discord and others are URLs of apprise (``notify.urls``); they need a network."""
    user.writes(
        "trainwatch.toml",
        '[run]\nname = "luca"\ncommand = ["true"]\n[notify]\ncommand = ["sh", "-c", "cat > told.json"]\n',
    )
    said = user.types("notify", "test")
    assert said.code == 0, said.err
    user.finds(said, r"ok: notified by sh")
    assert json.loads((user.folder / "told.json").read_text())["title"] == "trainwatch: a test from luca"
