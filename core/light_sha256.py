"""SHA-256 for names and keys, without OpenSSL: ``hashlib`` loads it, 0.6 MB in each supervisor and each runner.

It is the code that Python itself brings, five times as slow for a large file: who reads whole files uses ``hashlib``.
Standard library only: the runner imports this.
"""

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["sha256"]

if TYPE_CHECKING:
    from hashlib import sha256
else:

    def _light() -> Any:
        """``sha256`` of a second copy of ``hashlib`` that finds no OpenSSL; of the usual one if Python has no own."""
        spec = importlib.util.find_spec("hashlib")
        copy = importlib.util.module_from_spec(spec)
        quiet = ModuleType("logging")
        quiet.exception = lambda *_: None  # some distributions leave Python's own out: it would be said for each
        stands = {"_hashlib": None, "logging": quiet}
        before = {name: sys.modules[name] for name in stands if name in sys.modules}
        sys.modules.update(stands)
        try:
            spec.loader.exec_module(copy)
        finally:
            for name in stands:
                del sys.modules[name]
            sys.modules.update(before)
        found = getattr(copy, "sha256", None)
        if found is None:
            from hashlib import sha256 as found
        return found

    sha256 = _light()
