"""Any text: the diagnosis never raises, and what carries a log changes neither its class nor its confidence."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.logs.carriers import CARRIERS
from tests.shipped import CATALOGUE
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.text.lines import peel, unglued

PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "t.py", line 3, in <module>',
        "    raise ValueError(x)",
        "KeyError: 'x'",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "During handling of the above exception, another exception occurred:",
        "wandb.errors.CommError: network error",
        "terminate called after throwing an instance of 'c10::Error'",
        "  what():  CUDA error: unknown error",
        "hint: if you see CUDA out of memory, lower the batch size",
        "step 3/9 loss 0.5",
        "Killed",
        "",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.sampled_from([None, 0, 1, -9, 139]))
def test_diagnosis_of_any_text_does_not_raise(text: str, code: int | None) -> None:
    found = diagnosis_of([text], CATALOGUE, code)
    assert 0.0 <= found.confidence <= 1.0
    for line in text.splitlines():
        assert isinstance(peel(line).text, str)
        assert "".join(unglued(line)).replace(" ", "") == line.replace(" ", "") or len(unglued(line)) == 2


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=12), st.sampled_from(sorted(CARRIERS)))
def test_carriers_change_no_diagnosis(lines: list[str], carrier: str) -> None:
    plain = diagnosis_of(["\n".join(lines)], CATALOGUE, 1)
    carried = diagnosis_of(["\n".join(CARRIERS[carrier](lines))], CATALOGUE, 1)
    assert carried.failure == plain.failure
