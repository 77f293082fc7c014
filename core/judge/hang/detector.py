"""Whether a run that shows no step is hung, and how: idle, spin, starved or exiting.

A verdict needs two kinds of evidence: no step past the deadline, and no sign of life for as long. The evidence sets the
deadline (deadlines.py): no sign of life, two minutes; no sign but a log that grows, an announced phase, or a start,
longer. A GPU near 100 % far below its usual power (ranks that wait in a collective; reported as "GPU 100 % and frozen"
and by NCCL's watchdog): six minutes. Live evidence (usual power, bytes, growing files, compilers on several cores)
has no deadline.

Known false alarms that the rules are made against, each a scenario in tests/scenarios/healthy.py: slow saves (bytes or
the file grow), loads, compiling, silent refills that this run made before, sparse lines from a busy GPU, one rank that
evaluates while the others spin in a barrier, wake-up after a suspend, a trainer stopped by a person, lost readings,
uploads (announced; sockets move no counter).
"""

import msgspec

from ...model.incident import HangKind
from ...model.settings import Hang
from . import deadlines, liveness
from .active_time import longest_gap
from .deadlines import HangInput
from .explain import duration, evidence_of

WAITING_CORES = 0.5
"""Cores, and share of the usual CPU, from which processes may be polling for their GPU, if no GPU can be read."""
CONCLUSIVE = 2.0
"""x the deadline: evidence that lasts this long needs no missing progress line, and a busy core no longer counts."""
READINGS_LOST = 2.0
"""x ``hang.max_s``: all readings went away together with the steps, so the monitoring is more likely to have failed."""
POLLING_WITHOUT_GPU = 3.0
"""x ``hang.max_s``: one core is busy and no GPU can be read, so that this core is all that could be seen of work."""
POLLING = 2.0
"""x ``hang.max_s``: several cores are busy, but no GPU works and no byte moves: a polling loop."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A hang. ``evidence`` in sentences; ``silence_s``: seconds since the last step or announced phase."""

    kind: HangKind
    reason: str
    evidence: tuple[str, ...]
    silence_s: float


def judge(run: HangInput, hang: Hang) -> Verdict | None:
    """Return a verdict, or None if the run is not hung or it is too early to tell."""
    clock, seen, now = run.clock, run.liveness, run.now
    since = deadlines.last_progress(clock, run.log_activity)
    silence_s = now - since
    if silence_s < deadlines.floor_s(hang.min_s, run.period_s):
        return None
    fresh_s = longest_gap(run.period_s)  # an older reading proves nothing about now
    sees_process = seen.process_at is not None and now - seen.process_at <= fresh_s
    sees_gpu = seen.gpu_at is not None and now - seen.gpu_at <= fresh_s
    if not sees_process and not sees_gpu:
        return _without_readings(run, hang, silence_s)
    dead_s = now - max(liveness.last_sign(seen, cpu=True), since)
    still_s = now - max(liveness.last_sign(seen, cpu=False), since)
    spinning = sees_gpu and seen.spin_at is not None and seen.spin_at == seen.gpu_at
    pinned = sees_gpu and not spinning and seen.pinned_at is not None and seen.pinned_at == seen.gpu_at
    dim = sees_gpu and seen.dim_at is not None and seen.dim_at == seen.gpu_at
    if run.ended_well:
        return _exiting(run, hang, still_s if spinning or pinned or dim or not sees_gpu else dead_s, still_s)
    deadline_s = deadlines.for_dead(run, hang, partly_seen=not (sees_gpu and sees_process))
    late_s = min(hang.max_s, deadlines.overdue(run, hang))
    if run.stopped_s is not None and min(run.stopped_s, silence_s) >= max(deadline_s, late_s):
        return _verdict(run, hang, "starved", "no step while some of its processes are stopped (state T)")
    if run.checkpoint_age_s is not None and hang.checkpoint_age_s is not None:
        late = silence_s >= min(hang.max_s, deadlines.overdue(run, hang))
        if late and run.checkpoint_age_s > hang.checkpoint_age_s:
            works = seen.busy_at is not None and now - seen.busy_at <= fresh_s
            kind: HangKind = "spin" if spinning or pinned or (works and sees_gpu) else _kind(run)
            busy = "although the GPU is busy" if works else "although the CPU is busy" if dead_s <= fresh_s else ""
            why = "and the newest checkpoint is older than hang.checkpoint_age_s"
            return _verdict(run, hang, kind, f"no step {busy}, {why}" if busy else f"no step, {why}")
    if spinning and deadlines.is_announced(run.log_activity) and _was_dim(run, now - still_s):
        spinning, dim = False, True
    if spinning:
        spin_s = deadlines.for_spin(run, hang)
        line_s = min(hang.max_s, deadlines.LINE_FACTOR * (clock.slow_s or 0.0))
        if still_s >= spin_s and (silence_s >= line_s or still_s >= CONCLUSIVE * spin_s):
            return _verdict(run, hang, "spin", "no step while the GPU spins far below its usual power")
        return None
    if pinned or dim:
        full_s = deadlines.for_dim(run, hang) if dim else deadlines.for_pinned(run, hang)
        if still_s >= full_s and silence_s >= deadlines.far_overdue(run, hang):
            power = "at much less power than usual" if dim else "(its power is unknown)"
            return _verdict(run, hang, "spin", f"no step while the GPU reports 100 % {power}")
        return None
    is_late = silence_s >= late_s or (clock.beats and dead_s >= CONCLUSIVE * deadline_s)
    if dead_s >= _without_sign_s(hang, deadline_s) and silence_s >= deadline_s and is_late:
        return _verdict(run, hang, _kind(run), "no step and no sign of life")
    return _polling(run, hang, since, still_s)


def _without_sign_s(hang: Hang, deadline_s: float) -> float:
    """Return how long signs of life must be missing. With a short deadline there are too few to wait for as long."""
    return deadline_s if deadline_s > deadlines.SHORT_S else min(hang.quiet_s, deadline_s / 2)


def _polling(run: HangInput, hang: Hang, since: float, still_s: float) -> Verdict | None:
    """Judge a run whose cores are busy but that makes no progress."""
    clock, seen = run.clock, run.liveness
    silence_s = run.now - since
    cap_s = max(
        hang.max_s,
        deadlines.KNOWN_FACTOR * deadlines.longest_known(run),
        hang.startup_s if clock.beats == 0 else 0.0,
    )
    if seen.gpu_at is None:
        cap_s *= POLLING_WITHOUT_GPU
    waits = _polls_unread_gpu(run) and still_s >= deadlines.for_pinned(run, hang)
    if waits and silence_s >= deadlines.far_overdue(run, hang):
        reason = "no step and no byte moved for long, only busy cores (no GPU can be read)"
        return _verdict(run, hang, "spin", reason)
    if silence_s < hang.deadline_factor * (clock.slow_s or 0.0):
        return None
    if seen.foreign and (seen.process_at or 0.0) - max(liveness.last_own_sign(seen), since) >= cap_s:
        return _verdict(run, hang, _kind(run), "no step and no sign of life, and the busy GPUs are not this run's")
    if still_s >= cap_s:
        return _verdict(run, hang, _kind(run), "no step for long, and only one core is busy")
    idle_s = run.now - max(liveness.last_work(seen), clock.last)
    if clock.beats and not deadlines.is_announced(run.log_activity) and idle_s >= max(POLLING * hang.max_s, cap_s):
        return _verdict(run, hang, _kind(run), "no step for very long; cores are busy, but no GPU works")
    return None


def _polls_unread_gpu(run: HangInput) -> bool:
    """Return whether no GPU was ever read, and the cores have been as busy since the last step as if they polled."""
    seen = run.liveness
    cores = seen.cpu_sum / max(1, seen.cpu_count)
    busy = cores >= max(WAITING_CORES, WAITING_CORES * (seen.cpu_normal or 0.0))
    return seen.gpu_at is None and run.clock.slow_s is not None and busy


def _was_dim(run: HangInput, still_from: float) -> bool:
    """Return whether power wavers about the bound of a spin: an evaluation limited by memory, not a collective."""
    dim_at = run.liveness.dim_at
    return dim_at is not None and dim_at > still_from + longest_gap(run.period_s)


def _exiting(run: HangInput, hang: Hang, quiet_s: float, still_s: float) -> Verdict | None:
    deadline_s = (deadlines.EXPECTED if run.log_activity.exit_work_at is None else deadlines.LONG_WORK) * hang.min_s
    if quiet_s >= deadline_s or still_s >= CONCLUSIVE * deadline_s:
        return _verdict(run, hang, "exiting", "the training is done, but its process does not end")
    return None


def _without_readings(run: HangInput, hang: Hang, silence_s: float) -> Verdict | None:
    clock, seen = run.clock, run.liveness
    deadline_s = max(hang.max_s, hang.deadline_factor * max(clock.slow_s or 0.0, deadlines.longest_known(run)))
    if clock.beats == 0:
        deadline_s = max(deadline_s, hang.startup_s)
    if seen.process_at is not None or seen.gpu_at is not None:
        deadline_s *= READINGS_LOST
    if silence_s < deadline_s:
        return None
    kind: HangKind = "exiting" if run.ended_well else "idle"
    return _verdict(run, hang, kind, "no step for very long, and nothing else can be seen")


def _kind(run: HangInput) -> HangKind:
    """Return ``starved`` if workers are dead, blocked or missing, else ``idle``."""
    seen = run.liveness
    if liveness.is_starved(seen):
        return "starved"
    # Before the first step, workers of a second attempt are not missing: they were not started yet.
    usual = seen.procs_normal if run.clock.beats else None
    missing = usual is not None and seen.procs is not None and seen.procs < usual
    return "starved" if missing and not deadlines.is_announced(run.log_activity) else "idle"


def _verdict(run: HangInput, hang: Hang, kind: HangKind, reason: str) -> Verdict:
    silence_s = run.now - deadlines.last_progress(run.clock, run.log_activity)
    return Verdict(
        kind=kind,
        reason=f"{reason} ({duration(silence_s)})",
        evidence=tuple(evidence_of(run, hang.min_s)),
        silence_s=silence_s,
    )
