"""Signs of life from samples of the run's processes: CPU, bytes read, written and sent, and what blocks them."""

import msgspec

from ...model.observation import ProcessSample
from ...model.settings import Hang
from .liveness import Liveness, alive_cores, silence_now

WINDOW_S = 20.0
"""CPU and I/O count as a sign if most samples of this window show them: a metrics thread wakes up for 3 s a minute."""
WINDOW_MIN = 3
"""Samples in that window at least, however slow the sampling is."""
WINDOW_MAX = 15
"""Samples in that window at most, however fast the sampling is."""
IO_AT_ONCE_S = 256.0
"""What ``idle_io_bytes_per_s`` allows in this time, moved in one sample (17 MB), is a sign by itself: big files come
in bursts. A metrics writer that flushes 12 MB a minute beside a dead trainer is not a sign."""
NET_BYTES_PER_S = 100e3
"""Traffic of its sockets from which it is a sign, if most of the window shows it: an upload after a save. Heartbeats of
wandb or gloo stay far below."""
CPU_MANY_CORES = 2.5
"""Compilers and preprocessors keep this many cores busy: a sign of life that has no time limit."""
WAITING_CORES = 1.6
"""Cores per GPU up to which processes may only be waiting for their GPUs: each rank polls on one core."""


def with_process(seen: Liveness, sample: ProcessSample, now: float, hang: Hang, beat_at: float = 0.0) -> Liveness:
    """Take a sample of the process tree."""
    last = seen.process_at
    elapsed = now - last if last is not None else 0.0
    window = seen.window
    if elapsed > 0.0:
        window = min(WINDOW_MAX, max(WINDOW_MIN, int(WINDOW_S / elapsed)))
    mask = (1 << window) - 1
    cpu = sample.cpu_cores
    cpu_bits = (seen.cpu_bits << 1) & mask
    many = False
    run_n = seen.run_n + 1 if sample.states.get("R", 0) else 0
    run_from = seen.run_from if run_n > 1 else now
    # On a machine that is busy with other work a process may always want a core and get little of it.
    wants_core = run_n >= WINDOW_MIN and 2.0 * (now - run_from) >= min(WINDOW_S, hang.min_s)
    if cpu and cpu >= alive_cores(seen, hang.idle_cpu_cores):  # no CPU at all is no sign, however little is usual
        cpu_bits |= 1
        # Ranks that wait for a spinning GPU keep a core busy each: that is no work.
        waits = seen.gpu_at in {None, seen.spin_at, seen.pinned_at, seen.dim_at}
        many = cpu >= (max(CPU_MANY_CORES, WAITING_CORES * len(seen.normals)) if waits else CPU_MANY_CORES)
    moved = _moved(seen.read_bytes, sample.read_bytes) + _moved(seen.write_bytes, sample.write_bytes)
    io_bits = (seen.io_bits << 1) & mask
    io_now = False
    if elapsed > 0.0 and moved >= hang.idle_io_bytes_per_s * elapsed:
        io_bits |= 1
        io_now = moved >= IO_AT_ONCE_S * hang.idle_io_bytes_per_s or 2 * io_bits.bit_count() > window
    cpu_alive = wants_core or (bool(cpu_bits & 1) and 2 * cpu_bits.bit_count() > window)
    states = sample.states
    after = msgspec.structs.replace(
        seen,
        process_at=now if cpu is not None or sample.read_bytes is not None else last,
        cpu=cpu,
        cpu_bits=cpu_bits,
        run_n=run_n,
        run_from=run_from,
        run_sum=seen.run_sum + (0.0 if cpu is None else sample.states.get("R", 0)),
        cpu_sum=seen.cpu_sum + (cpu or 0.0),
        cpu_count=seen.cpu_count + (cpu is not None),
        cpu_alive_at=now if cpu_alive else seen.cpu_alive_at,
        many_cores_at=now if many and cpu_alive else seen.many_cores_at,
        io_bits=io_bits,
        io_at=now if io_now else seen.io_at,
        bytes_at=now if io_bits & 1 else seen.bytes_at,
        read_bytes=sample.read_bytes if sample.read_bytes is not None else seen.read_bytes,
        write_bytes=sample.write_bytes if sample.write_bytes is not None else seen.write_bytes,
        procs=sample.procs,
        zombies=states.get("Z", 0),
        window=window,
        silence_s=silence_now(seen, now, beat_at) if cpu_alive or io_now else seen.silence_s,
    )
    if sample.net_bytes is not None:
        after = _with_net(after, sample.net_bytes, now, beat_at)
    return after if not states.get("D") and not seen.blocked else _with_blocked(after, sample, now, hang)


def _with_net(seen: Liveness, net_bytes: float, now: float, beat_at: float) -> Liveness:
    """Take the bytes of the sockets, which are not in every sample."""
    before, last = seen.net_bytes, seen.net_seen_at
    if before is None or last is None or now <= last:
        return msgspec.structs.replace(seen, net_bytes=net_bytes, net_seen_at=now)
    window = min(WINDOW_MAX, max(WINDOW_MIN, int(WINDOW_S / (now - last))))
    bits = (seen.net_bits << 1) & ((1 << window) - 1)
    if _moved(before, net_bytes) >= NET_BYTES_PER_S * (now - last):
        bits |= 1
    lasts = bool(bits & 1) and 2 * bits.bit_count() > window
    return msgspec.structs.replace(
        seen,
        net_bytes=net_bytes,
        net_seen_at=now,
        net_bits=bits,
        net_at=now if lasts else seen.net_at,
        silence_s=silence_now(seen, now, beat_at) if lasts else seen.silence_s,
    )


def _with_blocked(seen: Liveness, sample: ProcessSample, now: float, hang: Hang) -> Liveness:
    """Take what a sample shows of processes that are blocked in the kernel, or not any more."""
    mounts = sample.silent_mounts
    if not sample.states.get("D", 0):
        freed_at = now if is_blocked(seen) else seen.unblocked_at
        return msgspec.structs.replace(
            seen,
            blocked=0,
            blocked_from=None,
            stuck=False,
            unblocked_at=freed_at,
            silent_mounts=mounts,
            answer_from=None,
        )
    answer_from = seen.answer_from if seen.answer_from is not None else now
    blocked_from = seen.blocked_from if seen.blocked_from is not None else now
    return msgspec.structs.replace(
        seen,
        blocked=seen.blocked + 1,
        blocked_from=blocked_from,
        stuck=seen.blocked > 0 and 2.0 * (now - blocked_from) >= min(WINDOW_S, hang.min_s),
        silent_mounts=mounts,
        answer_from=answer_from if mounts == () else None,
    )


def is_blocked(seen: Liveness) -> bool:
    """Return whether a process is blocked in the kernel (state D) while no byte moves: no signal ends it.

    If bytes move it only waits for its turn at a busy disk, or for its own memory in a swap storm.
    """
    if not seen.stuck:
        return False
    moved_at = seen.io_at or 0.0
    return moved_at <= (seen.blocked_from or 0.0) or (seen.process_at or 0.0) - moved_at > WINDOW_S


def _moved(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None or after < before else after - before
