"""Shell patterns for paths below a folder, as presets use them."""

import functools
import re
from collections.abc import Sequence


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a relative path (with ``/``) matches one of the patterns; without patterns every path does.

    ``*`` and ``?`` stand for anything but ``/``, ``**/`` for any folders or none.

    >>> matches("samples/epoch_1/a.png", ["samples/**/*.png"])
    True
    """
    return not globs or _compiled(tuple(globs)).fullmatch(path) is not None


@functools.cache
def _compiled(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_expression(glob) for glob in globs))


def _expression(glob: str) -> str:
    parts = re.split(r"(\*\*/|\*|\?)", glob)
    return "".join({"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts)
