"""Where a run's output is, and how that is known."""

import msgspec


class OutputPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folder that the run saves checkpoints to. ``why``: how it is known, for people."""

    folder: str
    why: str = ""


def is_below(path: str, folder: str) -> bool:
    """Whether a path is inside a folder, by their text. Both absolute and without links."""
    return path.startswith(folder.rstrip("/") + "/")
