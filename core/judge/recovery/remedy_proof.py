"""Whether the trainer's own words at its start show what a remedy changed; one that does not show is withdrawn.

Many trainers print their settings before the first step: ``Namespace(batch_size=4, …)``, ``batch_size: 4``,
``Instantaneous batch size per device = 4``. If the value before the remedy is printed and the new one nowhere, a place
that was not known decides the setting. Half of a remedy may change the result of the training (twice the accumulation
with the same batch), so the attempt is then started again without it. Seen: kohya's dataset file, which wins over
``train_batch_size``. Known limit: a trainer that prints nothing, or something else under the same name.
"""

import re
from functools import cache

import msgspec

from ...model.fact import RemediesDropped
from ..knowledge import Knowledge
from ..memory import Printed
from ..run_states import RestartPlan
from ..state import JudgeState, StepBuilder
from . import restarts
from .remedies import merged, number, shown

replace = msgspec.structs.replace

MOST_VALUES = 64
"""Most values that are kept of one attempt: a trainer prints its settings once or twice for each process."""
MOST_TAIL = 4096
"""Characters of an unfinished line that are kept."""


def read(knowledge: Knowledge, state: JudgeState, text: str) -> JudgeState:
    """Take a chunk of the log that comes before the first step."""
    if state.attempt.beat_t is not None or not state.applied or len(state.printed.values) >= MOST_VALUES:
        return state
    *lines, tail = (state.printed.tail + text).split("\n")
    keys = {change.key for change in merged(state.applied) if change.where != "env"}
    found = [
        (key, match)
        for line in lines
        for key in sorted(keys)
        for match in _patterns(key, knowledge.preset.prints.get(_bare(key), ())).findall(line)
    ]
    values = (*state.printed.values, *((key, next(filter(None, groups))) for key, groups in found))
    return replace(state, printed=Printed(tuple(dict.fromkeys(values))[:MOST_VALUES], tail[-MOST_TAIL:]))


def on_beat(builder: StepBuilder) -> None:
    """Called at the first step, before which settings are printed, if at all: withdraw remedies that do not show."""
    state = builder.state
    if not state.printed.values:
        return
    builder.set(printed=Printed())
    changes = {change.key: change for change in merged(state.applied) if change.where != "env"}
    hidden = {}
    for key, change in changes.items():
        seen = [number(text) for name, text in state.printed.values if name == key]
        if seen and change.after not in seen and (change.before is None or number(change.before) in seen):
            hidden[key] = f"{key} {shown(seen[-1])}, not {shown(change.after)}"
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


@cache
def _patterns(key: str, phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the value of a setting in a line: after its own name, or after a phrase of the framework."""
    name = re.escape(_bare(key)).replace("_", "[_-]")
    own = rf"(?<![\w.-]){name}['\"]?\s*[=:]\s*['\"]?([^\s,;)\]}}'\"]+)"
    return re.compile("|".join((own, *(f"(?:{phrase})" for phrase in phrases), r"(?!)()")))


def _bare(key: str) -> str:
    return key.rpartition(".")[2]
