"""What is remembered of applied remedies: what the trainer printed (remedy_proof.py), steps back from them."""

import msgspec


class Printed(msgspec.Struct, frozen=True, omit_defaults=True):
    """``values``: (setting, text), before the first step; ``tail``: the unfinished line.

    ``total``: the batch of all devices and accumulated steps together.
    """

    values: tuple[tuple[str, str], ...] = ()
    tail: str = ""
    total: int | None = None


class StepBack(msgspec.Struct, frozen=True, omit_defaults=True):
    """See remedy_step_back.py. ``saves``: good checkpoints with the present number of remedies (``applied``).

    ``tried``: names of remedies that were taken back once.
    """

    saves: int = 0
    applied: int = 0
    tried: tuple[str, ...] = ()
