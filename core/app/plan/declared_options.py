"""Options that remedies may change because the trainer's own source declares them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from ...act.config.flags import option_groups
from ...model.run import RunSpec
from ...model.shipped.profile import Profile
from ...model.shipped.remedy import Remedy
from ...source.trainer_source import TrainerSource, read_source


def undeclared(spec: RunSpec, profile: Profile) -> tuple[str, ...] | None:
    """Those options of a profile that the trainer's source does not declare; None if that cannot be told.

    ``--safe-mode`` is another option than ``--safe_mode``, unless the command has it: then the launch changes that one.
    It cannot be told if not all of the source could be read, or if it takes options that it does not know.
    """
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str) or not source.declares_all:
        return None
    known = {option.name.lstrip("-") for option in source.options}
    given = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in spec.command if word.startswith("-")}
    keys = [group.key for group in option_groups(profile.flags)]
    return tuple(f"--{key}" for key in keys if key not in known and key.replace("-", "_") not in given)


def as_declared(spec: RunSpec, profiles: Mapping[str, Profile]) -> Mapping[str, Profile]:
    """The profiles with the options as the script declares them: ``--safe-mode`` where it has no ``--safe_mode``."""
    keys = {group.key for profile in profiles.values() for group in option_groups(profile.flags)}
    dashed = {key.replace("_", "-"): key for key in keys if "_" in key}
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str) or not _mentions(source, dashed):
        return profiles
    names = {option.name.lstrip("-") for option in source.options}
    spelled = {f"--{key}": f"--{name}" for name, key in dashed.items() if name in names and key not in names}
    if not spelled:
        return profiles

    def word(flag: str) -> str:
        name, equals, value = flag.partition("=")
        return f"{spelled.get(name, name)}{equals}{value}"

    return {
        name: msgspec.structs.replace(profile, flags=tuple(word(flag) for flag in profile.flags))
        for name, profile in profiles.items()
    }


def declared_options(spec: RunSpec, table: Iterable[Remedy]) -> frozenset[str]:
    """Those of the options in the table that can be added to the command, with their dashes.

    The source is parsed only if one of their names is in the script's text.
    """
    wanted = {
        spelled
        for row in table
        for change in row.changes
        if change.where == "flag"
        for spelled in (change.key, change.key.replace("_", "-"))
    }
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
    wanted = {f"--{spelled}": name for name in names for spelled in (name.replace("_", "-"), name)}
    if isinstance(source, str) or not _mentions(source, [option.lstrip("-") for option in wanted]):
        return {}
    return {wanted[o.name]: o.default for o in source.options if o.name in wanted and o.default is not None}


def _mentions(source: TrainerSource, names: Collection[str]) -> bool:
    """Whether one of the names is in the script's text: only then it is worth parsing."""
    try:
        text = source.target.file.read_text("utf-8", "replace")
    except OSError:
        return False
    return any(name in text for name in names)
