"""Reading only the ends of long rows of redraws gives what reading all of them gives."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shipped import SHAPES, progress_of, read_progress
from tests.tiers import examples
from trainwatch.core.judge.progress import START, read_dense
from trainwatch.core.judge.text.line_reading import read_segment
from trainwatch.core.judge.text.lines import Finished
from trainwatch.core.judge.text.reading import Reading

KINDS = (
    "steps: {pct:3d}%|{glyphs:10}| {n}/4000 [{m:02d}:{s:02d}<1:00:00, {rate}, avr_loss={loss}]",
    "Validation DataLoader 0: {pct:3d}%|{glyphs:10}| {n}/4000 [{m:02d}:{s:02d}<00:31, 9.01it/s]",
    "Epoch {e}: {pct:3d}%|{glyphs:10}| {n}/4000 [{m:02d}:{s:02d}<17:41, 2.10it/s, loss={loss}, v_num=0]",
    "Downloading shards: {pct:3d}%|{glyphs:10}| {n}/4000 [{m:02d}:{s:02d}<00:10, 9.51MB/s]",
    "{n}/4000 [====>.........] - ETA: 1:{m:02d} - loss: {loss} - accuracy: 0.1250",
    "   {e}/100  1.12G  0.0{n}  0.0{s}  0.0{m}  0.1{n}  32  640: {pct}%|{glyphs}| {n}/4000 [{m:02d}:{s:02d}<01:00, {rate}]",
    "{pct:3d}%|{glyphs:10}| {n}/4000 [{m:02d}:{s:02d}<17:41, {rate}]",
    "step {n}/4000: loss {loss}, time {s}.10ms",
    "{{'loss': {loss}, 'learning_rate': 1.{s}e-05, 'epoch': 0.{e}}}",
    "Epoch {e}/9",
    "Saving checkpoint to out/step-{n}",
    "Training completed",
    "a line that says nothing about step or loss: {n}",
    "",
)
ROWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
        st.sampled_from((1, 2, 11, 13, 30, 45)),
        st.sampled_from(("\r", "\n", "\r\n")),
        st.integers(min_value=0, max_value=3900),
    ),
    min_size=1,
    max_size=5,
)


def text_of(rows: list[tuple[list[str], int, str, int]], seed: int) -> str:
    dice = random.Random(seed)
    out = []
    for kinds, times, end, start in rows:
        for turn in range(times):
            n = start + turn
            for kind in kinds:
                rate = dice.choice(("2.50s/it", "12.31it/s", "?it/s"))
                loss = dice.choice((f"0.{dice.randint(1, 9999)}", f"0.{dice.randint(1, 9999)}", "nan"))
                glyphs = "█" * (n // 400) + dice.choice("▏▎▍▌▋▊▉ ")
                pct, m, s, e = n // 40, n // 60 % 60, n % 60, n // 1000
                out.append(kind.format(n=n, pct=pct, glyphs=glyphs, m=m, s=s, e=e, rate=rate, loss=loss) + end)
    return "".join(out)


@settings(max_examples=examples(150), deadline=None)
@given(ROWS, st.integers(min_value=0, max_value=99), st.booleans())
def test_reading_the_ends_of_redrawn_rows_equals_reading_all(
    rows: list[tuple[list[str], int, str, int]], seed: int, known: bool
) -> None:
    begin = read_progress(START, "Step 3/4000, Loss: 0.5\n").settled if known else Reading()
    done = Finished(text_of(rows, seed), 2)
    slow = begin
    for number, line, _ in done.placed():
        if SHAPES.gates.passes(line):
            slow = read_segment(slow, line, number, SHAPES)
    fast = read_dense(begin, done, SHAPES)
    assert fast.progress == slow.progress
    assert fast.main == slow.main


def test_progress_of_a_redrawn_row_is_that_of_its_last_redraw() -> None:
    bars = text_of([([KINDS[0]], 3000, "\r", 0)], 1)
    assert progress_of([bars]) == read_progress(read_progress(START, bars), "\n").progress
    assert progress_of([bars]).step == 2999


def test_a_message_in_the_middle_of_a_redrawn_row_is_read() -> None:
    """The rate of a bar without a label falls through the bound below which it counts no steps."""
    fast = ["{n}/900 [00:01<00:01, 90000.0it/s]\r", "{n}/900 [00:01<00:01, 10.0it/s]\r"]
    text = "".join((fast[1] if n < 30 else fast[0]).format(n=n) for n in range(60))
    read = read_dense(Reading(), Finished(text, 1), SHAPES)
    assert (read.progress.phase, read.progress.step) == ("load", 29)
