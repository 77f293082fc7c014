"""Options that remedies may change because the trainer's own source declares them."""

from collections.abc import Iterable

from ...model.run import RunSpec
from ...model.shipped.remedy import Remedy
from ...source.trainer_source import read_source


def declared_options(spec: RunSpec, table: Iterable[Remedy]) -> frozenset[str]:
    """Those of the options in the table that can be added to the command, with their dashes.

    The source is parsed only if one of their names is in the script's text.
    """
    wanted = {change.key for row in table for change in row.changes if change.where == "flag"}
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str) or source.target.place == "nowhere":
        return frozenset()
    try:
        text = source.target.file.read_text("utf-8", "replace")
    except OSError:
        return frozenset()
    if not any(name in text for name in wanted):
        return frozenset()
    names = {option.name for option in source.options if option.kind == "option" and not option.after}
    return frozenset(f"--{name}" for name in wanted if f"--{name}" in names)
