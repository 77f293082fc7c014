"""What a verb of the command line is. Each file of a section has a table ``VERBS`` of them, by name."""

import argparse
from collections.abc import Callable
from typing import NamedTuple


class Verb(NamedTuple):
    """``help``: its line in ``trainwatch --help``; None hides it. ``example``: what is typed after it.

    ``act`` returns the exit code.
    """

    help: str | None
    description: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    act: Callable[[argparse.Namespace], int]
