"""The files of a checkpoint, and what belongs to it beside them: markers, pointers, ranks, pairs, older ones.

A trainer writes the members of a set one after the other. What lacks a member, or has one that is damaged, is not
whole, however whole the rest of it is.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...file_walk import leaves
from ...model.checkpoint_files import (
    is_other_file,
    is_part,
    is_temporary,
    is_text_of_unknown_use,
    kind_of_name,
    numbers_in,
    read_name,
    says_state,
)
from ...model.checkpoint_suffixes import has_checkpoint_suffix
from ...processes import status_of
from ..formats.byte_range import Torn, head_of
from ..formats.tensors import shown

MAX_DEPTH = 4
MAX_MEMBERS = 20_000
"""A directory with more files is a data set: no checkpoint, and not searched."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One regular file. ``name``: path inside the checkpoint, with ``/``."""

    name: str
    path: Path
    size_bytes: int
    mtime: float

    @classmethod
    def at(cls, path: Path, name: str = "") -> "Member":
        """The file there, by its own name or another one. Raises OSError."""
        status = path.stat()
        return cls(name=name or path.name, path=path, size_bytes=status.st_size, mtime=status.st_mtime)


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a directory. ``strays``: links out of it, and what is not a regular file; never opened.

    ``layout``: the layout that its trainer is known to follow (``layout`` of a preset).
    """

    root: Path
    files: dict[str, Member]
    folders: tuple[str, ...]
    strays: tuple[str, ...]
    layout: str | None = None

    def top(self) -> Iterator[str]:
        """Names of the files that lie directly in the directory."""
        return (name for name in self.files if "/" not in name)

    def has(self, *names: str) -> bool:
        return any(name in self.files for name in names)

    def under(self, folder: str) -> "Members":
        """The members below a folder, with names relative to it."""
        prefix = f"{folder}/"
        return Members(
            root=self.root / folder,
            files={
                name.removeprefix(prefix): msgspec.structs.replace(member, name=name.removeprefix(prefix))
                for name, member in self.files.items()
                if name.startswith(prefix)
            },
            folders=tuple(name.removeprefix(prefix) for name in self.folders if name.startswith(prefix)),
            strays=tuple(name.removeprefix(prefix) for name in self.strays if name.startswith(prefix)),
        )

    @property
    def size_bytes(self) -> int:
        return sum(member.size_bytes for member in self.files.values())


def find_members(root: Path, layout: str | None = None) -> Members:
    """Walk a directory. Files that are removed during the walk are left out. Raises FileNotFoundError for the root."""
    real_root = root.resolve(strict=True)
    files: dict[str, Member] = {}
    folders: list[str] = []
    strays: list[str] = []
    pending: list[tuple[str, int]] = [("", 0)]
    while pending and len(files) < MAX_MEMBERS:
        folder, depth = pending.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            if not folder:
                raise
            strays.append(folder)
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                if depth + 1 < MAX_DEPTH and not os.path.ismount(entry.path):  # / has /proc in it
                    pending.append((name, depth + 1))
                continue
            path = Path(entry.path)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.stat().st_mode) and not (entry.is_symlink() and leaves(path, real_root)):
                    files[name] = Member.at(path, name)
            if name not in files:
                strays.append(name)
    return Members(root=root, files=files, folders=tuple(folders), strays=tuple(strays), layout=layout)


MARKER = "-unfinished"
"""NeMo makes ``NAME-unfinished`` before a save and removes it after (``NeMoModelCheckpoint``)."""
_MARKED_WITHOUT = ("", ".ckpt", "-EMA.ckpt")
"""Ends of a checkpoint's name that its marker's name lacks."""


LATEST = "latest"
POINTERS = {
    LATEST: re.compile(r"^global_step\d+$"),  # DeepSpeed
    "latest_checkpointed_iteration.txt": re.compile(r"^iter_\d+$"),  # Megatron
}
"""Files of the trainer that name its newest finished checkpoint, written after that, and names of those."""
RANK_FOLDER = re.compile(r"^mp_rank_\d+(?:_\d+)*$")
"""Megatron: ``iter_0001000/mp_rank_TENSOR_PIPELINE/`` of each rank; none of them is a checkpoint by itself."""
_PAIRS = {"G": "D", "netG": "netD", "gen": "disc", "generator": "discriminator"}
_HALVES = _PAIRS | {second: first for first, second in _PAIRS.items()}
"""First words of two files of one save: both are needed to go on (VITS, so-vits-svc, RVC, pix2pix)."""
_WORD = re.compile(r"^([A-Za-z]+)(?=[-_.\d])")
_TICK_NS = 50_000_000
"""Names that were listed so soon after a change may lack what came in the same tick of the kernel's clock."""


def read_pointer(path: Path) -> str | None:
    """The text of a pointer file; None if it cannot be read."""
    head = head_of(path)
    return None if head is None else head.decode("utf-8", "replace").strip()


class Folder(NamedTuple):
    """Names in a folder. ``kinds``: of files with tensors, kind of name → the numbers in each name → that name."""

    names: frozenset[str]
    kinds: dict[str, dict[tuple[int, ...], str]]


def unfinished_beside(path: Path, is_damaged: Callable[[Path], bool]) -> Torn | None:
    """What lies beside a checkpoint and says that its set is not whole; None: nothing does.

    ``is_damaged``: whether another file is, by structure and size.
    """
    folder = _folder(path.parent)
    why = None
    if folder is not None:
        why = _marked(path, folder.names) or _not_named(path, folder.names) or _half(path, folder, is_damaged)
    return None if why is None else Torn(why, unfinished=True)


def _marked(path: Path, names: frozenset[str]) -> str | None:
    ends = (end for end in _MARKED_WITHOUT if path.name.endswith(end))
    marker = next((name for end in ends if (name := f"{path.name.removesuffix(end)}{MARKER}") in names), None)
    return None if marker is None else f"was not finished: {marker} is beside it"


def _not_named(path: Path, names: frozenset[str]) -> str | None:
    for pointer, of in POINTERS.items():
        if pointer in names and of.match(path.name):
            named = read_pointer(path.with_name(pointer)) or ""
            step, own = read_name(named).step, read_name(path.name).step
            if step is not None and own is not None and step < own:
                return f"was not finished: {pointer} beside it names {shown(named)}"
    return None


def _half(path: Path, folder: Folder, is_damaged: Callable[[Path], bool]) -> str | None:
    """Of two files that are saved together, what is wrong with the other.

    They are such by their names (``_HALVES``), or because each earlier save has both; parts are none. Known false alarm
    of the second: a file beside it that was cut off and is not needed; then the older save is the resume point.
    """
    numbers = numbers_in(path.name)
    alike = folder.kinds.get(kind_of_name(path.name), {})
    if path.name != alike.get(numbers):
        return None
    word = _WORD.match(path.name)
    half = "" if word is None or word[1] not in _HALVES else f"{_HALVES[word[1]]}{path.name[word.end() :]}"
    if half and half not in folder.names and kind_of_name(half) in folder.kinds:
        return f"{half} is missing: it is saved with it"
    earlier = {each for each in alike if each < numbers}
    for others in folder.kinds.values():
        name = others.get(numbers, path.name)
        if name == path.name or is_part(name):
            continue
        together = name == half or (earlier and earlier == {each for each in others if each < numbers})
        if together and is_damaged(path.with_name(name)):
            return f"{name}, which is saved with it, is not whole"
    return None


def saved_with(path: Path) -> list[Path]:
    """The files beside a file that were written at its save: other main files, and parts.

    They have exactly its numbers and were written nearer in time to it than to the ones before and after it: the number
    in ``optimizer_1.bin`` may be that of a rank.
    """
    folder, numbers = _folder(path.parent), numbers_in(path.name)
    kinds = {} if folder is None else folder.kinds
    alike = kinds.get(kind_of_name(path.name), {})
    if alike.get(numbers) != path.name:
        return []

    def written(name: str) -> float:
        status = status_of(path.with_name(name))
        return 0.0 if status is None else status.st_mtime

    order = sorted(alike)
    times = {each: written(alike[each]) for each in order[max(0, order.index(numbers) - 1) :][:3]}
    beside = [names[numbers] for names in kinds.values() if names is not alike and numbers in names]
    found = [(name, written(name)) for name in beside]
    return [path.with_name(name) for name, t in found if min(times, key=lambda n: abs(times[n] - t)) == numbers]


def missing_ranks(members: Members) -> list[Torn]:
    """At most one finding: a rank's folder, or a file in one, that the others' numbers and files ask for."""
    ranks = {folder: numbers_in(folder) for folder in members.folders if RANK_FOLDER.match(folder)}
    if not ranks:
        return []
    longest = max(map(len, ranks.values()))
    found = [numbers for numbers in ranks.values() if len(numbers) == longest]
    expected = set(product(*(range(max(place) + 1) for place in zip(*found, strict=True))))
    for absent in sorted(expected - set(found))[:1]:
        return [Torn(f"the folder of rank {'_'.join(map(str, absent))} is missing: every rank saves", understood=False)]
    for name in sorted(set[str]().union(*(members.under(folder).files for folder in ranks))):
        for folder in sorted(ranks):
            if f"{folder}/{name}" not in members.files:
                return [Torn(f"{folder}/{name} is missing: another rank has one", understood=False)]
    return []


def series_of(path: Path) -> Iterator[Path]:
    """The other folders of its series: the older ones, newest first, then those that are newer. No link out."""
    folder, numbers, real = _folder(path.parent), numbers_in(path.name), path.parent.resolve()
    names = () if folder is None or not numbers else folder.names
    alike = [name for name in names if kind_of_name(name) == kind_of_name(path.name) and numbers_in(name) != numbers]
    alike.sort(key=lambda name: (numbers_in(name) < numbers, numbers_in(name)), reverse=True)
    for each in map(path.with_name, alike):
        if each.is_dir() and not (each.is_symlink() and leaves(each, real)):
            yield each


def missing_beside_older(members: Members, optional: frozenset[str] = frozenset()) -> list[Torn]:
    """At most one finding: a member that the next older folder of the series has.

    The files' own make, if no rule is known: a trainer writes the same members at each save, so a folder without one of
    them was not finished. Known false alarm: a trainer that saves its optimizer at some saves only; then the older one
    with the optimizer is the better resume point. ``optional``: members whose absence is only noted.
    """
    older = next(series_of(members.root), None)
    if older is None or numbers_in(older.name) > numbers_in(members.root.name):
        return []
    try:
        theirs = sorted(entry.name for entry in os.scandir(older) if entry.is_file(follow_symlinks=False))
    except OSError:
        return []
    own = {kind_of_name(name) for name in members.top()}
    for name in theirs:
        # one of each save: no log, config or sample that may come and go
        belongs = is_part(name) or not is_other_file(name) or (is_text_of_unknown_use(name) and says_state(name))
        if belongs and name not in optional and kind_of_name(name) not in own:
            return [Torn(f"{name} is missing: {older.name} beside it has one", understood=False)]
    return []


def _folder(path: Path) -> Folder | None:
    """None if it has too many names, or cannot be read. It is listed again only after a change."""
    try:
        status = path.stat()
        key = (str(path), status.st_dev, status.st_ino, status.st_mtime_ns)
        young = time.time_ns() - status.st_mtime_ns < _TICK_NS
        return (_listed.__wrapped__ if young else _listed)(key)
    except OSError:
        return None


@lru_cache(maxsize=4)
def _listed(key: tuple[str, int, int, int]) -> Folder | None:
    with os.scandir(key[0]) as entries:
        names = frozenset(entry.name for _, entry in zip(range(MAX_MEMBERS + 1), entries, strict=False))
    if len(names) > MAX_MEMBERS:
        return None
    found = Folder(names, {})
    for name in sorted(names):
        if (numbers := numbers_in(name)) and has_checkpoint_suffix(name) and not is_temporary(name):
            found.kinds.setdefault(kind_of_name(name), {})[numbers] = name
    return found
