"""What a verdict of a hang rests on, in sentences for people: each names a sign and how long it is gone."""

from .deadlines import Sight, is_announced, talks
from .liveness import Vitals


def evidence_of(sight: Sight, min_s: float) -> list[str]:
    """Return sentences about the steps, the phase, the GPUs, the processes and the log. ``min_s``: ``hang.min_s``."""
    clock, vitals, voice, now = sight.clock, sight.vitals, sight.voice, sight.now
    said = []
    if clock.beats == 0:
        said.append(f"no step yet, {duration(now - clock.start)} after the start")
    else:
        usual = f"; usually one progress line every {clock.typical_s:.3g} s" if clock.typical_s is not None else ""
        at = f"step {sight.step}" if sight.step is not None else "the last step"
        said.append(f"{at} was {duration(now - clock.last)} ago{usual}")
    if is_announced(voice):
        said.append(f"phase {voice.phase}, announced {duration(now - voice.phase_at)} ago")
    said.extend(_gpu_evidence(vitals))
    if vitals.process_at is not None and vitals.cpu is not None:
        usual = f" (usually {vitals.cpu_normal:.2f})" if vitals.cpu_normal is not None else ""
        of = f" of {vitals.procs} processes" if vitals.procs is not None else ""
        said.append(f"CPU{of}: {vitals.cpu:.2f} cores{usual}")
        moved = vitals.io_at
        said.append("nothing read or written yet" if moved is None else f"last bytes moved {duration(now - moved)} ago")
    if vitals.blocked:
        said.append(f"a process is blocked in the kernel (state D) for {vitals.blocked} samples")
    if vitals.zombies > vitals.zombies_normal:
        said.append(f"{vitals.zombies} dead worker processes were not collected (state Z)")
    if vitals.procs_normal is not None and vitals.procs is not None and vitals.procs < vitals.procs_normal:
        said.append(f"{vitals.procs_normal - vitals.procs} processes fewer than usual")
    if talks(voice, now, min_s):
        said.append(f"the log still talks ({voice.talk_n} pieces since the last step), but the step stands")
    return said


def _gpu_evidence(vitals: Vitals) -> list[str]:
    said = []
    for normal, state in zip(vitals.normals, vitals.gpu, strict=False):
        usual = f", usually {normal.busy_w:.0f} W" if normal.busy_w is not None else ""
        match state:
            case "spin":
                power = f"{vitals.spin_seen_w:.0f} W" if vitals.spin_seen_w is not None else "low power"
                said.append(f"GPU {normal.index}: near 100 % at {power}{usual}: it waits in a kernel")
            case "pinned":
                said.append(f"GPU {normal.index}: near 100 %, power unknown")
            case "dim":
                said.append(f"GPU {normal.index}: near 100 % without a gap, at less power than usual{usual}")
            case "idle":
                said.append(f"GPU {normal.index}: idle{usual}")
            case _:
                pass
    return said


def duration(seconds: float) -> str:
    """Seconds up to ten minutes, then minutes."""
    return f"{seconds:.0f} s" if seconds < 600.0 else f"{seconds / 60.0:.0f} min"
