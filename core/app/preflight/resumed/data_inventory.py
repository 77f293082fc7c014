"""The size of a launch's data set, kept beside the attempt, so that the next launch can detect a change."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....act.launch import spool

FILE_NAME = "data.json"
BUDGET_S = 2.0
MOST_FILES = 200_000
MADE_BY_TRAINERS = frozenset({".npz", ".npy", ".cache", ".lock", ".arrow", ".tmp", ".part", ".log", ".safetensors"})
"""Suffixes of caches that trainers write beside the data."""

Inventory = dict[str, dict[str, int]]
"""Path → suffix → number of files; "" for a single file, then its size in bytes."""


def keep_inventory(folder: Path, paths: Mapping[str, Any]) -> None:
    """Count the data and write the counts. A data set that cannot be counted in time is left out.

    Raises OSError when it cannot be written.
    """
    counted = {path: found for path in paths if (found := count_files(Path(path))) is not None}
    if counted:
        spool.write(str(folder), FILE_NAME, counted)


def read_inventory(folder: Path) -> Inventory:
    """The counts that were written; empty if there are none."""
    found = spool.read(str(folder), FILE_NAME) or {}
    return {path: {k: int(v) for k, v in counts.items()} for path, counts in found.items() if isinstance(counts, dict)}


def count_files(path: Path, budget_s: float = BUDGET_S) -> dict[str, int] | None:
    """Files by suffix, in all folders below; None if there are none, or too many to be counted in time."""
    deadline, counted, number = time.monotonic() + budget_s, dict[str, int](), 0
    try:
        if path.is_file():
            return {"": path.stat().st_size}
    except OSError:
        return None
    for _, _, names in os.walk(path):
        for name in names:
            suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122
            if suffix not in MADE_BY_TRAINERS:
                counted[suffix] = counted.get(suffix, 0) + 1
        number += len(names)
        if number > MOST_FILES or time.monotonic() > deadline:
            return None
    return counted or None


def difference(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    """What changed, as text; empty if nothing did."""
    changes = []
    for suffix in sorted(before.keys() | now.keys()):
        was, is_ = before.get(suffix, 0), now.get(suffix, 0)
        if was != is_:
            what = f"{suffix} files" if suffix else "bytes"
            changes.append(f"{was} {what} then, {is_} now")
    return ", ".join(changes)
