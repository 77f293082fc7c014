"""Whether a run that shows no step is hung, and how: idle, spin, starved or exiting.

The evidence sets the patience. Everything dead: a couple of minutes. Dead but talking, or in an announced phase, or
before the first step: longer. A GPU near 100 % far below its usual power (ranks waiting in a collective; reported as
"GPU 100 % and frozen", NCCL watchdog time-outs): minutes. Live evidence (usual power, bytes, growing files, compilers
on several cores): wait. All patience is in units of ``hang.min_s``, so that one setting moves them together.

Known false alarms that the rules are made against: slow saves (bytes or the file grow), loads, compiling, silent data
refills that this run made before, sparse lines from a busy GPU, one rank evaluating while others spin in the barrier,
wake-up after a suspend, a trainer stopped by a person, lost telemetry, uploads (announced; sockets move no counter).
"""

import msgspec

from ..model.incident import HangKind
from ..model.settings import Hang
from . import vitals as signs
from .hang_evidence import duration, evidence_of
from .routine import Routine, habit
from .step_clock import StepClock
from .vitals import Vitals
from .voice import ANNOUNCED, Voice

# Patience in units of hang.min_s (default 90 s). Source: the latencies asked of trainwatch, minus a margin of a few
# sampling periods; the longest harmless silences met in reports of each kind.
SPIN = 4.2
"""380 s: evaluation on rank 0 with the others in a barrier shows work on one GPU, a real spin on none."""
SPIN_ANNOUNCED = 6.2
SPIN_TALKING = 9.0
"""In an announced phase whose bar still moves."""
SPIN_FIRST_STEP = 4.2
"""Before the first step of several GPUs, measured against the power limit; autotuning and warm-up end sooner or use
CPUs. One GPU alone waits for no other, and a small model on a big GPU draws little: it gets ``PINNED``."""
PINNED = 9.2
"""830 s: 100 % without a power reading may be honest work."""
PINNED_ANNOUNCED = 16.0
DIM = 1.5
"""x the patience of a GPU whose power is unknown, while it draws half to two thirds of the usual: 20 min. Where the
pace is known, no phase was announced and the run makes no pauses, it is a spin like any other: 380 s."""
WAITING_CORES = 0.5
"""Cores per trainer process that waits for its GPU: it polls, and burns most of one."""
TALKING = 4.2
ANNOUNCED_PHASE = 6.2
"""560 s without any sign in an evaluation or a save."""
ANNOUNCED_BLIND = 9.5
"""The same where no GPU can be read: it may be evaluating at full power."""
EXITING = 6.0
EXIT_WORK = 17.0
"""Announced uploads: 25 min."""
FEW_STEPS = 4.5
"""Less than a warm-up of steps, nothing learned yet: the next step may compile."""
ONE_EYED = 2.0
"""Factor where either GPUs or processes cannot be seen."""
NOTICE_PERIODS = 2.0
"""Kept back from hang.min_s: a sign of life may be dated a period late, and a verdict waits for the next reading …"""
FLOOR_SHARE = 0.75
"""… but never more than a quarter, should someone sample rarely and want it fast."""
LULL_AGAIN = 2.0
"""x the longest harmless silence so far: pauses grow slowly."""
PAUSES_MADE_S = 35.0
"""A run that was silent for this long without harm makes such pauses by design …"""
PAUSES_MADE = 2.6
"""… and is given this at least: their lengths vary."""
SPIN_AGAIN = 2.0
LINE_AGAIN = 1.5
"""x the slowest usual distance of progress lines must have passed in any case …"""
BEYOND_DOUBT = 2.0
"""… unless the evidence lasts this many times its patience: a GPU that was never silent needs no missed line."""
SHORT_S = 45.0
"""A patience below this is set by hand, for short runs; signs of life are then too few to be waited for as long."""
STARTUP_SHARE = 0.9
"""Share of hang.startup_s without any sign of life before the first step …"""
STARTUP_KNOWN = 6.2
"""… but 560 s are enough where the run, or an earlier run of its command, is known to start much faster …"""
STARTUP_AGAIN = 6.0
"""… that is, this many times faster: a first start finds caches cold."""
FRESH_S = 15.0
FRESH_PERIODS = 3.0
"""A reading older than this says nothing about now."""
TALK_FRESH = 2.0
"""x min_s: the newest line may be this old for the log to count as talking."""
BLIND_AFTER_SIGHT = 2.0
"""x max_s where telemetry was there and went away together with the steps: likelier a blind watcher."""
POLLING_BLIND = 3.0
"""Where no GPU can be read, a busy core is all that can be seen of honest work."""
POLLING = 2.0
"""x max_s in which cores are busy between two steps, but no GPU works and no byte moves: a polling loop."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A hang. ``evidence`` in sentences; ``silence_s`` since the last step (or the last announced phase)."""

    kind: HangKind
    reason: str
    evidence: tuple[str, ...]
    silence_s: float


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What the verdict is made from, gathered by the caller. Times in active seconds."""

    now: float
    period_s: float
    clock: StepClock
    vitals: Vitals
    voice: Voice
    routine: Routine = Routine()
    ended_well: bool = False
    """The last step is done and, where the run saves at all, the final checkpoint is complete."""
    step: int | None = None
    checkpoint_age_s: float | None = None
    warmup_beats: int = 3


def floor_s(min_s: float, period_s: float) -> float:
    """Return the silence from which a verdict is possible: a hang is to be known *when* ``hang.min_s`` is over."""
    return max(FLOOR_SHARE * min_s, min_s - NOTICE_PERIODS * period_s)


def first_silence(min_s: float, period_s: float) -> float:
    """How long everything must be dead, the first time.

    A short floor is taken at its word; from a minute on it gets up to 52 s on top, because loops refill buffers or
    wait for a disk that long without being hung. One sampling period is kept back for noticing.
    """
    usual = min_s + min(52.0, max(0.0, min_s - 38.0)) - min(period_s, 10.0)
    return usual if usual >= min_s else floor_s(min_s, period_s)


def judge(sight: Sight, hang: Hang) -> Verdict | None:
    """Return a verdict, or None while there is no reason (yet)."""
    clock, vitals, voice, now = sight.clock, sight.vitals, sight.voice, sight.now
    since = _since(clock, voice)
    silence = now - since
    if silence < floor_s(hang.min_s, sight.period_s):
        return None
    fresh = max(FRESH_S, FRESH_PERIODS * sight.period_s)
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
        late = silence >= min(hang.max_s, _overdue(sight, hang))
        if late and sight.checkpoint_age_s > hang.checkpoint_age_s:
            kind: HangKind = "spin" if spinning or pinned else _dead_kind(sight)
            return _verdict(sight, kind, "no step, and the newest checkpoint is older than allowed")
    if spinning:
        patience = max(_spin_patience(sight, hang), SPIN_AGAIN * vitals.longest_spin_s)
        overdue = min(hang.max_s, LINE_AGAIN * (clock.slow_s or 0.0))
        if still_s >= patience and (silence >= overdue or still_s >= BEYOND_DOUBT * patience):
            return _verdict(sight, "spin", "no step while the GPU spins far below its usual power")
        return None
    if pinned or dim:
        if still_s >= (_dim_patience if dim else _pinned_patience)(sight, hang) and silence >= _far_overdue(
            sight, hang
        ):
            known = "at much less power than usual" if dim else "(its power is unknown)"
            return _verdict(sight, "spin", f"no step while the GPU says 100 % {known}")
        return None
    patience = _dead_patience(sight, hang, one_eyed=not (sees_gpu and sees_process))
    if dead_s >= _weak_for(hang, patience) and silence >= patience:
        overdue = min(hang.max_s, _overdue(sight, hang))
        if silence >= overdue or (clock.beats and dead_s >= BEYOND_DOUBT * patience):
            return _verdict(sight, _dead_kind(sight), "no step and no sign of life")
    return _polling(sight, hang, silence, still_s)


def _weak_for(hang: Hang, patience: float) -> float:
    """How long signs of life must be gone. With a short floor the silence of the steps counts for more."""
    return patience if patience > SHORT_S else min(hang.quiet_s, 0.5 * patience)


def _polling(sight: Sight, hang: Hang, silence: float, still_s: float) -> Verdict | None:
    """Cores are busy, but nothing comes of it."""
    clock, vitals = sight.clock, sight.vitals
    cap = max(hang.max_s, LULL_AGAIN * _longest_known(sight), 1.5 * hang.startup_s if clock.beats == 0 else 0.0)
    if vitals.gpu_at is None:
        cap *= POLLING_BLIND
    if _waits_unseen(sight) and still_s >= _pinned_patience(sight, hang) and silence >= _far_overdue(sight, hang):
        return _verdict(sight, "spin", "no step and no byte moved for long, only busy cores (no GPU can be read)")
    if silence < hang.deadline_factor * (clock.slow_s or 0.0):
        return None
    if still_s >= cap:
        return _verdict(sight, _dead_kind(sight), "no step for long, and only one core moves")
    idle_s = sight.now - max(signs.last_work(vitals), clock.last)
    if clock.beats and not _announced(sight.voice) and idle_s >= max(POLLING * hang.max_s, cap):
        return _verdict(sight, _dead_kind(sight), "no step for very long; cores are busy, but no GPU works")
    return None


def _since(clock: StepClock, voice: Voice) -> float:
    """When the training was last heard of: its step, a phase it announced, a bar of such a phase that grew."""
    return max(clock.last, voice.phase_at if voice.trusted else 0.0, voice.moved_at)


def _waits_unseen(sight: Sight) -> bool:
    """No GPU was ever read, the pace is known, and the cores are busy as when a process polls for its GPU."""
    vitals = sight.vitals
    busy = (vitals.cpu or 0.0) >= max(WAITING_CORES, WAITING_CORES * (vitals.cpu_normal or 0.0))
    return vitals.gpu_at is None and sight.clock.slow_s is not None and busy


def _far_overdue(sight: Sight, hang: Hang) -> float:
    return max(_overdue(sight, hang), hang.deadline_factor * (sight.clock.slow_s or 0.0))


def _announced(voice: Voice) -> bool:
    return voice.trusted and voice.phase in ANNOUNCED


def _talks(sight: Sight, hang: Hang) -> bool:
    voice = sight.voice
    return voice.talk_at is not None and voice.talk_n > 1 and sight.now - voice.talk_at <= TALK_FRESH * hang.min_s


def _overdue(sight: Sight, hang: Hang) -> float:
    """When a step is late by this run's own pace. Lines that stand for many steps: one line must be missed first."""
    clock = sight.clock
    floor = floor_s(hang.min_s, sight.period_s)
    return max(floor, LINE_AGAIN * (clock.slow_s or 0.0) + hang.deadline_factor * (clock.step_s or 0.0))


def _spin_patience(sight: Sight, hang: Hang) -> float:
    if sight.clock.beats == 0:
        several = len(sight.vitals.normals) > 1 and sight.voice.phase not in {"preprocess", "compile"}
        factor = SPIN_FIRST_STEP if several or sight.vitals.spin_known else PINNED
    elif not _announced(sight.voice):
        factor = SPIN
    else:
        factor = SPIN_TALKING if _talks(sight, hang) else SPIN_ANNOUNCED
    return factor * hang.min_s


def _pinned_patience(sight: Sight, hang: Hang) -> float:
    clock, vitals = sight.clock, sight.vitals
    patience = (PINNED_ANNOUNCED if clock.beats and _announced(sight.voice) else PINNED) * hang.min_s
    if clock.beats == 0:
        patience = max(patience, STARTUP_SHARE * hang.startup_s)
    return max(patience, LULL_AGAIN * max(_longest_known(sight), vitals.longest_spin_s))


def _dim_patience(sight: Sight, hang: Hang) -> float:
    patience = _pinned_patience(sight, hang)
    clock = sight.clock
    if clock.beats == 0 or clock.slow_s is None or clock.pause_s >= PAUSES_MADE_S or _announced(sight.voice):
        return DIM * patience
    return max(SPIN * hang.min_s, LULL_AGAIN * sight.vitals.longest_spin_s)


def _longest_known(sight: Sight) -> float:
    """How long the run has stayed without a step in such a situation: before the first one, in this phase, or else."""
    if sight.clock.beats == 0:
        return max(sight.routine.start.longest_s, sight.clock.pause_s)
    if _announced(sight.voice):
        return max(habit(sight.routine, sight.voice.phase).longest_s, sight.clock.pause_s)
    return sight.clock.pause_s


def _startup_patience(sight: Sight, hang: Hang) -> float:
    """Everything dead before the first step. What the run is known for lengthens it, or shortens it somewhat."""
    known = sight.routine.start
    patience = STARTUP_SHARE * hang.startup_s
    if known.times:
        patience = min(patience, max(STARTUP_KNOWN * hang.min_s, STARTUP_AGAIN * known.longest_s))
    return max(patience, LULL_AGAIN * known.quiet_s, hang.min_s)


def _dead_patience(sight: Sight, hang: Hang, *, one_eyed: bool) -> float:
    clock, vitals, voice = sight.clock, sight.vitals, sight.voice
    if clock.beats == 0:
        return _startup_patience(sight, hang)
    patience = first_silence(hang.min_s, sight.period_s)
    if one_eyed and vitals.gpu_at is not None:
        patience *= ONE_EYED
    if vitals.longest_lull_s >= PAUSES_MADE_S:
        patience = max(patience, PAUSES_MADE * hang.min_s)
    if _talks(sight, hang):
        patience = max(patience, TALKING * hang.min_s)
    if _announced(voice):
        blind = vitals.gpu_at is None
        factor = ANNOUNCED_BLIND if blind else ANNOUNCED_PHASE
        patience = max(patience, factor * hang.min_s, LULL_AGAIN * habit(sight.routine, voice.phase).quiet_s)
    if voice.exit_work_at is not None:
        patience = max(patience, EXIT_WORK * hang.min_s)
    if clock.beats <= sight.warmup_beats and clock.slow_s is None:
        patience = max(patience, FEW_STEPS * hang.min_s)
    return min(max(patience, LULL_AGAIN * vitals.longest_lull_s), hang.max_s)


def _exiting(sight: Sight, hang: Hang, quiet_s: float, still_s: float) -> Verdict | None:
    patience = (EXITING if sight.voice.exit_work_at is None else EXIT_WORK) * hang.min_s
    if quiet_s >= patience or still_s >= 3.0 * patience:
        return _verdict(sight, "exiting", "the training is done, but its process does not end")
    return None


def _blind(sight: Sight, hang: Hang, silence: float) -> Verdict | None:
    seen_before = sight.vitals.process_at is not None or sight.vitals.gpu_at is not None
    patience = max(hang.max_s, hang.deadline_factor * max(sight.clock.slow_s or 0.0, _longest_known(sight)))
    if sight.clock.beats == 0:
        patience = max(patience, 1.5 * hang.startup_s)
    if seen_before:
        patience *= BLIND_AFTER_SIGHT
    if silence < patience:
        return None
    kind: HangKind = "exiting" if sight.ended_well else "idle"
    return _verdict(sight, kind, "no step for very long, and nothing else can be seen")


def _dead_kind(sight: Sight) -> HangKind:
    vitals = sight.vitals
    if signs.is_starved(vitals):
        return "starved"
    # Before the first step, workers of a second attempt are not missing: they were never there.
    usual = vitals.procs_normal if sight.clock.beats else None
    missing = usual is not None and vitals.procs is not None and vitals.procs < usual
    return "starved" if missing and not _announced(sight.voice) else "idle"


def _verdict(sight: Sight, kind: HangKind, reason: str) -> Verdict:
    clock, voice = sight.clock, sight.voice
    silence = sight.now - _since(clock, voice)
    return Verdict(
        kind=kind,
        reason=f"{reason} ({duration(silence)})",
        evidence=tuple(evidence_of(clock, sight.vitals, voice, step=sight.step, now=sight.now)),
        silence_s=silence,
    )
