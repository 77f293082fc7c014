"""A way to resume that was concluded from the trainer's source: what its first resumes have shown.

Until one was taken, the state that it resumes from is copied aside before each launch, so that a wrong conclusion costs
time and no state. Source: trainers have options that look like a resume and load weights only, or nothing at all.
"""

import re
from collections.abc import Sequence

import msgspec

from ..failure.blocks import Block


class FoundResume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``proven``: a resume by it was taken. ``kept``: the checkpoint (path, mtime) copied last, to ``folder``.

    ``copies``: all folders with copies.
    """

    proven: bool = False
    kept: tuple[str, float | None] | None = None
    folder: str = ""
    copies: tuple[str, ...] = ()


def speaks_against(
    names: Sequence[str], checkpoint: str, *, said: str, refused: bool, wrong_setting: bool, tracebacks: Sequence[Block]
) -> bool:
    """Whether a failure before the first step shows that the option is wrong; every other one has its own cause.

    ``names``: of the option. ``checkpoint``: the name of what it was given. ``said``: the failure in a sentence.
    ``refused``: the trainer says that it does not know the option. ``wrong_setting``: its class is that of a wrong
    argument or path: it counts if it names the checkpoint. A traceback counts if it ends on the line of source which
    reads the option by its name.
    """
    if refused or (wrong_setting and checkpoint in said):
        return True
    return any(_quotes(name, each.code) for name in names for each in tracebacks if each.raised is not None)


def _quotes(name: str, text: str) -> bool:
    return re.search(rf"""['"`]\+*(?:[\w.]+\.)?{re.escape(name)}['"`]""", text) is not None
