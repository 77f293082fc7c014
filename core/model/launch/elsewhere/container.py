"""The first process of an attempt's container, kept in the attempt's folder."""

import msgspec

from ...run import ProcessIdentity

CONTAINER_FILE = "container.json"


class ContainerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``id``: the engine's. ``identity``: its first process as this machine numbers it."""

    id: str
    identity: ProcessIdentity
