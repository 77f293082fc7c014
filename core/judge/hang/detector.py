"""Whether a run that shows no step is hung, and how: idle, spin, starved, waiting or exiting.

A verdict needs two kinds of evidence: no step past the deadline, and no sign of life for as long. The evidence sets the
deadline (deadlines.py): no sign of life, two minutes; no sign but a log that grows, an announced phase, or a start,
longer. A GPU near 100 % far below its usual power (ranks that wait in a collective; reported as "GPU 100 % and frozen"
and by NCCL's watchdog): six minutes. Live evidence (usual power, bytes, growing files, compilers on several cores)
has no deadline but that of the slow clock (deadlines.py).

``judge`` with a ``share`` below 1 says when the run is *quiet*: people are told, and nothing is ended. detector.py
decides
whether a verdict is acted on.

Known false alarms that the rules are made against, each a scenario in tests/scenarios/healthy.py: slow saves (bytes or
the file grow), loads, compiling, silent refills that this run made before, sparse lines from a busy GPU, one rank that
evaluates while the others spin in a barrier, wake-up after a suspend, a trainer stopped by a person, lost readings,
uploads (bytes of its sockets, or announced), a network mount that comes back.
"""

import math
from typing import Literal

import msgspec

from ...model.attempt import HangKind
from ...model.settings import Hang
from . import deadlines, liveness, pauses
from . import deadlines as step_peak
from . import liveness as process_signs
from .deadlines import HangInput
from .evidence import duration, evidence_of, stopped_in
from .pauses import LoopWatch, longest_gap

# Whether a run that makes no step is ended now, or given more time: the cost of waiting against the cost of an error.
#
# It is ended when
#
#     P(dead) x expected further wait  >  P(alive) x (work at risk + reload)
#
# A silence that has lasted t goes on for about as long again, so the expected further wait is t. P(dead) / P(alive),
# the odds, are ``STRONG``, ``EVEN`` or ``WEAK`` at the learned deadline, by what is seen of the run, and grow with the
# power ``GROWTH`` of t / deadline, because the harmless silences of public reports become rare that fast. Work at risk
# is the training since the newest checkpoint, which a restart repeats; reload is the time from a launch to its first
# step.
#
# So a run that has just saved is ended at its deadline, and one with hours of unsaved work gets more time, the more
# the weaker the evidence is. Some evidence is certain (detector.py) and does not ask this rule.

Weight = Literal["certain", "strong", "even", "weak"]
"""certain: waiting shows nothing more. strong: the readings contradict work. even: the processes do what they do while
they wait for a GPU that cannot be read. weak: honest work could look like this."""

STRONG = 10.0
"""Odds, at the deadline, that the run is dead if what was read of its GPUs and processes contradicts work."""
EVEN = 0.75
"""The same if the cores are as busy as they are while they wait for a GPU, and no GPU can be read."""
WEAK = 0.2
"""The same if honest work could look like this: some CPU beside a GPU that cannot be read, lost readings."""
CERTAIN = 0.99
"""The likelihood that is told for a run of which waiting would show nothing more. No evidence is told as 100 %."""
GROWTH = 3.0
"""Power of silence / deadline with which the odds grow."""


def is_worth_ending(weight: Weight, *, silent_s: float, deadline_s: float, loss_s: float) -> bool:
    """Return whether ending the run now costs less than waiting.

    ``silent_s``: how long the evidence has lasted; ``loss_s``: work at risk and reload, in seconds.
    """
    if weight == "certain":
        return True
    return _odds(weight) * math.pow(silent_s / max(deadline_s, 1.0), GROWTH) * silent_s > loss_s


def likelihood(weight: Weight, *, silent_s: float, deadline_s: float) -> float:
    """Return how likely the run is dead, 0 to 1: by the odds that ``is_worth_ending`` weighs."""
    if weight == "certain":
        return CERTAIN
    odds = _odds(weight) * math.pow(silent_s / max(deadline_s, 1.0), GROWTH)
    return min(CERTAIN, odds / (1.0 + odds))


def worth_ending_from(weight: Weight, *, deadline_s: float, loss_s: float) -> float:
    """Return the silence from which ending the run costs less than waiting, in seconds; at least the deadline."""
    if weight == "certain":
        return deadline_s
    return max(deadline_s, math.pow(loss_s * max(deadline_s, 1.0) ** GROWTH / _odds(weight), 1.0 / (GROWTH + 1.0)))


def _odds(weight: Weight) -> float:
    return STRONG if weight == "strong" else EVEN if weight == "even" else WEAK


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
QUIET_SHARE = 0.65
"""x the deadline from which a run is quiet."""
STILL_S = 4.0
"""Without a sign of life for so long, people are told when the silence would be a hang."""
DEAD_FOR_SURE = 2.0
"""x ``min_s`` (180 s): no sign of life at all for this long, where none is expected, needs no weighing of costs."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A hang. ``evidence`` in sentences; ``silent_s``: how long it has lasted; ``deadline_s``: from when it counts."""

    kind: HangKind
    reason: str
    evidence: tuple[str, ...]
    weight: Weight
    silent_s: float
    deadline_s: float


class _Look(msgspec.Struct, frozen=True):
    """What the readings show. Seconds: how long no sign of life was seen, and none but those of one busy core."""

    sees_process: bool
    sees_gpu: bool
    dead_s: float
    still_s: float
    spinning: bool
    pinned: bool
    dim: bool


def judge(run: HangInput, hang: Hang, share: float = 1.0) -> Verdict | None:
    """Return a verdict, or None if the run is not hung or it is too early to tell. ``share``: of all deadlines."""
    clock, seen, now = run.clock, run.liveness, run.now
    since = deadlines.last_progress(clock, run.log_activity)
    silence_s = now - since
    if silence_s < deadlines.floor_s(hang.min_s, run.period_s):
        return None
    look = _look(run, since)
    if not look.sees_process and not look.sees_gpu:
        return _without_readings(run, hang, silence_s, share)
    if run.ended_well:
        waits = look.spinning or look.pinned or look.dim or not look.sees_gpu
        return _exiting(run, hang, look.still_s if waits else look.dead_s, look.still_s, share)
    if run.saving:
        return _in_save(run, hang, look, share)
    deadline_s = deadlines.for_dead(run, hang, partly_seen=not (look.sees_gpu and look.sees_process))
    late_s = min(hang.max_s, deadlines.overdue(run, hang))
    if run.stopped_s is not None and min(run.stopped_s, silence_s) >= max(share * deadline_s, late_s):
        return _dead(run, hang, "starved", _stopped(run), silent_s=min(run.stopped_s, silence_s), deadline_s=deadline_s)
    oldest_s, age_s = hang.checkpoint_age_s, run.checkpoint_age_s
    if oldest_s is not None and age_s is not None and age_s > oldest_s and silence_s >= late_s:
        return _too_old(run, look)
    if look.spinning and deadlines.is_announced(run.log_activity) and _was_dim(run, now - look.still_s):
        look = msgspec.structs.replace(look, spinning=False, dim=True)
    if look.spinning:
        spin_s = deadlines.for_spin(run, hang)
        line_s = min(hang.max_s, deadlines.LINE_FACTOR * (clock.slow_s or 0.0))
        if look.still_s >= share * spin_s and (silence_s >= line_s or look.still_s >= CONCLUSIVE * spin_s):
            reason = "no step while the GPU spins far below its usual power"
            return _verdict(run, "spin", reason, "strong", silent_s=look.still_s, deadline_s=spin_s)
        return None
    if look.pinned or look.dim:
        return _at_full_load(run, hang, look, silence_s, share)
    if process_signs.is_blocked(seen) and share >= 1.0:
        deadline_s = max(deadline_s, deadlines.BLOCKED_S)
    is_late = silence_s >= late_s or (clock.beats and look.dead_s >= CONCLUSIVE * deadline_s)
    if look.dead_s >= share * _without_sign_s(hang, deadline_s) and silence_s >= share * deadline_s and is_late:
        at_once = run.stopped_s is not None and silence_s - run.stopped_s <= longest_gap(run.period_s)
        reason = run.waiting or (_stopped(run) if at_once else "no step and no sign of life")
        return _dead(run, hang, _kind(run), reason, silent_s=look.dead_s, deadline_s=deadline_s)
    return _polling(run, hang, since, look.still_s, share)


class Coming(msgspec.Struct, frozen=True, kw_only=True):
    """From which silence a run is hung if no sign of life comes; ``deadline_s`` and ``weight`` as in a verdict."""

    silent_s: float
    deadline_s: float
    weight: Weight


def dead_from(run: HangInput, hang: Hang) -> Coming | None:
    """Return when ``judge`` would find no sign of life, seen from a silence that has begun; None if one is seen."""
    clock, seen = run.clock, run.liveness
    since = deadlines.last_progress(clock, run.log_activity)
    if run.saving:
        deadline_s = deadlines.for_save(run, hang)
        still_s = _still_s(run)
        moved_s = run.now - clock.last - still_s
        return (
            None
            if still_s < STILL_S
            else Coming(silent_s=moved_s + deadline_s, deadline_s=deadline_s, weight="certain")
        )
    look = _look(run, since)
    works = look.spinning or look.pinned or look.dim or process_signs.is_blocked(seen) or run.stopped_s is not None
    if not look.sees_process or not clock.beats or run.ended_well or works or look.dead_s < STILL_S:
        return None
    deadline_s = deadlines.for_dead(run, hang, partly_seen=not look.sees_gpu)
    late_s = min(hang.max_s, deadlines.overdue(run, hang))
    alive_s = run.now - since - look.dead_s
    silent_s = max(deadline_s, late_s, alive_s + _without_sign_s(hang, deadline_s))
    return Coming(silent_s=silent_s + since - clock.last, deadline_s=deadline_s, weight="strong")


def can_loop(run: HangInput, hang: Hang) -> bool:
    """Return whether nothing but busy processes has been seen for so long that a look at them is worth it."""
    clock, seen = run.clock, run.liveness
    since = deadlines.last_progress(clock, run.log_activity)
    look = _look(run, since)
    busy = seen.cpu_alive_at is not None and run.now - seen.cpu_alive_at <= longest_gap(run.period_s)
    if not busy or run.ended_well or run.saving or run.now - since < min(hang.max_s, deadlines.overdue(run, hang)):
        return False
    at_full_load = look.spinning or look.pinned or look.dim  # the GPUs show more
    if not look.sees_process or at_full_load:
        return False
    in_loop = _without_work_s(run, since) >= QUIET_SHARE * deadlines.for_loop(run, hang, polls=False)
    return in_loop or can_wait(run, hang)


def can_wait(run: HangInput, hang: Hang) -> bool:
    """Return whether all GPUs that may be the run's have been at rest so long that a wait for them is worth a look."""
    return gpus_rest_s(run) >= QUIET_SHARE * deadlines.for_dead(run, hang, partly_seen=False)


def gpus_rest_s(run: HangInput) -> float:
    """Return for how long all GPUs that may be the run's were at rest and no byte moved; 0 if one is not, or not seen.

    GPUs that are known to be of others say nothing about what it waits for.
    """
    seen, now = run.liveness, run.now
    fresh = seen.gpu_at is not None and now - seen.gpu_at <= longest_gap(run.period_s)
    unrest_at = seen.unrest_at or 0.0
    if not fresh or unrest_at >= (seen.gpu_at or 0.0):
        return 0.0
    since = deadlines.last_progress(run.clock, run.log_activity)
    return now - max(unrest_at, liveness.last_work(seen), since)


def in_loop(run: HangInput, hang: Hang, watch: LoopWatch) -> Verdict | None:
    """Return a verdict if the looks at this silence found all that is busy in loops, or in waits for GPUs at rest.

    It may come before its deadline: what ending the run costs decides.
    """
    since = deadlines.last_progress(run.clock, run.log_activity)
    if not pauses.is_found(watch, since) or not can_loop(run, hang):
        return None
    if watch.waits:
        reason = "no step, and its processes wait for GPUs that do nothing"
        silent_s, deadline_s = gpus_rest_s(run), deadlines.for_dead(run, hang, partly_seen=False)
    else:
        reason = "no step, and its processes are in a loop that changes nothing"
        silent_s, deadline_s = _without_work_s(run, since), deadlines.for_loop(run, hang, polls=watch.polls)
    if silent_s < (1.0 if watch.waits and run.clock.beats == 0 else QUIET_SHARE) * deadline_s:
        return None
    verdict = _verdict(run, "spin", reason, "strong", silent_s=silent_s, deadline_s=deadline_s)
    return msgspec.structs.replace(verdict, evidence=(*watch.places, *verdict.evidence))


def lost_gpu(run: HangInput, hang: Hang, fault_at: float) -> Verdict | None:
    """Return a verdict if no step follows a kernel line that says that a GPU of this run is lost."""
    clock = run.clock
    silence_s = run.now - max(clock.last, fault_at)
    if silence_s < hang.quiet_s or run.now - clock.last < deadlines.pace_s(run, hang):
        return None
    look = _look(run, clock.last)
    kind: HangKind = "spin" if look.spinning or look.pinned or look.dim else _kind(run)
    reason = "no step since a GPU of this run was lost"
    return _verdict(run, kind, reason, "certain", silent_s=silence_s, deadline_s=hang.quiet_s)


def no_progress(run: HangInput, limit_s: float, stalled_s: float) -> Verdict:
    """Return the verdict on a run that made no new highest step for long, whatever it does meanwhile."""
    works = run.now - max(liveness.last_sign(run.liveness, cpu=True), run.clock.last) <= longest_gap(run.period_s)
    reason = f"no new highest step for {duration(stalled_s)}"
    return Verdict(
        kind="spin" if works else _kind(run),
        reason=reason,
        evidence=(reason, *evidence_of(run)),
        weight="certain",
        silent_s=stalled_s,
        deadline_s=step_peak.ACT_FACTOR * limit_s,
    )


def can_tell(run: HangInput) -> bool:
    """Return whether a run without progress may be ended: readings are there, and no phase that works was announced."""
    seen, log = run.liveness, run.log_activity
    fresh_s = longest_gap(run.period_s)
    if run.saving or run.now - max(seen.process_at or 0.0, seen.gpu_at or 0.0) > fresh_s:
        return False
    if process_signs.is_blocked(seen) and run.now - run.clock.last < deadlines.BLOCKED_S:
        return False
    works = seen.busy_at is not None and run.now - seen.busy_at <= fresh_s
    return not (works and deadlines.is_announced(log) and log.phase_at >= run.clock.last)


def _look(run: HangInput, since: float) -> _Look:
    seen, now = run.liveness, run.now
    fresh_s = longest_gap(run.period_s)  # an older reading proves nothing about now
    sees_gpu = seen.gpu_at is not None and now - seen.gpu_at <= fresh_s
    spinning = sees_gpu and seen.spin_at is not None and seen.spin_at == seen.gpu_at
    freed_at = 0.0 if process_signs.is_blocked(seen) else seen.unblocked_at
    return _Look(
        sees_process=seen.process_at is not None and now - seen.process_at <= fresh_s,
        sees_gpu=sees_gpu,
        dead_s=now - max(liveness.last_sign(seen, cpu=True), since, freed_at),
        still_s=now - max(liveness.last_sign(seen, cpu=False), since, freed_at),
        spinning=spinning,
        pinned=sees_gpu and not spinning and seen.pinned_at is not None and seen.pinned_at == seen.gpu_at,
        dim=sees_gpu and seen.dim_at is not None and seen.dim_at == seen.gpu_at,
    )


def _still_s(run: HangInput) -> float:
    """Return for how long no byte of the save in progress moved."""
    return run.now - max(liveness.last_byte(run.liveness), deadlines.last_progress(run.clock, run.log_activity))


def _in_save(run: HangInput, hang: Hang, look: _Look, share: float) -> Verdict | None:
    """Judge a run in a save. GPUs that wait for it, and cores that poll, show nothing of what the storage does."""
    deadline_s, still_s = deadlines.for_save(run, hang), _still_s(run)
    if still_s < share * deadline_s:
        return None
    kind: HangKind = "spin" if look.spinning or look.pinned or look.dim else _kind(run)
    return _verdict(run, kind, "no byte of its save moved", "certain", silent_s=still_s, deadline_s=deadline_s)


def _without_work_s(run: HangInput, since: float) -> float:
    """Return for how long no GPU worked, no byte moved and no file grew."""
    return run.now - max(liveness.last_work(run.liveness), since)


def _stopped(run: HangInput) -> str:
    return f"no step while {stopped_in(run, 'is', 'are')} stopped (state T)"


def _dead(run: HangInput, hang: Hang, kind: HangKind, reason: str, *, silent_s: float, deadline_s: float) -> Verdict:
    """Return the verdict without any sign of life: certain after a while, blocked processes aside."""
    seen = run.liveness
    if process_signs.is_blocked(seen):
        sure_s = deadlines.BLOCKED_MOST_S
    elif deadline_s <= deadlines.SHORT_S:
        sure_s = deadline_s
    else:
        # It is said within this time, so one sampling period to lose the last sign and one to notice are left.
        sure_s = DEAD_FOR_SURE * (hang.min_s - run.period_s)
    silence_s = run.now - deadlines.last_progress(run.clock, run.log_activity)
    partly = seen.gpu_at is not None and (seen.process_at is None or seen.process_at < seen.start_at)
    weight: Weight = "certain" if silence_s >= sure_s and not partly else "strong"
    return _verdict(run, kind, reason, weight, silent_s=silent_s, deadline_s=deadline_s)


def _too_old(run: HangInput, look: _Look) -> Verdict:
    """Return the verdict that ``hang.checkpoint_age_s`` asks for."""
    seen = run.liveness
    fresh_s = longest_gap(run.period_s)
    works = seen.busy_at is not None and run.now - seen.busy_at <= fresh_s
    kind: HangKind = "spin" if look.spinning or look.pinned or (works and look.sees_gpu) else _kind(run)
    busy = "although the GPU is busy" if works else "although the CPU is busy" if look.dead_s <= fresh_s else ""
    why = "and the newest checkpoint is older than hang.checkpoint_age_s"
    reason = f"no step {busy}, {why}" if busy else f"no step, {why}"
    return _verdict(run, kind, reason, "certain", silent_s=look.dead_s, deadline_s=0.0)


def _at_full_load(run: HangInput, hang: Hang, look: _Look, silence_s: float, share: float) -> Verdict | None:
    """Judge a GPU near 100 % whose power is unknown, or between that of a spin and the usual one."""
    full_s = deadlines.for_dim(run, hang) if look.dim else deadlines.for_pinned(run, hang)
    if look.still_s < share * full_s or silence_s < deadlines.far_overdue(run, hang):
        return None
    # In a run that makes pauses a smaller phase draws this power, too.
    weight: Weight = "weak" if look.dim and run.clock.pause_s >= deadlines.PAUSE_BY_DESIGN_S else "strong"
    power = "at much less power than usual" if look.dim else "(its power is unknown)"
    reason = f"no step while the GPU reports 100 % {power}"
    return _verdict(run, "spin", reason, weight, silent_s=look.still_s, deadline_s=full_s)


def _without_sign_s(hang: Hang, deadline_s: float) -> float:
    """Return how long signs of life must be missing. With a short deadline there are too few to wait for as long."""
    return deadline_s if deadline_s > deadlines.SHORT_S else min(hang.quiet_s, deadline_s / 2)


def _polling(run: HangInput, hang: Hang, since: float, still_s: float, share: float) -> Verdict | None:
    """Judge a run whose cores are busy but that makes no progress."""
    clock, seen = run.clock, run.liveness
    silence_s = run.now - since
    if process_signs.is_blocked(seen) and share >= 1.0 and silence_s < deadlines.BLOCKED_S:
        return None
    cap_s = max(
        hang.max_s,
        deadlines.KNOWN_FACTOR * deadlines.longest_known(run),
        hang.startup_s if clock.beats == 0 else 0.0,
    )
    if seen.gpu_at is None:
        cap_s *= POLLING_WITHOUT_GPU
        pinned_s = deadlines.for_pinned(run, hang)
        if clock.beats and still_s >= share * pinned_s and silence_s >= deadlines.far_overdue(run, hang):
            reason = "no step and no byte moved for long, only busy cores (no GPU can be read)"
            if _polls(run):
                return _verdict(run, "spin", reason, "even", silent_s=still_s, deadline_s=pinned_s)
            return _verdict(run, _kind(run), reason, "weak", silent_s=still_s, deadline_s=pinned_s)
    if silence_s < hang.deadline_factor * (clock.slow_s or 0.0):
        return None
    own_s = (seen.process_at or 0.0) - max(liveness.last_own_sign(seen), since)
    if seen.foreign and own_s >= share * cap_s:
        reason = "no step and no sign of life, and the busy GPUs are not this run's"
        return _verdict(run, _kind(run), reason, "strong", silent_s=own_s, deadline_s=cap_s)
    if still_s >= share * cap_s:
        reason = "no step for long, and only one core is busy"
        return _verdict(run, _kind(run), reason, "weak", silent_s=still_s, deadline_s=cap_s)
    idle_s = _without_work_s(run, clock.last)
    most_s = max(POLLING * hang.max_s, cap_s)
    if clock.beats and not deadlines.is_announced(run.log_activity) and idle_s >= share * most_s:
        reason = "no step for very long; cores are busy, but no GPU works"
        return _verdict(run, _kind(run), reason, "weak", silent_s=idle_s, deadline_s=most_s)
    return None


def _polls(run: HangInput) -> bool:
    """Return whether since the last step the processes used, or waited for, as much CPU as if they polled for a GPU."""
    seen = run.liveness
    cores = max(seen.cpu_sum, seen.run_sum) / max(1, seen.cpu_count)
    return cores >= max(WAITING_CORES, WAITING_CORES * (seen.cpu_normal or 0.0))


def _was_dim(run: HangInput, still_from: float) -> bool:
    """Return whether power wavers about the bound of a spin: an evaluation limited by memory, not a collective."""
    dim_at = run.liveness.dim_at
    return dim_at is not None and dim_at > still_from + longest_gap(run.period_s)


def _exiting(run: HangInput, hang: Hang, quiet_s: float, still_s: float, share: float) -> Verdict | None:
    deadline_s = (deadlines.EXPECTED if run.log_activity.exit_work_at is None else deadlines.LONG_WORK) * hang.min_s
    if quiet_s >= share * deadline_s or still_s >= CONCLUSIVE * share * deadline_s:
        reason = "the training is done, but its process does not end"
        return _verdict(run, "exiting", reason, "certain", silent_s=quiet_s, deadline_s=deadline_s)
    return None


def _without_readings(run: HangInput, hang: Hang, silence_s: float, share: float) -> Verdict | None:
    clock, seen = run.clock, run.liveness
    deadline_s = max(hang.max_s, hang.deadline_factor * max(clock.slow_s or 0.0, deadlines.longest_known(run)))
    if clock.beats == 0:
        deadline_s = max(deadline_s, hang.startup_s)
    if seen.process_at is not None or seen.gpu_at is not None:
        deadline_s *= READINGS_LOST
    if silence_s < share * deadline_s:
        return None
    kind: HangKind = "exiting" if run.ended_well else "idle"
    reason = "no step for very long, and nothing else can be seen"
    return _verdict(run, kind, reason, "weak", silent_s=silence_s, deadline_s=deadline_s)


def _kind(run: HangInput) -> HangKind:
    """Return ``waiting`` if a launcher has none, ``starved`` if workers are dead, blocked or missing, else ``idle``."""
    seen = run.liveness
    if run.waiting:
        return "waiting"
    if liveness.is_starved(seen) or run.stopped_s is not None:
        return "starved"
    # Before the first step, workers of a second attempt are not missing: they were not started yet.
    usual = seen.procs_normal if run.clock.beats else None
    missing = usual is not None and seen.procs is not None and seen.procs < usual
    return "starved" if missing and not deadlines.is_announced(run.log_activity) else "idle"


def _verdict(
    run: HangInput, kind: HangKind, reason: str, weight: Weight, *, silent_s: float, deadline_s: float
) -> Verdict:
    silence_s = run.now - deadlines.last_progress(run.clock, run.log_activity)
    return Verdict(
        kind=kind,
        reason=f"{reason} ({duration(silence_s)})",
        evidence=tuple(evidence_of(run)),
        weight=weight,
        silent_s=silent_s,
        deadline_s=deadline_s,
    )
