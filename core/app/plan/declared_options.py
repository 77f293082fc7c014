"""Options that remedies may change because the trainer's own source declares them."""

import os
from collections.abc import Iterable
from pathlib import Path

from ...model.run import RunSpec
from ...model.shipped.remedy import Remedy
from ...source.launch_target import find_target
from ...source.options.all_options import options_of
from ...source.project_modules import read_project


def declared_options(spec: RunSpec, table: Iterable[Remedy]) -> frozenset[str]:
    """Those of the options in the table that can be added to the command, with their dashes.

    The source is parsed only if one of their names is in the script's text.
    """
    wanted = {change.key for row in table for change in row.changes if change.where == "flag"}
    target = find_target(spec.command, Path(spec.cwd), {**os.environ, **spec.env})
    if isinstance(target, str) or target.place == "nowhere":
        return frozenset()
    try:
        text = target.file.read_text("utf-8", "replace")
    except OSError:
        return frozenset()
    if not any(name in text for name in wanted):
        return frozenset()
    declared = options_of(read_project(target, Path(spec.cwd)))
    names = {option.name for option in declared if option.kind == "option" and not option.after}
    return frozenset(f"--{name}" for name in wanted if f"--{name}" in names)
