"""What log and GPUs show besides steps."""

import re
from typing import Literal

import msgspec

from ...model.observation import GpuReading
from ...model.progress import Phase
from ...model.run import GpuHabit
from ..scales import LINE_CHARS
from ..text.run_count import AGAIN_SHARE

# What the trainer's log shows besides steps: announced phases, bars of other work, and lines without progress.
#
# Lines without a step are no heartbeat, but they lengthen the deadline. An announced phase restarts the wait for the
# next step, once per phase between two steps: a hung trainer that prints "waiting for save" for ever restarts it once.
# A bar of another phase than training restarts it each time its count grows: an evaluation that asks a remote model, a
# download that maps its file and a decoder that is limited by memory show no other sign of life.
#
# Known false alarms: a watchdog of a dead trainer that prints "saving checkpoint before abort" (a phase counts only if
# another sign of life was seen just before); words of an upload in the name of a metric; a gauge drawn as a bar, as
# long as it reaches new heights.

EXIT_WORK = re.compile(
    r"upload|push_to_hub|syncing\b|"
    r"(?:push|send|sav|writ)(?:ing|ed)? (?:\w+ ){0,8}to (?:the )?(?:hub|s3|gs|cloud|bucket|remote|storage)|"
    r"wandb: (?:Waiting|Uploading)|finali[sz]|merging|exporting|converting|compressing|archiv|copying|"
    r"transferring|back(?:ing up|up)\b|quantizing|running final|final (?:test|report|evaluation)",
    re.IGNORECASE,
)
"""Words of work that moves no counter: network transfers, and what is done after the last step."""

ANNOUNCED: frozenset[Phase] = frozenset({"load", "preprocess", "compile", "eval", "sample", "finish"})
"""Phases in which no step is due. A save is one, too, which its file ends (deadlines.py)."""
WORK: frozenset[Phase] = frozenset({"eval", "sample", "save"})
"""Phases between steps. A bar that loads or prepares something may be that of workers that are restarted for ever."""


BAR_COUNT = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([kKMGT]?)i?B?/(\d[\d.]*[kKMGT]?i?B?) *\[")
"""A bar's count and total: ``412/2000 [``, ``1.20G/9.60G [``."""
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([kKMGT]?)")
UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class LogActivity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was printed since the last step. Times in active seconds.

    ``announced``: phases that began since the last step. ``exit_work_at``: when words such as "upload" came.
    ``tail``: the unfinished line, so that a word that a chunk's end cuts is read. ``printed_lines`` counts line ends.
    """

    phase: Phase = "unknown"
    phase_at: float = 0.0
    announced: tuple[Phase, ...] = ()
    printed_at: float | None = None
    printed_lines: int = 0
    exit_work_at: float | None = None
    tail: str = ""
    bar_moved_at: float = 0.0
    """When a bar that counts no steps grew."""
    work_bar_at: float = 0.0
    """The same of a bar of an evaluation, a save or samples."""
    bar_total: str = ""
    bar_count: float = 0.0
    """The highest since the bar began: a gauge of memory or load, drawn as a bar, goes up and down."""
    trusted: bool = True
    """The phase was announced by a living trainer; output of a dead one does not restart the wait."""


def with_step(log: LogActivity, phase: Phase, text: str, now: float) -> LogActivity:
    """Take a text that contains a step. ``phase``: the phase after it."""
    work = now if "\n" in text and EXIT_WORK.search(text) is not None else None
    if log.phase == phase and log.printed_at is None and log.exit_work_at is None and work is None:
        return log
    since = log.phase_at if phase == log.phase else now
    announced = () if phase in {"train", "unknown"} else (phase,)
    return LogActivity(phase=phase, phase_at=since, announced=announced, exit_work_at=work)


def with_text(log: LogActivity, phase: Phase, text: str, now: float, *, alive: bool) -> LogActivity:
    """Take a text without a step. ``alive``: other signs of life were seen just before."""
    work = log.exit_work_at
    printed = log.tail + text
    if work is None and alive and EXIT_WORK.search(printed) is not None:
        work = now
    known = phase == log.phase or phase in log.announced
    # The newest bar, and a word that a chunk's end cuts, are at the end.
    bars = [] if phase == "train" else BAR_COUNT.findall(printed[-LINE_CHARS:])
    total, count = (bars[-1][2], float(bars[-1][0]) * UNITS[bars[-1][1]]) if bars else (log.bar_total, log.bar_count)
    same = total == log.bar_total
    grew = same and count > log.bar_count
    if same and not (log.bar_count > AGAIN_SHARE * _amount(total) and count < AGAIN_SHARE * log.bar_count):
        count = max(count, log.bar_count)  # else the next bar of this length began
    return LogActivity(
        phase=phase,
        phase_at=log.phase_at if known else now,
        announced=log.announced if known else (*log.announced, phase),
        printed_at=now,
        printed_lines=log.printed_lines + text.count("\n") + text.count("\r"),
        exit_work_at=work,
        tail=printed[printed.rfind("\n") + 1 :][-LINE_CHARS:],
        bar_moved_at=now if grew else log.bar_moved_at,
        work_bar_at=now if grew and phase in WORK else log.work_bar_at,
        bar_total=total,
        bar_count=count,
        trusted=log.trusted if phase == log.phase else alive,
    )


def _amount(text: str) -> float:
    """``9.90GB`` as a number; 0 if it is none."""
    found = AMOUNT.match(text)
    return 0.0 if found is None else float(found[1]) * UNITS[found[2]]


# What a GPU does, from its utilisation and power compared with what is usual for this run.
#
# Utilisation alone misleads: a GPU that waits in a collective shows 100 % and draws a third of its usual power (the
# common report "GPU 100 % and frozen"), and a monitor or a desktop shows a few per cent on an idle one. So: busy =
# usual power, spin = 100 % at low power, idle = neither. Without a power reading "pinned" stays undecided; so does
# "dim", 100 % at a power between that of a spin and the usual one, which a smaller phase may draw for a while.

GpuState = Literal["busy", "pinned", "dim", "spin", "active", "idle", "unknown"]
"""busy: works at its usual power. pinned: near 100 %, power unknown. dim: near 100 %, power well below usual. spin:
near 100 % at low power. active: something between. unknown: no reading."""

LOADED: frozenset[GpuState] = frozenset({"busy", "pinned", "dim", "spin"})
"""States in which a kernel runs or waits."""
IDLE_UTIL_PCT = 5.0
"""GPU utilisation below this is idle: monitors and desktops cause a few per cent."""
PINNED_UTIL_PCT = 97.0
"""A kernel that waits keeps utilisation at 99 to 100; work falls below this between batches."""
WORKING_UTIL_PCT = 15.0
"""Above this a GPU did something in the sample; a desktop makes up to 12."""
BUSY_SHARE = 0.47
"""Share of the way from idle to usual power from which a GPU works. Spins were seen at 0.2 to 0.4."""
DIM_SHARE = 0.72
"""Share below which a GPU that never leaves 97 % is in doubt: batches of normal work leave gaps between kernels."""
LIMIT_SHARE = 0.15
"""A power limit that differs by more than this share is another one; laptops change theirs slightly all the time."""
STEADY_SHARE = 0.25
"""A change of power by more than this share of the usual power is another phase; a smaller one is smoothed."""
IDLE_SHARE = 0.15
"""Share below which the GPU rests, whatever utilisation is: a desktop draws on it."""
BUSY_LIMIT_SHARE = 0.42
"""Share of the power limit from which a GPU works, while its usual power is not known."""
REST_LIMIT_SHARE = 0.12
"""Idle power as a share of the power limit, if the GPU was never seen at rest: the run was adopted while it trained."""
RESTING_UTIL_SHARE = 0.2
"""Share of the usual utilisation below which a GPU rests, if power is unknown: a desktop makes up to 12 %."""
LEARN_SAMPLES = 6
"""Samples, with steps around them, from which usual power and CPU are learned."""
NEWEST_WEIGHT = 0.2
"""Weight of the newest value in a smoothed one: power readings, usual power and CPU, the sampling period."""


class GpuNormal(GpuHabit, frozen=True, kw_only=True, omit_defaults=True):
    """What is usual for one GPU. Another card, or another limit, has another usual power; sums: since the last step."""

    from_earlier_run: bool = False
    """Known from earlier runs only; replaced by what this run teaches first."""
    steady_w: float | None = None
    """Power while it stays near 100 %, smoothed: readings vary, and one high reading is not work."""
    power_sum: float = 0.0
    util_sum: float = 0.0
    count: int = 0


class GpuFault(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel line that says that a GPU of this run is lost until a reset. ``at``: in active seconds."""

    text: str
    at: float


def may_be_own(gpu: GpuReading) -> bool:
    """Return whether the trainer may use this GPU: it is not known to be of others, or its processes hold memory there.

    The numbers in the trainer's environment need not be those of the driver, and its ranks may have others.
    """
    return gpu.own is not False or bool(gpu.own_mem_bytes)


SLOWING = frozenset({"hardware slowdown", "thermal (driver)", "thermal (hardware)", "power brake", "board limit"})
"""Reasons for low clocks that are not usual under full load, as a power cap is."""


def watch(normals: tuple[GpuNormal, ...], gpus: tuple[GpuReading, ...]) -> tuple[GpuNormal, ...]:
    """Add a sample to the sums. They count only if a step follows (``learn``)."""
    known = {n.index: n for n in normals}
    return tuple([_watch(known.get(g.index) or GpuNormal(index=g.index), g) for g in gpus])


def _watch(normal: GpuNormal, gpu: GpuReading) -> GpuNormal:
    power, util, rest, limit = gpu.power_w, gpu.util_pct, normal.rest_w, gpu.power_limit_w
    if limit is not None and normal.limit_w is not None and abs(limit - normal.limit_w) > LIMIT_SHARE * normal.limit_w:
        normal = GpuNormal(index=normal.index, rest_w=rest, limit_w=limit)
    elif limit is not None and normal.limit_w is None:
        normal = msgspec.structs.replace(normal, limit_w=limit)
    if power is not None and (rest is None or power < rest):
        normal = msgspec.structs.replace(normal, rest_w=power)
    if (power is None and util is None) or (util is not None and util < WORKING_UTIL_PCT):
        return normal if normal.steady_w is None else msgspec.structs.replace(normal, steady_w=None)
    return msgspec.structs.replace(
        normal,
        steady_w=_steady(normal, util, power),
        power_sum=normal.power_sum + (power or 0.0),
        util_sum=normal.util_sum + (util or 0.0),
        count=normal.count + 1,
    )


def _steady(normal: GpuNormal, util: float | None, power: float | None) -> float | None:
    usual = normal.busy_w
    if usual is None or power is None or util is None or util < PINNED_UTIL_PCT:
        return None
    before = normal.steady_w
    if before is None or abs(power - before) > STEADY_SHARE * usual:
        return power
    return before + NEWEST_WEIGHT * (power - before)


def learn(normal: GpuNormal) -> GpuNormal:
    """Learn from the samples before a step: they are usual, if they are enough."""
    if normal.count < LEARN_SAMPLES:
        return normal
    power = normal.power_sum / normal.count
    util = normal.util_sum / normal.count
    usual_w, usual_pct = (None, None) if normal.from_earlier_run else (normal.busy_w, normal.util_pct)
    return GpuNormal(
        index=normal.index,
        rest_w=normal.rest_w,
        busy_w=blend(usual_w, power) if power > 0.0 else normal.busy_w,
        limit_w=normal.limit_w,
        steady_w=normal.steady_w,
        util_pct=blend(usual_pct, util),
    )


def drop_samples(normals: tuple[GpuNormal, ...]) -> tuple[GpuNormal, ...]:
    """Drop the samples since the last step: they show another phase, or a wake-up, and not training."""
    return tuple(msgspec.structs.replace(n, power_sum=0.0, util_sum=0.0, count=0) for n in normals)


def blend(before: float | None, newest: float) -> float:
    return newest if before is None else before + NEWEST_WEIGHT * (newest - before)


def read(normal: GpuNormal, gpu: GpuReading) -> GpuState:
    """Return what one GPU does in one sample."""
    util, share = gpu.util_pct, power_share(normal, gpu)
    if util is None:
        if share is None:
            return "unknown"
        return "busy" if share >= BUSY_SHARE else "idle" if share < IDLE_SHARE else "active"
    full = util >= PINNED_UTIL_PCT
    if gpu.power_w is None:
        resting = min(WORKING_UTIL_PCT, RESTING_UTIL_SHARE * (normal.util_pct or 0.0))
        return "pinned" if full else "idle" if util < max(IDLE_UTIL_PCT, resting) else "active"
    if util < IDLE_UTIL_PCT:
        return "idle"
    if share is None:
        return "pinned" if full else "active"
    if share >= BUSY_SHARE:
        return "dim" if full and share < DIM_SHARE and normal.busy_w is not None else "busy"
    return "spin" if full else "idle" if util < WORKING_UTIL_PCT and share < IDLE_SHARE else "active"


def power_share(normal: GpuNormal, gpu: GpuReading) -> float | None:
    """Return the power on a scale from rest (0) to usual (1); None if it, or what it is compared with, is unknown."""
    limit, usual = gpu.power_limit_w, normal.busy_w
    if gpu.power_w is None or (usual is None and limit is None):
        return None
    power = gpu.power_w if normal.steady_w is None else normal.steady_w
    most = limit or usual or 1.0
    if usual is None:
        # Not learned yet: scaled by the limit, so that BUSY_SHARE falls on BUSY_LIMIT_SHARE of it.
        return power / most * (BUSY_SHARE / BUSY_LIMIT_SHARE)
    rest = normal.rest_w
    if rest is None or rest >= most * BUSY_LIMIT_SHARE:  # adopted while it trained: the lowest power is that of work
        rest = most * REST_LIMIT_SHARE
    return (power - rest) / max(usual - rest, 1.0)
