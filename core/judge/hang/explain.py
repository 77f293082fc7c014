"""The evidence of a hang in sentences for the user: each names a sign of life and how long ago it was last seen."""

from ...model.text.plural import plural
from ...model.text.size_words import size
from .deadlines import HangInput, is_announced, still_prints
from .liveness import Liveness

MINUTES_FROM_S = 600.0


def evidence_of(run: HangInput) -> list[str]:
    """Return sentences about the steps, the phase, the GPUs, the processes and the log."""
    clock, seen, log, now = run.clock, run.liveness, run.log_activity, run.now
    lines = [sentence for sentence in (run.silent_rank, run.waiting) if sentence]
    if clock.beats == 0:
        lines.append(f"no step yet, {duration(now - clock.start)} after the start")
    else:
        usual = f"; usually one progress line every {clock.typical_s:.3g} s" if clock.typical_s is not None else ""
        at = f"step {run.step}" if run.step is not None else "the last step"
        lines.append(f"{at} was {duration(now - clock.last)} ago{usual}")
    if is_announced(log):
        lines.append(f"phase {log.phase}, announced {duration(now - log.phase_at)} ago")
    if run.saving:
        lines.append(f"a save is in progress: {run.saving}")
    lines.extend(_gpu_evidence(seen))
    if seen.process_at is not None and seen.cpu is not None:
        usual = f" (usually {seen.cpu_normal:.2f})" if seen.cpu_normal is not None else ""
        of = f" of {seen.procs} process{'es' * (seen.procs != 1)}" if seen.procs is not None else ""
        lines.append(f"CPU{of}: {seen.cpu:.2f} cores{usual}")
    if seen.read_bytes is not None or seen.write_bytes is not None:
        few = f"less than {size(run.idle_io_bytes_per_s)}/s"
        moved = seen.bytes_at
        none_yet = f"{few} read and written so far"
        lines.append(none_yet if moved is None else f"last bytes moved {duration(now - moved)} ago ({few} since)")
    if seen.net_at is not None:
        lines.append(f"last traffic of its sockets {duration(now - seen.net_at)} ago")
    if run.stopped_s is not None:
        lines.append(f"{stopped_in(run, 'has', 'have')} been stopped (state T) for {duration(run.stopped_s)}")
    if seen.blocked:
        since = seen.blocked_from if seen.blocked_from is not None else now
        lines.append(f"a process has been blocked in the kernel (state D) for {duration(now - since)}")
    if seen.silent_mounts:
        lines.append(f"does not answer: {', '.join(seen.silent_mounts)}")
    if seen.zombies > seen.zombies_normal:
        lines.append(
            f"{plural(seen.zombies, 'dead worker process was', 'dead worker processes were')} not collected (state Z)"
        )
    if seen.procs_normal is not None and seen.procs is not None and seen.procs < seen.procs_normal:
        lines.append(f"{plural(seen.procs_normal - seen.procs, 'process', 'processes')} fewer than usual")
    if still_prints(log, now, run.min_s):
        lines.append(
            f"the log grew by {plural(log.printed_lines, 'line')} since the last step, but the step does not advance"
        )
    return lines


def stopped_in(run: HangInput, one: str, several: str) -> str:
    """What of the run is stopped, and the verb for ``one`` or ``several``: the ranks if any are known to be."""
    names = [str(rank) for rank in run.stopped_ranks] or ["some of its processes"]
    return f"{', '.join(names)} {one if len(run.stopped_ranks) == 1 else several}"


def _gpu_evidence(seen: Liveness) -> list[str]:
    lines = []
    for normal, state in zip(seen.normals, seen.gpu, strict=False):
        usual = f", usually {normal.busy_w:.0f} W" if normal.busy_w is not None else ""
        match state:
            case "spin":
                power = f"{seen.spin_seen_w:.0f} W" if seen.spin_seen_w is not None else "low power"
                lines.append(f"GPU {normal.index}: near 100 % at {power}{usual}: it waits in a kernel")
            case "pinned":
                lines.append(f"GPU {normal.index}: near 100 %, power unknown")
            case "dim":
                lines.append(f"GPU {normal.index}: near 100 % without a gap, at less power than usual{usual}")
            case "idle":
                lines.append(f"GPU {normal.index}: idle{usual}")
            case _:
                pass
    return lines


def duration(seconds: float) -> str:
    """Format a duration: seconds up to ten minutes, then minutes."""
    return f"{seconds:.0f} s" if seconds < MINUTES_FROM_S else f"{seconds / 60.0:.0f} min"
