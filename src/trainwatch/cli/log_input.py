"""Reading a log given on the command line: a path or ``-``, in blocks, whatever its bytes and size."""

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path

from .failure import CliError, ExitCode

BLOCK_BYTES = 1 << 20
"""Large enough that the fast scan dominates, small enough to stay below 80 MB of memory."""


def text_blocks(name: str) -> Iterator[str]:
    """Decoded blocks of a log; bytes that are no UTF-8 become U+FFFD, characters are never cut in two."""
    if name == "-":
        yield from _decode(sys.stdin.buffer)
        return
    path = Path(name)
    if path.is_dir():
        raise CliError(ExitCode.USAGE, f"{name}: is a directory; give the log file itself, or - for standard input")
    try:
        with path.open("rb") as file:
            yield from _decode(file)
    except FileNotFoundError:
        raise CliError(ExitCode.NOT_FOUND, f"{name}: no such log; give a path, or - for standard input") from None
    except PermissionError:
        raise CliError(ExitCode.FAILED, f"{name}: not readable by this user; check its permissions (ls -l)") from None


def _decode(file: object) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while block := file.read(BLOCK_BYTES):  # type: ignore[attr-defined]
        yield decoder.decode(block)
    if rest := decoder.decode(b"", final=True):
        yield rest
