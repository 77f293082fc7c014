"""Signs of life of the training: GPUs, CPU of its process tree, bytes read and written, growing checkpoint files.

Each sign keeps the last moment it was seen, in active seconds. Hangs are judged on how long all of them are gone
(detector.py). None = never known; a sign that is not measured is no sign of death. Known false alarms: a metrics thread
keeps a dead trainer at 5–20 % CPU or wakes it for seconds each minute (so CPU and I/O count by majority of the last
samples); sockets do not show in I/O counters (uploads look dead); mmap saves write no bytes (the file's growth counts).
"""

import msgspec

from ...model.observation import GpuSample, ProcessSample
from ...model.settings import Hang
from . import gpu_activity
from .gpu_activity import GpuNormal, GpuState

WINDOW_S = 20.0
"""CPU and I/O count as a sign if most samples of this window show them: a metrics thread wakes up for 3 s a minute."""
WINDOW_MIN = 3
"""Samples in that window at least, however slow the sampling is."""
WINDOW_MAX = 15
"""Samples in that window at most, however fast the sampling is."""
IO_AT_ONCE_S = 256.0
"""What ``idle_io_bytes_per_s`` allows in this time, moved in one sample (17 MB), is a sign by itself: big files come
in bursts. A metrics writer that flushes 12 MB a minute beside a dead trainer is none."""
CPU_CORES_PER_GPU = 0.6
"""Share of ``idle_cpu_cores`` that each further GPU adds: it has a process with a metrics thread of its own."""
CPU_NORMAL_SHARE = 0.3
"""Share of the usual CPU from which it is a sign, if less than ``idle_cpu_cores``: some trainers need little."""
CPU_STARVED_SHARE = 0.5
"""Share of the usual CPU from which it is a sign while workers are dead or blocked: the main process polls for them."""
CPU_MANY_CORES = 2.5
"""Compilers and preprocessors keep this many cores busy: a sign of life that has no time limit."""
WAITING_CORES = 1.6
"""Cores per GPU up to which processes may only be waiting for their GPUs: each rank polls on one core."""
ALIVE_S = 20.0
"""How old the newest sign of life may be for a printed phase to be believed: watchdogs of dead trainers print, too."""


class Vitals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Times (``*_at``) are active seconds at which the sign was last seen; None = not yet."""

    normals: tuple[GpuNormal, ...] = ()
    gpu: tuple[GpuState, ...] = ()
    gpu_at: float | None = None
    """Last sample that said anything about our GPUs."""
    foreign: bool = False
    """All GPUs that can be seen are marked as not the trainer's: whether it is on one cannot be told."""
    busy_at: float | None = None
    """Some GPU worked (busy or active)."""
    pinned_at: float | None = None
    """Some GPU was near 100 % and its power is unknown."""
    dim_at: float | None = None
    """Some GPU was near 100 % well below its usual power, and none worked."""
    spin_at: float | None = None
    spin_seen_w: float | None = None
    spin_known: bool = False
    """The spin was told against this run's usual power, not against the limit."""

    throttle: tuple[str, ...] = ()
    """Why some GPU's clocks are held down."""

    process_at: float | None = None
    cpu: float | None = None
    cpu_bits: int = 0
    cpu_alive_at: float | None = None
    many_at: float | None = None
    cpu_sum: float = 0.0
    cpu_count: int = 0
    cpu_normal: float | None = None
    io_bits: int = 0
    io_at: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    procs: int | None = None
    procs_normal: int | None = None
    blocked: int = 0
    """Samples in a row with a process in state D."""
    zombies: int = 0
    zombies_normal: int = 0
    """A helper that died long ago is not news."""
    stopped: bool = False
    file_at: float | None = None

    start_at: float = 0.0
    """When this attempt began, or the world could be seen again."""
    longest_lull_s: float = 0.0
    """Longest time without any sign that was followed by a step, while training."""
    longest_spin_s: float = 0.0
    lull_s: float = 0.0
    """The longest such time since the last step."""
    spin_s: float = 0.0
    spin_from: float | None = None
    window: int = 9


def with_gpus(vitals: Vitals, sample: GpuSample, now: float, hang: Hang, beat_at: float = 0.0) -> Vitals:
    """Take a GPU sample. ``beat_at``: the last step, here and below: a run that steps is not silent."""
    gpus = gpu_activity.own_gpus(sample)
    if not gpus:
        return vitals
    normals = gpu_activity.watch(vitals.normals, gpus)
    foreign = gpus[0].own is False and not any(g.own is not False for g in gpus)
    if foreign != vitals.foreign:
        vitals = msgspec.structs.replace(vitals, foreign=foreign)
    held = gpu_activity.throttle(gpus)
    if held != vitals.throttle:
        vitals = msgspec.structs.replace(vitals, throttle=held)
    states = tuple([gpu_activity.read(n, g, hang.idle_util_pct) for n, g in zip(normals, gpus, strict=True)])
    if states.count("unknown") == len(states):
        return msgspec.structs.replace(vitals, normals=normals, gpu=states)
    if "busy" in states or "active" in states:
        return msgspec.structs.replace(
            vitals,
            normals=normals,
            gpu=states,
            gpu_at=now,
            busy_at=now,
            spin_from=None,
            lull_s=_lull_s(vitals, now, beat_at),
        )
    if "spin" in states:
        since = vitals.spin_from if vitals.spin_from is not None else now
        at = states.index("spin")
        return msgspec.structs.replace(
            vitals,
            normals=normals,
            gpu=states,
            gpu_at=now,
            spin_at=now,
            spin_from=since,
            spin_s=max(vitals.spin_s, now - since),
            spin_seen_w=gpus[at].power_w,
            spin_known=normals[at].busy_w is not None,
        )
    if "pinned" in states:
        since = vitals.spin_from if vitals.spin_from is not None else now
        return msgspec.structs.replace(
            vitals, normals=normals, gpu=states, gpu_at=now, pinned_at=now, spin_from=since, spin_seen_w=None
        )
    if "dim" in states:
        watts = gpus[states.index("dim")].power_w
        return msgspec.structs.replace(
            vitals, normals=normals, gpu=states, gpu_at=now, dim_at=now, spin_from=None, spin_seen_w=watts
        )
    return msgspec.structs.replace(vitals, normals=normals, gpu=states, gpu_at=now, spin_from=None)


def with_process(vitals: Vitals, sample: ProcessSample, now: float, hang: Hang, beat_at: float = 0.0) -> Vitals:
    """Take a sample of the process tree."""
    last = vitals.process_at
    elapsed = now - last if last is not None else 0.0
    window = vitals.window
    if elapsed > 0.0:
        window = min(WINDOW_MAX, max(WINDOW_MIN, int(WINDOW_S / elapsed)))
    mask = (1 << window) - 1
    cpu = sample.cpu_cores
    cpu_bits = (vitals.cpu_bits << 1) & mask
    many = False
    if cpu is not None and cpu >= alive_cores(vitals, hang.idle_cpu_cores):
        cpu_bits |= 1
        # Ranks that wait for a spinning GPU burn a core each: that is no work.
        waits = vitals.gpu_at in {None, vitals.spin_at, vitals.pinned_at, vitals.dim_at}
        many = cpu >= (max(CPU_MANY_CORES, WAITING_CORES * len(vitals.normals)) if waits else CPU_MANY_CORES)
    moved = _moved(vitals.read_bytes, sample.read_bytes) + _moved(vitals.write_bytes, sample.write_bytes)
    io_bits = (vitals.io_bits << 1) & mask
    io_now = False
    if elapsed > 0.0 and moved >= hang.idle_io_bytes_per_s * elapsed:
        io_bits |= 1
        io_now = moved >= IO_AT_ONCE_S * hang.idle_io_bytes_per_s or 2 * io_bits.bit_count() > window
    cpu_alive = bool(cpu_bits & 1) and 2 * cpu_bits.bit_count() > window
    states = sample.states
    return msgspec.structs.replace(
        vitals,
        process_at=now if cpu is not None or sample.read_bytes is not None else last,
        cpu=cpu,
        cpu_bits=cpu_bits,
        cpu_sum=vitals.cpu_sum + (cpu or 0.0),
        cpu_count=vitals.cpu_count + (cpu is not None),
        cpu_alive_at=now if cpu_alive else vitals.cpu_alive_at,
        many_at=now if many and cpu_alive else vitals.many_at,
        io_bits=io_bits,
        io_at=now if io_now else vitals.io_at,
        read_bytes=sample.read_bytes if sample.read_bytes is not None else vitals.read_bytes,
        write_bytes=sample.write_bytes if sample.write_bytes is not None else vitals.write_bytes,
        procs=sample.procs,
        blocked=vitals.blocked + 1 if states.get("D", 0) else 0,
        zombies=states.get("Z", 0),
        stopped=states.get("T", 0) > 0,
        window=window,
        lull_s=_lull_s(vitals, now, beat_at) if cpu_alive or io_now else vitals.lull_s,
    )


def with_file(vitals: Vitals, now: float, beat_at: float = 0.0) -> Vitals:
    """A checkpoint file appeared or grew."""
    return msgspec.structs.replace(vitals, file_at=now, lull_s=_lull_s(vitals, now, beat_at))


def with_step(vitals: Vitals, beat_at: float, *, announced: bool) -> Vitals:
    """A step was made: what was seen since the last one was normal, and a silence before it was harmless.

    ``announced``: another phase than training came in between, so that this teaches nothing about training.
    """
    train_lull = vitals.longest_lull_s if announced else max(vitals.longest_lull_s, silence(vitals, beat_at))
    spin = max(vitals.longest_spin_s, vitals.spin_s)
    due = vitals.cpu_count >= gpu_activity.LEARN_SAMPLES or gpu_activity.has_lesson(vitals.normals)
    if not due and vitals.lull_s == 0.0 and spin == vitals.longest_spin_s and train_lull == vitals.longest_lull_s:
        return vitals
    changes: dict[str, object] = {
        "longest_lull_s": train_lull,
        "longest_spin_s": spin,
        "lull_s": 0.0,
        "spin_s": 0.0,
        "spin_from": None,
    }
    if announced:
        changes |= {"cpu_sum": 0.0, "cpu_count": 0, "normals": gpu_activity.forget_lesson(vitals.normals)}
    elif due:
        if vitals.cpu_count >= gpu_activity.LEARN_SAMPLES:
            mean = vitals.cpu_sum / vitals.cpu_count
            usual = vitals.cpu_normal
            changes |= {
                "cpu_sum": 0.0,
                "cpu_count": 0,
                "cpu_normal": mean if usual is None else usual + gpu_activity.NEWEST_WEIGHT * (mean - usual),
            }
        changes |= {
            "normals": gpu_activity.learn(vitals.normals),
            "procs_normal": vitals.procs,
            "zombies_normal": vitals.zombies,
        }
    return msgspec.structs.replace(vitals, **changes)


def silence(vitals: Vitals, beat_at: float) -> float:
    """The longest time without any sign since the last step, up to the newest sample: the rest is not known."""
    seen_at = max(vitals.process_at or 0.0, vitals.gpu_at or 0.0)
    return max(vitals.lull_s, seen_at - max(beat_at, last_sign(vitals, cpu=True)))


def begin_attempt(vitals: Vitals, now: float) -> Vitals:
    """A new process: its counters begin again, the run's habits stay known."""
    return Vitals(
        start_at=now,
        normals=gpu_activity.forget_lesson(vitals.normals),
        cpu_normal=vitals.cpu_normal,
        procs_normal=vitals.procs_normal,
        zombies_normal=vitals.zombies_normal,
        longest_lull_s=vitals.longest_lull_s,
        longest_spin_s=vitals.longest_spin_s,
        window=vitals.window,
    )


def after_gap(vitals: Vitals, now: float) -> Vitals:
    """Nothing could be seen until now: counters jump, and the machine needs a moment."""
    return msgspec.structs.replace(
        vitals,
        start_at=now,
        normals=gpu_activity.forget_lesson(vitals.normals),
        read_bytes=None,
        write_bytes=None,
        cpu_bits=0,
        io_bits=0,
        cpu_sum=0.0,
        cpu_count=0,
        spin_from=None,
        lull_s=0.0,
        spin_s=0.0,
    )


def alive_cores(vitals: Vitals, idle_cpu_cores: float) -> float:
    """CPU of the tree, in cores, from which it counts as a sign of life."""
    bound = idle_cpu_cores * (1.0 + CPU_CORES_PER_GPU * max(0, len(vitals.normals) - 1))
    usual = vitals.cpu_normal
    if usual is None:
        return bound
    if is_starved(vitals):
        # With workers dead or blocked, the main process polling its queue is no work.
        return max(bound, CPU_STARVED_SHARE * usual)
    return min(bound, CPU_NORMAL_SHARE * usual)


def is_starved(vitals: Vitals) -> bool:
    """Workers died (state Z) or are blocked in the kernel (state D) for most of the window."""
    return vitals.zombies > vitals.zombies_normal or 2 * vitals.blocked > vitals.window


def last_work(vitals: Vitals) -> float:
    """When a GPU worked, bytes moved or a file grew, in active seconds: signs that no polling loop makes."""
    return max(vitals.start_at, vitals.busy_at or 0.0, vitals.io_at or 0.0, vitals.file_at or 0.0)


def last_own_sign(vitals: Vitals) -> float:
    """The same of the trainer's processes and files alone, whatever the GPUs do."""
    return max(vitals.start_at, vitals.cpu_alive_at or 0.0, vitals.io_at or 0.0, vitals.file_at or 0.0)


def last_sign(vitals: Vitals, *, cpu: bool) -> float:
    """When the last sign of life was seen, in active seconds. ``cpu``: one busy core counts too, else several."""
    return max(
        vitals.start_at,
        vitals.busy_at or 0.0,
        vitals.io_at or 0.0,
        vitals.file_at or 0.0,
        (vitals.cpu_alive_at if cpu else vitals.many_at) or 0.0,
    )


def was_alive(vitals: Vitals, beat_at: float, now: float, margin_s: float) -> bool:
    """Return whether the trainer was alive when it printed what came ``now``, or nothing can be seen at all."""
    if vitals.process_at is None and vitals.gpu_at is None:
        return True
    return now - max(beat_at, last_sign(vitals, cpu=True)) <= ALIVE_S + margin_s


def _moved(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None or after < before else after - before


def _lull_s(vitals: Vitals, now: float, beat_at: float) -> float:
    """The longest lull since the last step, where a sign of life is seen now."""
    if now - beat_at <= vitals.lull_s:
        return vitals.lull_s
    return max(vitals.lull_s, now - max(beat_at, last_sign(vitals, cpu=True)))
