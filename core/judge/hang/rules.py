"""Whether a run that shows no step is hung, and how: idle, spin, starved, waiting or exiting.

A verdict needs two kinds of evidence: no step past the deadline, and no sign of life for as long. The evidence sets the
deadline (deadlines.py): no sign of life, two minutes; no sign but a log that grows, an announced phase, or a start,
longer. A GPU near 100 % far below its usual power (ranks that wait in a collective; reported as "GPU 100 % and frozen"
and by NCCL's watchdog): six minutes. Live evidence (usual power, bytes, growing files, compilers on several cores)
has no deadline but that of the slow clock (deadlines.py).

``RULES`` is read from top to bottom; the first case that counts decides.
Each case says when it counts, and from when the run is *quiet*: people are told, and nothing is ended.

Known false alarms that the rules are made against, each a scenario in tests/scenarios/healthy.py: slow saves (bytes or
the file grow), loads, compiling, silent refills that this run made before, sparse lines from a busy GPU, one rank that
evaluates while the others spin in a barrier, wake-up after a suspend, a trainer stopped by a person, lost readings,
uploads (bytes of its sockets, or announced), a network mount that comes back.
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import msgspec

from ...model.observation import Outcome
from ...model.run import Evidence, HangKind
from ...model.text import LazyPattern, plural, size
from ..scales import HALF_AGAIN, MINUTE_S, TWICE, WHILE_S
from . import deadlines, liveness
from .deadlines import HangInput
from .liveness import GpuState, Liveness
from .pauses import silent, waiting

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

    ``due_s``, ``told_s``: seconds until it counts, and until people are told, if nothing changes; 0 or less = now.
    ``first``: sentences before the evidence of every hang. ``still``: nothing at all moves, so that its end is told.
    """

    silent_s: float
    deadline_s: float
    weight: Weight = "certain"
    kind: HangKind = "idle"
    reason: str = ""
    first: tuple[str, ...] = ()
    due_s: float = 0.0
    told_s: float = math.inf
    still: bool = False

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
POLLING_WITHOUT_GPU = 3.0
"""x ``hang.max_s``: one core is busy and no GPU can be read, so that this core is all that could be seen of work."""
QUIET_SHARE = 0.65
"""x the deadline from which a run is quiet."""
TOLD_S = 165.0
"""Without a sign of life for so long before the first step, or after the end, people are told."""
FAINT_CORES = 0.1
"""Below this the only sign of life may be a loop that waits, and people are told after the same time."""
STILL_S = 4.0
"""Without a sign of life for so long, people are told when the silence would be a hang."""


def cases(run: HangInput) -> Iterator[Case]:
    """Yield what the rules say, up to one that decides."""
    for rule, decides in RULES:
        said = tuple(rule(run))
        yield from said
        if said and decides:
            return


def judge(run: HangInput) -> Case | None:
    """Return the first case that counts now; None if the run is not hung."""
    return next((case for case in cases(run) if case.due_s <= 0.0), None)


def _case(
    run: HangInput,
    silent_s: float,
    deadline_s: float,
    reason: str,
    weight: Weight = "certain",
    *,
    kind: HangKind | None = None,
    first: tuple[str, ...] = (),
    from_s: float | None = None,
    told_from_s: float | None = None,
    late_s: float = 0.0,
    still: bool = False,
) -> Case:
    """``from_s``, ``told_from_s``: how long its evidence has to last, None = the deadline, and a share of it.

    ``late_s``: the silence with which a step is late. ``kind`` None: as the processes show it.
    """
    late_s = max(late_s, run.floor_s) - run.silence_s
    due_s = max((deadline_s if from_s is None else from_s) - silent_s, late_s)
    told_s = max((QUIET_SHARE * deadline_s if told_from_s is None else told_from_s) - silent_s, late_s)
    reason = f"{reason} ({duration(run.silence_s)})"
    kind = _kind(run) if kind is None else kind
    return Case(silent_s, deadline_s, weight, kind, reason, first, due_s, told_s, still)


def lost_gpu(run: HangInput) -> Iterator[Case]:
    """No step follows a kernel line that says that a GPU of this run is lost, for as long as a sign of life counts."""
    fault = run.gpu_fault
    if fault is None or run.clock.last > fault.at:
        return
    silent_s = run.now - fault.at
    reason = f"no step since a GPU of this run was lost ({duration(silent_s)})"
    due_s = max(liveness.WINDOW_S - silent_s, run.pace_s - (run.now - run.clock.last))
    yield Case(silent_s, liveness.WINDOW_S, "certain", _kind(run, "spin"), reason, (fault.text,), due_s)


def without_readings(run: HangInput) -> Iterator[Case]:
    """Neither processes nor GPUs can be read."""
    if run.sees_process or run.sees_gpu:
        return
    hang, seen = run.hang, run.liveness
    deadline_s = max(hang.max_s, hang.deadline_factor * max(run.clock.slow_s or 0.0, deadlines.longest_known(run)))
    if run.clock.beats == 0:
        deadline_s = max(deadline_s, hang.startup_s)
    if seen.process_at is not None or seen.gpu_at is not None:
        deadline_s *= TWICE
    reason = "no step for very long, and nothing else can be seen"
    yield _case(run, run.silence_s, deadline_s, reason, "weak", kind="exiting" if run.ended_well else "idle")


def done_but_alive(run: HangInput) -> Iterator[Case]:
    """The training is done, and its process does not end. Cores and GPUs that wait are no work."""
    if not run.ended_well:
        return
    may_work = run.log_activity.exit_work_at is not None or run.load == "pinned"
    factor = deadlines.LONG_WORK if may_work else deadlines.EXPECTED
    deadline_s = factor * run.hang.min_s
    quiet_s = run.still_s if run.load or not run.sees_gpu else run.dead_s
    sure_s, busy_s = TWICE * deadline_s, run.still_s - quiet_s  # then busy cores do not count any more
    yield _case(
        run,
        quiet_s,
        deadline_s,
        "the training is done, but its process does not end",
        kind="exiting",
        from_s=min(deadline_s, sure_s - busy_s),
        told_from_s=min(QUIET_SHARE * deadline_s, TOLD_S, QUIET_SHARE * sure_s - busy_s),
    )


def in_save(run: HangInput) -> Iterator[Case]:
    """GPUs that wait for a save, and cores that poll, show nothing of what the storage does."""
    if not run.save:
        return
    still_s = run.now - max(run.since, liveness.last_byte(run.liveness))
    deadline_s, kind = deadlines.for_save(run), _kind(run, "spin")
    yield _case(run, still_s, deadline_s, "no byte of its save moved", kind=kind, still=still_s >= STILL_S)


def some_are_stopped(run: HangInput) -> Iterator[Case]:
    """Some computing processes are stopped (state T), and the others wait for them."""
    if run.stopped_s is None:
        return
    deadline_s, stopped_s = deadlines.for_dead(run), min(run.stopped_s, run.silence_s)
    late_s = run.late_s + run.silence_s - stopped_s  # after the stop
    yield _case(run, stopped_s, deadline_s, _stopped(run), _weight(run, deadline_s), kind="starved", late_s=late_s)


def checkpoint_is_too_old(run: HangInput) -> Iterator[Case]:
    """What ``hang.checkpoint_age_s`` asks for."""
    oldest_s = run.hang.checkpoint_age_s
    if oldest_s is None or run.checkpoint_age_s <= oldest_s:
        return
    kind: HangKind = "spin" if run.load in {"spin", "pinned"} or (run.works and run.sees_gpu) else _kind(run)
    busy = "GPU" if run.works else "CPU" if run.dead_s <= run.fresh_s else ""
    although = f" although the {busy} is busy" if busy else ""
    reason = f"no step{although}, and the newest checkpoint is older than hang.checkpoint_age_s"
    yield _case(run, run.dead_s, 0.0, reason, kind=kind, late_s=run.late_s)


def at_full_load(run: HangInput) -> Iterator[Case]:
    """A GPU near 100 %: far below its usual power (a spin), below it, or at an unknown one."""
    if run.load is None:
        return
    deadline_s, late_s = deadlines.for_load(run, run.load), run.far_overdue_s
    weight: Weight = "strong"
    if run.load == "spin":
        reason = "no step while the GPU spins far below its usual power"
        line_s = min(run.hang.max_s, HALF_AGAIN * (run.clock.slow_s or 0.0))
        late_s = min(line_s, TWICE * deadline_s + run.silence_s - run.still_s)
    elif run.load == "dim":
        reason = "no step while the GPU reports 100 % at much less power than usual"
        # In a run that makes pauses a smaller phase draws this power, too.
        weight = "weak" if run.clock.pause_s >= deadlines.PAUSE_BY_DESIGN_S else weight
    else:
        reason = "no step while the GPU reports 100 % (its power is unknown)"
    yield _case(run, run.still_s, deadline_s, reason, weight, kind="spin", late_s=late_s)


def no_sign_of_life(run: HangInput) -> Iterator[Case]:
    usual_s, started, busy_s = deadlines.for_dead(run), run.clock.beats > 0, run.silence_s - run.dead_s
    # Network mounts come back after minutes, however short min_s is.
    deadline_s = max(usual_s, WHILE_S) if run.blocked else usual_s
    told_s = QUIET_SHARE * usual_s if started else min(QUIET_SHARE * usual_s, TOLD_S)
    at_once = run.stopped_s is not None and run.silence_s - run.stopped_s <= run.fresh_s
    sign = "no sign of life but lines in the log" if run.still_prints else "no sign of life"
    yield _case(
        run,
        run.dead_s,
        deadline_s,
        waiting(run.launcher) or (_stopped(run) if at_once else f"no step and {sign}"),
        _weight(run, deadline_s),
        from_s=max(_without_sign_s(deadline_s), deadline_s - busy_s),
        told_from_s=max(min(told_s, QUIET_SHARE * _without_sign_s(usual_s)), told_s - busy_s),
        late_s=min(run.late_s, TWICE * deadline_s + busy_s) if started else run.late_s,
        still=started and run.sees_process and not run.blocked and run.stopped_s is None and run.dead_s >= STILL_S,
    )


def in_loop(run: HangInput) -> Iterator[Case]:
    """The looks at this silence found all that is busy in loops, or in waits for GPUs at rest.

    It may come before its deadline: what ending the run costs decides.
    """
    watch = run.loops
    if watch.since != run.since or watch.agreed < TWICE or not can_loop(run):
        return
    if watch.waits:
        deadline_s = deadlines.for_dead(run, partly_seen=False)
        does, silent_s = "wait for GPUs that do nothing", run.gpus_rest_s
    else:
        deadline_s = _for_loop(run, polls=watch.polls)
        does, silent_s = "are in a loop that changes nothing", run.no_work_s
    from_s = (1.0 if watch.waits and run.clock.beats == 0 else QUIET_SHARE) * deadline_s
    yield _case(
        run,
        silent_s,
        deadline_s,
        f"no step, and its processes {does}",
        "strong",
        kind="spin",
        first=watch.places,
        from_s=from_s,
        told_from_s=from_s,
    )


def busy_cores(run: HangInput) -> Iterator[Case]:
    """Nothing but cores is busy."""
    seen, started = run.liveness, run.clock.beats > 0
    known_s = TWICE * deadlines.longest_known(run)
    moves = started and not run.announced and (seen.working.at or 0.0) > run.since + liveness.WINDOW_S
    told_s = max(TOLD_S, known_s) if moves and seen.cpu_sum < FAINT_CORES * seen.cpu_count else math.inf
    most_s = max(run.hang.max_s, known_s)
    most_s = most_s if started else max(most_s, run.hang.startup_s)
    most_s *= POLLING_WITHOUT_GPU if seen.gpu_at is None else 1.0  # how long busy cores alone count as work
    # As much CPU as if the processes polled for a GPU, used or waited for?
    cores = max(seen.cpu_sum, seen.run_sum) / max(1, seen.cpu_count)
    polls = cores >= POLLING_CORES * max(1.0, seen.cpu_normal or 0.0)
    own_at = max(seen.working.at or 0.0, seen.own_busy_at or 0.0)
    own_s = (seen.process_at or 0.0) - max(liveness.last_byte(seen), own_at, run.since)
    idle_s = run.now - max(liveness.last_work(seen), run.clock.last)
    longest_s, late_s = max(TWICE * run.hang.max_s, most_s), run.hang.deadline_factor * (run.clock.slow_s or 0.0)
    unseen_s = deadlines.for_load(run, "pinned")
    alone = "no step and no byte moved for long, only some CPU use (no GPU can be read)"
    others = "no step and no sign of life, and the busy GPUs are not this run's"
    useless = "no step for very long; cores are busy, but no GPU works"
    rows: tuple[tuple[bool, float, float, float, Weight, str], ...] = (
        (seen.gpu_at is None and started, run.still_s, unseen_s, run.far_overdue_s, "even" if polls else "weak", alone),
        (seen.foreign, own_s, most_s, late_s, "strong", others),
        (True, run.still_s, most_s, late_s, "weak", "no step for long, and only one core is busy"),
        (started and not run.announced, idle_s, longest_s, late_s, "weak", useless),
    )
    for holds, lasted_s, deadline_s, after_s, weight, reason in rows:
        kind: HangKind | None = "spin" if weight == "even" else None
        from_s = max(deadline_s, WHILE_S + lasted_s - run.silence_s) if run.blocked else deadline_s
        told_from_s = min(told_s, QUIET_SHARE * deadline_s)
        if holds:
            yield _case(
                run, lasted_s, deadline_s, reason, weight,
                kind=kind, from_s=from_s, told_from_s=told_from_s, late_s=after_s,
            )  # fmt: skip


RULES: tuple[tuple[Callable[[HangInput], Iterator[Case]], bool], ...] = (
    (lost_gpu, False),
    (without_readings, True),
    (done_but_alive, True),
    (in_save, True),
    (some_are_stopped, False),
    (checkpoint_is_too_old, False),
    (at_full_load, True),
    (no_sign_of_life, False),
    (in_loop, False),
    (busy_cores, True),
)
"""Each with whether it decides: as long as its case does not count, the run is not hung."""


def no_progress(run: HangInput) -> Case | None:
    """Return a case if the run made no new highest step for long, whatever it does meanwhile: the slow clock.

    It is never due, so that nothing is ended, without readings and while a phase works that was announced.
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
    blocked = run.blocked and run.now - run.clock.last < WHILE_S
    announced = run.works and run.announced and run.log_activity.phase_at >= run.clock.last
    ends = not (run.save or blocked or announced) and (run.sees_process or run.sees_gpu)
    reason, kind = f"no new highest step for {duration(stalled_s)}", "spin" if works else _kind(run)
    known_s = TWICE * run.clock.pause_s
    due_s = max(HALF_AGAIN * limit_s, known_s) - stalled_s if ends else math.inf
    # A GPU that works while nothing is printed may evaluate; what loops makes steps, or prints.
    silent = run.works and run.clock.last <= run.peak.at and run.log_activity.printed_at is None
    return Case(stalled_s, limit_s, "weak" if silent else "certain", kind, reason, (reason,), due_s)


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
    known_s = TWICE * deadlines.longest_known(run)
    return max(deadlines.for_load(run, "pinned" if polls else "spin"), known_s)


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
        sure_s = TWICE * (run.hang.min_s - run.period_s)
    partly = seen.gpu_at is not None and (seen.process_at is None or seen.process_at < seen.start_at)
    return "certain" if run.silence_s >= sure_s and not partly else "strong"


def _without_sign_s(deadline_s: float) -> float:
    """Return how long signs of life must be missing: before a short deadline come too few to wait for as long."""
    return deadline_s if deadline_s > deadlines.SHORT_S else deadline_s / 2.0


def _kind(run: HangInput, at_load: HangKind | None = None) -> HangKind:
    """Return ``waiting`` if a launcher has none, ``starved`` if workers are dead, blocked or missing, else ``idle``.

    ``at_load``: what it is if a GPU is near 100 %.
    """
    if at_load is not None and run.load:
        return at_load
    seen = run.liveness
    if waiting(run.launcher):
        return "waiting"
    if liveness.is_starved(seen) or run.stopped_s is not None:
        return "starved"
    # Before the first step, workers of a second attempt are not missing: they were not started yet.
    usual = seen.procs_normal if run.clock.beats else None
    missing = usual is not None and seen.procs is not None and seen.procs < usual
    return "starved" if missing and not run.announced else "idle"


# What a verdict of a hang is told with: stack frames, signs of the GPUs, sentences.

# The kind of a hang as the stack frames of the hung processes show it, whatever GPU and CPU looked like.
#
# Sources: py-spy dumps of hung DataLoaders (the main process waits in ``_try_get_data``: pytorch/pytorch issues 1355
# and 75147, RolnickLab/ami-data-companion issue 140), of collectives whose peers never come (NCCL watchdog reports),
# and of a GPU that does not finish its kernels (``cudaStreamSynchronize`` below ``item`` or ``synchronize``). A
# process that moved between the two looks proves nothing: a healthy training synchronises, too, but not for ten
# seconds in one place.


class Sign(NamedTuple):
    """The kind of hang that a stack shows. ``what``: a sentence of evidence."""

    kind: HangKind
    what: str


FRAMES: tuple[tuple[LazyPattern, HangKind, str], ...] = (
    (LazyPattern(r"_try_get_data\b"), "starved", "waits for a data loader worker that brings nothing"),
    (
        LazyPattern(r"\bp?nccl[A-Z]\w+|ProcessGroupNCCL|\b(?:all_reduce|all_gather\w*|barrier) \(torch/distributed"),
        "spin",
        "waits in a collective for other ranks",
    ),
    (
        LazyPattern(
            r"\b(?:cuda|cu)(?:Stream|Device|Event|Ctx)Synchronize|\bcu(?:da)?Memcpy\w*"
            r"|\bsynchronize \(torch/cuda/(?:__init__|streams)\.py|\(libcuda(?:_loader)?\.so"
        ),
        "spin",
        "waits for the GPU to finish its kernels",
    ),
)
"""Strongest first: a process that waits for data does so whatever else is on its stack."""


SAVE_FRAME = LazyPattern(r"(?:^|[.\s])_*(?:\w+_)?(?:save|serialize_file)(?:_\w+)? \(")
"""A function that saves: ``save (torch/serialization.py:967)``, ``save_checkpoint (train.py:49)``."""


def save_frame(outcome: Outcome | None) -> str:
    """Return the frame of a save in the captured stacks; "" if none shows one."""
    every = (frame for _, frames in _stacks(outcome, "frames") for frame in frames)
    return next((frame for frame in every if SAVE_FRAME.search(frame)), "")


def signs_of(outcome: Outcome | None) -> tuple[Sign, ...]:
    """Return the signs in the captured stacks of processes that did not move, strongest first."""
    found: dict[str, Sign] = {}
    moved = {} if outcome is None else outcome.data.get("moved") or {}
    stacks = [each for each in _stacks(outcome, "native", "frames") if moved.get(each[0]) is not True]
    for pattern, kind, means in FRAMES:
        for pid, frames in stacks:
            if shown := [frame for frame in frames if pattern.search(frame)]:
                found.setdefault(pid, Sign(kind=kind, what=f"process {pid} {means}: {shown[0]}"))
    return tuple(found.values())[:3]


def _stacks(outcome: Outcome | None, *parts: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each process that was captured, and its frames, those of the first part first."""
    tables = [] if outcome is None else [outcome.data.get(name) or {} for name in parts]
    for pid in tables[-1] if tables else ():
        yield pid, [str(frame) for table in tables for frame in table.get(pid) or ()]


# The evidence of a hang in sentences for the user: each names a sign of life and how long ago it was last seen.


def evidence_of(run: HangInput, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> tuple[Evidence, ...]:
    clock, seen, log, now = run.clock, run.liveness, run.log_activity, run.now
    lines = [*first, *(sentence for sentence in (silent(run.ranks, run.t), waiting(run.launcher)) if sentence)]
    if clock.beats == 0:
        lines.append(f"no step yet, {duration(now - clock.start)} after the start")
    else:
        usual = f"; usually one progress line every {clock.typical_s:.3g} s" if clock.typical_s is not None else ""
        at = f"step {run.step}" if run.step is not None else "the last step"
        lines.append(f"{at} was {duration(now - clock.last)} ago{usual}")
    if run.announced:
        lines.append(f"phase {log.phase}, announced {duration(now - log.phase_at)} ago")
    if run.save:
        lines.append(f"a save is in progress: {run.save}")
    lines.extend(_gpu_evidence(seen))
    if seen.process_at is not None and seen.cpu is not None:
        usual = f" (usually {seen.cpu_normal:.2f})" if seen.cpu_normal is not None else ""
        of = f" of {seen.procs} process{'es' * (seen.procs != 1)}" if seen.procs is not None else ""
        lines.append(f"CPU{of}: {seen.cpu:.2f} cores{usual}")
    if seen.read_bytes is not None or seen.write_bytes is not None:
        few = f"less than {size(liveness.IDLE_BYTES_PER_S)}/s"
        moved = seen.bytes_at
        none_yet = f"{few} read and written so far"
        lines.append(none_yet if moved is None else f"last bytes moved {duration(now - moved)} ago ({few} since)")
    if seen.sending.at is not None:
        lines.append(f"last traffic of its sockets {duration(now - seen.sending.at)} ago")
    if run.stopped_s is not None:
        lines.append(f"{stopped_in(run, 'has', 'have')} been stopped (state T) for {duration(run.stopped_s)}")
    if seen.blocked_from is not None:
        lines.append(f"a process has been blocked in the kernel (state D) for {duration(now - seen.blocked_from)}")
    if seen.silent_mounts:
        lines.append(f"does not answer: {', '.join(seen.silent_mounts)}")
    if seen.zombies > seen.zombies_normal:
        lines.append(
            f"{plural(seen.zombies, 'dead worker process was', 'dead worker processes were')} not collected (state Z)"
        )
    if seen.procs_normal is not None and seen.procs is not None and seen.procs < seen.procs_normal:
        lines.append(f"{plural(seen.procs_normal - seen.procs, 'process', 'processes')} fewer than usual")
    if run.question:
        lines.append(f'the log ends with a question: "{run.question}"')
    if run.still_prints:
        lines.append(
            f"the log grew by {plural(log.printed_lines, 'line')} since the last step, but the step does not advance"
        )
    return tuple(Evidence(what=what) for what in (*lines, *last))


def stopped_in(run: HangInput, one: str, several: str) -> str:
    """What of the run is stopped, and the verb for ``one`` or ``several``: the ranks if any are known to be."""
    names = [str(rank) for rank in run.pause.ranks] or ["some of its processes"]
    return f"{', '.join(names)} {one if len(run.pause.ranks) == 1 else several}"


def _gpu_evidence(seen: Liveness) -> list[str]:
    power = f"{seen.spin_seen_w:.0f} W" if seen.spin_seen_w is not None else "low power"
    words: dict[GpuState, str] = {
        "spin": f"near 100 % at {power}{{}}: it waits in a kernel",
        "pinned": "near 100 %, power unknown",
        "dim": "near 100 % without a gap, at less power than usual{}",
        "idle": "idle{}",
    }
    usual = ["" if normal.busy_w is None else f", usually {normal.busy_w:.0f} W" for normal in seen.normals]
    told = zip(seen.normals, seen.gpu, usual, strict=False)
    return [f"GPU {normal.index}: {words[state].format(watts)}" for normal, state, watts in told if state in words]


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < WHILE_S else f"{seconds / MINUTE_S:.0f} min"
