"""Hints while the training goes on: what could be better, and which remedy would change it. Nobody is notified.

Sources: the balanced configuration guide (RAM above 80 % or less than 6 GB available; more than 3 s a step), the DiT
training guide (a loss that does not fall), the levels of GPU memory (below 90 % there is room for a bigger profile).
Each appears once per attempt, as an incident of severity ``info``.
"""

from collections.abc import Sequence

from ...model.incident import IncidentKind
from ...model.observation import HostSample
from ...model.text.memory_words import memory
from ..recovery.remedies import remedies, remedy_choice
from ..recovery.remedies.remedies import Option
from ..state import JudgeState
from ..step_builder import StepBuilder

RAM_PCT = 80.0
RAM_AVAILABLE_BYTES = 6e9
RAM_LEAST_PCT = 60.0
"""Below this, little memory is available only because the machine is small."""
RAM_HOLD_S = 30.0
STEP_S = {"kohya": 3.0}
"""Seconds a step from which a framework's training counts as slow."""
SPARE_HOLD_S = 600.0
"""The peak of GPU memory may come with a larger picture, an evaluation or a sample."""
STEPS = 50
"""Steps before the first hint: the first ones compile and fill caches."""
SHOWN = 3


def advice(builder: StepBuilder, trouble: str | Sequence[Option]) -> str:
    """Return the end of a sentence: remedies and the commands to apply them; empty if none is known.

    ``trouble``: as in remedies.toml, or the remedies that were chosen.
    """
    if isinstance(trouble, str):
        trouble = list(remedies.options(builder.knowledge.remedies, trouble, remedy_choice.circumstances(builder)))
    found = trouble[:SHOWN]
    options = [
        f"{o.remedy.title} (`{builder.knowledge.typed('profile', o.profile)}`)"
        if o.profile is not None
        else f"{o.remedy.title} (`{builder.knowledge.typed('restart', '--with', o.remedy.name)}`)"
        for o in found
    ]
    return f"; what may help: {', '.join(options)}" if options else ""


def on_host(builder: StepBuilder, sample: HostSample) -> None:
    """Hint at RAM that is nearly full, before it is dangerous."""
    if not is_tight(sample):
        builder.set(tight_since=None)
        return
    since = builder.state.tight_since
    if since is None:
        builder.set(tight_since=builder.t)
    elif builder.t - since >= RAM_HOLD_S:
        free = sample.ram_available_bytes
        left = "" if free is None else f", {memory(free)} available"
        _hint(
            builder, "health", "ram_tight", f"RAM is {used_pct(sample):.0f} % used{left}{advice(builder, 'host_oom')}"
        )


def is_tight(sample: HostSample) -> bool:
    """Return whether RAM is above its bounds; False if it is unknown."""
    used = used_pct(sample)
    little = sample.ram_available_bytes is not None and sample.ram_available_bytes < RAM_AVAILABLE_BYTES
    return used > RAM_PCT or (little and used > RAM_LEAST_PCT)


def used_pct(sample: HostSample) -> float:
    """Return the share of RAM in use, 0 if unknown."""
    if sample.ram_used_bytes is None or not sample.ram_total_bytes:
        return 0.0
    return 100.0 * sample.ram_used_bytes / sample.ram_total_bytes


def has_spare(state: JudgeState) -> bool:
    """Return whether GPU memory is left over on all GPUs of the run."""
    levels = [band.level for metric, band in state.bands.items() if metric.endswith(".vram")]
    return bool(levels) and all(level == "underused" for level in levels)


def on_spare(builder: StepBuilder) -> None:
    """Hint at the next profile of the ladder if GPU memory is left over for a while."""
    state = builder.state
    if not has_spare(state):
        builder.set(spare_since=None)
        return
    since = state.spare_since
    if since is None:
        builder.set(spare_since=builder.t)
        return
    above = _above(builder)
    if above is None or builder.t - since < SPARE_HOLD_S or state.clock.beats < STEPS:
        return
    least = builder.knowledge.settings.health.vram_underused_pct
    reason = (
        f"GPU memory is less than {least:.0f} % used: profile {above} uses more of it "
        f"(`{builder.knowledge.typed('profile', above)}`)"
    )
    _hint(builder, "health", "vram_spare", reason)


def _above(builder: StepBuilder) -> str | None:
    """The rung above that of the run, unless it failed here; None if there is none."""
    ladder, profile = builder.knowledge.settings.profiles.ladder, builder.state.profile
    if profile not in ladder[:-1] or builder.state.profile_pending is not None:
        return None
    above = ladder[ladder.index(profile) + 1]
    return None if any(rung.profile == above for rung in builder.state.ramp.failed) else above


def on_steps(builder: StepBuilder) -> None:
    """Hint at steps that are slow for this framework."""
    state = builder.state
    bound, step_s = STEP_S.get(builder.knowledge.preset.name), state.clock.step_s
    if bound is not None and step_s is not None and step_s > bound and state.clock.beats >= STEPS:
        _hint(
            builder,
            "stall",
            "slow_steps",
            f"a step takes {step_s:.1f} s, more than {bound:g} s{advice(builder, 'slow')}",
        )


def _hint(builder: StepBuilder, kind: IncidentKind, class_: str, reason: str) -> None:
    name = f"{kind}:{class_}"
    hinted_t = builder.state.warned.get(name)
    if hinted_t is None or hinted_t < builder.state.attempt.start_t:
        builder.set(warned={**builder.state.warned, name: builder.t})
        builder.open_incident(kind, class_, reason, severity="info", ending="reported")
