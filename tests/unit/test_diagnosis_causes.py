"""Root, cascade, noise, survival and exit status, each on lines of our own."""

import pytest

from tests.shipped import CATALOGUE, FAILURES, LOG_SHAPES
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.failure.diagnosis import START_EVIDENCE, diagnose, is_news
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.text.shapes import ShapeTable

BAR = "\rsteps:  10%|█         | {0}/100 [00:10<01:30,  1.00s/it, loss=0.5]"
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB\n"

QUIET = "x" * 9000 + "\n"
"""Text without news, so long that lines after it are searched with the gates."""
EXAMPLES = [(each.name, text) for each in FAILURES.classes for text in each.examples]


@pytest.mark.parametrize(("failure", "text"), EXAMPLES, ids=[f"{failure}-{text[:30]}" for failure, text in EXAMPLES])
def test_diagnosis_of_the_examples_of_each_class(failure: str, text: str) -> None:
    answer = diagnosis_of([text], CATALOGUE, None if failure == "success" else 1)
    assert answer.failure == failure
    assert diagnosis_of([QUIET + text], CATALOGUE, None if failure == "success" else 1).failure == failure
    assert answer.title
    assert answer.explanation
    assert failure == "success" or answer.remedies
    assert failure in {"success", "unknown"} or answer.cause is not None


@pytest.mark.parametrize("line", FAILURES.noise_examples)
def test_noise_shows_nothing(line: str) -> None:
    assert CATALOGUE.matches(line) is None
    assert diagnosis_of([line], CATALOGUE, 1).failure == "unknown"


def test_diagnosis_progress_in_own_shapes_outlives_an_error() -> None:
    ticks = "".join(f"tick {number}\n" for number in range(9))
    own = CompiledCatalogue(FAILURES, ShapeTable(LOG_SHAPES, (r"^tick (?P<step>\d+)",)))
    assert diagnosis_of([OOM + ticks], own, 1).failure == "unknown"
    assert diagnosis_of([OOM + ticks], CATALOGUE, 1).failure == "cuda_oom"


def test_diagnosis_survived_error_is_shown_but_not_as_the_cause_when_nothing_else_is() -> None:
    answer = diagnosis_of([OOM + "".join(BAR.format(step) for step in range(5, 12))], CATALOGUE, 1)
    assert answer.failure == "unknown"
    assert answer.confidence < 0.5
    assert answer.cause is None
    assert "out of memory" in answer.cascade[0].text


EXITS = [
    (139, None, "segfault"),
    (-11, None, "segfault"),
    (None, "SIGSEGV", "segfault"),
    (130, None, "killed_by_user"),
    (None, "int", "killed_by_user"),
    (143, None, "killed_by_user"),
    (137, None, "unknown"),
    (-9, None, "unknown"),
    (None, 9, "unknown"),
    (134, None, "unknown"),
    (-40, None, "unknown"),
    (1, None, "unknown"),
    (None, None, "unknown"),
    (None, 0, "unknown"),
    (200, None, "unknown"),
    (126, None, "config_error"),
    (127, None, "config_error"),
    (124, None, "killed_by_user"),
    (153, None, "disk_full"),
    (3221225477, None, "segfault"),
    (-1073741819, None, "segfault"),
    (-1073741510, None, "killed_by_user"),
    (-1073740000, None, "unknown"),
]


@pytest.mark.parametrize(("code", "signal", "failure"), EXITS)
def test_diagnosis_exit_status_alone(code: int | None, signal: int | str | None, failure: str) -> None:
    answer = diagnose(START_EVIDENCE, CATALOGUE, exit_code=code, signal=signal)
    assert answer.failure == failure
    assert failure != "unknown" or answer.confidence <= 0.3


@pytest.mark.parametrize(
    ("line", "news"),
    [
        ("RuntimeError: odd", True),
        ("CUDA out of memory. Tried to allocate", True),
        ("Saving model checkpoint to out/checkpoint-500", True),
        ("/lib/x.py:3: UserWarning: something failed", False),
        ("worker 3 read item 17", False),
    ],
)
def test_diagnosis_is_news(line: str, news: bool) -> None:
    assert is_news(line, CATALOGUE) is news


def test_diagnosis_words_of_a_generic_exception_are_never_sure() -> None:
    for text in ("ValueError: please set the learning_rate", "RuntimeError: the server disconnected", "OddError: x"):
        assert diagnosis_of([text], CATALOGUE, 1).confidence < 0.8


def test_diagnosis_of_two_causes_that_are_near_is_not_sure_and_names_both() -> None:
    answer = diagnosis_of([f"ModuleNotFoundError: No module named 'x'\n{OOM}"], CATALOGUE, 1)
    assert answer.confidence <= 0.7
    assert f"{answer.title} {answer.explanation}".count("import error") == 1
    assert "Nearly as likely" in answer.explanation


@pytest.mark.parametrize("code", [0, 137, 143])
def test_diagnosis_of_a_report_after_which_the_program_went_on_is_not_sure(code: int) -> None:
    text = "Traceback (most recent call last):\n  File 'a.py', line 1\nModuleNotFoundError: No module named 'x'\n"
    assert diagnosis_of([text], CATALOGUE, code).confidence == 0.9
    assert diagnosis_of([f"{text}the sample ends here\n4000 samples\n"], CATALOGUE, code).confidence == 0.6


def test_diagnosis_unknown_shows_the_last_lines_and_all_that_was_suspicious() -> None:
    text = "begin\nBrokenPipeError: [Errno 32] Broken pipe\n\n\r 10%|█ | 1/9 [00:01<00:08]\r 20%|██ | 2/9 [00:02<00:07]\nbye"
    answer = diagnosis_of([text], CATALOGUE, 1)
    assert answer.failure == "unknown"
    cause = [] if answer.cause is None else [(answer.cause.line, answer.cause.text)]
    shown = sorted([*cause, *((each.line, each.text) for each in answer.cascade)])
    assert shown == [
        (2, "BrokenPipeError: [Errno 32] Broken pipe"),
        (4, "20%|██ | 2/9 [00:02<00:07]"),
        (5, "bye"),
    ]
    assert diagnosis_of([text[:40], text[40:]], CATALOGUE, 1) == answer
