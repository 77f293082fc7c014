"""The numbers that a trainer prints by name: read from its lines, kept in the history, shown."""

import json
from pathlib import Path

import pytest

from tests.shipped import Metrics
from trainwatch.cli import main
from trainwatch.core.model.observation import MOST_METRICS, MetricValues
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter


def read(text: str) -> Metrics:
    reader = Metrics()
    reader.read_text(text)
    return reader


RECORD = {"log": "step 40 loss 0.5 gnorm 1.5\n", "stream": "stdout", "time": "2026-01-02T10:11:12.5Z"}
READ = {
    "settings before the training are none": (
        "learning_rate: 0.1\nbatch_size: 8\nseed = 3\nstep 1 loss 0.5\n", {"step": 1.0, "loss": 0.5},
    ),
    "rows of a block below a training line": (
        "[step=40/900,epoch=0]\n    optim/grad=0.5\n    throughput/tps=120\n",
        {"step": 40.0, "epoch": 0.0, "optim/grad": 0.5, "throughput/tps": 120.0},
    ),
    "rows of a table above its step": (
        "| rollout/ | |\n| ep_rew_mean | -1.5 |\n| total_timesteps | 2048 |\n| loss | 0.5 |\n",
        {"ep_rew_mean": -1.5, "total_timesteps": 2048.0, "loss": 0.5},
    ),
    "sentences about an evaluation hold none": (
        "step 40 loss 0.5\nthe validation takes about 12 minutes\n", {"step": 40.0, "loss": 0.5},
    ),
    "rows of a table in columns have the names of its head": (
        "step,loss,grad_norm,note\n40,0.5,1.5,-\n41,0.25,nan,-\n", {"step": 41.0, "loss": 0.25, "grad_norm": None},
    ),
    "a line among the rows of a table has its own names": (
        "step,loss,gnorm\n40,0.5,1.5\nstep 41 loss 0.25 speed 2.5\n",
        {"step": 41.0, "loss": 0.25, "gnorm": 1.5, "speed": 2.5},
    ),
    "a number that prints itself as an object": (
        "step 4 loss tensor(0.5, device='cuda:0') lr np.float32(0.25)\n", {"step": 4.0, "loss": 0.5, "lr": 0.25},
    ),
    "a learning rate of caching, evaluation or download is none": (
        (
            "caching latents: step 12/90, lr=0.5\n"
            "Caching:  41%|####      | 41/100 [00:11<00:16,  3.61it/s, lr=0.5]\n"
            "Downloading 41%|####      | 4.1G/10.0G [00:11<00:16, 361MB/s, lr=0.5]\n"
            "Evaluating: 12/90, lr 0.5\n"
        ),
        {},
    ),
    "the record of a container has those of its line": (
        json.dumps(RECORD) + "\n", {"step": 40.0, "loss": 0.5, "gnorm": 1.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "values"), READ.values(), ids=READ)
def test_numbers_of_training_lines_and_tables_are_metrics(text: str, values: dict[str, float | None]) -> None:
    assert read(text).values == values


def test_numbers_of_an_evaluation_have_a_name_of_their_own() -> None:
    reader = read("step 40 loss 0.5\nEpoch(val) [3][20/20] loss: 0.75 acc: 0.5\n{'eval_loss': 0.7, 'eval_wer': 0.1}\n")
    assert reader.values["loss"] == 0.5
    assert reader.values["eval/loss"] == 0.75
    assert reader.values["eval_wer"] == 0.1


def test_names_beyond_the_bound_are_counted_and_left_out() -> None:
    line = "step 1 loss 0.5 " + " ".join(f"layer{n}_x={n}" for n in range(MOST_METRICS + 7))
    reader = read(f"{line}\n")
    assert len(reader.values) == MOST_METRICS
    assert reader.left_out == 9
    assert "loss" in reader.values
    line = "step 1 loss 0.5 " + " ".join(f"layer{n}_x={n}" for n in range(3 * MOST_METRICS))
    reader = read(f"{line}\n{line.replace('step 1', 'step 2')}\n")
    assert reader.left_out == MOST_METRICS, "once each, and no further than the bound"


def test_values_are_taken_once_and_without_those_that_are_not_finite() -> None:
    reader = read("step 1 loss 0.5 gnorm nan\n")
    assert reader.take() == {"step": 1.0, "loss": 0.5}
    assert reader.take() == {}


def test_half_a_line_before_a_gap_is_not_joined_with_what_follows() -> None:
    reader = read("step 1 loss 0.5\nstep 2 loss 0.")
    reader.read_text("7 8 9\nstep 3 loss 0.25\n", skipped=True)
    assert reader.values == {"step": 3.0, "loss": 0.25}


def test_another_attempt_begins_without_the_block_of_the_last() -> None:
    reader = read("[step=40/900,epoch=0]\n    optim/grad=0.5\n")
    reader.begin_attempt()
    reader.read_text("    optim/grad=9.5\n")
    assert reader.values["optim/grad"] == 0.5


@pytest.mark.parametrize("size", [1, 7, 64])
def test_metrics_do_not_depend_on_the_chunks(size: int) -> None:
    text = "step 40 loss 0.5 gnorm=2.5\r\n" + "".join(
        f"\rsteps: {n}/90 [00:01<00:02, 2.0it/s, loss=0.{n}]" for n in range(60)
    )
    text += "\n| reward | 1.5 |\nvalidation loss: 0.25 wer: 0.5\n"
    reader = Metrics()
    for at in range(0, len(text), size):
        reader.read_text(text[at : at + size])
    assert reader.values == read(text).values


def test_metrics_are_kept_and_read_by_name(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "h")
    writer.add(MetricValues(t=1, values={"grad.norm": 2.0, "eval/loss": 0.5}))
    writer.add(MetricValues(t=2, values={"grad.norm": 4.0, "broken": float("inf")}))
    writer.close()
    with HistoryReader(tmp_path / "h") as reader:
        assert reader.metrics() == ("grad.norm", "eval/loss")
        assert reader.series("metric.grad.norm", 0, 4, 4) == [(1.5, 2, 2, 2), (2.5, 4, 4, 4)]
        assert reader.rows("metric.grad.norm") == [(1, 2, 2, 2), (2, 4, 4, 4)]
        assert reader.series("metric.unheard", 0, 4, 4) == []
        assert reader.latest().metrics == MetricValues(t=2, values={"grad.norm": 4.0, "eval/loss": 0.5})


def test_a_later_writer_goes_on_with_the_names_of_the_history(tmp_path: Path) -> None:
    for t, values in ((1, {"a": 1.0, "b": 2.0}), (2, {"b": 3.0, "c": 4.0})):
        writer = HistoryWriter(tmp_path / "h")
        writer.add(MetricValues(t=t, values=values))
        writer.close()
    with HistoryReader(tmp_path / "h") as reader:
        assert reader.metrics() == ("a", "b", "c")
        newest = reader.latest().metrics
    assert newest is not None
    assert newest.values == {"a": 1.0, "b": 3.0, "c": 4.0}


def test_a_history_keeps_no_more_names_than_the_bound_and_counts_the_rest(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "h")
    writer.add(MetricValues(t=1, values={f"m{n}": float(n) for n in range(MOST_METRICS - 1)}))
    writer.commit()
    writer.add(MetricValues(t=2, values={"last": 1.0, "beyond": 2.0, "further": 3.0}, source="tensorboard"))
    writer.close()
    with HistoryReader(tmp_path / "h") as reader:
        assert len(reader.metrics()) == MOST_METRICS
        assert reader.metrics()[-1] == "last"
        newest = reader.latest().metrics
    assert newest is not None
    assert newest.left_out == 2


def test_progress_all_shows_the_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 40/90 loss 0.5 grad_norm 1.5\nstep 41/90 loss 0.25 grad_norm nan\n")
    assert main(["progress", str(log), "--all", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["step"] == 41
    assert shown["metrics"] == {"step": 41.0, "loss": 0.25, "grad_norm": None}
    assert main(["progress", str(log), "--all"]) == 0
    assert "grad_norm  NaN or infinite" in capsys.readouterr().out
    assert main(["progress", str(log), "--json"]) == 0
    assert "metrics" not in json.loads(capsys.readouterr().out)


def test_what_a_preamble_prints_once_is_no_metric() -> None:
    """kohya prints its numbers of batches and steps once; before, each was a chart of one value."""
    log = (Path(__file__).parents[1] / "fixtures" / "frameworks" / "kohya.log").read_text()
    reader = Metrics()
    taken: set[str] = set()
    for _ in range(2):  # the preamble of another attempt comes after steps
        for line in log.splitlines(keepends=True):
            reader.read_text(line)
            taken |= set(reader.take())
        reader.begin_attempt()
    assert "avr_loss" in taken
    assert not {name for name in taken | set(reader.values) if "num " in name or "total" in name or "size" in name}
    once = Metrics()
    once.read_text("step 1/100 loss 0.5 lr 1e-4\n")
    assert once.values["loss"] == 0.5, "a log of one line has nothing else"


def test_what_the_line_above_the_training_says_once_is_no_metric() -> None:
    """Before, "running training" and "x" were metrics of the page and of the report."""
    reader = Metrics()
    taken: set[str] = set()
    for _ in range(2):
        for line in (
            "running training: 420 steps, 6 x 64 points\n",
            *(f"step {n}/420 points/s {n * 9}\n" for n in range(1, 4)),
        ):
            reader.read_text(line)
            taken |= set(reader.take())
        reader.begin_attempt()
    assert taken == set(reader.values) == {"step", "points/s"}
