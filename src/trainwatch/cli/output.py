"""What verbs print: one JSON object (or JSON lines) on stdout, or plain text. No NaN, no Infinity: null."""

import argparse
import contextlib
import io
import os
import sys
from _thread import RLock  # ``threading`` is not needed for anything else in a short verb
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.model.redact import EDGE
from trainwatch.core.model.text import printable, printable_json, printable_lines, printable_output

if TYPE_CHECKING:
    from trainwatch.core.app.preflight.check import Check

__all__ = ["check_line", "print_json", "printable", "printable_lines", "put", "warn"]


def warn(text: str) -> None:
    print(f"trainwatch: {printable_lines(text)}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout, in UTF-8 or with what the stream lacks as escapes."""
    import msgspec

    from trainwatch.core.model.json_line import encode_line

    text = printable_json(encode_line(EDGE.value(msgspec.to_builtins(value))).decode())
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text)) + "\n"
    getattr(sys.stdout, "write_redacted", sys.stdout.write)(text)
    sys.stdout.flush()


def put(args: argparse.Namespace, told: Any, *lines: str) -> int:
    """Print the object of ``--json``, else the lines. Returns 0."""
    if args.json:
        print_json(told)
    else:
        for line in lines:
            print(printable(line))
    return ExitCode.DONE


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


@contextlib.contextmanager
def without_secrets() -> Iterator[None]:
    """Redact all that is written to standard output and standard error."""
    EDGE.know(os.environ)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = SafeStream(sys.stdout), SafeStream(sys.stderr)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, SafeStream):
                stream.pass_on()
        sys.stdout, sys.stderr = before


class SafeStream:
    """A text stream that passes whole lines on, without secrets and sequences that act on a terminal.

    An unfinished line is passed on at ``flush``.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._kept = ""
        self._lock = RLock()
        self.outlives_reader = False

    def write(self, text: str) -> int:
        with self._lock:
            self._kept += text
            ended = max(self._kept.rfind("\n"), self._kept.rfind("\r")) + 1
            if ended:
                whole, self._kept = self._kept[:ended], self._kept[ended:]
                self._put(EDGE.text(whole))
        return len(text)

    def write_redacted(self, text: str) -> None:
        """Write text that has no secrets any more as it is: JSON stays JSON."""
        with self._lock:
            self.pass_on()
            self._put(text)

    def pass_on(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, ""
            if kept:
                self._put(EDGE.text(kept))

    def flush(self) -> None:
        self.pass_on()
        self._put("", flush=True)

    def _put(self, text: str, *, flush: bool = False) -> None:
        try:
            self._stream.write(printable_output(text))
            if flush:
                self._stream.flush()
        except OSError:
            if not self.outlives_reader:
                raise
            discard(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def outlive_reader() -> None:
    """Go on without output once it cannot be written any more: its terminal is closed, its pipe or its disk is gone."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, SafeStream):
            stream.outlives_reader = True


def end_when_unread() -> None:
    """End as at Ctrl-C once nobody reads standard output any more, also while there is nothing to print.

    For verbs that follow: a connection that was cut, or the end of ``| head``, would leave them there for ever.
    """
    import threading

    threading.Thread(target=_wait_until_unread, name="reader", daemon=True).start()


def _wait_until_unread() -> None:
    import select
    import signal

    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)  # only that the other end was closed
        poll.poll()
    except (OSError, ValueError):
        return
    os.kill(os.getpid(), signal.SIGINT)


def discard(stream: IO[str]) -> None:
    """Discard buffered output: the reader has closed the pipe, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _nowhere() -> io.TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # lives as long as the process


RESULT_WORDS = {"pass": "ok", "warn": "warn", "fail": "FAIL"}


def check_line(check: "Check") -> str:
    """``vram need: warn: profile balanced usually takes … -> use a smaller profile``."""
    if check.result == "pass":
        return printable(f"{check.name}: {check.found}")
    remedy = f" -> {check.remedy}" if check.remedy else ""
    return printable(f"{check.name}: {RESULT_WORDS[check.result]}: {check.found}{remedy}")
