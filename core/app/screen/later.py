"""Services of the screen that are loaded when they are first used: most are not needed for the first picture."""

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast

Service = TypeVar("Service")


def later(load: Callable[[], Service]) -> Service:
    """Stand for what ``load`` returns; it is called once, when a name of the service is first asked for."""
    return cast("Service", _Later(load))


class _Later:
    def __init__(self, load: Callable[[], object]) -> None:
        self._load, self._loading = load, Lock()
        self._service: object = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._loading:  # services are used in several threads
            if self._service is None:
                self._service = self._load()
        return getattr(self._service, name)
