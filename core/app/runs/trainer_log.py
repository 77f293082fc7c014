"""The log of a run's trainer, as text."""

import codecs
import time
from collections.abc import Iterator
from pathlib import Path

from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode

BLOCK_BYTES = 1 << 16
POLL_S = 0.25
"""Period of looking for what was added."""


def log_of(run: RunDirectory, attempt: int | None = None) -> Path:
    """The log of an attempt (None: the newest). Raises CliError (exit code 3) if there is none."""
    from ...store.journal import load_story

    attempts = load_story(run.journal).attempts
    chosen = [each for each in attempts if each.log and (attempt is None or each.number == attempt)]
    if not chosen or chosen[-1].log is None:
        which = "no attempt was started yet" if attempt is None else f"there is no attempt {attempt} with a log"
        raise CliError(ExitCode.NOT_FOUND, f"{run.id}: {which}")
    path = Path(chosen[-1].log)
    if not path.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{path}: the log was removed")
    return path


def log_pieces(run: RunDirectory, path: Path, lines: int | None, *, follow: bool) -> Iterator[str]:
    """The last ``lines`` of a log (None: all), and with ``follow`` what is added, also by the next attempts."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with path.open("rb") as file:
        if lines is not None:
            file.seek(_beginning(path, lines))
        while data := file.read(BLOCK_BYTES):
            yield decoder.decode(data)
        while follow:
            data = file.read(BLOCK_BYTES)
            if data:
                yield decoder.decode(data)
                continue
            newest = log_of(run)
            if newest != path:
                yield f"\n==> {newest} <==\n"
                yield from log_pieces(run, newest, None, follow=True)
                return
            time.sleep(POLL_S)


def _beginning(path: Path, lines: int) -> int:
    """Offset of the last ``lines`` lines."""
    size = path.stat().st_size
    found, end = 0, size
    with path.open("rb") as file:
        while end > 0:
            start = max(0, end - BLOCK_BYTES)
            file.seek(start)
            block = file.read(end - start)
            at = len(block) - 1 if end == size and block.endswith(b"\n") else len(block)
            while (at := block.rfind(b"\n", 0, at)) >= 0:
                found += 1
                if found == lines:
                    return start + at + 1
            end = start
    return 0
