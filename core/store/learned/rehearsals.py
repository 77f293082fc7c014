"""What rehearsals proved: ``<home>/rehearsals/proven/KEY.json``, one small file per command and working folder.

A file that is unreadable, damaged or of another version counts as absent.
"""

import contextlib
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from ...model.launch.rehearsal import Rehearsal
from ..atomic import write_atomically
from ..home import make_private

VERSION = 1
SOURCE_SUFFIXES = frozenset({".py", ".sh", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini"})
MOST_FILES = 2000
MOST_FOLDERS = 500
MOST_BYTES = 4_000_000
"""A larger file is no source."""
LEFT_OUT = frozenset({"node_modules", "site-packages", "wandb", "mlruns", "__pycache__"})


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    source: str
    result: Rehearsal


def rehearsals_folder(home: Path) -> Path:
    """State folder of rehearsals; no list of runs shows them."""
    return Path(os.path.normpath(home)) / "rehearsals"


def keep_rehearsal(home: Path, cwd: str, result: Rehearsal, source: str) -> None:
    """Replace what is known of this command in this folder. Raises OSError."""
    path = _path(home, result.command, cwd)
    make_private(path.parent)
    write_atomically(path, msgspec.json.encode(_Stored(version=VERSION, source=source, result=result)))


def known_rehearsal(home: Path, command: Sequence[str], cwd: str, config: str | None) -> Rehearsal | None:
    """The newest rehearsal of this command in this folder, if its source is unchanged since; None without one."""
    try:
        stored = msgspec.json.decode(_path(home, command, cwd).read_bytes(), type=_Stored)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if stored.version != VERSION or stored.source != source_digest(command, cwd, config):
        return None
    return stored.result


def source_digest(command: Sequence[str], cwd: str, config: str | None) -> str:
    """The scripts and configs of a command: files that it names, the sources beside its scripts, and ``config``."""
    digest = sha256()
    for path in _sources((*command, config or ""), Path(cwd)):
        with contextlib.suppress(OSError):
            if path.stat().st_size <= MOST_BYTES:
                digest.update(os.fsencode(path) + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _sources(command: Sequence[str], cwd: Path) -> list[Path]:
    words = [part for word in command for part in (word, word.partition("=")[2]) if part and "\0" not in part]
    named = [path for word in words if (path := cwd / word).suffix in SOURCE_SUFFIXES and path.is_file()]
    found = dict.fromkeys(named)
    for folder in dict.fromkeys(path.parent for path in named if path.suffix == ".py"):
        for count, (place, folders, names) in enumerate(os.walk(folder)):
            folders[:] = [
                f for f in sorted(folders)
                if f not in LEFT_OUT and not f.startswith(".") and not Path(place, f, "pyvenv.cfg").exists()
            ]  # fmt: skip
            found.update(dict.fromkeys(Path(place, name) for name in sorted(names) if name.endswith(".py")))
            if len(found) > MOST_FILES or count > MOST_FOLDERS:
                break
    return list(found)[:MOST_FILES]


def _path(home: Path, command: Sequence[str], cwd: str) -> Path:
    words = "\0".join((cwd, *command)).encode("utf-8", "surrogatepass")
    return rehearsals_folder(home) / "proven" / f"{sha256(words).hexdigest()[:16]}.json"
