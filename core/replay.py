"""The judge over a recorded trace, under a virtual clock: what it would have seen and decided.

The trace is what happened; decisions are what we would have done. Actions that the trace holds no outcome for are taken
to succeed at once, so that the whole answer to a trouble is shown (evidence, stop, GPU, checkpoint, launch); after a
launch of ours the judge waits for a ``start`` of the trace, because what follows is still the old attempt.

Remedies are left out: whether one fits depends on the trainer's own settings, and those stand in no trace.
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
from .judge.text.shape_table import ShapeTable
from .model.decision import Decision, EndWatch, GiveUp, NotifyPeople, StartAttempt
from .model.fact import IncidentOpened
from .model.observation import Meta, Observation, Outcome
from .model.preset import Preset
from .model.record import Entry
from .model.settings import Settings
from .model.shipped.failure import FailureCatalogue
from .model.shipped.log_shapes import LogShapes
from .store.trace_reading import TraceReading

_UNANSWERED = (NotifyPeople, StartAttempt, GiveUp, EndWatch)
"""Decisions whose outcome the judge does not wait for (or, for a launch, that only the trace can answer)."""


class TraceError(ValueError):
    """No line is an observation. The text is ``LINE: why`` of the first one."""


def replay(
    lines: Iterable[bytes],
    *,
    shapes: LogShapes,
    catalogue: FailureCatalogue,
    settings: Settings | None = None,
    preset: Preset | None = None,
) -> dict[str, Any]:
    """Feed a trace (JSON lines) to the judge; returns the object that ``trainwatch replay --json`` prints.

    Lines that cannot be read are skipped and counted there (``unreadable_lines``, absent when there are none).

    ``shapes``: forms of log lines. ``catalogue``: failure classes. Settings in the trace's ``meta`` line apply where
    ``settings`` has the default. Raises TraceError.
    """
    began = perf_counter()
    given = settings if settings is not None else Settings()
    source = TraceReading(lines)
    first = next(source, None)
    if isinstance(first, Meta) and first.settings:
        given = merge(given, first.settings)
    name = first.preset if isinstance(first, Meta) and first.preset else "generic"
    table = ShapeTable(shapes, given.progress.shapes)
    knowledge = Knowledge(
        catalogue=CompiledCatalogue(catalogue, table, given.diagnose.patterns),
        shapes=table,
        settings=given,
        preset=preset if preset is not None else Preset(name=name),
        output_dir=first.output_dir if isinstance(first, Meta) else None,
    )
    fold = Replay(Judge(knowledge))
    if first is not None:
        fold.feed(first)
    fold.feed_all(source)
    if source.problem is not None and first is None:
        raise TraceError(source.problem)
    skipped = {"unreadable_lines": source.skipped, "first_unreadable": source.problem} if source.skipped else {}
    return {**fold.result(), "wall_s": round(perf_counter() - began, 3), **skipped}


class Replay:
    """One trace being replayed: the judge, a world in which all actions succeed, and what was said so far."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.state: JudgeState = judge.start()
        self.entries: list[tuple[float, Entry]] = []
        self.observations = 0

    def feed(self, observation: Observation) -> None:
        """Take one observation of the trace."""
        self.feed_all((observation,))

    def feed_all(self, observations: Iterable[Observation]) -> None:
        """Take observations of the trace, in order."""
        step = self._judge.step
        for observation in observations:
            self.observations += 1
            self.state, said = step(self.state, observation)
            if said:
                self._answer(said)

    def _answer(self, said: tuple[Entry, ...]) -> None:
        waiting = deque(said)
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
            {
                "t": round(t, 3),
                "decision": str(e.__struct_config__.tag),
                "reason": e.reason,
            }
            for t, e in self.entries
            if isinstance(e, Decision)
        ]
        return {
            "incidents": incidents,
            "decisions": decisions,
            "final_state": WORDS[name_of(self.state.machine)],
            "observations": self.observations,
        }


def merge(given: Settings, recorded: dict[str, Any]) -> Settings:
    """``given`` with what the trace recorded where ``given`` has the default; what does not fit is left out."""
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
