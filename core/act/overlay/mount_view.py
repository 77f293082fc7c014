"""Puts overlays over the user's folders, for this process and its children only (a mount namespace of their own).

The kernel removes the namespace with the last process in it, however that ends: nothing has to be unmounted. Needs
Linux 5.11 and unprivileged user namespaces, or root. Sources: mount_namespaces(7), user_namespaces(7),
kernel documentation of overlayfs ("Permission model", "userxattr").
"""

import contextlib
import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from .covered_folders import folders_to_cover, read_mounts

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY = 0x1
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_RELATIME = 0x200000
ST_RELATIME = 0x1000
SAME_FLAGS = 0x2 | 0x4 | 0x8 | 0x400 | 0x800
"""nosuid, nodev, noexec, noatime, nodiratime: the same numbers in statvfs(3) and mount(2)."""
PROBE = ".trainwatch-rehearsal"
PLACE = "place"
"""File beside an overlay's own folders: the folder that it covers."""


class NoOverlayError(RuntimeError):
    """No such view can be made here; the message says why."""


def enter(scratch: Path, *, wanted: Sequence[Path], kept: Sequence[Path], hidden: Sequence[Path]) -> None:
    """Cover all folders that may hold files of the user; what is written goes to ``scratch/upper``.

    ``wanted``: folders that must be covered. ``kept``: folders that stay as they are (caches). ``hidden``: folders that
    are seen empty. To be called before any thread is started. Raises NoOverlayError; then this process may already be
    in a namespace of its own and must end.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.path.realpath(scratch)
    try:
        mapped = _new_namespace(libc)
        _mount(libc, "/", flags=MS_REC | MS_PRIVATE)
        mounts = read_mounts(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
        must = [os.path.realpath(folder) for folder in wanted]
        covered = folders_to_cover(mounts, own, [f for f in must if not _inside_own(f, must)], each=mapped)
        # Handles of all places as they are now: an overlay hides what is mounted in it.
        lower = {place: handle for place in covered if (handle := _handle(place)) is not None}
        keep = {place: os.open(place, os.O_PATH | os.O_CLOEXEC) for place in _kept(kept, must)}
        for number, place in enumerate(covered):
            if place in lower:
                _cover(libc, place, lower[place], Path(own) / "upper" / str(number), needed=_holds_any(place, must))
        for place, handle in keep.items():
            _mount(libc, place, source=f"/proc/self/fd/{handle}", flags=MS_BIND | MS_REC)
        for number, folder in enumerate(hidden):
            empty = Path(own) / "empty" / str(number)
            empty.mkdir(parents=True)
            _mount(libc, os.path.realpath(folder), source=str(empty), flags=MS_BIND)
        for place in must:
            _require_writable(place)
        for handle in (*lower.values(), *keep.values()):
            os.close(handle)
    except OSError as error:
        raise NoOverlayError(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")) from None


def written(scratch: Path) -> list[tuple[Path, Path]]:
    """(covered folder, folder that holds what was written to it) of each overlay."""
    upper = scratch / "upper"
    folders = sorted(upper.iterdir()) if upper.is_dir() else []
    return [(Path(os.fsdecode((each / PLACE).read_bytes())), each / "up") for each in folders]


def _new_namespace(libc: ctypes.CDLL) -> bool:
    """A mount namespace; in a user namespace with the same user and group if that is needed for it (returned)."""
    if os.geteuid() == 0 and libc.unshare(CLONE_NEWNS) == 0:
        return False
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"user namespaces are not allowed here ({os.strerror(number)})")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _require_writable(folder: str) -> None:
    """Write to a folder as the trainer will. An overlay in a user namespace cannot copy what other users own."""
    probe = os.path.join(folder, PROBE)  # noqa: PTH118
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    os.unlink(probe)  # noqa: PTH108


def _cover(libc: ctypes.CDLL, place: str, lower: int, folder: Path, *, needed: bool) -> None:
    """Put an overlay over one folder. One that is not needed and cannot be covered is made read-only, or left."""
    upper, work = folder / "up", folder / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    (folder / PLACE).write_bytes(os.fsencode(place))
    upper.chmod(os.fstat(lower).st_mode & 0o7777)
    options = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work}"
    last: OSError | None = None
    for extra in (",userxattr", ""):
        try:
            _mount(libc, place, source="overlay", kind="overlay", options=options + extra)
        except OSError as error:
            last = error
        else:
            return
    if needed and last is not None:
        raise OSError(last.errno, f"no overlay over {place} ({last.strerror})")
    _make_read_only(libc, place)


def _make_read_only(libc: ctypes.CDLL, place: str) -> None:
    """A trainer that writes there fails and says so. If even that is not allowed, the folder stays as it is."""
    with contextlib.suppress(OSError):
        flags = os.statvfs(place).f_flag
        same = (flags & SAME_FLAGS) | (MS_RELATIME if flags & ST_RELATIME else 0)
        _mount(libc, place, source=place, flags=MS_BIND)
        _mount(libc, place, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | same)


def _mount(
    libc: ctypes.CDLL,
    target: str,
    *,
    source: str | None = None,
    kind: str | None = None,
    flags: int = 0,
    options: str | None = None,
) -> None:
    """mount(2). Raises OSError."""

    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    if libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(options)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _kept(folders: Sequence[Path], wanted: Sequence[str]) -> list[str]:
    """The folders to keep that exist and contain none that must be covered, and are in none of them."""
    found = [os.path.realpath(folder) for folder in folders if folder.is_dir()]
    return [
        place
        for place in dict.fromkeys(found)
        if not any(_within(must, place) or _within(place, must) for must in wanted)
    ]


def _inside_own(folder: str, others: Sequence[str]) -> bool:
    """Whether a folder of this user is in another one of them: one overlay for both lets files be moved between."""
    found = Path(folder).stat()
    own = (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid())
    return own and any(folder != other and _within(folder, other) for other in others)


def _holds_any(place: str, wanted: Sequence[str]) -> bool:
    return any(_within(must, place) for must in wanted)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _handle(place: str) -> int | None:
    """A handle of a folder; None if it is gone by now, or cannot be entered (then nothing can be written there)."""
    try:
        return os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) if os.access(place, os.X_OK) else None
    except OSError:
        return None
