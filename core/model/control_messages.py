"""What goes over the control socket: one JSON object a line each way."""

from typing import Any

import msgspec

from .observation import Command


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A client asks. ``command`` None = ping."""

    command: Command | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """``ok`` = accepted and journalled (not yet done); ``message`` is a sentence for people."""

    ok: bool
    message: str = ""
    data: dict[str, Any] = {}
