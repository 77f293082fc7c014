"""Bookkeeping of what a launch changes."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ...model.profile import Change
from .nested_keys import same


class Setting(msgspec.Struct, frozen=True):
    """One wish of a profile or a remedy: a key, its value (``REMOVED``: take it out), and why.

    ``yields``: only where neither config nor command say anything.
    """

    key: str
    value: Any
    why: str
    yields: bool = False


def net(made: Sequence[Change]) -> list[Change]:
    """One entry per setting, first before and last after; what ends as it began is no change."""
    merged: dict[tuple[str, str], Change] = {}
    for change in made:
        first = merged.pop((change.where, change.key), None)
        merged[change.where, change.key] = (
            change if first is None else msgspec.structs.replace(change, before=first.before)
        )
    return [change for change in merged.values() if not same(change.before, change.after)]
