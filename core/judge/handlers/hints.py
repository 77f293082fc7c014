"""Hints while the training goes on: what could be better, and which remedy would change it. Nobody is notified.

Sources: the balanced configuration guide (RAM above 80 % or less than 6 GB available; more than 3 s a step), the DiT
training guide (a loss that does not fall), the levels of GPU memory (below 90 % there is room for a bigger profile).
Each appears once per attempt, as an incident of severity ``info``.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

import msgspec

from ...model.fact import RemediesDropped
from ...model.observation import HostSample
from ...model.progress import VRAM_UNDERUSED_PCT
from ...model.run import DIVERGING, NO_STEP, GpuHabit, Habits, IncidentKind
from ...model.text import memory, plural
from .. import findings
from ..findings import host_values
from ..hang import pauses
from ..hang.liveness import GpuNormal
from ..hang.pauses import PhaseTimes
from ..knowledge import Knowledge
from ..memory import Printed
from ..recovery import remedies, restarts
from ..recovery.remedies import Option, merged, number, shown
from ..resume.checkpoint_index import KnownCheckpoint, base_name
from ..run_states import RestartPlan, Running, Starting, is_watched
from ..scales import HALF_MINUTE_S, KEPT, KNOWN_STEPS, SHOWN, TWICE, WHILE_S
from ..state import JudgeState, StepBuilder, changed
from ..text.lines import LINE_CAP

RAM_PCT = 80.0
RAM_AVAILABLE_BYTES = 6e9
RAM_LEAST_PCT = 60.0
"""Below this, little memory is available only because the machine is small."""
STEP_S = {"kohya": 3.0}
"""Seconds a step from which a framework's training counts as slow."""


def advice(builder: StepBuilder, trouble: str | Sequence[Option]) -> str:
    """Return the end of a sentence: remedies, or those of a ``trouble`` in remedies.toml, and their commands."""
    if isinstance(trouble, str):
        trouble = list(remedies.options(builder.knowledge.remedies, trouble, remedies.remedy_input(builder)))
    options = []
    for option in trouble[:SHOWN]:
        words = ("restart", "--with", option.remedy.name) if option.profile is None else ("profile", option.profile)
        options.append(f"{option.remedy.title} (`{builder.typed(*words)}`)")
    return f"; what may help: {', '.join(options)}" if options else ""


def on_host(builder: StepBuilder, sample: HostSample) -> None:
    """Hint at RAM that is nearly full, before it is dangerous."""
    free = sample.ram_available_bytes
    if _lasts(builder, "tight_since", HALF_MINUTE_S, holds=is_tight(sample)):
        left = "" if free is None else f", {memory(free)} available"
        reason = f"RAM is {used_pct(sample):.0f} % used{left}{advice(builder, 'host_oom')}"
        _hint(builder, "health", "ram_tight", reason)


def _lasts(builder: StepBuilder, name: Literal["tight_since", "spare_since"], least_s: float, *, holds: bool) -> bool:
    """Whether something has held for so long. ``name``: of the time in the state from which it holds."""
    since = getattr(builder.state.health, name)
    if (since is None) == holds:
        builder.change("health", **{name: builder.t if holds else None})
    return holds and since is not None and builder.t - since >= least_s


def is_tight(sample: HostSample) -> bool:
    """Return whether RAM is above its bounds; False if it is unknown."""
    used = used_pct(sample)
    little = sample.ram_available_bytes is not None and sample.ram_available_bytes < RAM_AVAILABLE_BYTES
    return used > RAM_PCT or (little and used > RAM_LEAST_PCT)


def used_pct(sample: HostSample) -> float:
    """Return the share of RAM in use, 0 if unknown."""
    return dict(host_values(sample)).get("ram_used", 0.0)


def on_spare(builder: StepBuilder) -> None:
    """Hint at the next profile of the ladder, unless it failed here, if GPU memory is left over for a while."""
    state, profile = builder.state, builder.state.policy.profile
    levels = [band.level for metric, band in state.health.bands.items() if metric.endswith(".vram")]
    spare = bool(levels) and all(level == "underused" for level in levels)
    # The peak of GPU memory may come with a larger picture, an evaluation or a sample.
    lasts, ladder = _lasts(builder, "spare_since", WHILE_S, holds=spare), builder.settings.profiles.ladder
    if profile not in ladder[:-1] or not lasts or state.watch.clock.beats < KNOWN_STEPS:
        return
    above = ladder[ladder.index(profile) + 1]
    if state.policy.profile_pending is None and not any(rung.profile == above for rung in state.policy.ramp.failed):
        less = f"GPU memory is less than {VRAM_UNDERUSED_PCT:.0f} % used"
        reason = f"{less}: profile {above} uses more of it (`{builder.typed('profile', above)}`)"
        _hint(builder, "health", "vram_spare", reason)


def on_steps(builder: StepBuilder) -> None:
    """Hint at steps that are slow for this framework."""
    clock, bound = builder.state.watch.clock, STEP_S.get(builder.knowledge.preset.name)
    if bound is not None and clock.step_s is not None and clock.step_s > bound and clock.beats >= KNOWN_STEPS:
        reason = f"a step takes {clock.step_s:.1f} s, more than {bound:g} s{advice(builder, 'slow')}"
        _hint(builder, "stall", "slow_steps", reason)


def _hint(builder: StepBuilder, kind: IncidentKind, class_: str, reason: str) -> None:
    name = f"{kind}:{class_}"
    hinted_t = builder.state.journal.warned.get(name)
    if hinted_t is None or hinted_t < builder.attempt.start_t:
        builder.change("journal", warned={**builder.state.journal.warned, name: builder.t})
        builder.open_incident(kind, class_, reason, severity="info", ending="reported")


# A learning rate that is proposed from the loss curve: never taken by itself, whatever the settings allow.
#
# Source: the DiT training guide (a loss that does not fall, or is unstable: 1e-4 to 5e-5). The evidence is the trend
# over thousands of lines (findings.py). None is proposed if the trainer prints one that its scheduler has lowered
# that far already: the plateau is then the end of the schedule.

TROUBLE = "plateau"
"""In remedies.toml: a loss that does not fall, or rises."""
RATES = ("learning_rate", "lr")


def _rate_options(builder: StepBuilder) -> tuple[Option, ...]:
    """The remedies that fit, without those that propose a rate which the scheduler has reached already."""
    printed, here = builder.state.progress.lr, remedies.remedy_input(builder)
    found = []
    for option in remedies.options(builder.knowledge.remedies, TROUBLE, here):
        changed = [c.after for c in option.changes if c.key.replace("-", "_") in RATES]
        rates = [rate for rate in changed if isinstance(rate, int | float)]
        if printed is None or not rates or printed > max(rates):
            found.append(option)
    return tuple(found)


def tell_trend(builder: StepBuilder) -> None:
    """Tell what the loss does over many lines and what may help; each proposal is recorded once, and a person takes it.

    One that diverges already has an incident of its own, which lasts.
    """
    seen, found = builder.state.course.loss, _rate_options(builder)
    trend, finding = findings.describe_trend(seen.long), seen.long.finding or ""
    if finding == DIVERGING and seen.diverges:
        return
    values = ", ".join(dict.fromkeys(option.words for option in found if option.changes))
    reason = f"{trend}{advice(builder, found)}{f' ({values})' if values else ''}"
    if finding == DIVERGING:
        number = builder.warn("loss", DIVERGING, reason, ending="reported")
    else:
        number = builder.open_incident("loss", finding, reason, severity="info", ending="reported")
    why = f"the loss curve shows it ({trend}); a learning rate is changed by a person only"
    remedies.propose(builder, found, TROUBLE, number, why=why)


# What the next run of the same command learns from this one, taken from the judge's state and put into a new one.
#
# The state learns only from what was followed by a step, so habits may be taken at any time.

replace = msgspec.structs.replace


def habits_of(state: JudgeState) -> Habits | None:
    """Return what was learned from this run and earlier ones; None before its first step."""
    if state.attempt.beat_t is None and state.policy.failed_position is None:
        return None
    seen, clock = state.watch.liveness, state.watch.clock
    return Habits(
        runs=state.watch.phase_times.runs + 1,
        start=state.watch.phase_times.start,
        phases=state.watch.phase_times.phases,
        lull_s=seen.longest_silence_s,
        spin_s=seen.longest_spin_s,
        pause_s=clock.pause_s,
        line_s=clock.slow_s,
        typical_s=clock.typical_s,
        step_s=clock.step_s,
        cpu_cores=seen.cpu_normal,
        gpus=tuple(GpuHabit(**{name: getattr(n, name) for name in GpuHabit.__struct_fields__}) for n in seen.normals),
    )


def with_habits(state: JudgeState, habits: Habits) -> JudgeState:
    """Add what was learned from earlier runs. What this run has learned itself stays."""
    seen, clock, own = state.watch.liveness, state.watch.clock, state.watch.phase_times
    normals = tuple(GpuNormal(**msgspec.structs.asdict(gpu), from_earlier_run=True) for gpu in habits.gpus)
    phases = {phase: pauses.merged(pauses.habit(own, phase), known) for phase, known in habits.phases.items()}
    start = pauses.merged(own.start, habits.start)
    learned = {"slow_s": habits.line_s, "typical_s": habits.typical_s, "step_s": habits.step_s}
    new = {name: value for name, value in learned.items() if getattr(clock, name) is None}
    return changed(
        state,
        "watch",
        phase_times=PhaseTimes(runs=habits.runs, start=start, phases={**own.phases, **phases}),
        clock=replace(clock, pause_s=max(clock.pause_s, habits.pause_s), **new),
        liveness=replace(
            seen,
            longest_silence_s=max(seen.longest_silence_s, habits.lull_s),
            longest_spin_s=max(seen.longest_spin_s, habits.spin_s),
            cpu_normal=seen.cpu_normal if seen.cpu_normal is not None else habits.cpu_cores,
            normals=seen.normals or normals,
        ),
    )


def describe_habits(habits: Habits) -> str:
    first = [f"the first step comes after {habits.start.longest_s:.0f} s at most"] if habits.start.times else []
    phases = [f"{phase} up to {habit.longest_s:.0f} s" for phase, habit in sorted(habits.phases.items())]
    watts = [f"GPU {gpu.index} {gpu.busy_w:.0f} W" for gpu in habits.gpus if gpu.busy_w is not None]
    known = ", ".join((*first, *phases, *watts)) or "its pauses"
    return f"{plural(habits.runs, 'earlier run')} of this command taught: {known}"


# A training that saves checkpoints while no step is read from its log: it runs, and people are told what is not known.
#
# A checkpoint of the attempt shows that it trains, so the run is no longer "starting". Which step it is at stays
# unknown.

TITLE = "no step is read from the log"
REASON = f"{TITLE}: position, pace and time left are not known"
FOLLOWS = "a hang shows only when GPU, processes and log are silent, and a resume cannot be verified by its step"
ADVICE = (
    "print one per step (step 12/900 loss 0.5), or describe your lines under [progress] shapes in trainwatch.toml, as "
    "docs/how-to/own-log-lines.md says"
)


def on_saved(builder: StepBuilder, known: KnownCheckpoint) -> None:
    """The run saved a checkpoint, or what counts as state and is not understood."""
    state = builder.state
    if not is_watched(state.machine) or state.attempt.beat_t is not None or known.t < state.attempt.start_t:
        return
    if not state.course.saves_unread or builder.now - state.course.saves_unread[-1] >= HALF_MINUTE_S:
        builder.change("course", saves_unread=(*state.course.saves_unread, builder.now)[-TWICE:])
    if isinstance(state.machine, Starting):
        builder.move("saved", Running(), f"it saved {base_name(known.path)}")
    # A log prints a step between two of them.
    if len(builder.state.course.saves_unread) >= TWICE and builder.open_of(NO_STEP) is None:
        builder.warn("progress", NO_STEP, REASON, title=TITLE, explanation=f"{FOLLOWS}; {ADVICE}")


# Whether the trainer's own words at its start show what a remedy changed; one that does not show is withdrawn.
#
# Many trainers print their settings before the first step: ``Namespace(batch_size=4, …)``, ``batch_size: 4``. If the
# value before the remedy is printed and the new one nowhere, a place that was not known decides the setting. Half of a
# remedy may change the result of the training (twice the accumulation with the same batch), so the attempt is then
# started again without it. Seen: kohya's dataset file, which wins over ``train_batch_size``. Known limit: a trainer
# that prints nothing, or something else under the same name.


def read_settings(knowledge: Knowledge, state: JudgeState, text: str) -> JudgeState:
    """Take a chunk of the log that comes before the first step."""
    if state.attempt.beat_t is not None or not state.policy.applied or len(state.log.printed.values) >= KEPT:
        return state
    *lines, tail = (state.log.printed.tail + text).split("\n")
    keys = {change.key for change in merged(state.policy.applied) if change.where != "env"}
    found = [
        (key, match)
        for line in lines
        for key in sorted(keys)
        for match in _patterns(key, knowledge.preset.prints.get(_bare(key), ())).findall(line)
    ]
    values = (*state.log.printed.values, *((key, next(filter(None, groups))) for key, groups in found))
    printed = Printed(tuple(dict.fromkeys(values))[:KEPT], tail[-LINE_CAP:])
    return changed(state, "log", printed=printed)


def prove_remedies(builder: StepBuilder) -> None:
    """Called at the first step, before which settings are printed, if at all: withdraw remedies that do not show."""
    state = builder.state
    if not state.log.printed.values:
        return
    builder.change("log", printed=Printed())
    changes = {change.key: change for change in merged(state.policy.applied) if change.where != "env"}
    hidden = {}
    for key, change in changes.items():
        seen = [number(text) for name, text in state.log.printed.values if name == key]
        if seen and change.after not in seen and (change.before is None or number(change.before) in seen):
            hidden[key] = f"{key} {shown(seen[-1])}, not {shown(change.after)}"
    dropped = [remedy for remedy in state.policy.applied if any(change.key in hidden for change in remedy.changes)]
    if not dropped:
        return
    names = tuple(dict.fromkeys(remedy.name for remedy in dropped))
    why = f"the trainer prints {', '.join(hidden.values())}: something else decides it"
    builder.change(
        "policy",
        applied=tuple(remedy for remedy in state.policy.applied if remedy.name not in names),
        withdrawn=(*state.policy.withdrawn, *names),
    )
    builder.fact(RemediesDropped(names=names, why=why))
    builder.notify("warning", "remedy withdrawn", f"{', '.join(names)}: {why}; it is not applied again by itself")
    in_part = {change.key for remedy in dropped for change in remedy.changes} - hidden.keys()
    if in_part:
        reason = f"{', '.join(names)} took effect only in part ({', '.join(sorted(in_part))}): start again without it"
        restarts.stop(builder, "restart", RestartPlan(reason=reason))


@cache
def _patterns(key: str, phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the value of a setting in a line: after its own name, or after a phrase of the framework."""
    name = re.escape(_bare(key)).replace("_", "[_-]")
    own = rf"(?<![\w.-]){name}['\"]?\s*[=:]\s*['\"]?([^\s,;)\]}}'\"]+)"
    return re.compile("|".join((own, *(f"(?:{phrase})" for phrase in phrases), r"(?!)()")))


def _bare(key: str) -> str:
    return key.rpartition(".")[2]
