"""Notices that wait: for the end of the quiet hours, or for others to be sent with (``[notify] quiet``, ``group_s``).

They are in a file of the run's folder until they are sent, so a new supervisor sends what the last one left. If the
supervisor ends before, ``later.py`` sends them in a process of its own.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ...model.settings import NoticeEvent

FILE = "held_notices.json"
SEVERITY: tuple[NoticeEvent, ...] = (
    "give_up", "question", "incident", "end_by", "withheld", "warning", "restart", "finish", "recovery"
)  # fmt: skip
"""Worst first: a message of several has the event of the worst."""
MOST = 200
START_S = 10.0


class HeldNotice(msgspec.Struct, frozen=True, kw_only=True):
    """``due``: when it is to be sent; ``wall``: when the judge decided it. Epoch seconds."""

    event: NoticeEvent
    title: str
    body: str = ""
    incident: int | None = None
    wall: float
    due: float


class HeldNotices:
    """The notices of one run that wait. Each is taken by one process only. ``path``: the run's folder."""

    def __init__(self, path: Path) -> None:
        self._path = path / FILE

    def add(self, notice: HeldNotice) -> None:
        """Keep a notice. Raises OSError."""
        with self._locked():
            self._write((*self._read(), notice)[-MOST:])

    def due(self) -> float | None:
        """When the first is to be sent; None if none waits."""
        return min((notice.due for notice in self._read()), default=None)

    def take(self, until: float) -> tuple[HeldNotice, ...]:
        """Take out those that are due. Raises OSError."""
        with self._locked():
            known = self._read()
            taken = tuple(notice for notice in known if notice.due <= until)
            if taken:
                self._write(tuple(notice for notice in known if notice.due > until))
            return taken

    def _read(self) -> tuple[HeldNotice, ...]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=tuple[HeldNotice, ...])
        except (OSError, msgspec.MsgspecError):
            return ()

    def _write(self, notices: Sequence[HeldNotice]) -> None:
        if not notices:
            self._path.unlink(missing_ok=True)
            return
        new = self._path.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(notices))
        new.replace(self._path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def together(run: str, notices: Sequence[HeldNotice]) -> HeldNotice:
    """One notice that says what several say."""
    if len(notices) == 1:
        return notices[0]
    worst = min(notices, key=lambda notice: SEVERITY.index(notice.event))
    lines = []
    for notice in notices:
        lines.append(f"{time.strftime('%H:%M', time.localtime(notice.wall))}  {notice.title.removeprefix(f'{run}: ')}")
        lines += [f"    {line}" for line in notice.body.splitlines()]
    first = worst.title.removeprefix(f"{run}: ")
    title = f"{run}: {len(notices)} notices: {first}"
    return msgspec.structs.replace(worst, title=title, body="\n".join(lines))


def send_later(folder: Path) -> None:
    """Start the process that sends what waits in this folder when it is due. Raises OSError, SubprocessError."""
    subprocess.run(
        [sys.executable, "-P", "-m", "trainwatch.core.act.notify.later", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        timeout=START_S,
        check=True,
    )
