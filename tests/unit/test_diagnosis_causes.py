"""Root, cascade, noise, survival and exit status, each on lines of our own."""

import msgspec
import pytest

from tests.shipped import CATALOGUE, FAILURES, LOG_SHAPES, SHAPES
from tests.tiers import SECOND_TIER
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.failure.diagnosis import diagnose
from trainwatch.core.judge.failure.evidence_state import DiagnosisState
from trainwatch.core.judge.failure.log_evidence import (
    START_EVIDENCE,
    is_news,
    kernel_evidence,
    read_evidence,
)
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.text.shapes import ShapeTable

BAR = "\rsteps:  10%|█         | {0}/100 [00:10<01:30,  1.00s/it, loss=0.5]"
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB\n"
TRACE = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in <module>\n    main()\n'

QUIET = "x" * 9000 + "\n"
"""Text without news, so long that lines after it are searched with the gates."""
EXAMPLES = [(each.name, text) for each in FAILURES.classes for text in each.examples]


def state_of(text: str) -> DiagnosisState:
    return read_evidence(START_EVIDENCE, text, CATALOGUE)


@pytest.mark.parametrize(("failure", "text"), EXAMPLES, ids=[f"{failure}-{text[:30]}" for failure, text in EXAMPLES])
def test_diagnosis_of_the_examples_of_each_class(failure: str, text: str) -> None:
    answer = diagnosis_of([text], CATALOGUE, None if failure == "success" else 1)
    assert answer.failure == failure
    assert diagnosis_of([QUIET + text], CATALOGUE, None if failure == "success" else 1).failure == failure
    assert answer.title
    assert answer.explanation
    assert failure == "success" or answer.remedies
    assert failure in {"success", "unknown"} or answer.cause is not None


def test_diagnosis_first_of_equals_is_the_cause_and_later_ones_the_cascade() -> None:
    text = (
        "step 1\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n"
        "[E ProcessGroupNCCL.cpp:9] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    )
    answer = diagnosis_of([text], CATALOGUE, 1)
    assert (answer.failure, answer.cause and answer.cause.line) == ("gpu_lost", 2)
    assert [line.line for line in answer.cascade] == [3, 4]


def test_diagnosis_ranks_and_boxes_are_read_through() -> None:
    assert (
        diagnosis_of(
            ["[rank3]: Traceback (most recent call last):\n[rank3]: ModuleNotFoundError: No module named 'x'\n"],
            CATALOGUE,
            1,
        ).failure
        == "import_error"
    )
    boxed = "│ ❱ 12 │   raise KeyError('lr is not found')  │\n╰────╯\nTypeError: unhashable type: 'list'\n"
    assert diagnosis_of([boxed], CATALOGUE, 1).failure == "code_bug"


def test_diagnosis_redrawn_bar_after_an_error_does_not_outlive_it() -> None:
    assert diagnosis_of([BAR.format(4) + "\n" + OOM + BAR.format(4)], CATALOGUE, 1).failure == "cuda_oom"


def test_diagnosis_error_after_which_training_went_on_is_no_cause() -> None:
    text = OOM + "".join(BAR.format(step) for step in range(5, 12)) + "\nKeyboardInterrupt\n"
    answer = diagnosis_of([text], CATALOGUE, 130)
    assert answer.failure == "killed_by_user"
    early = diagnosis_of([OOM + "".join(BAR.format(step) for step in range(5, 12))], CATALOGUE, 0)
    assert (early.failure, "the last progress is step 11" in early.explanation) == ("unknown", True)


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


def test_a_line_of_the_start_is_not_the_cause_of_a_kill_hours_later() -> None:
    backend = "INFO Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: cannot open shared object\n"
    answer = diagnosis_of([backend + "".join(BAR.format(step) for step in range(5, 12))], CATALOGUE, 137)
    assert (answer.failure, answer.cause) == ("unknown", None)


def test_diagnosis_nan_outlived_by_a_finite_loss() -> None:
    nan = "{'loss': nan, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
    fine = "".join(f"{{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.{step}}}\n" for step in range(2, 9))
    assert diagnosis_of([nan, fine], CATALOGUE, 0).failure == "success"
    assert diagnosis_of([nan.replace("0.1", f"0.{step}") for step in range(1, 9)], CATALOGUE, 0).failure == "nan_loss"


@pytest.mark.parametrize("line", FAILURES.noise_examples)
def test_diagnosis_noise_is_no_evidence(line: str) -> None:
    assert diagnosis_of([line], CATALOGUE, 0).failure == "success"
    assert diagnosis_of([line], CATALOGUE, 1).failure == "unknown"


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


def test_diagnosis_weak_evidence_is_weak() -> None:
    answer = diagnosis_of(["RuntimeError: odd\n"], CATALOGUE, 1)
    assert (answer.failure, answer.confidence < 0.5) == ("code_bug", True)
    assert diagnosis_of(["RuntimeError: odd\n"], CATALOGUE, 134).failure == "code_bug"
    assert diagnosis_of(["[rank1]: BrokenPipeError: [Errno 32] Broken pipe\n"], CATALOGUE, 1).failure == "unknown"
    assert diagnosis_of(["Sending process 7 closing signal SIGTERM\n"], CATALOGUE, 1).failure == "killed_by_user"


TABLE = """\
W1122 13:53:05.819 7867 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 8436 closing signal SIGTERM
E1122 13:53:06.114 7867 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code}) local_rank: 0
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Failures:
[1]:
  rank      : 1 (local_rank: 1)
  exitcode  : -15 (pid: 8436)  (SIGTERM)
  traceback : Signal 15 (SIGTERM) received by PID 8436
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : {code} (pid: 8435)
  {words}
"""


@pytest.mark.parametrize(
    ("code", "words", "failure"),
    [
        (-9, "traceback : Signal 9 (SIGKILL) received by PID 8435", "host_oom"),
        (1, "traceback : To enable traceback see: https://pytorch.org/docs", "unknown"),
        (-11, "traceback : Signal 11 (SIGSEGV) received by PID 8435", "segfault"),
        (-15, "traceback : Signal 15 (SIGTERM) received by PID 8435", "killed_by_user"),
    ],
)
def test_diagnosis_of_ranks_is_that_of_the_one_that_ended_by_itself(code: int, words: str, failure: str) -> None:
    assert diagnosis_of([TABLE.format(code=code, words=words)], CATALOGUE, 1).failure == failure


def test_diagnosis_kernel_lines_come_first() -> None:
    state = kernel_evidence(
        state_of("RuntimeError: CUDA error: unknown error\n"),
        "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
        CATALOGUE,
    )
    answer = diagnose(state, CATALOGUE, exit_code=1)
    assert (answer.failure, answer.cause and answer.cause.line) == ("gpu_lost", 0)
    assert (
        kernel_evidence(START_EVIDENCE, "usb 1-1: new device\nNVRM: Xid (PCI:0): 45, clean-up", CATALOGUE).findings
        == ()
    )


@SECOND_TIER
def test_diagnosis_state_is_bounded_and_survives_json() -> None:
    state = state_of("".join(text + "\n" for _, text in EXAMPLES) * 30)
    encoded = msgspec.json.encode(state)
    assert len(encoded) < 40_000
    assert msgspec.json.decode(encoded, type=DiagnosisState) == state
    assert len(diagnose(state, CATALOGUE, exit_code=1).cascade) <= 12


def test_diagnosis_line_numbers_count_newlines_over_all_chunks() -> None:
    state = START_EVIDENCE
    for chunk in ("one\ntwo\r", "still two\nth", "ree\n" + OOM):
        state = read_evidence(state, chunk, CATALOGUE)
    answer = diagnose(state, CATALOGUE, exit_code=1)
    assert answer.cause is not None
    assert answer.cause.line == 4


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


def test_diagnosis_of_a_log_that_names_its_runtime_in_every_line_is_not_success() -> None:
    text = "{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 2.3, 'train_runtime': 90.5}\n" * 3
    assert diagnosis_of([text], CATALOGUE).failure == "unknown"


def test_diagnosis_of_an_actor_that_is_gone_is_not_a_bug_of_the_program() -> None:
    answer = diagnosis_of(["ray.exceptions.ActorUnavailableError: The actor 77 is unavailable\n"], CATALOGUE, 1)
    assert answer.failure == "unknown"
    assert answer.cascade


def test_diagnosis_step_cancelled_because_a_task_failed_is_a_cascade() -> None:
    text = (
        "AssertionError: throughput of at least 9.0 expected, found 4.0\n"
        "srun: error: n1: task 0: Exited with exit code 1\n"
        "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
    )
    assert diagnosis_of([text], CATALOGUE, 1).failure == "code_bug"


def test_diagnosis_loss_of_zero_beside_a_nan_norm_is_nan() -> None:
    text = "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 1.5}\n{'train_runtime': 9.0, 'train_loss': 0.5}\n"
    assert diagnosis_of([text], CATALOGUE, 0).failure == "nan_loss"


def test_diagnosis_words_of_a_generic_exception_are_never_sure() -> None:
    for text in ("ValueError: please set the learning_rate", "RuntimeError: the server disconnected", "OddError: x"):
        assert diagnosis_of([text], CATALOGUE, 1).confidence < 0.8


def test_diagnosis_own_patterns_of_a_project_count_most() -> None:
    catalogue = CompiledCatalogue(FAILURES, SHAPES, {"io_error": (r"tape robot", r"drum \d+ jammed")})
    answer = diagnosis_of(
        ["RuntimeError: CUDA error: unknown error\nthe tape robot says drum 9 jammed\n"], catalogue, 1
    )
    assert (answer.failure, answer.confidence, answer.cause and answer.cause.line) == ("io_error", 0.97, 2)


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


def test_diagnosis_unknown_of_a_long_log_numbers_its_last_lines() -> None:
    answer = diagnosis_of([f"row {n} of nothing in particular\n" for n in range(1, 2001)], CATALOGUE, 1)
    assert [(each.line, each.text[:8]) for each in answer.cascade] == [
        (1998, "row 1998"), (1999, "row 1999"), (2000, "row 2000"),
    ]  # fmt: skip
    assert diagnosis_of(["x" * 9000], CATALOGUE, 1).cascade[0].line == 1


def test_diagnosis_of_a_command_that_is_no_program_is_its_configuration_unless_the_log_says_more() -> None:
    rule = diagnosis_of(["step 1\n"], CATALOGUE, 127)
    assert (rule.failure, rule.retryable) == ("config_error", False)
    assert diagnosis_of([OOM], CATALOGUE, 127).failure == "cuda_oom"
