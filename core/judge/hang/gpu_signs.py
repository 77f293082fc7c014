"""Signs of life from samples of the trainer's GPUs."""

import msgspec

from ...model.observation import GpuSample
from ...model.settings import Hang
from . import gpu_activity
from .liveness import Liveness, silence_now


def with_gpus(seen: Liveness, sample: GpuSample, now: float, hang: Hang, beat_at: float = 0.0) -> Liveness:
    """Take a GPU sample. ``beat_at``: the last step, in active seconds; a run that steps is not silent."""
    gpus = gpu_activity.own_gpus(sample)
    if not gpus:
        return seen
    normals = gpu_activity.watch(seen.normals, gpus)
    foreign = gpus[0].own is False and not any(g.own is not False for g in gpus)
    if foreign != seen.foreign:
        seen = msgspec.structs.replace(seen, foreign=foreign)
    held = gpu_activity.throttle(gpus)
    if held != seen.throttle:
        seen = msgspec.structs.replace(seen, throttle=held)
    seen = msgspec.structs.replace(seen, util_pct=gpu_activity.mean_util(seen.util_pct, gpus))
    states = tuple([gpu_activity.read(n, g, hang.idle_util_pct) for n, g in zip(normals, gpus, strict=True)])
    if states.count("unknown") == len(states):
        return msgspec.structs.replace(seen, normals=normals, gpu=states)
    if "busy" in states or "active" in states:
        return msgspec.structs.replace(
            seen,
            normals=normals,
            gpu=states,
            gpu_at=now,
            busy_at=now,
            spin_from=None,
            silence_s=silence_now(seen, now, beat_at),
        )
    if "spin" in states:
        since = seen.spin_from if seen.spin_from is not None else now
        at = states.index("spin")
        return msgspec.structs.replace(
            seen,
            normals=normals,
            gpu=states,
            gpu_at=now,
            spin_at=now,
            spin_from=since,
            spin_s=max(seen.spin_s, now - since),
            spin_seen_w=gpus[at].power_w,
            spin_known=normals[at].busy_w is not None,
        )
    if "pinned" in states:
        since = seen.spin_from if seen.spin_from is not None else now
        return msgspec.structs.replace(
            seen, normals=normals, gpu=states, gpu_at=now, pinned_at=now, spin_from=since, spin_seen_w=None
        )
    if "dim" in states:
        watts = gpus[states.index("dim")].power_w
        return msgspec.structs.replace(
            seen, normals=normals, gpu=states, gpu_at=now, dim_at=now, spin_from=None, spin_seen_w=watts
        )
    return msgspec.structs.replace(seen, normals=normals, gpu=states, gpu_at=now, spin_from=None)
