"""Tells when a followed log was written to, so that a log of a line a second is not looked at ten times a second.

The kernel tells of writes on this machine only, and not of those through a mapping or another layer of an overlay. So a
log counts as told of after its first event, and never again once text was found in it without an event.
"""

import os
from collections.abc import Iterable

from ..files.inotify import Inotify
from ..wakeup import Wakeup
from .followed_file import FollowedFile


class LogEvents:
    """Events of a changing set of files. Used by one thread."""

    def __init__(self) -> None:
        try:
            self._inotify: Inotify | None = Inotify()
        except OSError:
            self._inotify = None
        self._watched: dict[str, tuple[int, int]] = {}
        self._heard: set[str] = set()
        self._told: set[str] = set()
        self._missed: set[str] = set()

    def follow(self, files: Iterable[FollowedFile]) -> bool:
        """Watch these, and no other. Returns whether the kernel tells of a write to any of them."""
        files = list(files)
        if self._inotify is None:
            return False
        for path in self._watched.keys() - {file.path for file in files}:
            self._forget(path)
        for file in files:
            if file.key == self._watched.get(file.path):
                continue
            self._forget(file.path)
            if file.key is not None and self._inotify.watch_file(file.path) and _key(file.path) == file.key:
                self._watched[file.path] = file.key
        return all(file.path in self._told and file.path in self._watched for file in files)

    def wait(self, timeout_s: float, wakeup: Wakeup) -> bool:
        """Wait for an event or to be woken. Returns whether there was an event."""
        if self._inotify is None:
            wakeup.wait(timeout_s)
            return False
        self._take(timeout_s, wakeup)
        return bool(self._heard)

    def found(self, path: str) -> None:
        """Take note that text was found in a file, with or without an event."""
        if path not in self._heard:
            self._take(0.0, None)
        if path in self._heard:
            self._told |= {path} - self._missed
        elif path in self._told:
            self._told.discard(path)
            self._missed.add(path)

    def answered(self) -> None:
        """All was read: the events until now are done."""
        self._heard.clear()

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _take(self, timeout_s: float, wakeup: Wakeup | None) -> None:
        if self._inotify is not None:
            for event in self._inotify.wait(timeout_s, wakeup):
                self._heard |= set(self._watched) if event.overflow else {event.folder}

    def _forget(self, path: str) -> None:
        if self._watched.pop(path, None) is not None and self._inotify is not None:
            self._inotify.unwatch(path)


def _key(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino
