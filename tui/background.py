"""Work that may block, in order, on a thread that does not keep the screen from closing."""

import queue
import threading
from collections.abc import Callable

Show = Callable[[], None]


class Errands:
    """``deliver`` is called on the errands' thread with what the work returned; it hands it to the screen's own."""

    def __init__(self, name: str, deliver: Callable[[Show], None]) -> None:
        self._deliver = deliver
        self._work: queue.SimpleQueue[Callable[[], Show] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def send(self, work: Callable[[], Show]) -> None:
        """Do it after what was sent before. It handles its own faults."""
        self._work.put(work)

    def tell(self, show: Show) -> None:
        """Show something before the work is done. Called on the errand's thread."""
        self._deliver(show)

    def close(self) -> None:
        """Begin nothing more."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            self._deliver(work())
