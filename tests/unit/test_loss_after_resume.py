"""Whether the first losses after a resume show that the weights were not restored."""

import math
import random
from collections.abc import Callable, Iterable

import pytest

from tests.builders import World, judge
from tests.unit.test_judge_recovery import crash, save
from trainwatch.core.judge.recovery.restarts import former, settings_of
from trainwatch.core.judge.resume.resume_check import Compared, compare_losses
from trainwatch.core.judge.state import changed
from trainwatch.core.judge.text.reading import LossCurve, with_loss
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StopAttempt
from trainwatch.core.model.fact import Note
from trainwatch.core.model.observation import LogChunk
from trainwatch.core.model.preset import Change
from trainwatch.core.model.shipped import AppliedRemedy

Losses = Callable[[int], float]


def curve(steps: Iterable[int], loss: Losses, lr: Losses | None = None) -> LossCurve:
    found = LossCurve()
    for step in steps:
        value = loss(step)
        found = with_loss(found, step, value if math.isfinite(value) else None, None if lr is None else lr(step))
    return found


def judged(
    before: Losses,
    after: Losses,
    *,
    killed: int = 244,
    resumed: int = 240,
    new_epoch: bool = False,
    lr: Losses | None = None,
    lr_after: Losses | None = None,
) -> Compared | None:
    former, new = (
        curve(range(1, killed + 1), before, lr),
        curve(range(resumed + 1, resumed + 20), after, lr_after or lr),
    )
    found = compare_losses(former, new, resumed, new_epoch=new_epoch)
    return found if found is not None and found.surely_anew else None


def falls(step: int) -> float:
    """As that of the script whose step alone was restored: 28 at the beginning, 0.5 at step 120."""
    return 28.0 * math.exp(-step / 30) + 0.0003


def language_model(step: int) -> float:
    return 3.0 + 7.8 / (1 + step / 20)


def again(step: int) -> float:
    return falls(step - 240)


def noisy(loss: Losses, share: float, seed: int = 0) -> Losses:
    chance = random.Random(seed)
    return lambda step: loss(step) * (1 + chance.uniform(-share, share))


@pytest.mark.parametrize(
    ("before", "after", "killed", "resumed"),
    [
        (falls, again, 244, 240),
        (falls, lambda step: falls(step - 120), 128, 120),
        (noisy(falls, 0.3), noisy(again, 0.3, 1), 244, 240),
        (language_model, lambda step: language_model(step - 5000), 5003, 5000),
        (noisy(language_model, 0.05), noisy(lambda step: language_model(step - 240), 0.05, 1), 244, 240),
        (lambda step: -falls(step), lambda step: -falls(step - 240), 244, 240),  # it rises by design
    ],
)
def test_a_loss_like_that_of_the_beginning_shows_that_the_weights_were_not_restored(
    before: Losses, after: Losses, killed: int, resumed: int
) -> None:
    found = judged(before, after, killed=killed, resumed=resumed)
    assert found is not None
    assert abs(found.after - found.start) < abs(found.after - found.before)


def gan(step: int) -> float:
    return 1.5 + math.sin(step * 2.4) + 0.4 * math.sin(step * 0.9)


def restarts_warm(step: int) -> float:
    return 1.0 + 4.0 * math.exp(-(step % 60) / 8)


def diverged(step: int) -> float:
    return 1e4 * step


NOTHING_TO_SAY: dict[str, tuple[Losses, Losses]] = {
    "it continues": (falls, falls),
    "without the state of the optimizer it is a little higher": (language_model, lambda s: language_model(s) + 0.6),
    "it is halfway back": (language_model, lambda s: (language_model(s) + language_model(s - 240)) / 2),
    "it is lower than before": (language_model, lambda s: language_model(s) / 2),
    "losses of a GAN jump": (gan, lambda s: gan(s - 240)),
    "they stay at their highest after the resume": (gan, lambda _: 2.9),
    "it has no trend": (noisy(lambda _: 1.0, 0.5), noisy(lambda _: 1.4, 0.1, 1)),
    "it is noisy": (noisy(language_model, 0.9), noisy(lambda s: language_model(s - 240), 0.9, 1)),
    "warm restarts raise it": (restarts_warm, lambda s: restarts_warm(s - 240)),
    "all is NaN after the resume": (falls, lambda _: math.nan),
    "all was NaN before": (lambda _: math.nan, falls),
    "it exploded": (falls, diverged),
    "it had never fallen": (lambda _: 2.3, lambda _: 2.3),
    "a few first losses are NaN": (lambda s: math.nan if s < 40 else language_model(s), language_model),
}


@pytest.mark.parametrize("name", NOTHING_TO_SAY)
def test_nothing_is_said_if(name: str) -> None:
    before, after = NOTHING_TO_SAY[name]
    assert judged(before, after) is None


@pytest.mark.parametrize("seed", range(200))
def test_a_healthy_resume_of_a_loss_that_wanders_is_not_called_so(seed: int) -> None:
    """Losses that drift, jump and have spikes, as in reinforcement learning, and continue after the resume."""
    chance = random.Random(seed)
    drift, jump, value, values = chance.choice([0.0, -0.01, 0.02]), chance.uniform(0.02, 0.5), 1.0, []
    for _ in range(400):
        value = 0.98 * value + drift + chance.gauss(0.0, jump)
        values.append(value + (chance.uniform(2.0, 9.0) if chance.random() < 0.02 else 0.0))
    resumed = chance.randrange(10, 370)
    loss = values.__getitem__
    assert judged(loss, loss, killed=resumed + chance.randrange(1, 10), resumed=resumed) is None


def test_an_epoch_that_begins_with_the_resume_explains_it_if_nothing_was_seen_of_it_before() -> None:
    assert judged(falls, again, killed=240, new_epoch=True) is None
    assert judged(falls, again, killed=240) is not None
    assert judged(falls, again, killed=260, new_epoch=True) is not None  # its loss was seen, and was low


def test_a_learning_rate_that_begins_high_again_explains_it() -> None:
    def decays(step: int) -> float:
        return 1e-3 * (1 - step / 1000)

    assert judged(falls, again, lr=decays, lr_after=lambda s: decays(s - 240)) is None
    assert judged(falls, again, lr=decays) is not None
    assert judged(falls, again, lr=decays, lr_after=lambda s: 1e-6 * (s - 240)) is not None  # a warmup


def lines(first: int, last: int, loss: Losses) -> str:
    return "".join(f"step {step}/1000 loss {loss(step):.4f}\n" for step in range(first, last + 1))


def resumed_with(loss: Losses, *, pieces: int = 1) -> World:
    """Trained to step 244, crashed, resumed from step 240; then ``loss``."""
    world = World(judge()).begin()
    for first in range(1, 241, 10):
        world.see(LogChunk(t=world.t + 5.0, text=lines(first, first + 9, falls)))
    save(world, "out/step-240", 240).see(LogChunk(t=world.t + 1.0, text=lines(241, 244, falls)))
    world.answer("start_attempt", told_resume=True, resume="state")
    crash(world)
    text = lines(241, 270, loss)
    size = -(-len(text) // pieces)
    for at in range(0, len(text), size):
        world.see(LogChunk(t=world.t + 5.0, text=text[at : at + size]))
    return world


@pytest.mark.parametrize("pieces", [1, 3, 30, 200])
def test_a_run_whose_weights_were_not_restored_needs_a_person_and_goes_on(pieces: int) -> None:
    world = resumed_with(again, pieces=pieces)
    (found,) = [i for i in world.state.journal.incidents if i.kind == "resume"]
    assert (found.class_, found.severity, found.open) == ("weights_not_loaded", "danger", True)
    assert "the step was restored from step-240, the weights apparently not" in found.reason
    assert [e.what for e in found.evidence] == [
        "loss 0.0158 before the resume, 25.34 after it, 25.34 at the beginning of the run",
    ]
    notes = [n.text for n in world.of(Note)]
    assert notes[-1] == "the resume from step-240 is not verified any more: the loss does not go on"
    assert any(n.title.endswith("the weights were not restored") for n in world.of(NotifyPeople))
    assert not [d for d in (*world.of(StopAttempt), *world.of(GiveUp)) if d.incident == found.id]
    assert world.state.attempt.began_again


@pytest.mark.parametrize("pieces", [1, 30])
def test_a_run_whose_loss_goes_on_is_verified_and_needs_nobody(pieces: int) -> None:
    world = resumed_with(falls, pieces=pieces)
    assert not world.state.journal.incidents
    assert any(n.text.startswith("resume verified: step-240") for n in world.of(Note))
    assert world.state.attempt.losses_compared


def test_it_stays_open_when_the_run_is_resumed_again() -> None:
    world = resumed_with(again)
    save(world, "out/step-270", 270)
    crash(world).see(LogChunk(t=world.t + 5.0, text=lines(271, 290, again)))
    assert world.state.attempt.number == 3
    assert [i.class_ for i in world.state.journal.incidents if i.open] == ["weights_not_loaded"]


def test_losses_under_other_settings_are_not_compared() -> None:
    state = resumed_with(falls).state
    same = settings_of(state, state.attempt.profile)
    assert former(state, same).losses.points[-1].step > 240
    assert former(state, settings_of(state, "other")).losses == LossCurve()
    smaller = Change(where="flag", key="--batch", before=8, after=4)
    other = changed(state, "policy", applied=(AppliedRemedy(name="batch", changes=(smaller,)),))
    assert former(state, settings_of(other, state.attempt.profile)).losses == LossCurve()
    quiet = Change(where="env", key="PYTORCH_CUDA_ALLOC_CONF", before=None, after="expandable_segments:True")
    env = changed(state, "policy", applied=(AppliedRemedy(name="allocator", changes=(quiet,)),))
    assert settings_of(env, state.attempt.profile) == same
