"""Reports of several lines: tracebacks with their chain, C++ ``terminate``, Rust panics, fatal checks.

A traceback is followed per rank or process. Its indented lines are quoted code; the first other line names what was
raised. Chained exceptions come down to one of them (``earlier_counts``).

Sources: traceback.py and PEP 3134 (``__cause__``, ``__context__``), libstdc++ ``__verbose_terminate_handler``, Rust
``std::panic``, glog ``CHECK``.
"""

from typing import Literal

import msgspec

from ...model.text.patterns import LazyPattern
from ..text.source_places import frame_of

Link = Literal["", "handling", "direct"]
LINKS: dict[str, Link] = {
    "During handling of the above exception, another exception occurred": "handling",
    "The above exception was the direct cause of the following exception": "direct",
}
"""What Python prints between two chained exceptions."""
KEPT = 64
"""Blocks that are followed at a time, one for each rank or process."""
EQUAL = 0.12
"""A wrapper tells more than what it wraps if it proves more by this much."""
CERTAIN = 0.8
"""Weight from which what a library caught is more than a question it asked."""
DETAIL_LINES = 12
"""Lines after what was raised that belong to its message (NCCL's "Last error:", hydra's "full_key:")."""
CODE_CHARS = 400
"""Characters kept of the source that a frame quotes."""
_LIBRARY = LazyPattern(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|<frozen|^<string>")
_OPENERS = LazyPattern(
    r"\s*(?:terminate called|what\(\):|thread '[^']*' (?:\(\d+\) )?panicked at|\*\*\* (?:Check failure|SIG"
    r"|Aborted)|Check failed:|"
    r"Fatal Python error|Uncaught exception|Unhandled exception|\[rank\d+\]\S* Fatal)"
)


class Raised(msgspec.Struct, frozen=True):
    """What a traceback ended with, as evidence. ``failure`` "": its type and message prove nothing."""

    failure: str
    weight: float
    line: int
    text: str
    told: bool = False
    """By its message, not by its type alone."""
    reported: bool = False
    """Raised by a library that reports or uploads."""


class Block(msgspec.Struct, frozen=True):
    """A traceback in progress, or the last one, of one rank or process.

    ``first``: file and function of its first frame, which is the one that caught the exception if another follows.
    ``last``: of its newest frame; ``library``: ``first`` lies in an installed package; ``raises``: the newest source
    line is a ``raise``; ``code``: what is quoted of the newest frame's source; ``own``: ``file:line`` of the newest
    frame in the user's own code.
    """

    source: str
    began: int
    link: Link = ""
    before: Raised | None = None
    before_first: str = ""
    before_library: bool = False
    first: str = ""
    last: str = ""
    library: bool = False
    raises: bool = False
    code: str = ""
    own: str = ""
    raised: Raised | None = None
    ended: bool = False


def opens_report(text: str) -> bool:
    """True for a line with which a program reports its own death."""
    return _OPENERS.match(text) is not None


def link_of(text: str) -> Link:
    """How the next traceback follows from the last one, "" if the line does not say."""
    return next((link for words, link in LINKS.items() if words in text), "")


def begin(found: Block | None, source: str, number: int) -> Block:
    """The block that a traceback's first line begins; it continues the chain of ``found``."""
    if found is None or not found.link:
        return Block(source, number)
    if not found.ended:  # the end of the earlier one was not seen
        return Block(source, number, found.link)
    return Block(source, number, found.link, found.raised, found.first, found.library)


def with_inner(block: Block, text: str) -> Block:
    """Take an indented line of an open traceback."""
    frame = frame_of(text)
    if frame is None:
        words = text.strip().lstrip("│|❱ ")
        raises = words.startswith("raise ") or (block.raises and words[:1] in "~^")
        if words[:1] in "~^":  # "" too
            return block if raises == block.raises else msgspec.structs.replace(block, raises=raises)
        code = f"{block.code} {words}".strip()[:CODE_CHARS]
        return msgspec.structs.replace(block, raises=raises, code=code)
    place = f"{frame.file}:{frame.function}"
    own = frame.place if frame.own else block.own
    if block.first:
        return msgspec.structs.replace(block, last=place, raises=False, code="", own=own)
    library = _LIBRARY.search(frame.file) is not None
    return msgspec.structs.replace(block, first=place, last=place, library=library, raises=False, code="", own=own)


def ended(block: Block, number: int, text: str) -> Block:
    """The block after an exception that only wraps another one, which follows."""
    return msgspec.structs.replace(block, raised=Raised("", 0.0, number, text[:80]), ended=True, link="")


def is_inner(text: str) -> bool:
    """True for the lines between a traceback's first line and what was raised."""
    return not text or text[0] in " \t│|╭╰❱" or text.startswith(("File ", "+-", "~", "^", '"""', "'''"))


def earlier_counts(block: Block, before: Raised, raised: Raised) -> bool:
    """Whether an earlier exception of the chain is the cause, not the one that follows it.

    What was raised first counts, with two exceptions. A handler that raises at once names what it caught in its own
    words: these count if they tell more. A library that catches a missing key or attribute goes on with its normal
    work, and what fails there has another cause (Triton and Dynamo look into a cache this way).
    """
    if not before.failure:
        return False
    if not raised.failure:
        return True
    if block.link == "direct" or (block.raises and block.last == block.before_first):
        return (before.told and before.weight > raised.weight - EQUAL) or not raised.told or raised.reported
    return (before.told and before.weight >= CERTAIN) or not block.before_library or raised.reported
