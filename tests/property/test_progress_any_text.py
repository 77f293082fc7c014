"""Whatever a program prints, reading its progress, metrics and evidence raises nothing and keeps to its bounds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_progress_chunking import evidence
from tests.shipped import Metrics, read_progress
from tests.tiers import examples
from trainwatch.core.judge.progress import START
from trainwatch.core.judge.text.shapes import KINDS
from trainwatch.core.model.observation import MOST_METRICS

PARTS = st.sampled_from(
    [
        *("step", "Epoch", "loss", "lr", "val_loss", "iter", "batch", "it/s", "of", "train", "Validation", "ups", "第", "步"),
        *("Step", "[1/", "{'loss':", "val", "Iter", "batch=", "EPOCH:", "images", "ms/step", "time:", "Error:", "Xid"),
        *("1e999", "²", "3.5s/it", "[00:10<01:00,", "━", "-1", "--", "G", ">", "0", "7", "90", "0.5", "1e-4", "nan", "1,234", "12k",
          "2026/01/02", "10:11:12", "50%", "99999999999999999999"),
        *(" ", "  ", "\t", ":", "=", "/", " / ", "|", ",", "[", "]", "(", ")", "{", "}", '"', "'", "-", "->", "\r", "\n", "<"),
        *('{"log":"', '\\n"}', "0: ", "[rank1]: ", "(W pid=3) ", "\x1b[31m", "\\u6b65", "█", "\ud800"),
    ]
)  # fmt: skip
TEXTS = st.lists(PARTS, max_size=60).map("".join) | st.text(max_size=120)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(TEXTS, max_size=4))
def test_no_text_makes_the_reading_of_progress_fail(chunks: list[str]) -> None:
    state = START
    metrics = Metrics()
    for chunk in chunks:
        state = read_progress(state, chunk)
        metrics.read_text(chunk)
    assert evidence([*chunks, "\n"]).fold.lines == "".join(chunks).count("\n") + 1
    progress = state.progress
    assert progress.step is None or progress.step >= 0
    assert len(state.now.skeletons) <= KINDS
    assert len(metrics.values) <= MOST_METRICS
    assert all(value is None or value - value == 0.0 for value in metrics.values.values())
