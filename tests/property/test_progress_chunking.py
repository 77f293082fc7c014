"""Any chunking of the same text gives the same state: progress and evidence."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shipped import CATALOGUE
from tests.tiers import examples
from tests.unit.test_progress_state import read
from trainwatch.core.judge.failure.diagnosis import START_EVIDENCE, at_end, diagnose, read_log
from trainwatch.core.judge.failure.evidence_state import DiagnosisState
from trainwatch.core.judge.progress import START
from trainwatch.core.judge.text.lines import Finished, LineFold, fold, gates_of

PIECES = st.sampled_from(
    [
        "\rsteps:  10%|█         | 10/100 [00:10<01:30,  1.00s/it, loss=0.5]",
        "\rsteps:  11%|█         | 11/100 [00:11<01:29,  1.00s/it, loss=0.25]",
        "\r 20%|██ | 6/30 [00:06<00:24,  1.0it/s]",
        "Epoch 3/9\n",
        "{'loss': nan, 'learning_rate': 1e-05, 'epoch': 0.5}\n",
        "Step 12, Loss: 0.125, LR: 1.00e-04\r\n",
        "\x1b[32mValidation\x1b[0m: 10%|█ | 1/10 [00:01<00:09,  1.0it/s]\n",
        "caching latents\n",
        " 40 / 90   0.5000\n",
        " 41 / 90   0.4900\n",
        " 42 / 90   0.4800\n",
        "step,loss,lr\n",
        "40,0.5,0.01\n",
        "Training  [ 40/90]  total_loss: 0.5 (0.6)\n",
        '{"log": "\\rsteps: 4/9 [00:01<00:02, 2.0it/s, loss=0.5]\\n"}\n',
        "saving checkpoint: out/x.pt\n",
        "[rank1]: Traceback (most recent call last):\n",
        "    size = cfg['size']\n",
        "KeyError: 'size'\n",
        "RuntimeError: CUDA error: unknown error\n",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB\n",
        "Killed\n",
        "Training completed\n",
        "a line that says nothing " * 200 + "\n",
        "\n",
        "\r",
        "x" * 20000 + " RuntimeError: late\n",
        "█▏🎉",
    ]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join)


def cut(text: str, places: list[int]) -> list[str]:
    marks = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(marks)]


def evidence(chunks: list[str]) -> DiagnosisState:
    state, reading = START_EVIDENCE, START
    for chunk in chunks:
        state, reading = read_log(state, reading, chunk, CATALOGUE)
    return at_end(state, reading, CATALOGUE)


@settings(max_examples=examples(150), deadline=None)
@given(TEXTS, st.lists(st.integers(min_value=0, max_value=100_000), max_size=12))
def test_progress_is_the_same_for_any_chunking(text: str, places: list[int]) -> None:
    assert read(*cut(text, places)) == read(text)


@settings(max_examples=examples(150), deadline=None)
@given(TEXTS, st.lists(st.integers(min_value=0, max_value=100_000), max_size=12))
def test_diagnosis_is_the_same_for_any_chunking(text: str, places: list[int]) -> None:
    pieces, whole = evidence(cut(text, places)), evidence([text])
    assert pieces == whole
    assert diagnose(pieces, CATALOGUE) == diagnose(whole, CATALOGUE)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.text(alphabet="\r\nab1/ [<]:%|.,sit", max_size=80), st.lists(st.integers(min_value=0, max_value=80), max_size=8)
)
def test_progress_of_noise_is_the_same_for_any_chunking(text: str, places: list[int]) -> None:
    assert read(*cut(text, places)) == read(text)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.sampled_from(["good\n", "bad thing\r", "\n", "no", "needle here\n", "x" * 900 + "\n"]), max_size=40
    ).map("".join)
)
def test_scanning_and_reading_find_the_same_progress_lines(text: str) -> None:
    gates = gates_of(["needle", "bad"], [r"^go+d$"])
    done = Finished(text * 8, 1)
    here = gates.among(done.text)
    assert all(gates.passes(line) == (here is not None and here.passes(line)) for _, line, _ in done.placed())


@given(st.text(alphabet="ab\r\n", max_size=60), st.lists(st.integers(min_value=0, max_value=60), max_size=6))
def test_progress_line_numbers_do_not_depend_on_chunks(text: str, places: list[int]) -> None:
    def numbered(chunks: list[str]) -> tuple[LineFold, list[tuple[int, str]]]:
        state = LineFold()
        seen: list[tuple[int, str]] = []
        for chunk in chunks:
            state, done = fold(state, chunk)
            seen += [(number, line) for number, line, _ in done.placed()]
        return state, seen

    assert numbered(cut(text, places)) == numbered([text])
