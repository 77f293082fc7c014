"""Whether a run that shows no step is hung, and how: idle, spin, starved, waiting or exiting.

A verdict needs two kinds of evidence: no step past the deadline, and no sign of life for as long. The evidence sets the
deadline (deadlines.py): no sign of life, two minutes; no sign but a log that grows, an announced phase, or a start,
longer. A GPU near 100 % far below its usual power (ranks that wait in a collective; reported as "GPU 100 % and frozen"
and by NCCL's watchdog): six minutes. Live evidence (usual power, bytes, growing files, compilers on several cores)
has no deadline but that of the slow clock (deadlines.py).

``RULES`` is read from top to bottom; the first rule that says something decides, and the last one always does.
``judge`` with a ``share`` below 1 says when the run is *quiet*: people are told, and nothing is ended.

Known false alarms that the rules are made against, each a scenario in tests/scenarios/healthy.py: slow saves (bytes or
the file grow), loads, compiling, silent refills that this run made before, sparse lines from a busy GPU, one rank that
evaluates while the others spin in a barrier, wake-up after a suspend, a trainer stopped by a person, lost readings,
uploads (bytes of its sockets, or announced), a network mount that comes back.
"""

import math
from collections.abc import Callable
from typing import Literal

import msgspec

from ...model.run import HangKind
from . import deadlines, liveness, pauses
from .deadlines import HangInput
from .evidence import GpuFault, duration, stopped_in

# Whether a run that makes no step is ended now, or given more time: the cost of waiting against the cost of an error.
#
# It is ended when
#
#     P(dead) x expected further wait  >  P(alive) x (work at risk + reload)
#
# A silence that has lasted t goes on for about as long again, so the expected further wait is t. P(dead) / P(alive),
# the odds, are ``ODDS`` at the learned deadline, by what is seen of the run, and grow with the power ``GROWTH`` of
# t / deadline, because the harmless silences of public reports become rare that fast. Work at risk is the training
# since the newest checkpoint, which a restart repeats; reload is the time from a launch to its first step.
#
# So a run that has just saved is ended at its deadline, and one with hours of unsaved work gets more time, the more
# the weaker the evidence is. Some evidence is certain and does not ask this.

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


class Case(msgspec.Struct, frozen=True):
    """How long evidence of this ``weight`` has lasted (``silent_s``), and from when it counts (``deadline_s``).

    ``first``: sentences before the evidence of every hang.
    """

    silent_s: float
    deadline_s: float
    weight: Weight = "certain"
    kind: HangKind = "idle"
    reason: str = ""
    first: tuple[str, ...] = ()

    def _odds_at(self, silent_s: float) -> float:
        odds = STRONG if self.weight == "strong" else EVEN if self.weight == "even" else WEAK
        return odds * math.pow(silent_s / max(self.deadline_s, 1.0), GROWTH)

    @property
    def likelihood(self) -> float:
        """How likely the run is dead, 0 to 1: by the odds that ``worth_ending_from`` weighs."""
        odds = self._odds_at(self.silent_s)
        return CERTAIN if self.weight == "certain" else min(CERTAIN, odds / (1.0 + odds))

    def worth_ending_from(self, loss_s: float) -> float:
        """The silence from which ending the run costs less than waiting, in seconds.

        ``loss_s``: work at risk and reload, in seconds.
        """
        return 0.0 if self.weight == "certain" else math.pow(loss_s / self._odds_at(1.0), 1.0 / (GROWTH + 1.0))


POLLING_CORES = 0.5
"""Cores, and share of the usual CPU, from which processes may be polling for their GPU, if no GPU can be read."""
CONCLUSIVE = 2.0
"""x the deadline: evidence that lasts this long needs no missing progress line, and busy cores no longer count."""
POLLING_WITHOUT_GPU = 3.0
"""x ``hang.max_s``: one core is busy and no GPU can be read, so that this core is all that could be seen of work."""
QUIET_SHARE = 0.65
"""x the deadline from which a run is quiet."""
TOLD_S = 165.0
"""Without a sign of life for so long before the first step, or after the end, people are told."""
STILL_S = 4.0
"""Without a sign of life for so long, people are told when the silence would be a hang."""

Answer = Case | Literal["alive"] | None
"""*alive*: not hung, or too early to tell. None: the rule says nothing."""


def judge(run: HangInput, share: float = 1.0) -> Case | None:
    """Return the case of the first rule that has one; None if one says *alive*. ``share``: of all deadlines."""
    answer = next(found for rule in RULES if (found := rule(run, share)) is not None)
    return None if answer == "alive" else _lasting(run, answer)


def _lasting(run: HangInput, case: Case) -> Case:
    return msgspec.structs.replace(case, reason=f"{case.reason} ({duration(run.silence_s)})")


def too_soon(run: HangInput, _share: float) -> Answer:
    return "alive" if run.silence_s < run.floor_s else None


def without_readings(run: HangInput, share: float) -> Answer:
    """Neither processes nor GPUs can be read."""
    if run.sees_process or run.sees_gpu:
        return None
    hang, seen = run.hang, run.liveness
    deadline_s = max(hang.max_s, hang.deadline_factor * max(run.clock.slow_s or 0.0, deadlines.longest_known(run)))
    if run.clock.beats == 0:
        deadline_s = max(deadline_s, hang.startup_s)
    if seen.process_at is not None or seen.gpu_at is not None:
        deadline_s *= deadlines.UNSEEN_FACTOR
    kind: HangKind = "exiting" if run.ended_well else "idle"
    reason = "no step for very long, and nothing else can be seen"
    early = run.silence_s < share * deadline_s
    return "alive" if early else Case(run.silence_s, deadline_s, "weak", kind, reason)


def done_but_alive(run: HangInput, share: float) -> Answer:
    """The training is done, and its process does not end. Cores and GPUs that wait are no work."""
    if not run.ended_well:
        return None
    factor = deadlines.EXPECTED if run.log_activity.exit_work_at is None else deadlines.LONG_WORK
    deadline_s = factor * run.hang.min_s
    quiet_s = run.still_s if run.load or not run.sees_gpu else run.dead_s
    due = quiet_s >= _told_from(deadline_s, share) or run.still_s >= CONCLUSIVE * share * deadline_s
    reason = "the training is done, but its process does not end"
    return Case(quiet_s, deadline_s, "certain", "exiting", reason) if due else "alive"


def in_save(run: HangInput, share: float) -> Answer:
    """GPUs that wait for a save, and cores that poll, show nothing of what the storage does."""
    if not run.save:
        return None
    deadline_s, still_s = deadlines.for_save(run), run.no_byte_s
    if still_s < share * deadline_s:
        return "alive"
    return Case(still_s, deadline_s, "certain", _kind(run, "spin"), "no byte of its save moved")


def some_are_stopped(run: HangInput, share: float) -> Answer:
    """Some computing processes are stopped (state T), and the others wait for them."""
    deadline_s, stopped_s = deadlines.for_dead(run), min(run.stopped_s or 0.0, run.silence_s)
    if run.stopped_s is None or stopped_s < max(share * deadline_s, run.late_s):
        return None
    return Case(stopped_s, deadline_s, _weight(run, deadline_s), "starved", _stopped(run))


def checkpoint_is_too_old(run: HangInput, _share: float) -> Answer:
    """What ``hang.checkpoint_age_s`` asks for."""
    oldest_s = run.hang.checkpoint_age_s
    if oldest_s is None or run.checkpoint_age_s <= oldest_s or run.silence_s < run.late_s:
        return None
    kind: HangKind = "spin" if run.load in {"spin", "pinned"} or (run.works and run.sees_gpu) else _kind(run)
    busy = "GPU" if run.works else "CPU" if run.dead_s <= run.fresh_s else ""
    although = f" although the {busy} is busy" if busy else ""
    reason = f"no step{although}, and the newest checkpoint is older than hang.checkpoint_age_s"
    return Case(run.dead_s, 0.0, "certain", kind, reason)


def at_full_load(run: HangInput, share: float) -> Answer:
    """A GPU near 100 %: far below its usual power (a spin), below it, or at an unknown one."""
    if run.load is None:
        return None
    deadline_s = deadlines.for_load(run, run.load)
    late = run.silence_s >= run.far_overdue_s
    weight: Weight = "strong"
    if run.load == "spin":
        reason = "no step while the GPU spins far below its usual power"
        line_s = min(run.hang.max_s, deadlines.LINE_FACTOR * (run.clock.slow_s or 0.0))
        late = run.silence_s >= line_s or run.still_s >= CONCLUSIVE * deadline_s
    elif run.load == "dim":
        reason = "no step while the GPU reports 100 % at much less power than usual"
        # In a run that makes pauses a smaller phase draws this power, too.
        weight = "weak" if run.clock.pause_s >= deadlines.PAUSE_BY_DESIGN_S else weight
    else:
        reason = "no step while the GPU reports 100 % (its power is unknown)"
    due = late and run.still_s >= share * deadline_s
    return Case(run.still_s, deadline_s, weight, "spin", reason) if due else "alive"


def no_sign_of_life(run: HangInput, share: float) -> Answer:
    deadline_s = deadlines.for_dead(run)
    if run.blocked and share >= 1.0:
        deadline_s = max(deadline_s, deadlines.BLOCKED_S)
    late = run.silence_s >= run.late_s or (run.clock.beats and run.dead_s >= CONCLUSIVE * deadline_s)
    least_s = share * deadline_s if run.clock.beats else _told_from(deadline_s, share)
    if not late or run.dead_s < min(least_s, share * _without_sign_s(run, deadline_s)) or run.silence_s < least_s:
        return None
    at_once = run.stopped_s is not None and run.silence_s - run.stopped_s <= run.fresh_s
    sign = "no sign of life but lines in the log" if run.still_prints else "no sign of life"
    reason = run.waiting or (_stopped(run) if at_once else f"no step and {sign}")
    return Case(run.dead_s, deadline_s, _weight(run, deadline_s), _kind(run), reason)


def in_loop(run: HangInput, _share: float) -> Answer:
    """The looks at this silence found all that is busy in loops, or in waits for GPUs at rest.

    It may come before its deadline: what ending the run costs decides.
    """
    watch = run.loops
    if watch.since != run.since or watch.agreed < pauses.AGREEING or not can_loop(run):
        return None
    if watch.waits:
        deadline_s = deadlines.for_dead(run, partly_seen=False)
        does, silent_s = "wait for GPUs that do nothing", run.gpus_rest_s
    else:
        deadline_s = _for_loop(run, polls=watch.polls)
        does, silent_s = "are in a loop that changes nothing", run.no_work_s
    if silent_s < (1.0 if watch.waits and run.clock.beats == 0 else QUIET_SHARE) * deadline_s:
        return None
    return Case(silent_s, deadline_s, "strong", "spin", f"no step, and its processes {does}", watch.places)


def blocked_for_now(run: HangInput, share: float) -> Answer:
    return "alive" if run.blocked and share >= 1.0 and run.silence_s < deadlines.BLOCKED_S else None


def busy_cores(run: HangInput, share: float) -> Answer:
    """Nothing but cores is busy: the first row holds whose evidence has lasted for its deadline."""
    seen, startup_s = run.liveness, 0.0 if run.clock.beats else run.hang.startup_s
    most_s = max(run.hang.max_s, deadlines.KNOWN_FACTOR * deadlines.longest_known(run), startup_s)
    most_s *= POLLING_WITHOUT_GPU if seen.gpu_at is None else 1.0  # how long busy cores alone count as work
    unseen = seen.gpu_at is None and run.clock.beats > 0 and run.silence_s >= run.far_overdue_s
    # As much CPU as if the processes polled for a GPU, used or waited for?
    cores = max(seen.cpu_sum, seen.run_sum) / max(1, seen.cpu_count)
    polls = cores >= POLLING_CORES * max(1.0, seen.cpu_normal or 0.0)
    due = run.silence_s >= run.hang.deadline_factor * (run.clock.slow_s or 0.0)
    own_s = (seen.process_at or 0.0) - max(liveness.last_byte(seen), seen.working.at or 0.0, run.since)
    idle_s = run.now - max(liveness.last_work(seen), run.clock.last)
    longest_s = max(CONCLUSIVE * run.hang.max_s, most_s)
    others = "no step and no sign of life, and the busy GPUs are not this run's"
    alone = "no step and no byte moved for long, only some CPU use (no GPU can be read)"
    useless = "no step for very long; cores are busy, but no GPU works"
    works = not run.clock.beats or run.announced
    rows: tuple[tuple[bool, float, float, Weight, str], ...] = (
        (unseen, run.still_s, deadlines.for_load(run, "pinned"), "even" if polls else "weak", alone),
        (due and seen.foreign, own_s, most_s, "strong", others),
        (due, run.still_s, most_s, "weak", "no step for long, and only one core is busy"),
        (due and not works, idle_s, longest_s, "weak", useless),
    )
    for holds, lasted_s, deadline_s, weight, reason in rows:
        if holds and lasted_s >= share * deadline_s:
            kind: HangKind = "spin" if weight == "even" else _kind(run)
            return Case(lasted_s, deadline_s, weight, kind, reason)
    return "alive"


RULES: tuple[Callable[[HangInput, float], Answer], ...] = (
    too_soon,
    without_readings,
    done_but_alive,
    in_save,
    some_are_stopped,
    checkpoint_is_too_old,
    at_full_load,
    no_sign_of_life,
    in_loop,
    blocked_for_now,
    busy_cores,
)


def lost_gpu(run: HangInput, fault: GpuFault) -> Case | None:
    """Return a case if no step follows a kernel line that says that a GPU of this run is lost."""
    last, quiet_s = run.clock.last, run.hang.quiet_s
    silence_s = run.now - max(last, fault.at)
    if silence_s < quiet_s or run.now - last < run.pace_s:
        return None
    reason = "no step since a GPU of this run was lost"
    return _lasting(run, Case(silence_s, quiet_s, "certain", _kind(run, "spin"), reason, (fault.text,)))


def no_progress(run: HangInput) -> Case | None:
    """Return a case if the run made no new highest step for long, whatever it does meanwhile: the slow clock.

    Its deadline is infinite, so that nothing is ended, without readings and while a phase works that was announced.
    """
    seen, usual_s = run.liveness, deadlines.usual_s(run.clock)
    if usual_s is None:
        return None
    works_at = max(seen.file_at or 0.0, run.log_activity.work_bar_at)  # an evaluation or a save advanced
    stalled_s = run.now - max(run.peak.at, works_at if works_at > run.clock.last else 0.0)
    limit_s = max(run.hang.max_s, deadlines.STALL_FACTOR * usual_s)
    if stalled_s < limit_s:
        return None
    works = run.now - max(liveness.last_sign(seen, cpu=True), run.clock.last) <= run.fresh_s
    blocked = run.blocked and run.now - run.clock.last < deadlines.BLOCKED_S
    announced = run.works and run.announced and run.log_activity.phase_at >= run.clock.last
    ends = not (run.save or blocked or announced) and (run.sees_process or run.sees_gpu)
    reason, kind = f"no new highest step for {duration(stalled_s)}", "spin" if works else _kind(run)
    return Case(stalled_s, deadlines.ACT_FACTOR * limit_s if ends else math.inf, "certain", kind, reason, (reason,))


def dead_from(run: HangInput) -> Case | None:
    """Return from which silence ``judge`` finds no sign of life if none comes, counted from the last step.

    None: one is seen.
    """
    last = run.clock.last
    if run.save:
        deadline_s, still_s = deadlines.for_save(run), run.no_byte_s
        silent_s = run.now - last - still_s + deadline_s
        return None if still_s < STILL_S else Case(silent_s, deadline_s)
    works = run.load or run.blocked or run.stopped_s is not None
    if not run.sees_process or not run.clock.beats or run.ended_well or works or run.dead_s < STILL_S:
        return None
    deadline_s = deadlines.for_dead(run)
    silent_s = max(deadline_s, run.late_s, run.silence_s - run.dead_s + _without_sign_s(run, deadline_s))
    return Case(silent_s + run.since - last, deadline_s, "strong")


def can_loop(run: HangInput) -> bool:
    """Return whether nothing but busy processes has been seen for so long that a look at them is worth it."""
    if not run.is_fresh(run.liveness.working.at) or run.ended_well or run.save or run.silence_s < run.late_s:
        return False
    if not run.sees_process or run.load:  # the GPUs show more
        return False
    return run.no_work_s >= QUIET_SHARE * _for_loop(run, polls=False) or can_wait(run)


def can_wait(run: HangInput) -> bool:
    """Return whether all GPUs that may be the run's have been at rest so long that a wait for them is worth a look."""
    return run.gpus_rest_s >= QUIET_SHARE * deadlines.for_dead(run, partly_seen=False)


def _for_loop(run: HangInput, *, polls: bool) -> float:
    """Return the deadline for processes in a loop that changes nothing. ``polls``: what it asks for may still come."""
    known_s = deadlines.KNOWN_FACTOR * deadlines.longest_known(run)
    return max(deadlines.for_load(run, "pinned" if polls else "spin"), known_s)


def _told_from(deadline_s: float, share: float) -> float:
    """Return from when people are told before the first step, or after the end; or the deadline."""
    return share * deadline_s if share >= 1.0 else min(share * deadline_s, TOLD_S)


def _stopped(run: HangInput) -> str:
    return f"no step while {stopped_in(run, 'is', 'are')} stopped (state T)"


def _weight(run: HangInput, deadline_s: float) -> Weight:
    """Return the weight of evidence without any sign of life: certain after a while, blocked processes aside."""
    seen = run.liveness
    if run.blocked:
        sure_s = deadlines.BLOCKED_MOST_S
    elif deadline_s <= deadlines.SHORT_S:
        sure_s = deadline_s
    else:
        # It is said within this time, so one sampling period to lose the last sign and one to notice are left.
        sure_s = deadlines.OVER * (run.hang.min_s - run.period_s)
    partly = seen.gpu_at is not None and (seen.process_at is None or seen.process_at < seen.start_at)
    return "certain" if run.silence_s >= sure_s and not partly else "strong"


def _without_sign_s(run: HangInput, deadline_s: float) -> float:
    """Return how long signs of life must be missing. With a short deadline there are too few to wait for as long."""
    return deadline_s if deadline_s > deadlines.SHORT_S else min(run.hang.quiet_s, deadline_s / 2)


def _kind(run: HangInput, at_load: HangKind | None = None) -> HangKind:
    """Return ``waiting`` if a launcher has none, ``starved`` if workers are dead, blocked or missing, else ``idle``.

    ``at_load``: what it is if a GPU is near 100 %.
    """
    if at_load is not None and run.load:
        return at_load
    seen = run.liveness
    if run.waiting:
        return "waiting"
    if liveness.is_starved(seen) or run.stopped_s is not None:
        return "starved"
    # Before the first step, workers of a second attempt are not missing: they were not started yet.
    usual = seen.procs_normal if run.clock.beats else None
    missing = usual is not None and seen.procs is not None and seen.procs < usual
    return "starved" if missing and not run.announced else "idle"
