"""A name that a person chose says nothing: what stands before the message of a line is never read as its words."""

import json
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from tests.builders import Story, World
from tests.shipped import SHAPES
from trainwatch.cli import main
from trainwatch.core.judge.progress import START, ProgressState, begin_attempt, read_progress
from trainwatch.core.judge.run_states import Running, Starting
from trainwatch.core.model.progress import Progress

NAMES = ["eval", "preprocess", "test_run", "validation/exp1", "sample_v2", "save-me", "test_project.train", "eval_lab"]
"""The first two are single words, which may be the message's own in front of a colon or a dash, or in brackets."""
AMBIGUOUS = ("INFO {0}: ", "[INFO] {0}: ", " [{0}] ", " - INFO - {0} - ")
PREFIXES = [
    "{0}/train.py:12 ",
    "2026-01-01 10:00:00,123 INFO {0}/train.py:42 ",
    "2026-01-01 10:00:00,123 INFO {0}: ",
    "2026-01-01 10:00:00,123 - {0} - INFO - ",
    "2026-01-01 10:00:00 - INFO - {0} - ",
    "01/01/2026 10:00:00 - INFO - {0} - ",
    "01/01 10:00:00 - {0} - INFO - ",
    "2026-01-01 10:00:00.123 | INFO     | {0}:main:42 - ",
    "2026-01-01 10:00:00.123 | SUCCESS  | {0}.py:42 - ",
    "INFO:{0}:",
    "INFO {0}:12 ",
    "[INFO] {0}.py:12: ",
    "[INFO|{0}.py:123] 2026-01-01 10:00:00,123 >> ",
    "[2026-01-01 10:00:00,123][{0}][INFO] - ",
    "[2026-01-01 10:00:00,123] [INFO] [{0}.py:12:main] ",
    "[2026-01-01 10:00:00,123] [INFO] [Rank 0] [{0}.py:12] ",
    "[01-01 10:00:00|INFO|{0}/loop.py:86:step_end] ",
    "I0101 10:00:00.123456 140493133028224 {0}.py:42] ",
    "W0101 10:00:00.123 {0}.py:42] ",
    "[rank0]: 2026-01-01 10:00:00 {0} INFO ",
    "[10:00:00] INFO     ",
    "10:00:00-123456 INFO     {0}.py:12 ",
    "2026-01-01T10:00:00Z stdout F [{0}.py:12] ",
    "{0}-0  | [10:00:00] INFO ",
    "Jan 01 10:00:00 {0} python[812]: ",
    "{0} 2026-01-01 10:00:00 INFO ",
    "({0} pid=812) ",
    "DEBUG    {0}:train.py:12 ",
    "2026-01-01 10:00:00 [info     ] ",
    "2026-01-01 10:00:00,123 [INFO] {0}: ",
    "2026/01/01 10:00:00 INFO [{0}] ",
    "{0}/train.py(12): INFO: ",
    "[{0}/train.py:12] ",
    "/home/ann/{0}/train.py:12: ",
    "2026-01-01 10:00:00,123 - INFO - {0}.py - ",
]
MESSAGES = [
    "step {n}/100 loss {loss}",
    "Epoch 1 | iter {n} / 100 | loss {loss}",
    "iteration {n}/ 100 | lm loss: {loss} | lr: 1e-4",
    "train: step={n} total=100 loss={loss}",
    "steps:  12%|█▏| {n}/100 [00:10<01:10,  1.0s/it, avr_loss={loss}]",
    "{{'loss': {loss}, 'learning_rate': 1e-05, 'step': {n}, 'max_steps': 100}}",
]


def read(*lines: str) -> Progress:
    return state_of(*lines).progress


def state_of(*lines: str, before: ProgressState = START) -> ProgressState:
    for line in lines:
        before = read_progress(before, f"{line}\n", SHAPES)
    return before


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_name_before_the_message_decides_nothing(prefix: str) -> None:
    wrong = {}
    for message, name in product(MESSAGES, NAMES[2 if prefix.endswith(AMBIGUOUS) else 0 :]):
        head = prefix.format(name)
        found = read(*(head + message.format(n=n, loss=0.6 - n / 100) for n in (11, 12, 13)))
        if (found.phase, found.step, found.loss) != ("train", 13, 0.47):
            wrong[message, name] = (found.phase, found.step, found.loss)
    assert not wrong


@pytest.mark.parametrize(
    "line",
    [
        "INFO step {n}/100 loss 0.{n}                    {0}.py:42",
        "INFO step {n}/100 loss 0.{n} [{0}.train]",
        "INFO step {n}/100 loss 0.{n} logger={0}",
        "INFO step {n}/100 loss 0.{n} -> /runs/{0}/out",
        "INFO step {n}/100 loss 0.{n} run={0}",
        '{{"run": "{0}", "step": {n}, "loss": 0.{n}}}',
        '{{"dir": "/data/{0}/x", "step": {n}, "loss": 0.{n}}}',
        "run={0} step {n}/100 loss 0.{n}",
        "model {0}-7b, step: {n}, loss: 0.{n}",
        "/data/{0}/x: step {n}, loss: 0.{n}",
    ],
)
def test_a_name_within_or_behind_the_message_decides_nothing(line: str) -> None:
    for name in NAMES:
        found = read(*(line.format(name, n=n) for n in (11, 12, 13)))
        assert (found.phase, found.step, found.loss) == ("train", 13, 0.13), name


WORDS = ["eval", "val", "test", "inference", "validation", "dev"]
ONLY = [
    "2026-01-01 10:00:00 INFO {0}: step {n}/100 loss 0.{n}",
    "[{0}] iter {n}/100 loss 0.{n}",
    "2026-01-01 10:00:00 - INFO - {0} - step {n}/100 loss 0.{n}",
    "INFO {0}: step {n}/100",
    "[{0}] epoch 2 | iter {n} / 100 | grad_norm 0.7 | loss 0.{n}",
]


@pytest.mark.parametrize("form", ONLY)
def test_the_only_count_of_a_log_is_the_training_once_it_has_gone_on(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    for word in WORDS[:4]:
        lines = [form.format(word, n=n) for n in range(11, 31)]
        short = state_of(*lines[:6])
        assert (short.progress.step, short.now.heartbeats) == (None, 0), word
        log.write_text("\n".join(lines) + "\n")
        assert main(["progress", str(log), "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["phase"], said["step"], said["total_steps"]) == ("train", 30, 100), word
        assert said["loss"] == (0.3 if "loss" in form else None)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_is_known_as_a_name_hides_nothing_else(word: str) -> None:
    head = f"INFO {word}: "
    steps = [f"{head}iter {n}/40 loss 0.{n}" for n in range(10, 41, 10)]
    whole = state_of(*(line for epoch in (1, 2, 3, 4) for line in (f"{head}Epoch {epoch}/9", *steps)))
    assert (whole.progress.run_step, whole.progress.run_total_steps) == (160, 360)
    other = state_of(f"{head}Validation step 3/10 loss 0.9", f"{head}val loss 0.8", before=whole)
    assert (other.phase, other.progress.run_step, other.progress.loss) == ("eval", 160, 0.4)
    again = state_of(f"{head}Epoch 5/9", steps[0], before=begin_attempt(whole, resumed=True, began=160))
    assert (again.phase, again.progress.run_step) == ("train", 170)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("train", [2, 5])
def test_a_count_that_begins_anew_beside_another_one_is_an_evaluation(word: str, train: int) -> None:
    checks = [f"[{word}] step {n}/50 loss 0.{n}" for n in range(10, 40)]
    steps = [f"step {n}/1000 loss 0.{n}" for n in range(1, 2 * train + 1)]
    state = state_of(*checks, *steps[:train], *checks, *steps[train:], *checks[:6])
    assert (state.phase, state.progress.step, state.progress.total_steps) == ("eval", 2 * train, 1000)
    again = state_of(*checks, before=begin_attempt(state, resumed=True, began=2 * train))
    assert (again.phase, again.now.heartbeats) == ("eval", 0)


@pytest.mark.parametrize("word", WORDS)
def test_a_count_that_begins_anew_each_time_is_an_evaluation(word: str) -> None:
    checks = [f"INFO {word}: step {n}/50 loss 0.{n}" for n in range(10, 50, 10)]
    assert state_of(*checks * 6).now.heartbeats == 0
    state = state_of("step 1/900 loss 0.5", "step 2/900 loss 0.4", *checks * 6)
    assert (state.now.heartbeats, state.progress.step, state.progress.loss) == (2, 2, 0.4)


@pytest.mark.parametrize(("train", "check"), [("test", "val"), ("eval_run", "dev"), ("eval", "test"), ("val", "eval")])
def test_of_two_counts_with_such_words_the_one_that_goes_on_is_the_training(train: str, check: str) -> None:
    checks = [f"[{check}] step {n}/50 loss 0.9" for n in range(10, 41)]
    steps = [f"[{train}] step {n}/900 loss 0.{n}" for n in range(1, 9)]
    state = state_of(*checks[:2], *(line for at in (0, 2, 4, 6) for line in (*steps[at : at + 2], *checks)))
    assert (state.phase, state.progress.step, state.progress.total_steps) == ("eval", 8, 900)
    assert state.progress.loss == 0.8


@cache
def silenced(line: str, steps: int, silent_s: float) -> tuple[type, list[tuple[str, float | None]]]:
    """The state of a run after so many such lines, and the hangs that are found in the silence after them."""
    world = World().begin().see(*Story().start().load().train(steps, line=line.format).observations)
    state = type(world.state.machine)
    world.watch(Story(meta=False, period_s=5.0).dead(silent_s))
    return state, [(hang.class_, hang.detect_s) for hang in world.hangs]


def of(name: str) -> str:
    return f"INFO {name}: step {{}}/10260 loss 0.5\n"


@pytest.mark.parametrize("word", ["eval", "validation"])
def test_a_hang_is_found_whatever_the_logger_is_called(word: str) -> None:
    state, ((class_, found_s),) = silenced(of(word), 60, 400)
    _, ((same, mine_s),) = silenced(of("mine"), 60, 400)
    assert (state, class_) == (Running, same)
    assert found_s == pytest.approx(mine_s, abs=0.5)


@pytest.mark.parametrize("word", ["eval", "validation"])
def test_what_is_not_known_yet_is_neither_progress_nor_a_hang(word: str) -> None:
    state, found = silenced(of(word), 6, 3600)
    _, other = silenced("working\n", 6, 3600)
    assert state is Starting
    assert [s for _, s in found] == pytest.approx([s for _, s in other], abs=30.0)
    assert found
