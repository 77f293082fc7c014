"""Whether a run that shows no step is hung, and how: idle, spin, starved or exiting.

The evidence sets the deadline (deadlines.py). No sign of life: a couple of minutes. None but a log that grows, or in
an announced phase, or before the first step: longer. A GPU near 100 % far below its usual power (ranks waiting in a
collective; reported as "GPU 100 % and frozen", NCCL watchdog time-outs): minutes. Live evidence (usual power, bytes,
growing files, compilers on several cores): wait.

Known false alarms that the rules are made against: slow saves (bytes or the file grow), loads, compiling, silent data
refills that this run made before, sparse lines from a busy GPU, one rank evaluating while others spin in the barrier,
wake-up after a suspend, a trainer stopped by a person, lost telemetry, uploads (announced; sockets move no counter).
"""

import msgspec

from ...model.incident import HangKind
from ...model.settings import Hang
from . import deadlines
from . import liveness as signs
from .active_time import longest_gap
from .deadlines import Sight
from .explain import duration, evidence_of

WAITING_CORES = 0.5
"""Cores, and share of the usual CPU, from which processes may be polling for their GPU, if no GPU can be read."""
BEYOND_DOUBT = 2.0
"""x the deadline: evidence that lasts this long needs no missing progress line, and a busy core refutes it no more."""
BLIND_AFTER_SIGHT = 2.0
"""x ``hang.max_s``: all readings went away together with the steps, so it is likelier the watching that broke."""
POLLING_BLIND = 3.0
"""x ``hang.max_s``: one core moves and no GPU can be read, so that this core is all that could be seen of work."""
POLLING = 2.0
"""x ``hang.max_s``: several cores are busy, but no GPU works and no byte moves: a polling loop."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A hang. ``evidence`` in sentences; ``silence_s`` since the last step (or the last announced phase)."""

    kind: HangKind
    reason: str
    evidence: tuple[str, ...]
    silence_s: float


def judge(sight: Sight, hang: Hang) -> Verdict | None:
    """Return a verdict, or None while there is no reason (yet)."""
    clock, vitals, voice, now = sight.clock, sight.vitals, sight.voice, sight.now
    since = deadlines.since(clock, voice)
    silence = now - since
    if silence < deadlines.floor_s(hang.min_s, sight.period_s):
        return None
    fresh = longest_gap(sight.period_s)  # an older reading says nothing about now
    sees_process = vitals.process_at is not None and now - vitals.process_at <= fresh
    sees_gpu = vitals.gpu_at is not None and now - vitals.gpu_at <= fresh
    if not sees_process and not sees_gpu:
        return _blind(sight, hang, silence)
    dead_s = now - max(signs.last_sign(vitals, cpu=True), since)
    still_s = now - max(signs.last_sign(vitals, cpu=False), since)
    spinning = sees_gpu and vitals.spin_at is not None and vitals.spin_at == vitals.gpu_at
    pinned = sees_gpu and not spinning and vitals.pinned_at is not None and vitals.pinned_at == vitals.gpu_at
    dim = sees_gpu and vitals.dim_at is not None and vitals.dim_at == vitals.gpu_at
    if sight.ended_well:
        return _exiting(sight, hang, still_s if spinning or pinned or dim or not sees_gpu else dead_s, still_s)
    if sight.checkpoint_age_s is not None and hang.checkpoint_age_s is not None:
        late = silence >= min(hang.max_s, deadlines.overdue(sight, hang))
        if late and sight.checkpoint_age_s > hang.checkpoint_age_s:
            works = vitals.busy_at is not None and now - vitals.busy_at <= fresh
            kind: HangKind = "spin" if spinning or pinned or (works and sees_gpu) else _dead_kind(sight)
            busy = "although the GPU is busy" if works else "although the CPU is busy" if dead_s <= fresh else ""
            why = "and the newest checkpoint is older than hang.checkpoint_age_s"
            return _verdict(sight, hang, kind, f"no step {busy}, {why}" if busy else f"no step, {why}")
    if spinning and deadlines.is_announced(voice) and _was_dim(sight, now - still_s):
        spinning, dim = False, True
    if spinning:
        enough_s = deadlines.for_spin(sight, hang)
        late_s = min(hang.max_s, deadlines.LINE_AGAIN * (clock.slow_s or 0.0))
        if still_s >= enough_s and (silence >= late_s or still_s >= BEYOND_DOUBT * enough_s):
            return _verdict(sight, hang, "spin", "no step while the GPU spins far below its usual power")
        return None
    if pinned or dim:
        if still_s >= (deadlines.for_dim if dim else deadlines.for_pinned)(
            sight, hang
        ) and silence >= deadlines.far_overdue(sight, hang):
            known = "at much less power than usual" if dim else "(its power is unknown)"
            return _verdict(sight, hang, "spin", f"no step while the GPU says 100 % {known}")
        return None
    enough_s = deadlines.for_dead(sight, hang, one_eyed=not (sees_gpu and sees_process))
    if dead_s >= _weak_for(hang, enough_s) and silence >= enough_s:
        late_s = min(hang.max_s, deadlines.overdue(sight, hang))
        if silence >= late_s or (clock.beats and dead_s >= BEYOND_DOUBT * enough_s):
            return _verdict(sight, hang, _dead_kind(sight), "no step and no sign of life")
    return _polling(sight, hang, since, still_s)


def _weak_for(hang: Hang, enough_s: float) -> float:
    """How long signs of life must be gone. With a short floor the silence of the steps counts for more."""
    return enough_s if enough_s > deadlines.SHORT_S else min(hang.quiet_s, enough_s / 2)


def _polling(sight: Sight, hang: Hang, since: float, still_s: float) -> Verdict | None:
    """Cores are busy, but nothing comes of it."""
    clock, vitals = sight.clock, sight.vitals
    silence = sight.now - since
    cap = max(
        hang.max_s,
        deadlines.AGAIN * deadlines.longest_known(sight),
        hang.startup_s if clock.beats == 0 else 0.0,
    )
    if vitals.gpu_at is None:
        cap *= POLLING_BLIND
    if (
        _waits_unseen(sight)
        and still_s >= deadlines.for_pinned(sight, hang)
        and silence >= deadlines.far_overdue(sight, hang)
    ):
        return _verdict(sight, hang, "spin", "no step and no byte moved for long, only busy cores (no GPU can be read)")
    if silence < hang.deadline_factor * (clock.slow_s or 0.0):
        return None
    if vitals.foreign and (vitals.process_at or 0.0) - max(signs.last_own_sign(vitals), since) >= cap:
        return _verdict(
            sight, hang, _dead_kind(sight), "no step and no sign of life, and the busy GPUs are not this run's"
        )
    if still_s >= cap:
        return _verdict(sight, hang, _dead_kind(sight), "no step for long, and only one core moves")
    idle_s = sight.now - max(signs.last_work(vitals), clock.last)
    if clock.beats and not deadlines.is_announced(sight.voice) and idle_s >= max(POLLING * hang.max_s, cap):
        return _verdict(sight, hang, _dead_kind(sight), "no step for very long; cores are busy, but no GPU works")
    return None


def _waits_unseen(sight: Sight) -> bool:
    """Return whether no GPU was ever read, and the cores have been as busy since the last step as if they polled."""
    vitals = sight.vitals
    cores = vitals.cpu_sum / max(1, vitals.cpu_count)
    busy = cores >= max(WAITING_CORES, WAITING_CORES * (vitals.cpu_normal or 0.0))
    return vitals.gpu_at is None and sight.clock.slow_s is not None and busy


def _was_dim(sight: Sight, still_from: float) -> bool:
    """The power wavers about the bound of a spin: an evaluation that is limited by memory, rather than a collective."""
    return sight.vitals.dim_at is not None and sight.vitals.dim_at > still_from + longest_gap(sight.period_s)


def _exiting(sight: Sight, hang: Hang, quiet_s: float, still_s: float) -> Verdict | None:
    enough_s = (deadlines.EXPECTED if sight.voice.exit_work_at is None else deadlines.LONG_WORK) * hang.min_s
    if quiet_s >= enough_s or still_s >= BEYOND_DOUBT * enough_s:
        return _verdict(sight, hang, "exiting", "the training is done, but its process does not end")
    return None


def _blind(sight: Sight, hang: Hang, silence: float) -> Verdict | None:
    seen_before = sight.vitals.process_at is not None or sight.vitals.gpu_at is not None
    enough_s = max(hang.max_s, hang.deadline_factor * max(sight.clock.slow_s or 0.0, deadlines.longest_known(sight)))
    if sight.clock.beats == 0:
        enough_s = max(enough_s, hang.startup_s)
    if seen_before:
        enough_s *= BLIND_AFTER_SIGHT
    if silence < enough_s:
        return None
    kind: HangKind = "exiting" if sight.ended_well else "idle"
    return _verdict(sight, hang, kind, "no step for very long, and nothing else can be seen")


def _dead_kind(sight: Sight) -> HangKind:
    vitals = sight.vitals
    if signs.is_starved(vitals):
        return "starved"
    # Before the first step, workers of a second attempt are not missing: they were never there.
    usual = vitals.procs_normal if sight.clock.beats else None
    missing = usual is not None and vitals.procs is not None and vitals.procs < usual
    return "starved" if missing and not deadlines.is_announced(sight.voice) else "idle"


def _verdict(sight: Sight, hang: Hang, kind: HangKind, reason: str) -> Verdict:
    silence = sight.now - deadlines.since(sight.clock, sight.voice)
    return Verdict(
        kind=kind,
        reason=f"{reason} ({duration(silence)})",
        evidence=tuple(evidence_of(sight, hang.min_s)),
        silence_s=silence,
    )
