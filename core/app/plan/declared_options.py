"""Options that remedies may change because the trainer's own source declares them."""

from collections.abc import Collection, Iterable
from typing import Any

from ...act.config.flags import option_groups
from ...model.profile import Profile
from ...model.run import RunSpec
from ...model.shipped.remedy import Remedy
from ...source.trainer_source import TrainerSource, read_source


def undeclared(spec: RunSpec, profile: Profile) -> tuple[str, ...] | None:
    """Those options of a profile that the trainer's source does not declare; None if that cannot be told.

    It cannot be told if not all of the source could be read, or if it takes options that it does not know.
    """
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str) or not source.declares_all:
        return None
    known = {option.name.lstrip("-").replace("-", "_") for option in source.options}
    return tuple(f"--{group.key}" for group in option_groups(profile.flags) if group.key.replace("-", "_") not in known)


def declared_options(spec: RunSpec, table: Iterable[Remedy]) -> frozenset[str]:
    """Those of the options in the table that can be added to the command, with their dashes.

    The source is parsed only if one of their names is in the script's text.
    """
    wanted = {change.key for row in table for change in row.changes if change.where == "flag"}
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str) or source.target.place == "nowhere":
        return frozenset()
    if not _mentions(source, wanted):
        return frozenset()
    names = {option.name for option in source.options if option.kind == "option" and not option.after}
    return frozenset(f"--{name}" for name in wanted if f"--{name}" in names)


def defaults_of_options(spec: RunSpec, names: Collection[str]) -> dict[str, Any]:
    """The script's own value for each of these options that it declares with one; None is no value."""
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str) or not _mentions(source, names):
        return {}
    wanted = {f"--{name}": name for name in names}
    return {wanted[o.name]: o.default for o in source.options if o.name in wanted and o.default is not None}


def _mentions(source: TrainerSource, names: Collection[str]) -> bool:
    """Whether one of the names is in the script's text: only then it is worth parsing."""
    try:
        text = source.target.file.read_text("utf-8", "replace")
    except OSError:
        return False
    return any(name in text for name in names)
