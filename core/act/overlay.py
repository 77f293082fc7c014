"""A view of the file system in which nothing of the user's is written: what it covers, and how it is mounted."""

import contextlib
import ctypes
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from ..mounts import MountPoint, mount_points

NO_FILES = frozenset({
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
    "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "ramfs", "rpc_pipefs", "securityfs", "sysfs", "tracefs",
})  # fmt: skip
"""Types of mounts that hold no files of a user."""
OF_THE_SYSTEM = frozenset({
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/lost+found", "/proc", "/run", "/sbin",
    "/snap", "/swapfile", "/sys", "/usr", "/var",
})  # fmt: skip
"""Folders that hold programs and devices. ``/run`` and ``/dev`` hold sockets and shared memory, which an overlay would
hide; ``/var/tmp`` may hold the scratch folder."""


def folders_to_cover(
    mounts: Iterable[MountPoint], scratch: str, wanted: Collection[str], *, each: bool = False
) -> list[str]:
    """The folders for an overlay each, outer ones first. All paths are real and absolute.

    These are all places where a user's files may be, without those that contain ``scratch`` (an overlay cannot write
    into its own lower folder; of such a folder its entries are covered). ``wanted``: folders that are covered wherever
    they are; ``each``: with an overlay of its own, because one further out cannot copy folders of others on the way.
    """
    places = {mount.point: mount for mount in mounts}  # of several at one point the last is the one that is seen
    found: list[str] = []
    for mount in places.values():
        if mount.kind in NO_FILES or not mount.writable or not os.path.isdir(mount.point):  # noqa: PTH112
            continue
        if mount.point == "/":
            tops = [top for top in _entries("/", places) if top not in OF_THE_SYSTEM]
            found += [part for top in tops for part in _cover(top, scratch, places)]
        elif not any(_within(mount.point, system) for system in OF_THE_SYSTEM):
            found += _cover(mount.point, scratch, places)
    for folder in wanted:
        if (each or not any(_within(folder, covered) for covered in found)) and os.path.isdir(folder):  # noqa: PTH112
            found += _cover(folder, scratch, places)
    return sorted(dict.fromkeys(found), key=lambda place: (place.count("/"), place))


def _cover(folder: str, scratch: str, mounts: Collection[str]) -> Iterator[str]:
    if not _within(scratch, folder):
        yield folder
    elif folder != scratch:
        for entry in _entries(folder, mounts):
            yield from _cover(entry, scratch, mounts)


def _entries(folder: str, mounts: Collection[str]) -> list[str]:
    """The folders in a folder; other mounts come by themselves."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(path for path in found if path not in mounts)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# Puts overlays over the user's folders, for this process and its children only (a mount namespace of their own).
#
# The kernel removes the namespace with the last process in it, however that ends: nothing has to be unmounted. Needs
# Linux 5.11 and unprivileged user namespaces, or root. Sources: mount_namespaces(7), user_namespaces(7),
# kernel documentation of overlayfs ("Permission model", "userxattr").

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
        mounts = mount_points(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
        must = [os.path.realpath(folder) for folder in wanted]
        covered = folders_to_cover(mounts, own, [f for f in must if not _inside_own(f, must)], each=mapped)
        # Handles of all places as they are now: an overlay hides what is mounted in it.
        lower = {place: handle for place in covered if (handle := _handle(place)) is not None}
        keep = {place: os.open(place, os.O_PATH | os.O_CLOEXEC) for place in _kept(kept, must)}
        for number, place in enumerate(covered):
            if place in lower:
                _mount_view_cover(
                    libc,
                    place,
                    lower[place],
                    Path(own) / "upper" / str(number),
                    needed=any(_within(each, place) for each in must),
                )
        for place, handle in keep.items():
            _mount(libc, place, source=f"/proc/self/fd/{handle}", flags=MS_BIND | MS_REC)
        for number, folder in enumerate(hidden):
            empty = Path(own) / "empty" / str(number)
            empty.mkdir(parents=True)
            _mount(libc, os.path.realpath(folder), source=str(empty), flags=MS_BIND)
        for place in must:  # as the trainer will: an overlay in a user namespace cannot copy what other users own
            probe = os.path.join(place, PROBE)  # noqa: PTH118
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            os.unlink(probe)  # noqa: PTH108
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


def _mount_view_cover(libc: ctypes.CDLL, place: str, lower: int, folder: Path, *, needed: bool) -> None:
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
    with contextlib.suppress(OSError):  # a trainer that writes there fails and says so
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


def _handle(place: str) -> int | None:
    """A handle of a folder; None if it is gone by now, or cannot be entered (then nothing can be written there)."""
    try:
        return os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) if os.access(place, os.X_OK) else None
    except OSError:
        return None
