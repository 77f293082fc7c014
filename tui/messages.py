"""What threads post to the dashboard."""

from collections.abc import Callable

from textual.message import Message

from .poller import Look


class Seen(Message):
    """A look came in. A newer one replaces an older one that was not drawn yet."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look

    def can_replace(self, message: Message) -> bool:
        """Only the newest matters."""
        return isinstance(message, Seen)


class Answered(Message):
    """A command came back with a sentence."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Called(Message):
    """Something to do here, posted from a thread."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self.call = call


class JobMoved(Message):
    """The work under way got further."""

    def can_replace(self, message: Message) -> bool:
        """Only the newest matters."""
        return isinstance(message, JobMoved)
