"""The columns of the lists that verbs print: runs, checkpoints, the queue, other machines, trials."""

import time
from typing import Any

from ..model.checkpoints.checkpoint import Checkpoint
from ..model.launch.queue import QueueEntry
from ..model.launch.trial import TrialResult
from ..model.text.memory_words import gib
from ..model.text.verdict_words import verdict_word
from . import quantity
from .columns import Column

Shown = tuple[dict[str, Any], str]
"""A run's row of ``runs --json``, and what is said while no step is seen."""
Kept = tuple[Checkpoint, str]
"""A checkpoint, and what else is known of it."""


def _step(row: Shown) -> str:
    """``step 136 of 360``, over all attempts and epochs."""
    step, total = row[0]["step"], row[0]["total_steps"]
    if step is None:
        return "no step yet"
    return f"step {quantity.count(step)}" + (f" of {quantity.count(total)}" if total else "")


def _watched(row: Shown) -> str:
    supervisor = row[0]["supervisor"]
    if not supervisor["alive"]:
        return "not watched"
    return "watched" if supervisor["responsive"] else "FROZEN"


def _left(row: Shown) -> str:
    """``2 h 10 min left``; empty if unknown."""
    eta_s = row[0].get("eta_s")
    return "" if eta_s is None else f"{quantity.duration(eta_s)} left"


def _folder(row: Shown) -> str:
    """With what is to be said of a silence, and what needs a person."""
    return " · ".join(filter(None, (row[0]["cwd"], row[1], row[0].get("needs_you"))))


RUNS: tuple[Column[Shown], ...] = (
    Column(title="run", text=lambda r: str(r[0]["id"])),
    Column(title="state", text=lambda r: str(r[0]["state"])),
    Column(title="attempt", text=lambda r: f"attempt {r[0]['attempt']}", right=True),
    Column(title="step", text=_step, right=True),
    Column(title="left", text=_left, right=True, if_any=True),
    Column(title="watched", text=_watched),
    Column(title="folder", text=_folder),
)


def _position(row: Kept) -> str:
    step = [f"step {quantity.count(row[0].step)}"] if row[0].step is not None else []
    epoch = [f"epoch {row[0].epoch}"] if row[0].epoch is not None else []
    return ", ".join(step + epoch) or quantity.UNKNOWN


def _verdict(row: Kept) -> str:
    checkpoint, more = row
    word = verdict_word(checkpoint.verdict)
    return (f"{word}: {checkpoint.reason}" if checkpoint.reason else word) + more


CHECKPOINTS: tuple[Column[Kept], ...] = (
    Column(title="written", text=lambda r: time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(r[0].mtime))),
    Column(title="size", text=lambda r: quantity.size(r[0].size_bytes), right=True),
    Column(title="name", text=lambda r: r[0].name),
    Column(title="step", text=_position, right=True),
    Column(title="verdict", text=_verdict),
)
Queued = tuple[QueueEntry, int | None]
"""An entry, and its place if it waits."""


def _queue_state(row: Queued) -> str:
    entry, place = row
    return (f"queued, place {place}" if place is not None else entry.ending or entry.state).replace("_", " ")


def _run_and_why(row: Queued) -> str:
    return ": ".join(filter(None, (row[0].run, row[0].why)))


QUEUE: tuple[Column[Queued], ...] = (
    Column(title="entry", text=lambda r: str(r[0].id), right=True),
    Column(title="run", text=lambda r: r[0].name),
    Column(title="state", text=_queue_state),
    Column(title="GPUs", text=lambda r: f"GPU {','.join(map(str, r[0].on))}" if r[0].on else "", if_any=True),
    Column(title="started as", text=_run_and_why),
)
HOSTS: tuple[Column[dict[str, Any]], ...] = (
    Column(title="host", text=lambda r: str(r["name"])),
    Column(title="address", text=lambda r: str(r["ssh"])),
    Column(title="there", text=lambda r: f"trainwatch {r['version']}" if r["version"] else quantity.UNKNOWN),
    Column(title="trouble", text=lambda r: r["trouble"] or ""),
)


def _vram(trial: TrialResult) -> str:
    if trial.vram_peak_bytes is None:
        return quantity.UNKNOWN
    of = f"/{gib(trial.vram_total_bytes)}" if trial.vram_total_bytes else ""
    return f"{gib(trial.vram_peak_bytes)}{of} GiB"


TRIALS: tuple[Column[TrialResult], ...] = (
    Column(title="profile", text=lambda r: r.profile),
    Column(title="speed", text=lambda r: "–" if r.s_per_step is None else quantity.pace(r.s_per_step), right=True),
    Column(title="VRAM peak", text=_vram, right=True),
    Column(title="RAM peak", text=lambda r: quantity.memory(r.ram_peak_bytes), right=True),
    Column(title="GPU", text=lambda r: quantity.percent(r.gpu_util_pct), right=True),
    Column(title="stable", text=lambda r: {True: "yes", False: "NO", None: "?"}[r.stable]),
    Column(title="ended", text=lambda r: r.exit),
)
