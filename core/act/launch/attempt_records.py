"""What runner and launcher wrote about an attempt: its order, its start, its end."""

from pathlib import Path
from typing import TypeVar

import msgspec

from ...model.attempt import ExitRecord, LaunchOrder, StartRecord
from ...model.json_line import decode_exact
from . import spool

Record = TypeVar("Record", StartRecord, ExitRecord, LaunchOrder)


def read_start(directory: Path) -> StartRecord | None:
    """``start.json`` of an attempt; None if it does not exist yet or is of another version."""
    return _read(directory, spool.START, StartRecord)


def read_exit(directory: Path) -> ExitRecord | None:
    """``exit.json`` of an attempt; None while the trainer runs, or if its runner died first."""
    return _read(directory, spool.EXIT, ExitRecord)


def read_order(directory: Path) -> LaunchOrder | None:
    """``order.json`` of an attempt, or None."""
    return _read(directory, spool.ORDER, LaunchOrder)


def _read(directory: Path, name: str, kind: type[Record]) -> Record | None:
    try:
        return decode_exact((directory / name).read_bytes(), kind)
    except (OSError, msgspec.DecodeError):
        return None
