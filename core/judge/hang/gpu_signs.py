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
        return seen if seen.gpu_at is None else msgspec.structs.replace(seen, unrest_at=now)
    others = bool(seen.normals) and [n.index for n in seen.normals] != [g.index for g in gpus]
    normals = gpu_activity.watch(seen.normals, gpus)
    foreign = not any(gpu_activity.may_be_own(g) for g in gpus)
    if foreign != seen.foreign:
        seen = msgspec.structs.replace(seen, foreign=foreign)
    held = gpu_activity.throttle(gpus)
    if held != seen.throttle:
        seen = msgspec.structs.replace(seen, throttle=held)
    states = tuple([gpu_activity.read(n, g, hang.idle_util_pct) for n, g in zip(normals, gpus, strict=True)])
    # Of GPUs that were others until now it is not known what they did before.
    at_rest = not foreign and not others and gpu_activity.are_at_rest(gpus, states)
    seen = msgspec.structs.replace(
        seen,
        util_pct=gpu_activity.mean_util(seen.util_pct, gpus),
        unrest_at=seen.unrest_at if at_rest else now,
    )
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
