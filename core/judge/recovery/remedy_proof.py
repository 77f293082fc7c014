"""Whether the trainer's own words at its start show what a remedy changed; one that does not show is withdrawn.

Many trainers print their settings before the first step: ``Namespace(batch_size=4, …)``, ``batch_size: 4``,
``Instantaneous batch size per device = 4``. If the value before the remedy is printed and the new one nowhere, a place
that was not known decides the setting. Half of a remedy may change the result of the training (twice the accumulation
with the same batch), so the attempt is then started again without it. Seen: kohya's dataset file, which wins over
``train_batch_size``. A product of settings shows it, too: "Total train batch size (w. parallel, distributed &
accumulation) = 32" after an attempt with 16, although batch and accumulation were to cancel out. Known limit: a trainer
that prints nothing, or the value of something else under the same name.
"""

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from ...model.change import Change
from ...model.fact import RemediesDropped
from ...model.patterns import LazyPattern
from ...model.shipped import AppliedRemedy
from ..knowledge import Knowledge
from ..memory import Printed
from ..run_states import RestartPlan, Running
from ..state import JudgeState, StepBuilder
from . import gate, remedy_choice, restarts
from .remedies import merged, number, shown

replace = msgspec.structs.replace

TOTAL = LazyPattern(
    r"\b(?:total|effective|global)\b[^\n=:]{0,24}\bbatch[ _-]?size\b[^\n=:]{0,80}[=:]\s*(\d+)", re.IGNORECASE
)
"""The total batch as trainers print it: kohya, the Hugging Face Trainer, the examples of diffusers."""
FACTOR = LazyPattern(
    r"^(?:per_device_|per_gpu_|micro_)?(?:train_)?(?:micro_)?batch(?:_size)?(?:_per_\w+)?$|accum", re.IGNORECASE
)
"""Settings whose product is the total batch; not ``vae_batch_size``."""
MOST_VALUES = 64
"""Most values that are kept of one attempt: a trainer prints its settings once or twice for each process."""
MOST_TAIL = 4096
"""Characters of an unfinished line that are kept."""


def read(knowledge: Knowledge, state: JudgeState, text: str) -> JudgeState:
    """Take a chunk of the log that comes before the first step."""
    if state.attempt.beat_t is not None or len(state.printed.values) >= MOST_VALUES:
        return state
    *lines, tail = (state.printed.tail + text).split("\n")
    totals = [int(match[1]) for line in lines for match in TOTAL.finditer(line)]
    total = totals[-1] if totals else state.printed.total
    if not state.applied:
        return replace(state, printed=Printed(tail=tail[-MOST_TAIL:], total=total))
    keys = {change.key for change in merged(state.applied) if change.where != "env"}
    found = [
        (key, match)
        for line in lines
        for key in sorted(keys)
        for match in _patterns(key, knowledge.preset.prints.get(_bare(key), ())).findall(line)
    ]
    values = (*state.printed.values, *((key, next(filter(None, groups))) for key, groups in found))
    return replace(state, printed=Printed(tuple(dict.fromkeys(values))[:MOST_VALUES], tail[-MOST_TAIL:], total))


def on_beat(builder: StepBuilder) -> None:
    """Called at the first step, before which settings are printed, if at all: withdraw remedies that do not show."""
    state = builder.state
    printed = state.printed
    if not printed.values and printed.total is None:
        return
    builder.set(printed=Printed())
    if not state.applied:
        builder.set(total_batch=None if printed.total is None else (printed.total, state.attempt.profile))
        return
    changes = {change.key: change for change in merged(state.applied) if change.where != "env"}
    hidden = {}
    for key, change in changes.items():
        seen = [number(text) for name, text in state.printed.values if name == key]
        if seen and change.after not in seen and (change.before is None or number(change.before) in seen):
            hidden[key] = f"{key} {shown(seen[-1])}, not {shown(change.after)}"
    before = None if state.total_batch is None else state.total_batch[0]
    if state.total_batch is not None and state.total_batch[1] != state.attempt.profile:
        before = None  # a profile may set a factor, too
    hidden |= {} if hidden else _hidden_by_total(changes, printed.total, before)
    dropped = [remedy for remedy in state.applied if any(change.key in hidden for change in remedy.changes)]
    if not dropped:
        return
    names = tuple(dict.fromkeys(remedy.name for remedy in dropped))
    why = f"the trainer prints {', '.join(hidden.values())}: something else decides it"
    builder.set(
        applied=tuple(remedy for remedy in state.applied if remedy.name not in names),
        withdrawn=(*state.withdrawn, *names),
    )
    builder.fact(RemediesDropped(names=names, why=why))
    builder.notify("warning", "remedy withdrawn", f"{', '.join(names)}: {why}; it is not applied again by itself")
    in_part = {change.key for remedy in dropped for change in remedy.changes} - hidden.keys()
    if in_part:
        reason = f"{', '.join(names)} took effect only in part ({', '.join(sorted(in_part))}): start again without it"
        restarts.stop(builder, "restart", RestartPlan(reason=reason))


def _hidden_by_total(changes: Mapping[str, Change], total: int | None, before: int | None) -> dict[str, str]:
    """The factors of the total batch, if the printed total is not what follows from their change. () if unknown."""
    factors = {key: change for key, change in changes.items() if FACTOR.search(_bare(key)) is not None}
    if not factors or total is None:
        return {}
    from fractions import Fraction

    wanted = Fraction(before or 0)
    for change in factors.values():
        old, new = number(change.before), number(change.after)
        if not isinstance(old, int) or not isinstance(new, int) or old <= 0:
            return {}
        wanted *= Fraction(new, old)
    if not wanted or total == wanted:
        return {}
    return dict.fromkeys(factors, f"a total batch of {total}, not {wanted}")


@cache
def _patterns(key: str, phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the value of a setting in a line: after its own name, or after a phrase of the framework."""
    name = re.escape(_bare(key)).replace("_", "[_-]")
    own = rf"(?<![\w.-]){name}['\"]?\s*[=:]\s*['\"]?([^\s,;)\]}}'\"]+)"
    return re.compile("|".join((own, *(f"(?:{phrase})" for phrase in phrases), r"(?!)()")))


def _bare(key: str) -> str:
    return key.rpartition(".")[2]


# One step back from a remedy for GPU memory, after a number of good checkpoints (``[remedies] step_back_after``).
#
# What used the memory may be gone: another program on the GPU, a fragmented allocator, one long sample. The last such
# remedy is taken back once, at a checkpoint, so that little is lost if the memory is short again; then the remedy
# comes back as after any failure and stays. Never under WSL2, where running out of memory may end the driver.

MEMORY = "cuda_oom"


def on_saved(builder: StepBuilder) -> None:
    """A complete checkpoint of this run came: count it, and take the last remedy back if there are enough."""
    state, wanted = builder.state, builder.knowledge.settings.remedies.step_back_after
    if not wanted or not state.applied or "wsl2" in builder.knowledge.traits:
        return
    back = state.step_back
    fresh = back.applied != len(state.applied)
    back = msgspec.structs.replace(back, applied=len(state.applied), saves=1 if fresh else back.saves + 1)
    builder.set(step_back=back)
    last = _last_for_memory(builder)
    settled = not state.incidents and state.profile_pending is None and isinstance(state.machine, Running)
    if last is None or back.saves < wanted or not settled or gate.is_closed(builder):
        return
    kept = tuple(remedy for remedy in state.applied if remedy is not last)
    why = f"{back.saves} good checkpoints since {last.name}: one step back, once"
    builder.set(step_back=msgspec.structs.replace(back, saves=0, applied=len(kept), tried=(*back.tried, last.name)))
    remedy_choice.restore(builder, kept, why, None)
    restarts.stop(builder, "restart", RestartPlan(reason=why))


def _last_for_memory(builder: StepBuilder) -> AppliedRemedy | None:
    """The last remedy for GPU memory that changes the trainer's settings and was not taken back before."""
    rows = {row.name for row in builder.knowledge.remedies if MEMORY in row.failures}
    tried = builder.state.step_back.tried
    found = (
        remedy
        for remedy in reversed(builder.state.applied)
        if remedy.name in rows and any(change.where != "env" for change in remedy.changes)
    )
    last = next(found, None)
    return None if last is None or last.name in tried else last
