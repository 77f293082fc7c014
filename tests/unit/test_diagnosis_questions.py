"""A trainer that asks a question where there is no terminal: named, and not retried."""

import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.model.shipped import Diagnosis

FRAME = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in <module>\n    {line}\n'
INPUT = FRAME.format(line="answer = input()") + "EOFError: EOF when reading a line\n"
PASSWORD = """GetPassWarning: Can not control echo on the terminal.
API key: Traceback (most recent call last):
  File "/opt/py/lib/python3.12/getpass.py", line 69, in unix_getpass
    old = termios.tcgetattr(fd)     # a copy to save
termios.error: (25, 'Inappropriate ioctl for device')

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/job/train.py", line 9, in <module>
    key = getpass.getpass("API key: ")
  File "/opt/py/lib/python3.12/getpass.py", line 126, in fallback_getpass
    return _raw_input(prompt, stream)
  File "/opt/py/lib/python3.12/getpass.py", line 148, in _raw_input
    raise EOFError
EOFError
"""
PIPE = """Traceback (most recent call last):
  File "/job/train.py", line 3, in <module>
    batch = connection.recv()
  File "/usr/lib/python3.11/multiprocessing/connection.py", line 383, in _recv
    raise EOFError
EOFError
"""


def ended(log: str) -> Diagnosis:
    return diagnosis_of([log], CATALOGUE, exit_code=1)


@pytest.mark.parametrize(
    "log",
    [
        INPUT,
        PASSWORD,
        "Cloning …\nfatal: could not read Password for 'https://me@hub.example': terminal prompts disabled\n",
        "sudo: a terminal is required to authenticate\n",
        "the input device is not a TTY\n",
    ],
)
def test_a_question_without_a_terminal_is_named_and_not_retried(log: str) -> None:
    found = ended(log)
    assert (found.failure, found.retryable, found.title) == ("config_error", False, "waits for an answer")
    assert found.confidence >= 0.8
    assert "waits for an answer" in found.explanation


def test_the_end_of_a_pipe_is_no_question() -> None:
    found = ended(PIPE)
    assert found.failure == "unknown"
    assert found.retryable


def test_a_question_that_the_script_survived_is_not_the_cause() -> None:
    later = FRAME.format(line="load()") + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.44 GiB.\n"
    assert (
        ended(PASSWORD + "no key: offline\n" + "".join(f"step {n}/90 loss 0.5\n" for n in range(60)) + later).failure
        == "cuda_oom"
    )


def test_another_config_error_keeps_its_own_words() -> None:
    assert ended("train.py: error: unrecognized arguments: --epocs 3\n").title == "config error"
