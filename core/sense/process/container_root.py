"""The first process of an attempt's container, which is no child of the runner: ``container.json``."""

from pathlib import Path

import msgspec

from ...model.launch.elsewhere.container import CONTAINER_FILE, ContainerRecord
from ...model.ports.supervision import AttemptTarget
from ...model.run import ProcessIdentity
from ...model.text.json_line import decode_exact


def container_root(target: AttemptTarget) -> ProcessIdentity | None:
    """Its identity; None if the attempt runs in none, or it is not visible on this machine."""
    try:
        return decode_exact(Path(target.directory, CONTAINER_FILE).read_bytes(), ContainerRecord).identity
    except (OSError, msgspec.MsgspecError):
        return None
