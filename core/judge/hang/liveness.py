"""Signs of life of the training: GPUs, CPU of its processes, bytes read and written, growing checkpoint files.

Each sign keeps the time, in active seconds, at which it was last seen. The rules judge how long all of them have
been missing. None = never known; a sign that is not measured is no evidence of a hang. Known false alarms: a metrics
thread keeps a dead trainer at 5 to 20 % CPU or wakes it for seconds each minute (so CPU and I/O count if most of the
last samples show them); sockets do not show in I/O counters (uploads look dead: their bytes are counted apart); saves
through mmap write no bytes (the growth of the file counts).
"""

import msgspec

from ...model.observation import GpuSample, ProcessSample
from ...model.settings import Hang
from ..scales import SURE_TIMES
from . import activity
from .activity import GpuNormal, GpuState

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
    spin_s, enough = max(seen.longest_spin_s, seen.spin_s), seen.cpu_count >= activity.LEARN_SAMPLES
    due = enough or any(normal.count >= activity.LEARN_SAMPLES for normal in seen.normals)
    if not due and seen.silence_s == 0.0 and spin_s == seen.longest_spin_s and longest_s == seen.longest_silence_s:
        return seen
    replace = msgspec.structs.replace
    seen = replace(seen, longest_silence_s=longest_s, longest_spin_s=spin_s, **_NO_SPELL)
    if announced:
        return replace(seen, normals=activity.drop_samples(seen.normals), **_NO_CPU)
    if due:
        normals = tuple(map(activity.learn, seen.normals))
        seen = replace(seen, normals=normals, procs_normal=seen.procs, zombies_normal=seen.zombies)
    if enough:
        usual = activity.blend(seen.cpu_normal, seen.cpu_sum / seen.cpu_count)
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
        normals=activity.drop_samples(seen.normals),
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
        normals=activity.drop_samples(seen.normals),
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
    gpus = tuple([gpu for gpu in sample.gpus if activity.may_be_own(gpu)]) or sample.gpus  # all, if it uses none
    if not gpus:
        return seen if seen.gpu_at is None else msgspec.structs.replace(seen, unrest_at=now)
    others = bool(seen.normals) and [n.index for n in seen.normals] != [g.index for g in gpus]
    normals = activity.watch(seen.normals, gpus)
    states = tuple([activity.read(n, g) for n, g in zip(normals, gpus, strict=True)])
    held = any(g.own_mem_bytes for g in gpus)
    theirs = [not activity.may_be_own(g) or (held and g.own_mem_bytes == 0.0) for g in gpus]
    at_work = [other for other, s in zip(theirs, states, strict=True) if s != "idle"]
    foreign = all(at_work) if held and at_work else all(theirs)
    # Of GPUs that were others until now it is not known what they did before.
    # Low power alone may be a slice of a GPU that works.
    idle = all(s == "idle" and g.util_pct is not None for s, g in zip(states, gpus, strict=True))
    utils = [gpu.util_pct for gpu in gpus if gpu.util_pct is not None]
    changes: dict[str, object] = {
        "foreign": foreign,
        "throttle": tuple(sorted({why for gpu in gpus for why in gpu.throttle or () if why in activity.SLOWING})),
        "util_pct": activity.blend(seen.util_pct, sum(utils) / len(utils)) if utils else None,
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
