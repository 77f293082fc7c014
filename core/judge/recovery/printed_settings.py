"""What an attempt printed of the settings that a remedy changed (remedy_proof.py)."""

import msgspec


class Printed(msgspec.Struct, frozen=True, omit_defaults=True):
    """``values``: (setting, text), before the first step; ``tail``: the unfinished line."""

    values: tuple[tuple[str, str], ...] = ()
    tail: str = ""
