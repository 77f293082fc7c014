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
from .step_clock import StepClock
from .vitals import Vitals
from .voice import ANNOUNCED, Voice

# Patience in units of hang.min_s (default 90 s). Source: the latencies asked of trainwatch, minus a margin of a few
# sampling periods; the longest harmless silences met in reports of each kind.
SPIN = 3.8
"""340 s: evaluation on rank 0 with the others in a barrier shows work on one GPU, a real spin on none."""
SPIN_ANNOUNCED = 5.7
SPIN_FIRST_STEP = 4.2
"""Before the first step, measured against the power limit; autotuning and warm-up end sooner or use CPUs."""
PINNED = 8.7
"""780 s: 100 % without a power reading may be honest work."""
TALKING = 3.7
ANNOUNCED_PHASE = 5.7
"""510 s without any sign in an evaluation or a save."""
EXITING = 5.3
EXIT_WORK = 17.0
"""Announced uploads: 25 min."""
FEW_STEPS = 4.5
"""Less than a warm-up of steps, nothing learned yet: the next step may compile."""
ONE_EYED = 2.0
"""Factor where either GPUs or processes cannot be seen."""
LULL_AGAIN = 2.0
"""x the longest harmless silence so far: pauses grow slowly."""
SPIN_AGAIN = 2.0
LINE_AGAIN = 1.5
"""x the slowest usual distance of progress lines must have passed in any case."""
STARTUP_SHARE = 0.85
"""Share of hang.startup_s without any sign of life before the first step."""
FRESH_S = 15.0
FRESH_PERIODS = 3.0
"""A reading older than this says nothing about now."""
TALK_FRESH = 2.0
"""x min_s: the newest line may be this old for the log to count as talking."""
BLIND_AFTER_SIGHT = 2.0
"""x max_s where telemetry was there and went away together with the steps: likelier a blind watcher."""


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
    ended_well: bool = False
    """The last step is done and, where the run saves at all, the final checkpoint is complete."""
    step: int | None = None
    checkpoint_age_s: float | None = None
    warmup_beats: int = 3


def first_silence(min_s: float) -> float:
    """How long everything must be dead, the first time.

    A short floor is taken at its word; from a minute on it gets up to 40 s on top, because loops refill buffers or
    wait for a disk that long without being hung.
    """
    return min_s + min(40.0, max(0.0, min_s - 50.0))


def judge(sight: Sight, hang: Hang) -> Verdict | None:
    """Return a verdict, or None while there is no reason (yet)."""
    clock, vitals, voice, now = sight.clock, sight.vitals, sight.voice, sight.now
    since = max(clock.last, voice.phase_at)
    silence = now - since
    if silence < hang.min_s:
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
    if sight.ended_well:
        return _exiting(sight, hang, dead_s, still_s, gpu_waits=spinning or pinned)
    if sight.checkpoint_age_s is not None and hang.checkpoint_age_s is not None:
        late = silence >= min(hang.max_s, _overdue(clock, hang))
        if late and sight.checkpoint_age_s > hang.checkpoint_age_s:
            kind: HangKind = "spin" if spinning or pinned else _dead_kind(sight)
            return _verdict(sight, kind, "no step, and the newest checkpoint is older than allowed")
    if spinning:
        patience = max(_spin_patience(sight, hang), SPIN_AGAIN * vitals.longest_spin_s)
        if still_s >= patience and silence >= min(hang.max_s, LINE_AGAIN * (clock.slow_s or 0.0)):
            return _verdict(sight, "spin", "no step while the GPU spins far below its usual power")
        return None
    if pinned:
        patience = max(PINNED * hang.min_s, LULL_AGAIN * max(clock.pause_s, vitals.longest_spin_s))
        if clock.beats == 0:
            patience = max(patience, STARTUP_SHARE * hang.startup_s)
        overdue = max(_overdue(clock, hang), hang.deadline_factor * (clock.slow_s or 0.0))
        if still_s >= patience and silence >= overdue:
            return _verdict(sight, "spin", "no step while the GPU says 100 % (its power is unknown)")
        return None
    if dead_s >= _dead_patience(sight, hang, one_eyed=not (sees_gpu and sees_process)) and silence >= min(
        hang.max_s, _overdue(clock, hang)
    ):
        return _verdict(sight, _dead_kind(sight), "no step and no sign of life")
    cap = max(hang.max_s, LULL_AGAIN * clock.pause_s, 1.5 * hang.startup_s if clock.beats == 0 else 0.0)
    if still_s >= cap and silence >= hang.deadline_factor * (clock.slow_s or 0.0):
        return _verdict(sight, _dead_kind(sight), "no step for long, and only one core moves")
    return None


def _overdue(clock: StepClock, hang: Hang) -> float:
    """When a step is late by this run's own pace. Lines that stand for many steps: one line must be missed first."""
    return max(hang.min_s, LINE_AGAIN * (clock.slow_s or 0.0) + hang.deadline_factor * (clock.step_s or 0.0))


def _spin_patience(sight: Sight, hang: Hang) -> float:
    if sight.clock.beats == 0:
        factor = SPIN_FIRST_STEP if sight.voice.phase not in {"preprocess", "compile"} else PINNED
    else:
        factor = SPIN_ANNOUNCED if sight.voice.phase in ANNOUNCED else SPIN
    return factor * hang.min_s


def _dead_patience(sight: Sight, hang: Hang, *, one_eyed: bool) -> float:
    clock, vitals, voice = sight.clock, sight.vitals, sight.voice
    if clock.beats == 0:
        return max(STARTUP_SHARE * hang.startup_s, hang.min_s)
    patience = first_silence(hang.min_s)
    if one_eyed and vitals.gpu_at is not None:
        patience *= ONE_EYED
    if voice.talk_at is not None and sight.now - voice.talk_at <= TALK_FRESH * hang.min_s and voice.talk_n > 1:
        patience = max(patience, TALKING * hang.min_s)
    if voice.phase in ANNOUNCED:
        patience = max(patience, ANNOUNCED_PHASE * hang.min_s, LULL_AGAIN * vitals.longest_announced_s)
    if voice.exit_work_at is not None:
        patience = max(patience, EXIT_WORK * hang.min_s)
    if clock.beats <= sight.warmup_beats and clock.slow_s is None:
        patience = max(patience, FEW_STEPS * hang.min_s)
    return min(max(patience, LULL_AGAIN * vitals.longest_lull_s), hang.max_s)


def _exiting(sight: Sight, hang: Hang, dead_s: float, still_s: float, *, gpu_waits: bool) -> Verdict | None:
    patience = (EXITING if sight.voice.exit_work_at is None else EXIT_WORK) * hang.min_s
    quiet_s = still_s if gpu_waits else dead_s
    if quiet_s >= patience or still_s >= 3.0 * patience:
        return _verdict(sight, "exiting", "the training is done, but its process does not end")
    return None


def _blind(sight: Sight, hang: Hang, silence: float) -> Verdict | None:
    seen_before = sight.vitals.process_at is not None or sight.vitals.gpu_at is not None
    patience = max(hang.max_s, hang.deadline_factor * max(sight.clock.slow_s or 0.0, sight.clock.pause_s))
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
    if vitals.zombies or 2 * vitals.blocked > vitals.window:
        return "starved"
    missing = vitals.procs_normal is not None and vitals.procs is not None and vitals.procs < vitals.procs_normal
    return "starved" if missing and sight.voice.phase not in ANNOUNCED else "idle"


def _verdict(sight: Sight, kind: HangKind, reason: str) -> Verdict:
    clock, voice = sight.clock, sight.voice
    silence = sight.now - max(clock.last, voice.phase_at)
    return Verdict(
        kind=kind,
        reason=f"{reason} ({_for(silence)})",
        evidence=tuple(_evidence(sight)),
        silence_s=silence,
    )


def _evidence(sight: Sight) -> list[str]:
    clock, vitals, voice, now = sight.clock, sight.vitals, sight.voice, sight.now
    said = []
    if clock.beats == 0:
        said.append(f"no step yet, {_for(now - clock.start)} after the start")
    else:
        usual = f"; usually one progress line every {clock.typical_s:.3g} s" if clock.typical_s is not None else ""
        at = f"step {sight.step}" if sight.step is not None else "the last step"
        said.append(f"{at} was {_for(now - clock.last)} ago{usual}")
    if voice.phase in ANNOUNCED:
        said.append(f"phase {voice.phase}, announced {_for(now - voice.phase_at)} ago")
    said.extend(_gpu_evidence(vitals))
    if vitals.process_at is not None and vitals.cpu is not None:
        usual = f" (usually {vitals.cpu_normal:.2f})" if vitals.cpu_normal is not None else ""
        of = f" of {vitals.procs} processes" if vitals.procs is not None else ""
        said.append(f"CPU{of}: {vitals.cpu:.2f} cores{usual}")
        moved = vitals.io_at
        said.append("nothing read or written yet" if moved is None else f"last bytes moved {_for(now - moved)} ago")
    if vitals.blocked:
        said.append(f"a process is blocked in the kernel (state D) for {vitals.blocked} samples")
    if vitals.zombies:
        said.append(f"{vitals.zombies} dead worker processes were not collected (state Z)")
    if vitals.procs_normal is not None and vitals.procs is not None and vitals.procs < vitals.procs_normal:
        said.append(f"{vitals.procs_normal - vitals.procs} processes fewer than usual")
    if voice.talk_at is not None and voice.talk_at > clock.last and voice.talk_n > 1:
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
            case "idle":
                said.append(f"GPU {normal.index}: idle{usual}")
            case _:
                pass
    return said


def _for(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600.0 else f"{seconds / 60.0:.0f} min"
