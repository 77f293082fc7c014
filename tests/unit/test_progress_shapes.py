"""Each row of log_shapes.toml reads its examples; fields are found by their names in lines of no known shape."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.shipped import LOG_SHAPES, SHAPES, progress_of
from trainwatch.core.config.document import ConfigError
from trainwatch.core.config.shipped import read_table
from trainwatch.core.judge import progress as log_progress
from trainwatch.core.judge.text import fields
from trainwatch.core.judge.text.fields import NUMBER
from trainwatch.core.judge.text.shapes import ShapeTable
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.shipped import SHAPE_GROUPS, Example, LineShape, LogShapes

ROWS: dict[str, Any] = {
    **{row.name: row for row in LOG_SHAPES.shapes},
    **{f"label-{row.phase}": row for row in LOG_SHAPES.bar_labels},
    **{f"unit-{row.phase}": row for row in LOG_SHAPES.bar_units},
    **{f"words-{row.phase}": row for row in LOG_SHAPES.line_words},
    "translations": LOG_SHAPES.translations,
}
EXAMPLES = [
    pytest.param(example, id=f"{name}: {example.text.strip()[:30]}")
    for name, row in ROWS.items()
    for example in row.examples
]
QUIET = "x" * 9000 + "\n"
"""Text without news, so long that lines after it are searched with the gates."""

NAMES = {
    "step": "step",
    "of": "total_steps",
    "epoch": "epoch",
    "epochs": "total_epochs",
    "loss": "loss",
    "lr": "lr",
    "s": "sec_per_step",
}

NAMED_FIELDS = [
    ("t | progress: 90/900, train/total_loss: 0.25, epoch: 2, num_updates: 90, lr: 0.001", {"step": 90, "of": 900, "epoch": 2, "loss": 0.25, "lr": 1e-3}),
    ("step   40/9000 | loss 5.000000 | lr 1.00e-04 | 250.00 ms | 99 tok/s", {"step": 40, "of": 9000, "loss": 5.0, "lr": 1e-4, "s": 0.25}),
    ("Iter 70: Train loss 2.5, Learning Rate 1.000e-05, It/sec 0.500, Tokens/sec 90.1", {"step": 70, "loss": 2.5, "lr": 1e-5, "s": 2.0}),
    ("Epoch 3, global step 900, data_time: 0.0200, time: 1.5000, rgb: 0.1, depth: 0.2, normal: 0.3", {"step": 900, "epoch": 3, "s": 1.5}),
    ("\titers: 90, epoch: 2 | loss: 0.25\n\tspeed: 0.0500s/iter; left time: 9.0s", {"step": 90, "epoch": 2, "loss": 0.25, "s": 0.05}),
    ("  Epoch 2/30 [12.5s] train loss 0.5 (9.5s)", {"epoch": 2, "epochs": 30, "loss": 0.5}),
    ("{'loss': 1.5, 'grad_norm': 2.25, 'learning_rate': 2e-05, 'epoch': 0.04}", {"epoch": 0.04, "loss": 1.5, "lr": 2e-5}),
    ("{'loss': '1.5', 'learning_rate': '2e-05', 'epoch': '0.04'}", {"epoch": 0.04, "loss": 1.5, "lr": 2e-5}),
    ("[10/10 12:00:00 d2.utils.events]:  eta: 0:40:00  iter: 99  total_loss: 1.25  loss_cls: 0.5  time: 0.2500  data_time: 0.0100  lr: 0.002  max_mem: 900M", {"step": 99, "loss": 1.25, "lr": 2e-3, "s": 0.25}),
    ("[epoch:  3, iter:   1,250, lr:(2.000e-04,)] [eta: 1 day, 2:00:00, time (data): 0.500 (0.001)] l_pix: 2.5000e-02", {"step": 1250, "epoch": 3, "loss": 0.025, "lr": 2e-4, "s": 0.5}),
    ("| epoch 002 | loss 3.25 | nll_loss 2.0 | ups 3 | num_updates 1200 | lr 0.0003 | gnorm 0.5", {"step": 1200, "epoch": 2, "loss": 3.25, "lr": 3e-4}),
    (" iteration       64/    2000 | consumed samples: 512 | elapsed time per iteration (ms): 500.0 | learning rate: 1.000E-05 | global batch size:     8 | lm loss: 9.500000E+00 | loss scale: 1.0 |", {"step": 64, "of": 2000, "loss": 9.5, "lr": 1e-5, "s": 0.5}),
    ("[2024] [INFO] [logging.py:96:log_dist] [Rank 0] step=30, skipped=0, lr=[3e-05, 3e-05], mom=[(0.9, 0.999)]", {"step": 30, "lr": 3e-5}),
    ("step   40 | loss: 5.500000 | lr 3.0000e-04 | norm: 1.0000 | dt: 250.00ms | tok/sec: 4000.00", {"step": 40, "loss": 5.5, "lr": 3e-4, "s": 0.25}),
    ("iter 40: loss 3.5000, time 250.00ms, mfu 30.00%", {"step": 40, "loss": 3.5, "s": 0.25}),
    ("step:40/900 train_loss:5.5000 train_time:9000ms step_avg:nanms", {"step": 40, "of": 900, "loss": 5.5}),
    ("step:40/900 train_loss:5.5000 train_time:9000ms step_avg:225.00ms", {"step": 40, "of": 900, "loss": 5.5, "s": 0.225}),
    ("step 40: train loss 2.5000, val loss 2.7500", {"step": 40, "loss": 2.5}),
    ("completed step: 4, seconds: 2.500, TFLOP/s/device: 100.0, total_weights: 512, loss: 8.500", {"step": 4, "loss": 8.5, "s": 2.5}),
    ("22-12-06 - INFO: End of epoch 12 / 50 \t Time Taken: 5.0 sec", {"epoch": 12, "epochs": 50}),
    ("epoch=2 step=60 loss=0.25 lr=0.0003 it/s=4.0", {"step": 60, "epoch": 2, "loss": 0.25, "lr": 3e-4, "s": 0.25}),
    ("Epoch 4/9, Train Loss: 0.2500, Val Loss: 0.5000, LR: 0.0001", {"epoch": 4, "epochs": 9, "loss": 0.25, "lr": 1e-4}),
    ("Training epoch 0, iteration 9/99 | lr: 2e-05 | global_step: 9 | reduced_train_loss: 1.5 | train_step_timing in s: 2.5", {"step": 9, "of": 99, "epoch": 0, "loss": 1.5, "lr": 2e-5, "s": 2.5}),
    ("speed: global step 9, epoch: 1, batch: 9, loss: 0.5, speed: 4.0 step/s", {"step": 9, "epoch": 1, "loss": 0.5, "s": 0.25}),
    ("INFO Epoch 1, batch 30, loss[loss=0.5, simple_loss=0.6, over 900 frames.], tot_loss[loss=0.7], lr: 4.0e-02", {"step": 30, "epoch": 1, "loss": 0.5, "lr": 0.04}),
    ("batch loss:0.25\ncurrent step: 7702th step", {"step": 7702, "loss": 0.25}),
    ("RUN in epoch 2 , step 90, loss = 1.5", {"step": 90, "epoch": 2, "loss": 1.5}),
    ("Epoch 4, Step 30, total used time 900.5 (s), avg loss so far is 0.125", {"step": 30, "epoch": 4, "loss": 0.125}),
    ("  Batch 7/90\n    Loss: 0.5000", {"step": 7, "of": 90, "loss": 0.5}),
    ("step 90/900 | train loss 2.500000 | norm 0.5 | lr 1.00e-04 | (250.00 ms | 409600 tok/s)", {"step": 90, "of": 900, "loss": 2.5, "lr": 1e-4, "s": 0.25}),
    ("iter 90: id:0077, time:2.500(sec), total-loss 0.5(0.25, 0.25)", {"step": 90, "loss": 0.5, "s": 2.5}),
    ("Learning iteration 90/900 \n     Value function loss: 0.2500\n     Surrogate loss: -0.1250", {"step": 90, "of": 900, "loss": 0.25}),
    ("epoch:7 || iter:900 || Loss:4.5000\n->> part one loss:1.5000 || part two loss:3.0000", {"step": 900, "epoch": 7, "loss": 4.5}),
    ("[step=90/9000,epoch=0]\n    train/CrossEntropyLoss=2.500", {"step": 90, "of": 9000, "epoch": 0, "loss": 2.5}),
    ("iteration: 90 / 900 | elapsed_time_per_iteration_ms: 250 | lm_loss: 7.5 | lr: 0.0001", {"step": 90, "of": 900, "loss": 7.5, "lr": 1e-4, "s": 0.25}),
    ("step:90 - actor/lr:0.000002 - timing_s/step:120.5", {"step": 90, "lr": 2e-6, "s": 120.5}),
    ("Epoch 7 \nCurrent learning rate: 0.0025 \ntrain_loss -0.5000 ", {"epoch": 7, "loss": -0.5, "lr": 0.0025}),
    ("INFO: Training iter 90, loss=0.25 (2.500s)", {"step": 90, "loss": 0.25, "s": 2.5}),
    ("Training ━━━━━╸━━━━━━━━━  45% step: 90 loss: 0.250 :: Speed: 0.50it/s :: Elapsed: 0:03:00", {"step": 90, "loss": 0.25, "s": 2.0}),
    ("Episode 90/900, Reward: 12.0, Loss: 0.0250", {"step": 90, "of": 900, "loss": 0.025}),
]  # fmt: skip

APART = {"text", "run_step", "run_total_steps"}


def fields_of(progress: Progress) -> dict[str, Any]:
    return {name: getattr(progress, name) for name in Example.__struct_fields__ if name not in APART}


def expected(example: Example) -> dict[str, Any]:
    fields = {name: value for name, value in msgspec.structs.asdict(example).items() if name not in APART}
    return {
        name: pytest.approx(value, rel=1e-4) if isinstance(value, float) else value for name, value in fields.items()
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_progress_of_the_examples_of_each_row(example: Example) -> None:
    assert fields_of(progress_of([example.text])) == expected(example)
    assert fields_of(progress_of([QUIET + example.text])) == expected(example)
    read = progress_of([example.text])
    assert example.run_step in {None, read.run_step}
    assert example.run_total_steps in {None, read.run_total_steps}


@pytest.mark.parametrize("row", LOG_SHAPES.shapes, ids=lambda row: row.name)
def test_progress_every_shape_is_the_one_that_reads_its_examples(row: LineShape) -> None:
    for example in row.examples:
        assert row.name in {first_match(line) for line in example.text.split("\n")}


def first_match(line: str) -> str | None:
    for shape in SHAPES.rows:
        gates = shape.row.gates or fields.GATES
        if any(gate in line for gate in gates) and shape.pattern.search(line):
            return shape.row.name
    return None


def test_progress_shape_rows_are_complete() -> None:
    names = [row.name for row in LOG_SHAPES.shapes]
    assert len(set(names)) == len(names)
    assert all(row.source for row in LOG_SHAPES.shapes)
    for row, compiled in zip(LOG_SHAPES.shapes, SHAPES.rows, strict=True):
        assert "%{" not in compiled.pattern.text, f"{row.name}: unknown abbreviation"
        groups = (*SHAPE_GROUPS, *(("unit", "elapsed", "label") if row.kind == "bar" else ()))
        assert set(compiled.pattern.compiled().groupindex) <= set(groups), row.name
    assert LOG_SHAPES.abbreviations["NUMBER"] == NUMBER


def test_progress_a_shape_is_added_with_one_row(tmp_path: Path) -> None:
    """CONTRIBUTING: a log shape is one row of log_shapes.toml."""
    text = (Path(__file__).parents[2] / "configs" / "log_shapes.toml").read_text(encoding="utf-8")
    row = """
[[shapes]]
name = "mine"
gates = ["tick="]
pattern = '^tick=(?P<step>%{COUNT})/(?P<total_steps>%{COUNT}) cost=(?P<loss>%{NUMBER})'
source = "train.py"
examples = [{text = "tick=1.5k/2k cost=0.5", step = 1500, total_steps = 2000, loss = 0.5}]
"""
    path = tmp_path / "log_shapes.toml"
    path.write_text(text + row, encoding="utf-8")
    shapes = read_table(path, LogShapes)
    example = shapes.shapes[-1].examples[0]
    assert fields_of(log_progress.progress_of([QUIET + example.text], ShapeTable(shapes))) == expected(example)
    path.write_text(text + row.replace("gates", "gate"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"log_shapes\.toml:\d+: .*`gate`"):
        read_table(path, LogShapes)


@pytest.mark.parametrize(("text", "expect"), NAMED_FIELDS, ids=[text.strip()[:40] for text, _ in NAMED_FIELDS])
def test_progress_of_lines_that_name_their_fields(text: str, expect: dict[str, float]) -> None:
    progress = progress_of([text])
    got = {name: getattr(progress, field) for name, field in NAMES.items()}
    assert got == {name: pytest.approx(expect[name], rel=1e-4) if name in expect else None for name in NAMES}
    assert progress.phase == "train"


def own_shapes(*patterns: str) -> ShapeTable:
    return ShapeTable(LOG_SHAPES, patterns)


def test_progress_own_shape_is_tried_first() -> None:
    shapes = own_shapes(r"^tick=(?P<step>\d+)/(?P<total_steps>\d+) cost=(?P<loss>[\d.]+)")
    progress = log_progress.progress_of(["tick=5/50 cost=0.5\n" * 3], shapes)
    assert (progress.step, progress.total_steps, progress.loss) == (5, 50, 0.5)
    assert log_progress.progress_of([f"{QUIET}tick=6/50 cost=0.25\n"], shapes).step == 6


@pytest.mark.parametrize("pattern", ["(", r"step \d+", r"(?P<stepp>\d+)"])
def test_progress_own_shape_that_cannot_work_is_refused_in_one_line(pattern: str) -> None:
    with pytest.raises(ValueError, match="progress shape") as refused:
        own_shapes(pattern)
    assert "\n" not in str(refused.value)


def test_progress_several_own_shapes_with_the_same_groups() -> None:
    shapes = own_shapes(
        r"it=(?P<step>\d+) of (?P<total_steps>\d+)", r"(?P<step>\d+)th, round (?P<epoch>\d)/(?P<total_epochs>\d)"
    )
    progress = log_progress.progress_of([f"{QUIET}it=6 of 50\n7th, round 2/9\n"], shapes)
    assert (progress.step, progress.total_steps, progress.epoch, progress.total_epochs) == (7, 50, 2, 9)


def test_progress_own_shape_may_refer_back() -> None:
    shapes = own_shapes(r"(?P<step>\d+) (odd|even) is \2")
    assert log_progress.progress_of(["9 odd is odd\n8 odd is even\n"], shapes).step == 9
