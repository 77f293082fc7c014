"""Standard output and standard error: open, and able to write any text."""

import io
import os
import sys


def make_writable() -> None:
    """Closed streams (cron, some service managers) discard the text; characters that cannot be encoded are replaced.

    Log lines and file names may hold any character; a replaced one is better than no output.
    """
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def discard_stdout() -> None:
    """Discard buffered output: the reader has closed the pipe, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> io.TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # lives as long as the process
