"""What makes a verb or the screen start sooner: the garbage collector, and modules that are loaded for nothing.

The collector would traverse the new modules again and again, a sixth of the time to the first frame (measured).
Afterwards it runs as usual, and the loaded modules are frozen: they are not traversed while the process runs.
"""

import gc
import os
import sys
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any

AS_USUAL = gc.get_threshold()
REST_S = 2.0
"""Longer than the first frame takes on a slow machine; at most some megabytes of garbage collect meanwhile."""


def rest_collector(rest_s: float = REST_S) -> None:
    """Switch the collector off for that time."""
    import threading

    gc.disable()
    timer = threading.Timer(rest_s, _wake)
    timer.daemon = True
    timer.start()


def _wake() -> None:
    gc.freeze()
    gc.set_threshold(*AS_USUAL)
    gc.enable()


def rest_collector_while_loading() -> None:
    """Let the collector run seldom: a short verb loads modules, prints and ends, and makes no garbage of note.

    ``collector_as_usual`` ends it, in verbs that stay.
    """
    gc.set_threshold(50_000, 20, 50)


def collector_as_usual() -> None:
    """Python's own pace again, for a process that stays. What is loaded by now is not traversed any more."""
    if gc.get_threshold() != AS_USUAL:
        gc.freeze()
        gc.set_threshold(*AS_USUAL)


def leave_collector_out() -> None:
    """Spare the end of the process the traversal of everything that was loaded: a tenth of a short verb's time."""
    gc.freeze()


def load_python_quickly() -> None:
    """Load argparse and pathlib, which each verb uses, without what they rarely need.

    argparse asks ``gettext`` for a translation of each of its words: Python brings none, and ``parser.py`` reads its
    messages in English. pathlib has a function of ``urllib.parse`` for URLs of files (until Python 3.12), ``ntpath``
    for paths of Windows and ``fnmatch`` for patterns.
    """

    def quote_from_bytes(*args: Any, **kwargs: Any) -> Any:
        return import_module("urllib.parse").quote_from_bytes(*args, **kwargs)

    with _stood_in(
        "argparse", gettext={"gettext": lambda text: text, "ngettext": lambda one, many, n: one if n == 1 else many}
    ):
        import argparse  # noqa: F401
    with _stood_in("pathlib", fnmatch={}, ntpath={}, **{"urllib.parse": {"quote_from_bytes": quote_from_bytes}}):
        import pathlib  # noqa: F401


def load_msgspec_quickly() -> None:
    """Load msgspec without what it loads for others.

    ``typing_extensions``, which it uses only if it is there, takes as long as a third of Python's own start;
    ``platform`` is asked by ``uuid`` for the name of the system alone; ``msgspec.inspect`` and ``textwrap`` are for
    JSON schemas. Python 3.11 runs the whole of ``datetime`` in Python before it takes the same classes from C.
    """
    system = {"system": lambda: os.uname().sysname}
    names: dict[str, Mapping[str, Any] | None] = {"msgspec.inspect": {}, "textwrap": {}, "platform": system}
    if sys.version_info < (3, 12):
        with suppress(ImportError):
            names["datetime"] = vars(import_module("_datetime"))
    with _stood_in("msgspec", typing_extensions=None, **names), _no_forward_reference():
        import msgspec  # noqa: F401


def load_screen_quickly() -> None:
    """Load the screen without modules of Python that Textual loads and that its first picture does not need.

    asyncio does without ``ssl`` where Python has none, and shutil without ``bz2`` and ``lzma``: nothing in this process
    speaks TLS through asyncio or unpacks archives. The others are for URLs in forms, for files that are offered for
    download, and for names that are misspelt.
    """

    def later(module: str, name: str) -> dict[str, Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if isinstance(sys.modules.get(module), _StandIn):
                del sys.modules[module]
            return getattr(import_module(module), name)(*args, **kwargs)

        return {name: call}

    names = {
        "mimetypes": {},
        "difflib": later("difflib", "get_close_matches"),
        "platformdirs": later("platformdirs", "user_downloads_path"),
        "urllib.parse": later("urllib.parse", "urlparse"),
    }
    with _stood_in("shutil", bz2=None, lzma=None):
        import shutil  # noqa: F401
    with _stood_in("asyncio", ssl=None):
        import asyncio  # noqa: F401
    with _stood_in("textual.app", **names):
        import trainwatch.tui.app  # noqa: F401


@contextmanager
def _no_forward_reference() -> Iterator[None]:
    """Make no ``typing.ForwardRef``: msgspec makes one while it is loaded, to see which arguments it takes.

    A forward reference compiles its text, and the first ``compile`` of a process makes the hundred classes of ``ast``.
    """
    usual = typing.ForwardRef
    vars(typing)["ForwardRef"] = lambda *_words, **_options: None
    try:
        yield
    finally:
        vars(typing)["ForwardRef"] = usual


@contextmanager
def _stood_in(user: str, **modules: Mapping[str, Any] | None) -> Iterator[None]:
    """While ``user`` is loaded for the first time, put objects with these names in the place of modules.

    None: the import fails. A name that is not given is looked up in the module itself, which is loaded then. If the
    user needs it while it is loaded, or fails, it is loaded again later in the usual way.
    """
    missing = () if user in sys.modules else tuple(name for name in modules if name not in sys.modules)
    for name in missing:
        names = modules[name]
        sys.modules[name] = None if names is None else _StandIn(name, names)  # type: ignore[assignment]
    try:
        yield
    except ImportError:
        pass
    finally:
        for name in missing:
            if isinstance(sys.modules.get(name), _StandIn | None):
                sys.modules.pop(name, None)


class _StandIn(ModuleType):
    """Stands for a module that is loaded when a name is needed that the stand-in does not have."""

    def __init__(self, name: str, names: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)
