"""Sentences of a sensor about what it cannot read, without repetitions."""

from collections.abc import Callable

OnProblem = Callable[[str], None]
"""Receives a sentence (what, where, what to do next) in the sensor's thread. Must not block."""


def ignore_problem(_sentence: str) -> None:
    """For sensors without a receiver."""


class ProblemReport:
    """Passes a sentence on if it differs from the last one about the same subject."""

    def __init__(self, on_problem: OnProblem) -> None:
        self._on_problem = on_problem
        self._said: dict[str, str] = {}

    def report(self, subject: str, sentence: str) -> None:
        """Report ``sentence`` about ``subject`` unless it was the last one about it."""
        if self._said.get(subject) != sentence:
            self._said[subject] = sentence
            self._on_problem(sentence)

    def clear(self, subject: str) -> None:
        """Forget the subject's last sentence, because it works again."""
        self._said.pop(subject, None)
