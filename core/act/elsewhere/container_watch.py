"""Finds the first process of an attempt's container, so that its whole tree is measured, examined and attributed."""

import threading
from collections.abc import Callable

import msgspec

from ...model.launch.elsewhere.container import CONTAINER_FILE
from ...model.ports.supervision import AttemptTarget
from ..launch import spool
from .container import Container, container_of
from .place import PlaceError

FIRST_S, LONGEST_S = 1.0, 30.0
"""Pause between two looks: an image may have to be pulled first, so it doubles up to the longest one."""


class ContainerWatch:
    """Follows the attempt, as sensors do, and keeps ``container.json`` in its folder. ``tell``: for the journal."""

    def __init__(self, tell: Callable[[str], None], *, first_s: float = FIRST_S) -> None:
        self._tell = tell
        self._first_s = first_s
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Nothing to do before there is a trainer."""

    def follow(self, target: AttemptTarget | None) -> None:
        """Look for the container of another attempt, if it is started in one."""
        self.stop()
        container = None if target is None else container_of(target.directory)
        if target is None or container is None or spool.read(target.directory, CONTAINER_FILE) is not None:
            return
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._look, args=(target, container, self._over), name="container", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End, without waiting for an engine that does not answer."""
        self._over.set()
        self._thread = None

    def _look(self, target: AttemptTarget, container: Container, over: threading.Event) -> None:
        pause_s, problem = self._first_s, ""
        while not over.wait(pause_s):
            pause_s = min(LONGEST_S, 2 * pause_s)
            try:
                if not container.running():
                    continue
                found = container.first_process()
            except PlaceError as error:
                if str(error) != problem:
                    self._tell(f"{container.name} cannot be asked: {error}")
                problem = str(error)
                continue
            if over.is_set():
                return
            if found is None:
                self._tell(f"the processes of {container.name} are not visible on this machine: their CPU is unknown")
                return
            try:
                spool.write(target.directory, CONTAINER_FILE, msgspec.to_builtins(found))
            except OSError as error:
                problem = str(error)
                continue
            self._tell(f"{container.name} is {found.id[:12]}; its first process is {found.identity.pid}")
            return
