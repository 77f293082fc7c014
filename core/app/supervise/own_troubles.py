"""What is wrong with trainwatch itself now, kept in memory: it must be told also if nothing can be written."""

import threading
import time
from typing import Literal

from ...model.supervisor_life import Trouble


class OwnTroubles:
    """Troubles by kind. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Trouble] = {}

    def set(self, kind: str, text: str, level: Literal["danger", "warning", "info"] = "danger") -> bool:
        """Say that this is wrong. Returns whether it is new; one that lasts keeps its ``since``."""
        with self._lock:
            before = self._known.get(kind)
            since = before.since if before is not None else time.time()
            self._known[kind] = Trouble(kind=kind, level=level, text=text, since=since)
            return before is None

    def clear(self, kind: str) -> bool:
        """Say that it is over. Returns whether it was there."""
        with self._lock:
            return self._known.pop(kind, None) is not None

    def now(self) -> tuple[Trouble, ...]:
        with self._lock:
            return tuple(self._known.values())
