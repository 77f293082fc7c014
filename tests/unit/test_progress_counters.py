"""Counters that are hard to tell apart: bars under one label, odd tables, records over lines, losses that vanish."""

import json
from collections.abc import Iterator

import pytest

from tests.shipped import read_progress
from trainwatch.core.judge.progress import START

CASES: list[tuple[str, str, dict[str, float | str | None]]] = []


def case(name: str, text: str, **expect: float | str | None) -> None:
    CASES.append((name, text, expect))


def bar(label: str, step: int, total: int, postfix: str = "", rate: str = "2.00it/s") -> str:
    return f"\r{label}{100 * step // total:3d}%|{'█' * 4}{' ' * 6}| {step}/{total} [00:10<00:20, {rate}{postfix}]"


def lines(form: str, count: range) -> str:
    return "".join(form.format(i=i, loss=0.9 - 0.001 * i) + "\n" for i in count)


def epochs_of_two_bars(last: int, cut: int, loss: str = ", loss=0.5") -> Iterator[str]:
    for epoch in range(1, last + 1):
        yield from (bar(f"Epoch {epoch}/8: ", i, 50, loss) for i in range(1, (50 if epoch < last else cut) + 1))
        if epoch < last or cut == 50:
            yield from (bar(f"Epoch {epoch}/8: ", i, 10, loss) for i in range(1, 11))


def fastai(last: int, cut: int) -> Iterator[str]:
    yield "epoch     train_loss  valid_loss  accuracy  time    \n"
    for epoch in range(last + 1):
        form = f"\rEpoch {epoch + 1}/40 : |{{0}}| {{1:.2f}}% [{{2}}/{{3}} 00:01<00:01 {{4}}]"
        for i in range(1, (20 if epoch < last else cut) + 1):
            yield form.format("█" * i, 5.0 * i, i, 20, 1.5 - 0.01 * i)
        if epoch < last:
            yield from (form.format("█" * i, 25.0 * i, i, 4, 0.9) for i in range(1, 5))
            yield f"\n{epoch}         1.4{epoch}       0.9{epoch}       0.7{epoch}        00:03\n"


def nested(epochs: int, cut: int) -> Iterator[str]:
    for epoch in range(epochs):
        yield bar("Epochs: ", epoch, 10, rate="30.00s/it") + "\n"
        yield from (bar("Batches: ", i, 40, ", loss=0.25") for i in range(1, (40 if epoch < epochs - 1 else cut) + 1))
        yield "\n"


SKORCH = (
    "  epoch    train_loss    valid_acc    valid_loss    cp     dur\n"
    "-------  ------------  -----------  ------------  ----  ------\n"
    "      1        0.8500       0.71        0.85     +  0.0151\n"
    "      2        0.5400       0.71        0.85        0.0451\n"
)
ROUNDS = range(10, 130, 10)

case("two bars, one label", "".join(epochs_of_two_bars(4, 30)), step=30, epoch=4, run_step=180, run_total_steps=400)
case("the second of them", "".join(epochs_of_two_bars(3, 50)), phase="eval", step=50, run_step=150, run_total_steps=400)
case("epochs of a table and of a bar", "".join(fastai(9, 10)), step=10, epoch=10, run_step=190, run_total_steps=800)
case("nested bars", "".join(nested(3, 25)), step=25, total_steps=40, loss=0.25, run_step=105, run_total_steps=400)
case("a cell that holds a sign or nothing", SKORCH, epoch=2, loss=0.54)
case("a cell of words", "step,loss,note,lr\n10,0.9,,1e-3\n20,0.8,best,1e-3\n", step=20, loss=0.8, lr=1e-3)
case("rounds of boosting", lines("[{i}]\tvalid_0's l2: {loss:.6f}", ROUNDS), step=120, phase="train")
case("remaining in ms", lines("{i}:\tlearn: {loss:.5f}\ttotal: 9ms\tremaining: 750ms", ROUNDS), step=120, eta_s=0.75)
case("remaining days", "iter 40/400 loss 0.5 ETA: 2d 3h 2m 3s\n", step=40, eta_s=183723.0)
case("time left", "[step 40/400] loss=0.5 | time left: 12.5 min\n", step=40, eta_s=750.0)
case("rate asked for", "step 4/9 base_lr: 2.0e-02 lr: 1.5e-02 loss: 0.5\n", step=4, lr=0.015)
case("peak rate", "iter 4/9, peak learning rate: 0.1, train_lr: 0.02, loss 0.5\n", step=4, lr=0.02)
case("rate asked for alone", "step 4/9 base_lr: 0.02 loss: 0.5\n", step=4, lr=0.02)

SETTINGS = "  Num Epochs = 4\n  Total optimization steps = 2,400\n"
WORDED = "num epochs / epochs: 3\ntotal training steps: 900\n"
case("a total above", "total steps 900 (warmup 9)\nstep:  9  loss: 0.5\n", step=9, total_steps=900, run_total_steps=900)
case("a count of all", "Total steps: 20\nit 10 loss 3\nTotal steps: 40\nit 20 loss 0.4\n", step=20, total_steps=None)
case("milliseconds", "step=9 loss=0.5 step_ms=412.5\n", step=9, sec_per_step=0.4125)
case("a clock", "step 9/90 loss 0.5 step_time 0:00:00.412345\n", step=9, sec_per_step=0.412345, eta_s=33.399945)
case("steps of the run", SETTINGS + bar("", 800, 2400), step=800, run_step=800, run_total_steps=2400, eta_s=20.0)
case("steps in words", WORDED + bar("", 300, 900), step=300, run_total_steps=900, total_epochs=3, eta_s=20.0)
case("steps of an epoch", SETTINGS + bar("", 200, 600), step=200, run_total_steps=None, eta_s=None)
case("epochs of the run", SETTINGS + bar("Steps: ", 800, 2400), step=800, total_epochs=4, epoch=None)
for name, said in {
    "prompt": "prompt: a cat, step 9999/9999, loss: 0.0",
    "negative prompt": "INFO - negative_prompt 2: 1girl, epoch 7/9, step 9999/9999, loss: 0.0",
    "prompt as a value": "sample of step 8: prompt='loss: 0.0, step 9999/9999' (28 steps)",
    "caption": 'Caption: "train loss 0.0 at step 9999/9999"',
    "answer": "Question: what is shown? Answer: step 9999/9999, loss: 0.0",
}.items():
    case(name, f"step 8/90, loss: 0.5\n{said}\n", step=8, total_steps=90, loss=0.5)
case("numbers before a prompt", "step 8/90, loss: 0.5, prompt: a cat, step 9/9\n", step=8, total_steps=90, loss=0.5)
case("numbers of prompts", "prompt: 12.5 tok/s, response: 31, step 8/90, loss: 0.5\n", step=8, total_steps=90, loss=0.5)
case("files copied", "step 8/90 loss: 0.5\n<< it 01200 of 50000 files copied >>\n", step=8, total_steps=90)
case("a message behind a bar", bar("", 8, 90) + "[INFO|a.py:5] >> Saving model checkpoint to a\n", phase="save")
case("a bar to no end", "Training: |  | 2/? [00:01<00:00,  1.00it/s, train_loss=1.0]", step=2, eta_s=None)
case("remaining memory", "step 40/400 loss 0.5 memory remaining: 6m\n", step=40, eta_s=None)
case(
    "JSON over lines",
    "\n".join(
        json.dumps({"step": 10 * i, "total_steps": 500, "train": {"loss": 1 - 0.1 * i, "lr": 1e-4}, "epoch": 1}, indent=2)
        for i in range(1, 6)
    ),
    step=50, total_steps=500, loss=0.5, lr=1e-4, epoch=1,
)  # fmt: skip
case(
    "a dict over lines",
    lines("{{'epoch': 1,\n 'loss': {loss:.2f},\n 'step': {i},\n 'val': {{'loss': 0.9}}}}", range(1, 5)),
    step=4,
    loss=0.9,
    epoch=1,
)
case("no loss any more", lines("step {i}/900 loss 0.5", range(1, 21)) + lines("step {i}/900", range(21, 61)), loss=None)
case("a loss now and then", lines("step {i}/900 loss 0.5", range(10, 70, 10)) + lines("step {i}/900", range(61, 66)), step=65, loss=0.5)  # fmt: skip
case("a name that is not known", lines("tick {i}/900 loss 0.00000", range(1, 81)), step=80, total_steps=900, loss=0.0)


MICRO = "micro-batch {i}/800 | loss {loss:.4f}\n"
"""Of such counts eight make an optimizer step."""


def accumulated(steps: int, after: int) -> Iterator[str]:
    for i in range(1, 8 * steps + after + 1):
        yield MICRO.format(i=i, loss=0.9 - 0.001 * i)
        if i % 8 == 0:
            yield f"optimizer step {i // 8}/100 | lr 1e-4 | 4.00 s/optimizer step\n"


STRAY = lines(MICRO.strip(), range(1, 21)) + "step 7\n" + lines(MICRO.strip(), range(21, 41))
case("one line with a step among micro-batches", STRAY, step=40, total_steps=800, loss=0.86)
case("micro-batches after a step", "".join(accumulated(3, 5)), step=3, total_steps=100, loss=0.871, sec_per_step=4.0)
NAMED = "epoch={epoch} epochs=10 step={{i}} total_steps=391 loss={{loss:.4f}}\n"
case("an end of the run by its name", lines(NAMED.format(epoch=0), range(1, 20)), step=19, run_total_steps=391)
case("which it cannot be", lines(NAMED.format(epoch=1), range(1, 200)), step=199, run_total_steps=3910)
case("one line counts both", "micro step 3/8, step 40/90, loss 0.5\n" * 2, step=40, total_steps=90, loss=0.5)


@pytest.mark.parametrize(("text", "expect"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_progress_of_counters_that_are_hard_to_tell_apart(text: str, expect: dict[str, float | str | None]) -> None:
    whole, parts = read_progress(read_progress(START, text), "\n"), START
    for at in range(0, len(text), 37):
        parts = read_progress(parts, text[at : at + 37])
    assert read_progress(parts, "\n") == whole
    got = {name: getattr(whole.progress, name) for name in expect}
    assert got == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in expect.items()}


def test_micro_batches_are_a_sign_of_life_beside_the_steps() -> None:
    before, after = (read_progress(START, "".join(accumulated(3, more))).now for more in (0, 5))
    assert after.heartbeats == before.heartbeats + 5


def test_nan_is_told_from_the_step_of_the_run() -> None:
    """It said "NaN since step 10" of step 60: the step within the epoch."""
    text = "".join(
        bar(f"Epoch {epoch}/4: ", i, 50, f", loss={'nan' if epoch == 2 and i > 9 else 0.5}")
        for epoch in (1, 2)
        for i in range(1, 51)
    )
    losses = read_progress(START, f"{text}\n").now.losses
    assert (losses.nan_from, losses.nan_steps) == (60, 41)
