"""The trainer's printed settings show whether a remedy took effect; one that did not is withdrawn."""

from typing import Any

import msgspec
import pytest

from tests.builders import World, judge
from tests.unit.test_derive_launch import preset as shipped
from tests.unit.test_judge_recovery import crash, running, story
from tests.unit.test_judge_remedies import FAMILIES, OOM, PLAIN
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model.decision import NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import RemediesDropped, RemedyApplied
from trainwatch.core.model.observation import LogChunk
from trainwatch.core.model.settings import Restart, Settings


def second_attempt(preset: str, values: dict[str, Any], remedy: str = "half-batch") -> World:
    """After an OOM the second attempt has a remedy, such as half the batch; it has printed nothing yet."""
    settings = Settings(restart=Restart(max_restarts=3, backoff_s=(0.0,)))
    mind = judge(
        settings,
        msgspec.structs.replace(shipped(preset), resume="state"),
        remedies=load_remedies(),
        values={"": {**PLAIN, **values}},
        families=FAMILIES,
    )
    world = crash(running(mind), OOM)
    assert [r.name for r in world.of(RemedyApplied)] == [remedy]
    return world


KOHYA = {"train_batch_size": 4, "gradient_accumulation_steps": 2}
HF = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}


def prints(world: World, text: str) -> World:
    """The attempt prints its settings, cut anywhere, and makes its first steps."""
    for at in range(0, len(text), 7):
        world.see(LogChunk(t=world.t, text=text[at : at + 7]))
    return world.watch(story(5))


@pytest.mark.parametrize(
    ("preset", "values", "text"),
    [
        ("kohya", KOHYA, "Namespace(train_batch_size=4, gradient_accumulation_steps=4, lowram=True)\n"),
        ("kohya", KOHYA, "  batch size per device / バッチサイズ: 4\n  gradient accumulation steps / ステップ数 = 4\n"),
        ("kohya", KOHYA, "[Dataset 0]\n  batch_size: 4\n  resolution: (1024, 1024)\n"),
        ("hf", HF, "  Instantaneous batch size per device = 4\n  Gradient Accumulation steps = 4\n"),
        ("hf", HF, "TrainingArguments(\nper_device_train_batch_size=4,\ngradient_accumulation_steps=4,\n)\n"),
        ("hf", HF, '{"per-device-train-batch-size": "4", "x": 1}\n'),
    ],
)
def test_half_the_batch_that_does_not_show_is_withdrawn_and_the_attempt_started_without_it(
    preset: str, values: dict[str, Any], text: str
) -> None:
    world = prints(second_attempt(preset, values), text)
    (dropped,) = world.of(RemediesDropped)
    assert dropped.names == ("half-batch",)
    assert "prints" in dropped.why
    assert "4, not 2" in dropped.why
    assert "took effect only in part" in world.of(StopAttempt)[-1].reason
    told = [n for n in world.of(NotifyPeople) if "remedy withdrawn" in n.title]
    assert len(told) == 1
    assert world.of(StartAttempt)[-1].changes == ()
    world.watch(story(5))
    crash(world, OOM)
    assert [r.name for r in world.of(RemedyApplied)].count("half-batch") == 1, "it is not applied again by itself"


@pytest.mark.parametrize(
    ("preset", "values", "text"),
    [
        ("kohya", KOHYA, "Namespace(train_batch_size=2, gradient_accumulation_steps=4)\n"),
        ("kohya", KOHYA, "Namespace(train_batch_size=4)\n[Dataset 0]\n  batch_size: 2\n"),
        ("kohya", KOHYA, "val_batch_size=4, eval.train_batch_size: 4, num batches per epoch: 50\n"),
        ("kohya", KOHYA, "Namespace(train_batch_size=1)\n"),
        ("hf", HF, "  Instantaneous batch size per device = 2\n  Total train batch size = 16\n"),
        ("hf", HF, ""),
    ],
    ids=["shows", "shows somewhere", "other names", "neither value", "hf", "silent"],
)
def test_a_remedy_that_shows_or_of_which_nothing_is_said_stays(preset: str, values: dict[str, Any], text: str) -> None:
    world = prints(second_attempt(preset, values), text)
    assert world.of(RemediesDropped) == []
    assert world.of(StopAttempt) == []
    assert world.word == "running"


def test_a_remedy_of_one_setting_is_withdrawn_without_a_new_start() -> None:
    world = second_attempt("kohya", {"train_batch_size": 1, "vae_batch_size": 4}, "vae-batch-1")
    prints(world, "vae_batch_size: 4\n")
    assert world.of(RemediesDropped)[0].names == ("vae-batch-1",)
    assert world.of(StopAttempt) == []
    known = from_snapshot(to_snapshot(world.state))
    assert known is not None
    assert known.policy.withdrawn == ("vae-batch-1",)


def test_a_trainer_that_prints_without_end_is_not_kept() -> None:
    world = second_attempt("kohya", KOHYA)
    for number in range(100):
        world.see(LogChunk(t=world.t, text=f"train_batch_size={number + 100}\n"))
    assert len(world.state.log.printed.values) == 64
    world.see(LogChunk(t=world.t, text="x" * 9000))
    assert world.watch(story(5)).of(RemediesDropped) == []
