"""The files of an incident: written without secrets, and the end of a log."""

import os
from pathlib import Path

from ...model.text.edge import EDGE

LOG_TAIL_BYTES = 1 << 20


def log_tail(path: str, lines: int, notes: list[str]) -> str:
    r"""The last lines of a log; ``\r`` counts as a line end. Reads at most 1 MiB."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_TAIL_BYTES))
            text = file.read(LOG_TAIL_BYTES).decode("utf-8", "replace")
    except OSError as fault:
        notes.append(f"the log {path} cannot be read: {fault.strerror}")
        return ""
    kept = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(kept[-lines - 1 :])


def write_file(path: Path, text: str) -> bool:
    """Write one file without secrets, mode 0600. False: it could not be written."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(EDGE.text(text))
    except OSError:
        return False
    return True
