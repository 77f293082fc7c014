"""What copying state aside did."""

import msgspec


class CopiedAside(msgspec.Struct, frozen=True, kw_only=True):
    """``folder``: where the copies are. ``shared_bytes``: of ``size_bytes``, shared with the originals (reflinks).

    ``places``: original → its copy. ``refused``: why nothing was copied, as a sentence; "" if it was. ``no_room``:
    because a disk is too full for it.
    """

    folder: str = ""
    size_bytes: int = 0
    shared_bytes: int = 0
    places: dict[str, str] = {}
    refused: str = ""
    no_room: bool = False
