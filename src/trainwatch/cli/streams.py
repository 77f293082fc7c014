"""Standard output and error as a verb needs them: there, and able to take any text."""

import io
import os
import sys


def make_writable() -> None:
    """Closed streams (cron, some service managers) swallow what is written; characters they lack are replaced.

    Log lines and file names hold whatever they like: an answer with a question mark in it is better than none.
    """
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def discard_stdout() -> None:
    """What is still buffered goes nowhere: the reader has left, or the disk behind it is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> io.TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # lives as long as the process
