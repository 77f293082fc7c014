"""Asks a trainer that uses ``trainwatch.heartbeat`` for a checkpoint, or for the stacks of its threads."""

import time
from hashlib import sha256
from pathlib import Path

from ....heartbeat import DUMP, Page, page_path
from ...model.ports.supervision import AttemptTarget
from ..processes import read_process, send_signal
from .save_request import catches_signal

DUMP_S = 1.5
POLL_S = 0.05


def page_of(target: AttemptTarget) -> Page | None:
    """The page of an attempt; None if its trainer has none."""
    try:
        page = Page(page_path(target.directory, sha256))
    except (OSError, ValueError):
        return None
    told = page.read()
    return page if told is not None and told["step"] is not None else None


def ask_by_heartbeat(target: AttemptTarget, *, stop: bool) -> str | None:
    """Ask for a checkpoint at the next step, and for the end after it. A sentence, or None if it has no page."""
    page = page_of(target)
    if page is None:
        return None
    page.ask(stop)
    return f"asked by trainwatch.heartbeat for a checkpoint at its next step{' and to end then' if stop else ''}"


def dump_stacks(target: AttemptTarget, folder: Path) -> Path | None:
    """Let the trainer's faulthandler write the stacks of all its threads into a file of ``folder``; None if not."""
    page = page_of(target)
    told = None if page is None else page.read()
    if told is None or not told["dump_signal"]:
        return None
    pid, number = told["pid"], told["dump_signal"]
    process = read_process(pid)
    source = Path(target.directory, DUMP)
    if process is None or not catches_signal(pid, number):
        return None
    try:
        before = source.stat().st_size
        if not send_signal(process.key, number):
            return None
        end = time.monotonic() + DUMP_S
        last = before
        while time.monotonic() < end:
            time.sleep(POLL_S)
            size = source.stat().st_size
            if size > before and size == last:
                break
            last = size
        with source.open("rb") as file:
            file.seek(before)
            text = file.read(1 << 20)
        if not text:
            return None
        found = folder / "faulthandler.txt"
        found.write_bytes(text)
    except OSError:
        return None
    return found
