"""Runs the judge over a recorded trace with the trace's times: what it would have detected and decided.

The observations are those of the trace; the decisions are those of this judge. Actions without an outcome in the trace
count as succeeded at once, so that all stages of a restart are shown (evidence, stop, GPU, checkpoint, launch). After a
launch decision the judge waits for a ``start`` in the trace, because the observations until then are of the old
attempt.

Remedies are left out, because whether one applies depends on the trainer's own settings, which are not in a trace.
"""

from collections import deque
from collections.abc import Iterable
from time import perf_counter
from typing import Any

import msgspec

from .judge.failure.catalogue import CompiledCatalogue
from .judge.knowledge import Knowledge
from .judge.run_states import WORDS, name_of
from .judge.state import JudgeState
from .judge.step import Judge
from .judge.text.shapes import ShapeTable
from .model.decision import Decision, EndWatch, Entry, GiveUp, NotifyPeople, StartAttempt
from .model.fact import ActionWithheld, IncidentOpened
from .model.observation import Meta, Observation, Outcome
from .model.preset import Preset
from .model.settings import Settings
from .model.shipped import FailureCatalogue, LogShapes
from .store.trace import TraceReading

_UNANSWERED = (NotifyPeople, StartAttempt, GiveUp, EndWatch)
"""Decisions whose outcome the judge does not wait for (or, for a launch, that only the trace can answer)."""


class TraceError(ValueError):
    """No line is an observation. The message is ``LINE: reason`` for the first one."""


def replay(
    lines: Iterable[bytes],
    *,
    shapes: LogShapes,
    catalogue: FailureCatalogue,
    settings: Settings | None = None,
    preset: Preset | None = None,
) -> dict[str, Any]:
    """Replay a trace (JSON lines); returns the object that ``trainwatch replay --json`` prints.

    Lines that cannot be read are skipped and counted in it (``unreadable_lines``, absent if there are none).

    ``shapes``: forms of log lines. ``catalogue``: failure classes. Settings in the trace's ``meta`` line apply where
    ``settings`` has the default. Raises TraceError.
    """
    began = perf_counter()
    given = settings if settings is not None else Settings()
    source = TraceReading(lines)
    observations = iter(source)
    first = next(observations, None)
    if isinstance(first, Meta) and first.settings:
        given = merge(given, first.settings)
    name = first.preset if isinstance(first, Meta) and first.preset else "generic"
    table = ShapeTable(shapes, given.progress.shapes)
    knowledge = Knowledge(
        catalogue=CompiledCatalogue(catalogue, table, given.diagnose.patterns),
        settings=given,
        preset=preset if preset is not None else Preset(name=name),
        output_dir=first.output_dir if isinstance(first, Meta) else None,
    )
    fold = Replay(Judge(knowledge))
    if first is not None:
        fold.feed(first)
    fold.feed_all(observations)
    if source.problem is not None and first is None:
        raise TraceError(source.problem)
    skipped = {"unreadable_lines": source.skipped, "first_unreadable": source.problem} if source.skipped else {}
    return {**fold.result(), "wall_s": round(perf_counter() - began, 3), **skipped}


class Replay:
    """A replay in progress: the judge, the outcomes of its decisions, and all entries so far."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.state: JudgeState = judge.start()
        self.entries: list[tuple[float, Entry]] = []
        self.observations = 0

    def feed(self, observation: Observation) -> None:
        """Judge one observation of the trace."""
        self.feed_all((observation,))

    def feed_all(self, observations: Iterable[Observation]) -> None:
        """Judge observations of the trace, in order."""
        step = self._judge.step
        for observation in observations:
            self.observations += 1
            self.state, entries = step(self.state, observation)
            if entries:
                self._add(entries)

    def _add(self, entries: tuple[Entry, ...]) -> None:
        waiting = deque(entries)
        while waiting:
            entry = waiting.popleft()
            t = self.state.time.t
            self.entries.append((t, entry))
            if isinstance(entry, Decision) and not isinstance(entry, _UNANSWERED):
                outcome = Outcome(t=t, decision=entry.id, action=str(entry.__struct_config__.tag), ok=True)
                self.state, more = self._judge.step(self.state, outcome)
                waiting.extend(more)

    def result(self) -> dict[str, Any]:
        """The result object, without ``wall_s``."""
        incidents = [
            {
                "t": round(t, 3),
                "kind": e.incident.kind,
                "class": e.incident.class_,
                "reason": e.incident.reason,
                "severity": e.incident.severity,
                "step": e.incident.step,
                "evidence": [msgspec.to_builtins(line) for line in e.incident.evidence],
            }
            for t, e in self.entries
            if isinstance(e, IncidentOpened)
        ]
        decisions = [
            {"t": round(t, 3), "decision": str(e.__struct_config__.tag), "reason": e.reason}
            for t, e in self.entries
            if isinstance(e, Decision)
        ]
        withheld = [
            {"t": round(t, 3), "action": e.action, "would": e.sentence, "why": e.why, "asks": e.asks, "price": e.price}
            for t, e in self.entries
            if isinstance(e, ActionWithheld)
        ]
        return {
            "incidents": incidents,
            "decisions": decisions,
            **({"withheld": withheld} if withheld else {}),
            "final_state": WORDS[name_of(self.state.machine)],
            "observations": self.observations,
        }


def merge(given: Settings, recorded: dict[str, Any]) -> Settings:
    """``given``, with recorded settings where it has the default. Invalid recorded settings are left out."""
    defaults = msgspec.to_builtins(Settings())
    built = msgspec.to_builtins(given)
    for section, values in recorded.items():
        if section not in built or not isinstance(values, dict):
            continue
        for key, value in values.items():
            if key in built[section] and built[section][key] == defaults[section][key]:
                tried = {**built, section: {**built[section], key: value}}
                try:
                    msgspec.convert(tried, Settings)
                except msgspec.ValidationError:
                    continue
                built = tried
    return msgspec.convert(built, Settings)
