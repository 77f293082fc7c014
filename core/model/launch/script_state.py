"""The script of a command as it stood at a launch, and whether it was changed until the next one."""

import msgspec


class ScriptState(msgspec.Struct, frozen=True, kw_only=True):
    """The script alone, not what it imports. ``mtime``: epoch seconds. ``sha256``: of its content."""

    path: str
    size: int
    mtime: float
    sha256: str


class ScriptChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The script at ``path`` is another one than at the launch of ``attempt``; its time is ``mtime``."""

    path: str
    mtime: float
    attempt: int


def change_of(before: ScriptState | None, now: ScriptState | None, attempt: int) -> ScriptChange | None:
    """How the script differs from that of ``attempt``; None if its content is the same, or if one is not known."""
    if before is None or now is None or before.path != now.path:
        return None
    if (before.size, before.sha256) == (now.size, now.sha256):
        return None
    return ScriptChange(path=now.path, mtime=now.mtime, attempt=attempt)
