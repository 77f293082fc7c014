"""What a line does with the words of a failure: only an event, or a warning, is evidence."""

import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.judge.failure.evidence_lines import Act, act_of
from trainwatch.core.judge.recovery.ending import diagnosis_of

OOM = "CUDA out of memory"


@pytest.mark.parametrize(
    ("text", "act"),
    [
        (f"RuntimeError: {OOM}. If you see this, lower the batch size", "event"),
        (f"step failed: {OOM}", "event"),
        (f'the worker ended with reason "{OOM}"', "event"),
        (f"hint: {OOM} means a batch that is too large", "spoken"),
        (f"if you get {OOM}, lower the batch size", "spoken"),
        (f"a larger batch could lead to {OOM}", "spoken"),
        (f"the worker could not go on: {OOM}", "event"),
        (f"Most things work. This may be caused by {OOM}", "spoken"),
        (f'my script says "{OOM}" again', "spoken"),
        (f"{{'prompt': 'why {OOM}?'}}", "spoken"),
        (f"sample 3 > user: {OOM}", "spoken"),
        (f"Answer: {OOM} is an error", "spoken"),
        (f"# {OOM}", "spoken"),
        (f'raise RuntimeError("{OOM}")', "spoken"),
        (f"the previous run ended with {OOM}", "spoken"),
        (f"no {OOM} so far", "spoken"),
        (f"{OOM}: 0", "spoken"),
        (f"{OOM}: no", "spoken"),
        (f"{OOM}: No such luck", "event"),
        (f"3 addresses out of 4 resolved, then {OOM}", "event"),
        (f"{OOM}, retrying with 32", "handled"),
        (f"{OOM} in probe, falling back to the CPU", "handled"),
        (f"{OOM}, giving up after retrying 3 times", "event"),
        (f"cudaMalloc retry failed: {OOM}", "event"),
    ],
)
def test_words_of_a_failure_are_evidence_only_in_a_report(text: str, act: Act) -> None:
    at = text.index(OOM)
    assert act_of(text, at, at + len(OOM), failure="cuda_oom") == act


def test_warning_is_a_warning_and_what_was_raised_an_event() -> None:
    text = f"{OOM}, retrying"
    assert act_of(f"{OOM} soon", 0, len(OOM), failure="cuda_oom", level="warning") == "warning"
    assert act_of(text, 0, len(OOM), failure="cuda_oom", raised=True) == "event"


def test_signal_that_is_only_planned_is_no_event() -> None:
    text = "the checkpoint will be saved on SIGTERM"
    assert act_of(text, text.index("on SIG"), len(text), failure="killed_by_user") == "spoken"


@pytest.mark.parametrize(
    "talk",
    [
        "Prompt: what is 'CUDA out of memory'?\nAnswer: a message.\n",
        "```\nRuntimeError: CUDA out of memory\n```\n",
        "tip: a RuntimeError: CUDA out of memory is mended by a smaller batch\n",
        '{"level": "warning", "msg": "may lead to CUDA out of memory"}\n',
        "resumed after RuntimeError: CUDA out of memory in an earlier run\n",
    ],
)
def test_talk_about_failures_is_not_the_cause(talk: str) -> None:
    assert diagnosis_of([talk], CATALOGUE, 1).failure == "unknown"
    ended = f"{talk}Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nNameError: name 'n' is not defined\n"
    assert diagnosis_of([ended], CATALOGUE, 1).failure == "code_bug"


INTERRUPTED = "{'loss': 3.1, 'step': 5}\nUserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...\nwandb: Synced 5 W&B file(s)\n"


def test_announced_interruption_is_no_success_whatever_the_exit_status() -> None:
    assert diagnosis_of([INTERRUPTED], CATALOGUE, 0).failure == "killed_by_user"
    assert diagnosis_of([INTERRUPTED], CATALOGUE, 1).failure == "killed_by_user"
    assert diagnosis_of([INTERRUPTED + "Training complete\n"], CATALOGUE, 0).failure == "success"


def test_srun_cancels_the_other_tasks_of_a_step_after_one_has_failed() -> None:
    cancelled = "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2025-10-14T02:19:08 ***\n"
    assert diagnosis_of(["step 5 loss 3\n" + cancelled], CATALOGUE, 1).failure == "killed_by_user"
    failed = "srun: error: n2: task 3: Exited with exit code 1\n"
    assert diagnosis_of(["step 5 loss 3\n" + failed + cancelled], CATALOGUE, 1).failure == "unknown"
