"""Which checkpoint a file that was written belongs to: itself, or the folder that holds it as a member."""

from collections.abc import Container
from pathlib import Path

from ..model.checkpoints.checkpoint import Checkpoint
from ..model.checkpoints.checkpoint_names import (
    is_checkpoint_directory_name,
    is_counted_directory_name,
    is_part,
    is_temporary,
)
from ..model.checkpoints.other_files import says_state
from .inspection import inspect_any
from .layouts.recognition import is_checkpoint_directory
from .unknown_state import is_orbax

UNFINISHED_ORBAX = "orbax-checkpoint-tmp"
"""In the name of a folder that Orbax is writing."""
LEVELS = 4
"""``checkpoint-500/unet/model.safetensors`` lies two levels below the folder that holds the checkpoint."""


def state_of(path: Path, stops: Container[Path] = ()) -> Checkpoint | None:
    """The checkpoint that this file is, or is a part of, with its quick verdict; None if it is none.

    All that may be the state of a training, whatever its make and name. ``stops``: folders that are no checkpoints
    themselves (the working folder, output folders). Raises OSError.
    """
    folder = None
    if any(UNFINISHED_ORBAX in above.name for above in path.parents[:LEVELS]):
        return None  # it is given its name when it is complete
    for above in path.parents[:LEVELS]:
        if above in stops:
            break
        if _is_one(above) or is_orbax(above):
            folder = above
    if folder is not None:
        return inspect_any(folder)
    return None if is_part(path.name) or is_temporary(path.name) else inspect_any(path)


def _is_one(folder: Path) -> bool:
    """Whether a folder is one checkpoint; one without a word for it in its name is an output folder with an export."""
    if is_temporary(folder.name):
        return False
    named = is_checkpoint_directory_name(folder.name) or is_counted_directory_name(folder.name)
    if named and not folder.name.isdecimal():  # a number alone may be that of a run
        return True
    return says_state(folder.name) and is_checkpoint_directory(folder)
