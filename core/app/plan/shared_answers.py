"""Where the runs of this machine keep what they ask a scheduler together."""

import os
from pathlib import Path

from ...store.home import runtime_folder


def shared_answers() -> Path | None:
    """A folder in memory; None if there is none, and each run asks by itself."""
    place = runtime_folder(os.environ)
    return None if place is None else place / "slurm"
