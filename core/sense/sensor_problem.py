"""How a sensor says what keeps it from seeing: one sentence for people, each only once in a row."""

from collections.abc import Callable

OnTrouble = Callable[[str], None]
"""Takes one sentence (what, where, what to do next). Called from the sensor's own thread; must not block."""


def unheard(_sentence: str) -> None:
    """Where nobody listens."""


class TroubleReport:
    """Passes a sentence on when it differs from the last one about the same subject, so that a fault speaks once."""

    def __init__(self, on_trouble: OnTrouble) -> None:
        self._on_trouble = on_trouble
        self._said: dict[str, str] = {}

    def say(self, subject: str, sentence: str) -> None:
        """Report ``sentence`` about ``subject`` unless it was the last one said about it."""
        if self._said.get(subject) != sentence:
            self._said[subject] = sentence
            self._on_trouble(sentence)

    def clear(self, subject: str) -> None:
        """Forget the subject: it works again, and its next trouble is news."""
        self._said.pop(subject, None)
