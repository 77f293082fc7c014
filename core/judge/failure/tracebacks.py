"""Tracebacks and other reports of several lines, and the exceptions that they name."""

import builtins
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from ...model.text import LazyPattern
from .catalogue import CompiledCatalogue, Proof

# Reports of several lines: tracebacks with their chain, C++ ``terminate``, Rust panics, fatal checks.
#
# A traceback is followed per rank or process. Its indented lines are quoted code; the first other line names what was
# raised. Chained exceptions come down to one of them (``earlier_counts``).
#
# Sources: traceback.py and PEP 3134 (``__cause__``, ``__context__``), libstdc++ ``__verbose_terminate_handler``, Rust
# ``std::panic``, glog ``CHECK``.

Link = Literal["", "handling", "direct"]
LINKS: dict[str, Link] = {
    "During handling of the above exception, another exception occurred": "handling",
    "The above exception was the direct cause of the following exception": "direct",
}
"""What Python prints between two chained exceptions."""
KEPT = 64
"""Blocks that are followed at a time, one for each rank or process."""
EQUAL = 0.12
"""Pieces of evidence that differ less in weight are equally strong; the first one is the cause."""
CERTAIN = 0.8
"""Weight from which one class explains another one, and what a library caught is more than a question it asked."""
DETAIL_LINES = 12
"""Lines after what was raised that belong to its message (NCCL's "Last error:", hydra's "full_key:")."""
CODE_CHARS = 400
"""Characters kept of the source that a frame quotes."""
_LIBRARY = LazyPattern(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|<frozen|^<string>")
_WITH_ERRNO = LazyPattern(r"[\w.]+: \[Errno \d+\]")
OPENS_REPORT = LazyPattern(
    r"\s*(?:terminate called|what\(\):|thread '[^']*' (?:\(\d+\) )?panicked at|\*\*\* (?:Check failure|SIG"
    r"|Aborted)|Check failed:|"
    r"Fatal Python error|Uncaught exception|Unhandled exception|\[rank\d+\]\S* Fatal)"
)
"""A line with which a program reports its own death."""


class Finding(msgspec.Struct, frozen=True):
    """The best evidence of one kind for one class. ``line`` 0: from the kernel log. ``last``: the newest line of it.

    ``beats``: steps from the first evidence to the newest of this kind. ``terminal``: it stands at the end of a
    traceback or of another report of a program's death. ``warned``: the line is a warning. ``told``: its words
    say so, not the type of an exception alone. ``source``: the rank or process that printed it. ``details``: the first
    lines in which its message goes on. ``place``: ``file:line`` of the user's own code or settings that raised it.
    ``reported``: raised by a library that reports or uploads. ``failure`` "": it proves nothing.
    """

    failure: str
    role: str
    weight: float
    line: int
    text: str
    last: int
    count: int = 1
    beats: int = 0
    terminal: bool = False
    warned: bool = False
    told: bool = True
    source: str = ""
    details: tuple[str, ...] = ()
    place: str = ""
    reported: bool = False


class Block(msgspec.Struct, frozen=True):
    """A traceback in progress, or the last one, of one rank or process.

    ``first``: file and function of its first frame, which is the one that caught the exception if another follows.
    ``last``: of its newest frame; ``library``: ``first`` lies in an installed package; ``raises``: the newest source
    line is a ``raise``; ``code``: what is quoted of the newest frame's source; ``own``: ``file:line`` of the newest
    frame in the user's own code.
    """

    source: str
    link: Link = ""
    before: Finding | None = None
    before_first: str = ""
    before_library: bool = False
    first: str = ""
    last: str = ""
    library: bool = False
    raises: bool = False
    code: str = ""
    own: str = ""
    raised: Finding | None = None
    ended: bool = False


def begin(found: Block | None, source: str) -> Block:
    """The block that a traceback's first line begins; it continues the chain of ``found``."""
    if found is None or not found.link:
        return Block(source)
    return Block(source, found.link, found.raised, found.first, found.library)


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
    return msgspec.structs.replace(
        block, raised=Finding("", "root", 0.0, number, text[:80], number), ended=True, link=""
    )


def is_inner(text: str) -> bool:
    """True for the lines between a traceback's first line and what was raised."""
    return not text or text[0] in " \t│|╭╰❱" or text.startswith(("File ", "+-", "~", "^", '"""', "'''"))


def earlier_counts(block: Block, before: Finding, raised: Finding) -> bool:
    """Whether an earlier exception of the chain is the cause, not the one that follows it.

    What was raised first counts, with three exceptions. A handler that raises at once names what it caught in its own
    words: these count if they tell more. A library that catches a missing key or attribute goes on with its normal
    work, and what fails there has another cause (Triton and Dynamo look into a cache this way). An errno that is sure
    says what the operating system refused: no handler words what it caught this way.
    """
    if not before.failure:
        return False
    if not raised.failure:
        return True
    if block.link == "direct" or (block.raises and block.last == block.before_first):
        return (before.told and before.weight > raised.weight - EQUAL) or not raised.told or raised.reported
    apart = block.before_library or (raised.weight >= CERTAIN and _WITH_ERRNO.match(raised.text) is not None)
    return (before.told and before.weight >= max(CERTAIN, raised.weight - EQUAL)) or not apart or raised.reported


# Python exceptions in a log: the line that names the type, on any rank, with or without a box, and what it proves.
#
# The type counts less than a message that a signature knows. Of a generic type the words of the message count, so that
# a library that no signature knows is understood, too; such weights stay below what counts as sure.

CONFIGURED = LazyPattern(
    r"\b(?:args|cfg|config|conf|opts?|params|hparams|hyp|settings|options|FLAGS)(?:\[|\.\w+\[|\.get\()"
)
"""A source line that reads arguments or a configuration: its KeyError is a config error."""
_HUMP = LazyPattern(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OF_CONFIG = frozenset({"KeyError", "AttributeError", "AssertionError", "ValueError"})
"""Types that mean a wrong configuration if the line that raised them read one."""
CONTEXT_WEIGHT = 0.75
"""What the source line that raised an exception proves."""


class RaisedAt(NamedTuple):
    """An exception named in a line. ``type`` without its module; ``message`` may be empty."""

    type: str
    module: str
    message: str


def find_exception(line: str, catalogue: CompiledCatalogue) -> RaisedAt | None:
    """The exception that the line (without rank prefix) names, None if it names none. Warnings are not exceptions."""
    found = catalogue.exception_line.search(line)
    if found is None:
        return None
    raised = _raised(found)
    bare = raised.type in ("Error", "Failed", "Timeout", "Exit", "Interrupt") and not raised.module
    return None if raised.type.endswith("Warning") or bare else raised


_ANY = LazyPattern(r"(?P<type>(?:[A-Za-z_]\w*\.)+_?[A-Z]\w*|_?[A-Z][a-z]\w*[A-Z]\w*)(?:: (?P<message>.*))?$")


def any_exception(line: str) -> RaisedAt | None:
    """The exception that ends a traceback, whatever its type is called; None if the line does not look like one."""
    found = _ANY.match(line)
    return None if found is None else _raised(found)


def _raised(found: re.Match[str]) -> RaisedAt:
    module, _, kind = found["type"].rpartition(".")
    return RaisedAt(kind, module, found["message"] or "")


def proof_of(
    raised: RaisedAt,
    catalogue: CompiledCatalogue,
    *,
    configured: bool,
    restored: bool = False,
    with_message: bool = True,
) -> Proof | None:
    """What an exception proves; None for consequences of another failure.

    ``configured``: the line that raised it read a configuration; ``restored``: it read a checkpoint. ``with_message``
    False: a signature knows the message, so its words do not count again.
    """
    kind = raised.type
    if kind in catalogue.consequences:
        return None
    if restored and kind == "KeyError":
        return Proof("checkpoint_mismatch", CONTEXT_WEIGHT, told=True)
    if configured and kind in _OF_CONFIG:
        return Proof("config_error", CONTEXT_WEIGHT, told=True)
    known = catalogue.exceptions.get(kind)
    generic = kind in catalogue.generic_exceptions
    if known is None or generic:
        inner = find_exception(raised.message, catalogue)
        # Julia's LoadError, a handler of its own, a RuntimeError of Paddle
        if inner is not None and inner.type != kind and (not generic or catalogue.names_mechanism(inner.type)):
            return proof_of(inner, catalogue, configured=configured, restored=restored, with_message=with_message)
    if with_message and (known is None or kind == "KeyError" or generic):
        known = proof_of_message(kind, raised.message, catalogue) or known
    if known is not None:
        return known
    proofs = [catalogue.exceptions[name] for name in catalogue.exception_patterns if fnmatchcase(kind, name)]
    module = raised.module
    while module and module not in catalogue.modules:
        module = module.rpartition(".")[0]
    proofs += [catalogue.modules[module]] if module else []
    return max(proofs, key=lambda proof: proof.weight, default=None)


MESSAGE_CHARS = 240
"""Characters of a message whose words count. Behind them stand dumps of objects."""


_ADDRESS = LazyPattern(r"(?P<host>\bhttps?://[\w.:-]+)/\S*")
"""The words of a page's path say nothing of what happened."""
_VALUE = LazyPattern(
    r"(?:\b[a-z]\w*=\S+|'[^']*'|\"[^\"]*\"|`[^`]*`|\b[a-z]\w*_\w+\b)"
    r"(?= (?:is|are|was|were) not | is an? (?:in|un)| must | should | cannot be )"
)
"""A value that is refused, or the name of a setting: its words say nothing either."""


_CHOICES = LazyPattern(r"(?P<words>\bmust be(?: one of| either)?|\bone of|\bchoose from)\s*[\[('\"].*")
"""The values that are allowed, and what was given."""
_COUNT = LazyPattern(r"(?<![\d.])\d{4,9}(?![\d.])|\b0x[0-9a-f]{4,}\b|\b\d+\.\d{2,}\b", re.IGNORECASE)
"""Steps, sizes and addresses: no table has such numbers, and a message that returns differs in them only."""


def proof_of_message(kind: str, message: str, catalogue: CompiledCatalogue) -> Proof | None:
    """What the words of an exception prove, None if nothing. ``kind``: its type, without the module.

    Of a type that is not generic the words of its name count, too: ``ServerDisconnectedError``.
    """
    if kind == "KeyError" and " " not in message:
        return next((proof for pattern, proof in catalogue.key_errors if pattern.match(message)), None)
    return _proof_of_shape(kind, _COUNT.sub("1000", message[:MESSAGE_CHARS]), catalogue)


@lru_cache(maxsize=1024)
def _proof_of_shape(kind: str, message: str, catalogue: CompiledCatalogue) -> Proof | None:
    message = _CHOICES.sub(r"\g<words> 'value'", message)
    message = _VALUE.sub("'value'", _ADDRESS.sub(r"\g<host>", message))
    low = (message if kind in catalogue.generic_exceptions else f"{_HUMP.sub(' ', kind)}: {message}").lower()
    return next((proof for pattern, proof in catalogue.messages if pattern.search(low) is not None), None)


# Places in source files that a log names: the frames of a traceback, the mark of a parser of settings.
#
# Forms: ``File "F", line N, in f`` (traceback.py; without ``, in`` the header of a syntax error; faulthandler without
# the comma), ``│ F:N in f`` (rich, typer), ``File F:N, in f`` (IPython), ``in "F", line N`` (PyYAML), ``file: 'F',
# line: N`` (configparser).

_FRAME = LazyPattern(
    r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:,? in (?P<function>.*))?'
    r"|\s*[│|]\s*(?P<boxed>[^\s│|][^│|]*?):(?P<row>\d+) in (?P<name>[^\s│|]+)\s*[│|]?\s*$"
    r"|\s*File (?P<shown>[^\s\"]\S*?):(?P<at>\d+),? in (?P<called>.*)"
)
_MARK = LazyPattern(
    r"""\s+in "(?P<file>[^"<][^"]*)", line (?P<line>\d+)\b|file: '(?P<quoted>[^'<][^']*)', line: (?P<row>\d+)"""
)
_INSTALLED = LazyPattern(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]Lib[/\\]\w+\.py$|^<")
_ENTRY = LazyPattern(r"[/\\]s?bin[/\\][^/\\.]+$")
"""A script that pip made for a command: ``bin/accelerate``."""


class Frame(NamedTuple):
    """A frame of a traceback. ``function`` "": not told."""

    file: str
    line: int
    function: str = ""

    @property
    def own(self) -> bool:
        """Whether it lies in the user's own code: not in an installed package, nor in Python itself."""
        return _INSTALLED.search(self.file) is None and _ENTRY.search(self.file) is None

    @property
    def place(self) -> str:
        """``F:N``."""
        return f"{self.file}:{self.line}"


def frame_of(text: str) -> Frame | None:
    """The frame that the line names, None if it names none."""
    found = _FRAME.match(text)
    if found is None:
        return None
    file, line = found["file"], found["line"]
    if file is None:
        file, line = (found["boxed"], found["row"]) if found["boxed"] else (found["shown"], found["at"])
    return Frame(file, int(line), found["function"] or found["name"] or found["called"] or "")


def marked(text: str) -> str:
    """Where a parser of settings stopped, as ``F:N``; "" if the line does not say."""
    found = _MARK.match(text)
    if found is None:
        return ""
    return f"{found['file']}:{found['line']}" if found["file"] else f"{found['quoted']}:{found['row']}"


def placed(text: str, place: str) -> str:
    """``text (at train.py:12)``; the text alone if the place is not known, or if the text names it."""
    file, _, line = place.rpartition(":")
    name = short(file)
    said = re.search(rf"{re.escape(name)}(?::|\W{{0,3}}(?:on |at )?line:? ){line}\b", text) is not None
    return text if not place or said else f"{text} (at {name}:{line})"


def short(path: str) -> str:
    """The name of the file; with that of its folder if many files have it (``models/__init__.py``)."""
    parts = path.replace("\\", "/").split("/")
    return "/".join(parts[-2:] if parts[-1].startswith("__") else parts[-1:])


def is_of_the_system(line: str) -> bool:
    """Whether the line names an exception of the operating system (a file, a mount), by Python's own types."""
    kind = getattr(builtins, line.partition(":")[0].strip().rpartition(".")[2], None)
    return isinstance(kind, type) and issubclass(kind, OSError)
