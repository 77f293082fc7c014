"""The settings that a launch changes."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ...model.launch.change import Change, ChangeOf
from .nested_keys import same


class Setting(msgspec.Struct, frozen=True):
    """A setting of a profile or a remedy: key, value (``REMOVED``: remove it) and reason.

    ``yields``: applies only if neither config nor command set the key. ``words``: how a preset or a profile writes the
    option; it is added to a command line as it stands.
    """

    key: str
    value: Any
    why: str
    yields: bool = False
    words: tuple[str, ...] = ()
    of: ChangeOf = ""


def net(made: Sequence[Change]) -> list[Change]:
    """One change per setting, from its first ``before`` to its last ``after``; unchanged settings are left out."""
    merged: dict[tuple[str, str], Change] = {}
    for change in made:
        first = merged.pop((change.where, change.key), None)
        merged[change.where, change.key] = (
            change if first is None else msgspec.structs.replace(change, before=first.before)
        )
    return [change for change in merged.values() if not same(change.before, change.after)]
