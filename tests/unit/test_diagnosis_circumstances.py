"""One diagnosis of the log and of what else was so: support, contradiction, and an answer where the log has none."""

import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.judge.failure.catalogue import Circumstances, retry_reason
from trainwatch.core.judge.recovery.ending import diagnosis_of

ODD = "step 3/9 loss 2\nRuntimeError: odd\n"
QUIET = "step 3/9 loss 2\n"
FULL = "OSError: [Errno 28] No space left on device\n"
CORRUPT = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"
KILLED = "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL\n"


@pytest.mark.parametrize(
    ("log", "code", "about", "failure"),
    [
        (ODD, 1, Circumstances(disk_free_bytes=1e6), "disk_full"),
        (QUIET, 137, Circumstances(swap_used=0.99, oom_kills=0), "unknown"),
        (QUIET, 1, Circumstances(checkpoint="nonfinite"), "nan_loss"),
        (QUIET, 1, Circumstances(stack="File dataloader.py in _try_get_data"), "dataloader_crash"),
        (QUIET, 1, Circumstances(), "unknown"),
        (QUIET + "KeyboardInterrupt\n", 130, Circumstances(disk_free_bytes=1e6), "killed_by_user"),
        ("NameError: name 'x' is not defined\n", 1, Circumstances(disk_free_bytes=1e6), "code_bug"),
    ],
)
def test_facts_answer_where_the_log_does_not(log: str, code: int, about: Circumstances, failure: str) -> None:
    found = diagnosis_of([log], CATALOGUE, code, about)
    assert found.failure == failure
    assert found.retry_reason == retry_reason(CATALOGUE.class_of(failure))


@pytest.mark.parametrize(
    ("log", "about", "agrees", "words"),
    [
        (FULL, Circumstances(disk_free_bytes=1e6), True, "MB left"),
        (ODD, Circumstances(earlier=("code_bug", "cuda_oom")), True, "1 of 2 earlier attempts"),
        (KILLED, Circumstances(oom_kills=2), True, "The kernel killed"),
        (CORRUPT, Circumstances(checkpoint="corrupt"), True, "is corrupt"),
        (FULL, Circumstances(disk_free_bytes=9e11), False, "another disk is full, or a quota"),
        (CORRUPT, Circumstances(checkpoint="complete"), False, "was verified"),
    ],
)
def test_fact_that_agrees_raises_the_confidence_and_one_that_contradicts_lowers_it(
    log: str, about: Circumstances, agrees: bool, words: str
) -> None:
    alone = diagnosis_of([log], CATALOGUE, 1)
    found = diagnosis_of([log], CATALOGUE, 1, about)
    assert found.failure == alone.failure
    if agrees:
        assert found.confidence > alone.confidence or found.confidence >= 0.97
    else:
        assert found.confidence < alone.confidence
    assert words in found.explanation


def test_a_kill_that_the_kernel_did_not_count_is_told_as_one_from_outside() -> None:
    found = diagnosis_of([QUIET], CATALOGUE, 137, Circumstances(oom_kills=0))
    unknown = diagnosis_of([QUIET], CATALOGUE, 137)
    assert (found.failure, found.confidence) == ("unknown", unknown.confidence)
    assert "no kill for memory, so most likely another process sent it" in found.explanation
    assert "another process" not in unknown.explanation
    assert "another process" not in diagnosis_of([QUIET], CATALOGUE, 1, Circumstances(oom_kills=0)).explanation
