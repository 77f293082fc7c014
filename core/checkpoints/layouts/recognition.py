"""Which directories are checkpoints, by names alone: an output directory may hold a hundred thousand images."""

import os
import re
from pathlib import Path

from ...model.checkpoints.checkpoint_names import (
    KNOWN_WEIGHTS,
    is_checkpoint_directory_name,
    is_counted_directory_name,
    tensor_format,
)
from ...model.checkpoints.checkpoint_suffixes import DCP_SUFFIX
from ..formats.state_file import STATE_FILES
from .deepspeed import LATEST, TAG
from .members import MAX_MEMBERS

_TYPICAL = re.compile(
    rf"^\.metadata$|{re.escape(DCP_SUFFIX)}$"
    r"|_model_states\.pt$|^optimizer\.(pt|bin)$|^random_states_\d+\.pkl$|^rng_state.*\.pth$"
)
"""Files that make the directory they lie in a checkpoint."""


def is_checkpoint_directory(folder: Path) -> bool:
    """Whether a directory is one checkpoint, by its name or by what lies directly in it; nothing is opened.

    One that holds checkpoints of its own is an output directory, unless they are the tags of a DeepSpeed save with
    ``latest`` beside them.
    """
    if is_checkpoint_directory_name(folder.name) or is_checkpoint_directory_name(folder.name.removeprefix("tmp-")):
        return True
    counted = is_counted_directory_name(folder.name)
    found = tags = False
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number > MAX_MEMBERS:
                    return False
                if entry.is_dir(follow_symlinks=False):
                    if TAG.match(entry.name):
                        tags = True
                    elif is_checkpoint_directory_name(entry.name):
                        return False  # an output directory of its own
                    continue
                known = entry.name in STATE_FILES or _TYPICAL.search(entry.name) or KNOWN_WEIGHTS.match(entry.name)
                found = found or bool(known) or (counted and tensor_format(entry.name) is not None)
    except OSError:
        return False
    return (folder / LATEST).is_file() if tags else found
