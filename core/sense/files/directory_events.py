"""File events of one directory, not of its subdirectories: inotify, or polling on file systems without events."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..host.filesystem_type import is_network_filesystem

POLL_S = 5.0
"""Period on file systems without events. 1.5 s cost 8 % of a core on 9p (jamie8johnson/cqs#1091)."""
IGNORED = frozenset({"opened", "closed_no_write"})
"""Events of reading."""

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver

OnChange = Callable[[str, bool], None]
Means = Literal["events", "polling", "rescan"]


class DirectoryEvents:
    """After ``open``, calls ``on_change(name of the entry, whether it is a directory)`` in a thread of its own."""

    def __init__(self, directory: Path, on_change: OnChange, mountinfo: Callable[[], str]) -> None:
        self._directory = directory
        self._on_change = on_change
        self._mountinfo = mountinfo
        self._observer: BaseObserver | None = None
        self.means: Means = "rescan"

    def open(self) -> None:
        """Begin. Raises OSError if the kernel has no inotify watch left (``means`` stays "rescan")."""
        from watchdog.observers import Observer  # loaded once an output folder is known
        from watchdog.observers.polling import PollingObserver

        polling = is_network_filesystem(os.path.realpath(self._directory), self._mountinfo())
        observer: BaseObserver = PollingObserver(timeout=POLL_S) if polling else Observer()
        observer.daemon = True
        observer.schedule(_handler(self._directory, self._on_change), str(self._directory), recursive=False)
        observer.start()
        self._observer, self.means = observer, "polling" if polling else "events"

    def close(self) -> None:
        """End without waiting for a stuck file system."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(0.5)
            self._observer, self.means = None, "rescan"


def _handler(directory: Path, on_change: OnChange) -> "FileSystemEventHandler":
    """Report the entry of each event, and both names of a rename."""
    from watchdog.events import FileSystemEventHandler

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: "FileSystemEvent") -> None:
            if event.event_type in IGNORED:
                return
            for path in (event.src_path, event.dest_path):
                if path and os.path.dirname(os.fsdecode(path)) == str(directory):  # noqa: PTH120
                    on_change(os.path.basename(os.fsdecode(path)), event.is_directory)  # noqa: PTH119

    return Handler()
