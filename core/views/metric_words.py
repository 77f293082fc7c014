"""How people view the files that a trainer writes its metrics to."""

import shlex

PROGRAMS = {"tensorboard": ("tensorboard", "--logdir")}
"""Kind of file → the words before its folder."""


def view_command(source: str, folder: str) -> str | None:
    """The command line that shows them; None if no program is known."""
    words = PROGRAMS.get(source)
    return None if words is None else shlex.join((*words, folder))
