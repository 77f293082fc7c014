"""Hints while the training goes on: what could be better, and what would change it. Nothing is done, nobody is called.

Sources: the balanced configuration guide (RAM above 80 % or less than 6 GB available; more than 3 s a step), the DiT
training guide (a loss that does not fall). Each is told once an attempt, as an incident of severity ``info``.
"""

from ...model.incident import IncidentKind
from ...model.observation import HostSample
from ..recovery import remedies, remedy_choice
from ..step_builder import StepBuilder

RAM_PCT = 80.0
RAM_AVAILABLE_BYTES = 6e9
RAM_LEAST_PCT = 60.0
"""Below this little is available because the machine is small."""
RAM_HOLD_S = 30.0
STEP_S = {"kohya": 3.0}
"""Seconds a step from which a framework's training counts as slow."""
STEPS = 50
"""Not before so many: the first ones compile and fill caches."""
SHOWN = 3


def advice(builder: StepBuilder, trouble: str) -> str:
    """The end of a sentence: what may be changed against ``trouble`` (as in remedies.toml), and how.

    Empty where nothing is known.
    """
    found = list(remedies.options(builder.knowledge.remedies, trouble, remedy_choice.circumstances(builder)))[:SHOWN]
    said = [
        f"{o.remedy.title} (`trainwatch profile {o.profile}`)"
        if o.profile is not None
        else f"{o.remedy.title} (`trainwatch restart --with {o.remedy.name}`)"
        for o in found
    ]
    return f"; what may help: {', '.join(said)}" if said else ""


def on_host(builder: StepBuilder, sample: HostSample) -> None:
    """RAM becomes tight before it is dangerous."""
    if not is_tight(sample):
        builder.set(tight_since=None)
        return
    since = builder.state.tight_since
    if since is None:
        builder.set(tight_since=builder.t)
    elif builder.t - since >= RAM_HOLD_S:
        free = sample.ram_available_bytes
        left = "" if free is None else f", {free / 1e9:.1f} GB available"
        _hint(
            builder, "health", "ram_tight", f"RAM is {used_pct(sample):.0f} % used{left}{advice(builder, 'host_oom')}"
        )


def is_tight(sample: HostSample) -> bool:
    """Above the guide's bounds; False where RAM is not known."""
    used = used_pct(sample)
    little = sample.ram_available_bytes is not None and sample.ram_available_bytes < RAM_AVAILABLE_BYTES
    return used > RAM_PCT or (little and used > RAM_LEAST_PCT)


def used_pct(sample: HostSample) -> float:
    """Share of the RAM in use, 0 where it is not known."""
    if sample.ram_used_bytes is None or not sample.ram_total_bytes:
        return 0.0
    return 100.0 * sample.ram_used_bytes / sample.ram_total_bytes


def on_steps(builder: StepBuilder) -> None:
    """Steps advance; tell where they are slow for this framework."""
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
    told_t = builder.state.warned.get(name)
    if told_t is None or told_t < builder.state.attempt.start_t:
        builder.set(warned={**builder.state.warned, name: builder.t})
        builder.open_incident(kind, class_, reason, severity="info", ending="told")
