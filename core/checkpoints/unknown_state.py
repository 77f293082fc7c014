"""State of a training of a make that is not known: told by what it is not, since no list of makes is complete.

A file or folder that is no checkpoint of a known make, and that is not known as log, sample, cache, config or event
file either, may be all that a trainer saved. It gets the verdict ``opaque``, reason "saved, not readable here …". False
alarms: data and tokenizers that a trainer writes into its output folder; the judge leaves out what was written before
the first step and never again.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from ..file_walk import walk
from ..model.checkpoint_files import (
    TEXT_SUFFIXES,
    is_checkpoint_directory_name,
    is_log_folder,
    is_numbered_text,
    is_other_file,
    is_other_folder,
    is_temporary,
    is_text_of_unknown_use,
    says_checkpoint,
    says_state,
    tensor_format,
)
from ..model.checkpoint_suffixes import has_checkpoint_suffix
from .formats.byte_range import HEAD_BYTES, head_of
from .formats.foreign_formats import foreign_format
from .formats.tensor_file import looks_like_torch

UNKNOWN = "saved, not readable here"
"""How the reason begins."""
_DEPTH = 3
"""``lightning_logs/version_0/checkpoints/last.ckpt`` is three folders deep."""
_ENTRIES = 5000
"""Most entries of one folder, with what is below it, that are read."""
_WORD = re.compile(r"[^\s\"':,;{}\[\]]+")
_SHORT = 3
"""A word this short says nothing about the name of a file."""
_NAMED_AT_MOST = 200
_ORBAX = frozenset({"_CHECKPOINT_METADATA", "manifest.ocdbt", "_METADATA"})


def what_state(path: Path, *, rewritten: bool = False, named: bool = False) -> str | None:
    """What an entry of an output folder that is no checkpoint of a known make is, in words; None if it is no state.

    ``rewritten``: it was written again as a whole, as logs are not. ``named``: the preset names it as a checkpoint.
    Raises OSError.
    """
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return None if is_temporary(path.name) else _what_folder(path, named=named)
    if not stat.S_ISREG(status.st_mode) or not status.st_size or (is_other_file(path.name) and not named):
        return None
    return _what_file(path, likely=rewritten or named)


def is_named_state(path: Path) -> bool:
    """Whether the name or the bytes alone say that it is the state of a model, without knowing who wrote it."""
    if says_checkpoint(path.name) or is_checkpoint_directory_name(path.name):
        return True
    if path.is_dir():
        return is_orbax(path)
    known = foreign_format(head_of(path) or b"", path.name)
    return known is not None and known.of_models


def is_orbax(folder: Path) -> bool:
    """Whether a folder is an item of Orbax or holds items."""
    return any((folder / name).exists() for name in _ORBAX)


def _what_file(path: Path, *, likely: bool) -> str | None:
    """What a file is, in words; None for text that does not speak of a state by its name."""
    head = head_of(path)
    if head is None:
        return "cannot be read"
    known = foreign_format(head, path.name)
    if known is not None:
        return known.words if known.may_be_state else None
    if not is_text(head):
        return "binary"
    if len(head) < HEAD_BYTES and _is_pointer(head.decode("utf-8", "replace"), path):
        return None
    suffix = path.name.rpartition(".")[1:]
    unknown = bool(suffix[0]) and f".{suffix[1].lower()}" not in TEXT_SUFFIXES
    named = (says_state(path.name) and unknown) or says_checkpoint(path.name)
    if likely or named or is_numbered_text(path.name):
        return "text"
    return None


def _is_pointer(text: str, path: Path) -> bool:
    """Whether a short text names a checkpoint beside it, as ``latest`` and ``last_checkpoint`` do."""
    words = {word.rstrip("/").rpartition("/")[2] for word in _WORD.findall(text)}
    words = {word for word in words if len(word) > _SHORT}
    if not words or len(words) > _NAMED_AT_MOST:
        return False
    try:
        with os.scandir(path.parent) as entries:
            return any(entry.name.startswith(tuple(words)) for entry in entries if entry.name != path.name)
    except OSError:
        return False


def _what_folder(path: Path, *, named: bool) -> str | None:
    """What a folder is, in words; None if nothing in it may be the state of a training."""
    if is_other_folder(path.name) and not named:
        return None

    def is_state(inner: Path) -> bool:
        strict = any(map(is_log_folder, (path.name, *inner.relative_to(path).parts[:-1])))
        return (not strict or has_checkpoint_suffix(inner.name) or says_state(inner.name)) and _state_inside(inner)

    return _folder_with(path, is_state)


def _state_inside(path: Path) -> bool:
    if is_other_file(path.name) or not path.stat().st_size:
        return False
    return has_checkpoint_suffix(path.name) or _what_file(path, likely=False) is not None


def holds_state(folder: Path) -> str | None:
    """What of an unknown make is in a checkpoint folder and may be its weights, in words; else None."""
    return _folder_with(folder, lambda inner: _is_of_unknown_format(inner) and _state_inside(inner))


def _folder_with(folder: Path, is_state: Callable[[Path], bool]) -> str | None:
    """A folder by the first file in it that is state, in words; None: there is none that can be read."""
    if is_orbax(folder):
        return "orbax"
    for inner in _walk(folder):
        with contextlib.suppress(OSError):
            if is_state(inner):
                return f"a folder with {inner.relative_to(folder)}"
    return None


def holds_text(folder: Path, but: str = "") -> str | None:
    """What of the text in a checkpoint folder may be its state, in words; else None. ``but``: a file that is not it."""
    found: list[tuple[bool, int, str]] = []
    for inner in _walk(folder):
        name = str(inner.relative_to(folder))
        with contextlib.suppress(OSError):
            size = inner.stat().st_size
            if size and name != but and is_text_of_unknown_use(inner.name):
                found.append((says_state(inner.name), size, name))
    return f"a folder with {max(found)[2]}" if found else None


def _is_of_unknown_format(path: Path) -> bool:
    """Whether no reader of tensors opens it: by its suffix, or by its first bytes if others use the suffix, too."""
    promised = tensor_format(path.name)
    if promised == "maybe_torch":
        return not looks_like_torch(head_of(path) or b"")
    return promised is None and not has_checkpoint_suffix(path.name)


def has_state_files(path: Path) -> bool:
    """Whether anything that may be state of a training is there: not only counts, configs and logs."""
    if not path.is_dir():
        return True
    return holds_state(path) is not None or any(has_checkpoint_suffix(inner.name) for inner in _walk(path))


def _walk(root: Path) -> Iterator[Path]:
    """Regular files, breadth first. Links are not followed."""
    found = walk([str(root)], depth=_DEPTH, most=_ENTRIES, into=lambda folder: not is_other_folder(folder.name))
    return (Path(each.path) for each in found if each.is_file(follow_symlinks=False))


def is_text(head: bytes) -> bool:
    """Whether it begins like text: UTF-8 without control characters."""
    if b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3  # a character cut at the end
    return True
