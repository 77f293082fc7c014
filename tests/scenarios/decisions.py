"""Golden decisions of all families: states, incidents and decisions of each trace, in order, without times and words.

``decisions.json`` has for each family its different courses, each with the traces (seed, period, GPUs) that take it:
the sizes of the tests, and the first seeds of bench/traces.py. ``python tests/make_goldens.py`` writes it anew.
"""

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.scenarios.cases import SIZES, Build, replayed
from tests.scenarios.healthy import HEALTHY
from tests.scenarios.sick import SICK
from trainwatch.core.model.decision import Decision, Entry, ListCheckpoints, NotifyPeople
from trainwatch.core.model.fact import AttemptEnded, IncidentOpened, IncidentUpdated, StateChanged
from trainwatch.core.replay import Replay

GOLDEN = Path(__file__).parent / "decisions.json"
PERIODS_S = (1.0, 2.0, 3.0, 5.0)
GPUS = (1, 2, 3, 4)
FIRST_SEED = 100
SEEDS = 3
"""So many of them have goldens."""
Size = tuple[int, float, int]


def drawn(seeds: int = SEEDS) -> Iterator[tuple[str, str, Build, Size]]:
    """Each family with so many seeds that the tests of the judge do not use: which, its name, and its size.

    Each throws dice of its own: a new family changes no other one.
    """
    for title, families in (("healthy", HEALTHY), ("sick", SICK)):
        for name, build in sorted(families.items()):
            dice = random.Random(name)
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                yield title, name, build, (seed, dice.choice(PERIODS_S), dice.choice(GPUS))


def course(fold: Replay) -> str:
    """What was concluded and decided, in one line."""
    return " ".join(word for _, entry in fold.entries if (word := _word(entry)))


def _word(entry: Entry) -> str | None:
    match entry:
        case StateChanged():
            return f"[{entry.state}]"
        case IncidentOpened():
            return f"+{entry.incident.kind}/{entry.incident.class_}({entry.incident.severity})"
        case IncidentUpdated() if not entry.incident.open:
            return f"-{entry.incident.kind}/{entry.incident.class_}"
        case AttemptEnded():
            return f"ended:{entry.how}@{entry.last_step}"
        case NotifyPeople():
            return f"tell:{entry.event}"
        case _ if isinstance(entry, Decision) and not isinstance(entry, ListCheckpoints):
            return str(entry.__struct_config__.tag)
        case _:
            return None


def trace_name(size: Size) -> str:
    seed, period_s, gpus = size
    return f"{seed}/{period_s:g}s/{gpus}"


def check(family: str, size: Size, fold: Replay) -> None:
    """Compare with the golden course of this trace."""
    known = known_courses().get(family, {}).get(trace_name(size))
    assert course(fold) == known, f"{family} {trace_name(size)}"


@cache
def known_courses() -> dict[str, dict[str, str]]:
    """By family and trace."""
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return {
        family: {trace: told for told, traces in courses.items() for trace in traces.split()}
        for family, courses in stored.items()
    }


def write_all() -> None:
    """Write the goldens anew (three minutes)."""
    found: dict[str, dict[str, list[str]]] = {}
    traces = [(name, build, size) for size in SIZES for name, build in {**HEALTHY, **SICK}.items()]
    traces += [(name, build, size) for _, name, build, size in drawn()]
    for name, build, size in traces:
        found.setdefault(name, {}).setdefault(course(replayed(build(*size))), []).append(trace_name(size))
    rows = []
    for name, courses in sorted(found.items()):
        each = ",\n".join(f"  {json.dumps(told)}: {json.dumps(' '.join(where))}" for told, where in courses.items())
        rows.append(f" {json.dumps(name)}: {{\n{each}\n }}")
    GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
