"""Read a log or a trace named on the command line: a path or ``-``, of any bytes and size."""

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from trainwatch.core.app.errors import CliError, ExitCode

BLOCK_BYTES = 1 << 20
"""Large enough that the fast scan dominates, small enough to stay below 80 MB of memory."""
GZIP_MAGIC = b"\x1f\x8b"
HINT = "give the path of the file itself, or - for standard input"


def text_blocks(name: str) -> Iterator[str]:
    """Decoded blocks of a log; bytes that are not UTF-8 become U+FFFD, characters are not split."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with byte_lines(name, what="log") as file:
        while block := file.read(BLOCK_BYTES):
            yield decoder.decode(block)
    if rest := decoder.decode(b"", final=True):
        yield rest


@contextmanager
def byte_lines(name: str, *, what: str) -> Iterator[BinaryIO]:
    """The file ``name``, decompressed if it is a gzip file, or standard input for ``-``. Raises CliError.

    Exit code 3 if it does not exist, 2 if it cannot be read.
    """
    if name == "-":
        if sys.stdin is None:
            raise CliError(ExitCode.USAGE, f"-: standard input is closed; give the {what}'s path")
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: SIM115, PTH123  # only opening may raise here; Path("") would be the folder
    except FileNotFoundError:
        raise CliError(ExitCode.NOT_FOUND, f"{name or '(empty)'}: no such {what}; {HINT}") from None
    except IsADirectoryError:
        raise CliError(ExitCode.USAGE, f"{name}: is a directory; {HINT}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CliError(ExitCode.USAGE, f"{name}: cannot be read: {why}; check its permissions (ls -l)") from None
    with file:
        if file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
            import gzip

            with io.BufferedReader(gzip.GzipFile(fileobj=file)) as inflated:
                yield inflated
        else:
            yield file
