"""Messages of the control socket: one JSON object per line in each direction."""

from typing import Any

import msgspec

from .observation import Command


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a client. ``command`` None = ping."""

    command: Command | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """``ok``: the command is accepted and in the journal, but not carried out yet. ``message``: for the user."""

    ok: bool
    message: str = ""
    data: dict[str, Any] = {}
