"""Signs of life: what log and GPUs show besides steps, CPU of the processes, bytes, growing checkpoint files."""

import re
from typing import Literal

import msgspec

from ...model.observation import GpuReading, GpuSample, ProcessSample
from ...model.progress import Phase
from ...model.run import GpuHabit
from ...model.settings import Hang
from ..scales import AGAIN_SHARE, LINE_CHARS, SURE_TIMES

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


def log_after_step(log: LogActivity, phase: Phase, text: str, now: float) -> LogActivity:
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


# Signs of life of the training: GPUs, CPU of its processes, bytes read and written, growing checkpoint files.
#
# Each sign keeps the time, in active seconds, at which it was last seen. The rules judge how long all of them have been
# missing. None = never known; a sign that is not measured is no evidence of a hang. Known false alarms: a metrics
# thread keeps a dead trainer at 5 to 20 % CPU or wakes it for seconds each minute (so CPU and I/O count if most of the
# last samples show them); sockets do not show in I/O counters (uploads look dead: their bytes are counted apart); saves
# through mmap write no bytes (the growth of the file counts).

IDLE_CORES = 0.25
"""CPU of the whole tree below this is idle: a trainer that works uses more, a metrics thread 0.05 to 0.2 cores. A
trainer that usually needs less is compared with its own usual CPU."""
CPU_CORES_PER_GPU = 0.6
"""Share of ``IDLE_CORES`` that each further GPU adds: it has a process with a metrics thread of its own."""
CPU_NORMAL_SHARE = 0.3
"""Share of the usual CPU from which it is a sign, if less than ``IDLE_CORES``: some trainers need little."""
WHOLE_CORE = 0.9
"""From here on CPU is a sign whatever is usual and however many GPUs there are: a thread computes all the time. A main
process that polls its queue uses less, and the first thread of its process may sleep (state S) meanwhile."""


class Sign(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sign that counts if the newest sample and most of the window show it. ``at``: when it counted last.

    ``bits``: one per sample of the window, the newest lowest.
    """

    bits: int = 0
    at: float | None = None

    def after(self, now: float, window: int, *, shows: bool, at_once: bool = False) -> "Sign":
        """Take a sample. ``at_once``: it counts in any case."""
        bits = (self.bits << 1 | shows) & ((1 << window) - 1)
        counts = at_once or (shows and 2 * bits.bit_count() > window)
        return Sign(bits, now if counts else self.at)


class Liveness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``*_at``: when the sign was last seen, in active seconds; None = not yet. ``*_normal``: while training."""

    normals: tuple[GpuNormal, ...] = ()
    gpu: tuple[GpuState, ...] = ()
    gpu_at: float | None = None
    """Newest sample with a reading of the trainer's GPUs."""
    gpu_state: GpuState = "unknown"
    """What the busiest of them did in it."""
    foreign: bool = False
    """All GPUs that can be seen are marked as not the trainer's: whether it uses one is unknown. Or all that do
    something hold none of its memory, and one that rests does."""
    busy_at: float | None = None
    """Some GPU worked (busy or active)."""
    own_busy_at: float | None = None
    """The same of a GPU that is not known to be of others only."""
    unrest_at: float | None = None
    """Newest sample in which some GPU that may be the trainer's did something, or was not seen."""
    dim_at: float | None = None
    """Some GPU was near 100 % well below its usual power, and none worked."""
    spin_seen_w: float | None = None
    spin_known: bool = False
    """The spin was measured against this run's usual power, not against the power limit."""

    throttle: tuple[str, ...] = ()
    """Why some GPU's clocks are held down."""
    util_pct: float | None = None
    """Utilisation of the trainer's GPUs, smoothed."""

    process_at: float | None = None
    cpu: float | None = None
    working: Sign = Sign()
    """The CPU of its processes."""
    run_n: int = 0
    """Samples in a row with a process that was running or waited for a core (state R)."""
    run_from: float = 0.0
    """When the first of them came."""
    run_sum: float = 0.0
    """Such processes, added up over the samples in ``cpu_count``."""
    many_cores_at: float | None = None
    cpu_sum: float = 0.0
    cpu_count: int = 0
    cpu_normal: float | None = None
    moving: Sign = Sign()
    """Bytes read or written, also many at once."""
    bytes_at: float | None = None
    """The newest sample with more than ``IDLE_BYTES_PER_S``, a sign of life or not."""
    read_bytes: float | None = None
    write_bytes: float | None = None
    net_bytes: float | None = None
    net_seen_at: float | None = None
    sending: Sign = Sign()
    """Bytes moved over sockets."""
    procs: int | None = None
    procs_normal: int | None = None
    blocked_from: float | None = None
    """The first of the newest samples in a row with a process in state D; None = the newest has none."""
    answer_from: float | None = None
    """Since when all mounts answer although a process is blocked."""
    stuck: bool = False
    """They have lasted for half the window, or for half of ``hang.min_s`` if that is shorter."""
    unblocked_at: float = 0.0
    """When a process was last freed that had been blocked for most of the window."""
    silent_mounts: tuple[str, ...] | None = None
    """Mounts of the run that do not answer; None = not known."""
    zombies: int = 0
    zombies_normal: int = 0
    """A helper process that died long ago is not new evidence."""
    file_at: float | None = None
    saves_here: bool = False
    """Its processes have written as much as one of its checkpoints holds: the training is among them."""

    start_at: float = 0.0
    """When this attempt began, or readings came back."""
    longest_silence_s: float = 0.0
    """Longest time without any sign that was followed by a step, while training."""
    longest_spin_s: float = 0.0
    silence_s: float = 0.0
    """The longest such time since the last step."""
    spin_s: float = 0.0
    spin_from: float | None = None
    window: int = 9


def with_step(seen: Liveness, beat_at: float, *, announced: bool) -> Liveness:
    """Take a step: what was seen since the last one is usual, and a silence before it was harmless.

    ``announced``: another phase came in between, so that nothing is learned about training.
    """
    longest_s = seen.longest_silence_s if announced else max(seen.longest_silence_s, silence(seen, beat_at))
    spin_s, enough = max(seen.longest_spin_s, seen.spin_s), seen.cpu_count >= LEARN_SAMPLES
    due = enough or any(normal.count >= LEARN_SAMPLES for normal in seen.normals)
    if not due and seen.silence_s == 0.0 and spin_s == seen.longest_spin_s and longest_s == seen.longest_silence_s:
        return seen
    replace = msgspec.structs.replace
    seen = replace(seen, longest_silence_s=longest_s, longest_spin_s=spin_s, **_NO_SPELL)
    if announced:
        return replace(seen, normals=drop_samples(seen.normals), **_NO_CPU)
    if due:
        normals = tuple(map(learn, seen.normals))
        seen = replace(seen, normals=normals, procs_normal=seen.procs, zombies_normal=seen.zombies)
    if enough:
        usual = blend(seen.cpu_normal, seen.cpu_sum / seen.cpu_count)
        seen = replace(seen, cpu_normal=usual, **_NO_CPU)
    return seen


_NO_SPELL: dict[str, object] = {"silence_s": 0.0, "spin_s": 0.0, "spin_from": None}
_NO_CPU: dict[str, object] = {"cpu_sum": 0.0, "run_sum": 0.0, "cpu_count": 0}
"""Of the time since the last step."""


def silence(seen: Liveness, beat_at: float, now: float | None = None) -> float:
    """Return the longest time without any sign since the last step: until a sign that is seen ``now``, or a sample."""
    until = max(seen.process_at or 0.0, seen.gpu_at or 0.0) if now is None else now
    return max(seen.silence_s, until - max(beat_at, last_sign(seen, cpu=True)))


def with_file(seen: Liveness, beat_at: float, now: float, size_bytes: float) -> Liveness:
    """Take a file of a checkpoint that grew."""
    here = seen.saves_here or 0.0 < size_bytes <= (seen.write_bytes or 0.0)
    return msgspec.structs.replace(seen, file_at=now, silence_s=silence(seen, beat_at, now), saves_here=here)


def begin_attempt(seen: Liveness, now: float) -> Liveness:
    """Start over for a new process; what is usual for this run stays known."""
    return Liveness(
        start_at=now,
        normals=drop_samples(seen.normals),
        cpu_normal=seen.cpu_normal,
        procs_normal=seen.procs_normal,
        zombies_normal=seen.zombies_normal,
        longest_silence_s=seen.longest_silence_s,
        longest_spin_s=seen.longest_spin_s,
        saves_here=seen.saves_here,
        window=seen.window,
    )


def after_gap(seen: Liveness, now: float) -> Liveness:
    """Start over after a time in which nothing could be seen: counters jump, and the machine is slow at first."""
    return msgspec.structs.replace(
        seen,
        start_at=now,
        normals=drop_samples(seen.normals),
        **dict.fromkeys(("read_bytes", "write_bytes", "net_bytes", "net_seen_at")),
        **{name: Sign(at=getattr(seen, name).at) for name in ("working", "moving", "sending")},
        run_n=0,
        **_NO_SPELL,
        **_NO_CPU,
    )


def alive_cores(seen: Liveness) -> float:
    """Return from how many cores on the CPU of all its processes is a sign of life."""
    bound = IDLE_CORES * (1.0 + CPU_CORES_PER_GPU * max(0, len(seen.normals) - 1))
    usual = seen.cpu_normal
    if usual is not None and is_starved(seen):  # a main process that polls for dead or blocked workers does no work
        return min(WHOLE_CORE, max(bound, usual / 2.0))
    return min(WHOLE_CORE, bound if usual is None else min(bound, CPU_NORMAL_SHARE * usual))


def is_starved(seen: Liveness) -> bool:
    """Return whether workers died (state Z) or are blocked in the kernel (state D)."""
    return seen.zombies > seen.zombies_normal or seen.stuck


def last_work(seen: Liveness) -> float:
    """Return when a GPU last worked, bytes moved or a file grew: signs that no polling loop makes."""
    return max(last_byte(seen), seen.busy_at or 0.0)


def last_byte(seen: Liveness) -> float:
    return max(seen.start_at, seen.moving.at or 0.0, seen.sending.at or 0.0, seen.file_at or 0.0)


def last_sign(seen: Liveness, *, cpu: bool) -> float:
    """Return when a sign of life was last seen. ``cpu``: one busy core is enough, else several are needed."""
    return max(last_work(seen), (seen.working.at if cpu else seen.many_cores_at) or 0.0)


def was_alive(seen: Liveness, beat_at: float, now: float, margin_s: float) -> bool:
    """Return whether the trainer was alive when it printed what came ``now``, or nothing can be seen at all.

    Watchdogs of dead trainers print, too.
    """
    unseen = seen.process_at is None and seen.gpu_at is None
    return unseen or now - max(beat_at, last_sign(seen, cpu=True)) <= WINDOW_S + margin_s


# Signs of life from samples of the trainer's GPUs.


def with_gpus(seen: Liveness, sample: GpuSample, now: float, beat_at: float = 0.0) -> Liveness:
    """Take a GPU sample. ``beat_at``: the last step, in active seconds; a run that steps is not silent."""
    gpus = tuple([gpu for gpu in sample.gpus if may_be_own(gpu)]) or sample.gpus  # all, if it uses none
    if not gpus:
        return seen if seen.gpu_at is None else msgspec.structs.replace(seen, unrest_at=now)
    others = bool(seen.normals) and [n.index for n in seen.normals] != [g.index for g in gpus]
    normals = watch(seen.normals, gpus)
    states = tuple([read(n, g) for n, g in zip(normals, gpus, strict=True)])
    held = any(g.own_mem_bytes for g in gpus)
    theirs = [not may_be_own(g) or (held and g.own_mem_bytes == 0.0) for g in gpus]
    at_work = [other for other, s in zip(theirs, states, strict=True) if s != "idle"]
    foreign = all(at_work) if held and at_work else all(theirs)
    # Of GPUs that were others until now it is not known what they did before.
    # Low power alone may be a slice of a GPU that works.
    idle = all(s == "idle" and g.util_pct is not None for s, g in zip(states, gpus, strict=True))
    utils = [gpu.util_pct for gpu in gpus if gpu.util_pct is not None]
    changes: dict[str, object] = {
        "foreign": foreign,
        "throttle": tuple(sorted({why for gpu in gpus for why in gpu.throttle or () if why in SLOWING})),
        "util_pct": blend(seen.util_pct, sum(utils) / len(utils)) if utils else None,
        "unrest_at": seen.unrest_at if idle and not foreign and not others else now,
        "normals": normals,
        "gpu": states,
    }
    found = next((state for state in ("busy", "active", "spin", "pinned", "dim", "idle") if state in states), None)
    if found is not None:
        at, since = states.index(found), _since(seen.spin_from, now, holds=found in {"spin", "pinned"})
        changes |= {"gpu_at": now, "gpu_state": found, "spin_from": since}
        if found in {"busy", "active"}:
            changes |= {"busy_at": now, "silence_s": silence(seen, beat_at, now)}
            changes |= {} if foreign else {"own_busy_at": now}
        elif found != "idle":
            changes |= {"spin_seen_w": None if found == "pinned" else gpus[at].power_w}
        if found == "dim":
            changes["dim_at"] = now
        if found == "spin" and since is not None:
            changes |= {"spin_s": max(seen.spin_s, now - since), "spin_known": normals[at].busy_w is not None}
    return msgspec.structs.replace(seen, **changes)


# Signs of life from samples of the run's processes: CPU, bytes read, written and sent, and what blocks them.

WINDOW_S = 20.0
"""CPU and I/O count as a sign if most samples of this window show them: a metrics thread wakes up for 3 s a minute. A
sign of life that is older is over."""
WINDOW_MAX = 15
"""Samples in that window at most, however fast the sampling is; ``SURE_TIMES`` at least, however slow."""
IDLE_BYTES_PER_S = 65536.0
"""I/O below this is idle: progress bars and metrics writes make a few kB/s."""
IO_AT_ONCE_S = 256.0
"""What ``IDLE_BYTES_PER_S`` allows in this time, moved in one sample (17 MB), is a sign by itself: big files come
in bursts. A metrics writer that flushes 12 MB a minute beside a dead trainer is not a sign."""
NET_BYTES_PER_S = 100e3
"""Traffic of its sockets from which it is a sign, if most of the window shows it: an upload after a save. Heartbeats of
wandb or gloo stay far below."""
CPU_MANY_CORES = 2.5
"""Compilers and preprocessors keep this many cores busy: a sign of life that has no time limit."""
WAITING_CORES = 1.6
"""Cores per GPU up to which processes may only be waiting for their GPUs: each rank polls on one core."""


def _window(period_s: float) -> int:
    return min(WINDOW_MAX, max(SURE_TIMES, int(WINDOW_S / period_s)))


def with_process(seen: Liveness, sample: ProcessSample, now: float, hang: Hang, beat_at: float = 0.0) -> Liveness:
    last, cpu = seen.process_at, sample.cpu_cores
    elapsed = now - last if last is not None else 0.0
    window = _window(elapsed) if elapsed > 0.0 else seen.window
    run_n = seen.run_n + 1 if sample.states.get("R", 0) else 0
    run_from = seen.run_from if run_n > 1 else now
    # On a machine that is busy with other work a process may always want a core and get little of it.
    wants_core = run_n >= SURE_TIMES and 2.0 * (now - run_from) >= min(WINDOW_S, hang.min_s)
    # No CPU at all is no sign, however little is usual. Ranks that wait for a spinning GPU keep a core busy each.
    computes = bool(cpu) and (cpu or 0.0) >= alive_cores(seen)
    waits = seen.gpu_at is None or seen.gpu_state in {"spin", "pinned", "dim"}
    many = (cpu or 0.0) >= (max(CPU_MANY_CORES, WAITING_CORES * len(seen.normals)) if waits else CPU_MANY_CORES)
    moved = _moved(seen.read_bytes, sample.read_bytes) + _moved(seen.write_bytes, sample.write_bytes)
    moves = elapsed > 0.0 and moved >= IDLE_BYTES_PER_S * elapsed
    many_bytes = moves and moved >= IO_AT_ONCE_S * IDLE_BYTES_PER_S
    working = seen.working.after(now, window, shows=computes, at_once=wants_core)
    moving = seen.moving.after(now, window, shows=moves, at_once=many_bytes)
    states, net, net_at, sending = sample.states, sample.net_bytes, seen.net_seen_at, seen.sending
    if net is not None and net_at is not None and now > net_at:  # it is not in every sample
        shows = _moved(seen.net_bytes, net) >= NET_BYTES_PER_S * (now - net_at)
        sending = sending.after(now, _window(now - net_at), shows=shows)
    after = msgspec.structs.replace(
        seen,
        process_at=now if cpu is not None or sample.read_bytes is not None else last,
        cpu=cpu,
        working=working,
        run_n=run_n,
        run_from=run_from,
        run_sum=seen.run_sum + (0.0 if cpu is None else sample.states.get("R", 0)),
        cpu_sum=seen.cpu_sum + (cpu or 0.0),
        cpu_count=seen.cpu_count + (cpu is not None),
        many_cores_at=now if computes and many and working.at == now else seen.many_cores_at,
        moving=moving,
        bytes_at=now if moves else seen.bytes_at,
        read_bytes=sample.read_bytes if sample.read_bytes is not None else seen.read_bytes,
        write_bytes=sample.write_bytes if sample.write_bytes is not None else seen.write_bytes,
        net_bytes=net if net is not None else seen.net_bytes,
        net_seen_at=now if net is not None else net_at,
        sending=sending,
        procs=sample.procs,
        zombies=states.get("Z", 0),
        window=window,
        silence_s=silence(seen, beat_at, now) if now in {working.at, moving.at, sending.at} else seen.silence_s,
    )
    return after if not states.get("D") and seen.blocked_from is None else _with_blocked(after, sample, now, hang)


def _with_blocked(seen: Liveness, sample: ProcessSample, now: float, hang: Hang) -> Liveness:
    """Take what a sample shows of processes that are blocked in the kernel, or not any more."""
    blocked, mounts = bool(sample.states.get("D")), sample.silent_mounts
    blocked_from = _since(seen.blocked_from, now, holds=blocked)
    return msgspec.structs.replace(
        seen,
        blocked_from=blocked_from,
        stuck=blocked_from is not None and 2.0 * (now - blocked_from) >= min(WINDOW_S, hang.min_s),
        unblocked_at=now if not blocked and is_blocked(seen) else seen.unblocked_at,
        silent_mounts=mounts,
        answer_from=_since(seen.answer_from, now, holds=blocked and mounts == ()),
    )


def _since(before: float | None, now: float, *, holds: bool) -> float | None:
    return None if not holds else now if before is None else before


def is_blocked(seen: Liveness) -> bool:
    """Return whether a process is blocked in the kernel (state D) while no byte moves: no signal ends it.

    If bytes move it only waits for its turn at a busy disk, or for its own memory in a swap storm.
    """
    moved_at = seen.moving.at or 0.0
    moves = moved_at > (seen.blocked_from or 0.0) and (seen.process_at or 0.0) - moved_at <= WINDOW_S
    return seen.stuck and not moves


def _moved(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None or after < before else after - before
