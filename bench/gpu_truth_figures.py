"""The figures of trainwatch's GPU reader beside those of nvidia-smi, for each GPU and field."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

MIB = 2**20


class Field(NamedTuple):
    """One figure: our name, nvidia-smi's, how ours becomes theirs, and how far they may differ in their unit."""

    ours: str
    theirs: str
    factor: float
    tolerance: float


FIELDS = (
    Field("util", "utilization.gpu", 1.0, 15.0),
    Field("mem_used", "memory.used", 1 / MIB, 64.0),
    Field("mem_total", "memory.total", 1 / MIB, 2.0),
    Field("temp", "temperature.gpu", 1.0, 2.0),
    Field("power", "power.draw", 1.0, 25.0),
    Field("power_limit", "enforced.power.limit", 1.0, 1.0),
    Field("clock_mhz", "clocks.sm", 1.0, 150.0),
)
"""Tolerances: power, clock and utilisation move between two readings; a total and a limit do not."""


class Compared(NamedTuple):
    """``agrees`` None: one of the two does not know it. ``low``, ``high``: nvidia-smi before and after."""

    gpu: int
    field: str
    ours: float | None
    low: float | None
    high: float | None
    agrees: bool | None


def ask_smi(smi: Sequence[str]) -> list[dict[str, str]]:
    """One reading of nvidia-smi. Raises OSError, CalledProcessError."""
    names = ["index", "name", "driver_version", *(field.theirs for field in FIELDS)]
    words = [*smi, f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]
    out = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    return [dict(zip(names, row, strict=True)) for row in csv.reader(out.splitlines(), skipinitialspace=True) if row]


def ask_ours() -> list[dict[str, Any]]:
    """One reading of trainwatch's NVML child. Raises RuntimeError with the driver's words."""
    words = [sys.executable, "-P", "-m", "trainwatch.core.sense.gpu.nvml_child", str(os.getpid()), "0.5"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            for line in child.stdout or ():
                message = json.loads(line)
                if message["kind"] == "gpus":
                    return list(message["gpus"])
                if message["kind"] == "error":
                    raise RuntimeError(str(message["text"]))
        finally:
            child.kill()
    raise RuntimeError("the reader ended without a reading")


def compare(smi: Sequence[str]) -> tuple[list[Compared], list[dict[str, str]]]:
    """Ours between two readings of nvidia-smi; a figure agrees if it lies between them, give or take the tolerance."""
    before, ours, after = ask_smi(smi), ask_ours(), ask_smi(smi)
    found = []
    for one, other in zip(before, after, strict=True):
        index = int(one["index"])
        mine = next((gpu for gpu in ours if gpu.get("index") == index), {})
        for field in FIELDS:
            value = mine.get(field.ours)
            value = None if value is None else float(value) * field.factor
            ends = [
                number for number in (_number(one[field.theirs]), _number(other[field.theirs])) if number is not None
            ]
            low, high = (min(ends), max(ends)) if ends else (None, None)
            agrees = None
            if value is not None and low is not None and high is not None:
                agrees = low - field.tolerance <= value <= high + field.tolerance
            elif (value is None) != (low is None):
                agrees = False  # one of the two knows it
            found.append(Compared(index, field.theirs, value, low, high, agrees))
    return found, before


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # [N/A], [Not Supported]
        return None
