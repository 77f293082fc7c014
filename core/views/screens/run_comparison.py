"""Two runs side by side: which settings differ, and how far each came."""

from collections.abc import Iterator

import msgspec

from ...model.run_card import RunCard, RunSettings
from .. import quantity
from ..words import STATE_WORDS
from .run_list import loss_text, run_row, speed_text, step_text

NOT_SET = "not set"


class ComparedValue(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in which they differ."""

    name: str
    first: str
    second: str


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """``same``: how many settings are equal. ``files``: paths of configs; what differs in them is in ``settings``."""

    first: str
    second: str
    results: tuple[ComparedValue, ...]
    settings: tuple[ComparedValue, ...]
    same: int
    files: tuple[ComparedValue, ...] = ()


def compare_runs(a: RunCard, b: RunCard, of_a: RunSettings, of_b: RunSettings) -> RunComparison:
    """Settings in the order of the first run, then those that only the second has."""
    one, two = of_a.values, of_b.values
    paths = of_a.config_paths & of_b.config_paths
    names = [name for name in (*one, *(name for name in two if name not in one)) if name not in paths]
    differing = [name for name in names if one.get(name) != two.get(name)]
    files = [name for name in one if name in paths and one[name] != two.get(name)]
    return RunComparison(
        first=_title(a, b),
        second=_title(b, a),
        results=tuple(_results(a, b)),
        settings=tuple(
            ComparedValue(name=name, first=one.get(name, NOT_SET), second=two.get(name, NOT_SET)) for name in differing
        ),
        same=len(names) - len(differing),
        files=tuple(
            ComparedValue(name=f"{name} (path)", first=one[name], second=two.get(name, NOT_SET)) for name in files
        ),
    )


def _title(card: RunCard, other: RunCard) -> str:
    return card.name if card.name != other.name else card.id


def _results(a: RunCard, b: RunCard) -> Iterator[ComparedValue]:
    one, two = run_row(a, 0.0), run_row(b, 0.0)
    for name, first, second in (
        ("state", STATE_WORDS[a.state], STATE_WORDS[b.state]),
        ("step", step_text(one), step_text(two)),
        ("speed", speed_text(one), speed_text(two)),
        ("loss", loss_text(one), loss_text(two)),
        ("attempts", quantity.count(a.attempts), quantity.count(b.attempts)),
        ("wrong", a.trouble, b.trouble),
    ):
        if first or second:
            yield ComparedValue(name=name, first=first or quantity.UNKNOWN, second=second or quantity.UNKNOWN)


def comparison_markdown(found: RunComparison) -> str:
    rows = [f"| | {found.first} | {found.second} |", "|---|---|---|"]
    rows += [f"| {v.name} | {v.first} | {v.second} |" for v in (*found.results, *found.settings, *found.files)]
    return "\n".join((*rows, "", f"{quantity.plural(found.same, 'setting')} equal.")) + "\n"
