"""Where copies of other machines' runs are kept, and when they go.

``$XDG_CACHE_HOME/trainwatch/hosts/HOST/runs/RUN/`` has the layout of a run's folder, and a file ``mirror.json``. The
folder of this machine's runs has none of them, so no verb and no supervisor of it takes one for a run of its own.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...model.remote.messages import CardsNow
from ...model.text.json_line import encode_line
from ..atomic import write_atomically
from ..home import make_private
from ..run_directory import RunDirectory

KEPT_S = 30 * 86_400.0
"""A copy that nobody opened for so long is removed: it can be made again."""
CARDS = "cards.json"
MARK = "mirror.json"


class MirrorMark(msgspec.Struct, frozen=True, kw_only=True):
    """``heard_wall``: the clock of the other machine when the copy was last known to be as it is there."""

    host: str
    heard_wall: float = 0.0


def mirrors_folder(env: Mapping[str, str]) -> Path:
    """The cache folder of the copies. Creates nothing."""
    cache = env.get("XDG_CACHE_HOME")
    base = Path(cache) if cache and Path(cache).is_absolute() else Path(env.get("HOME") or "~").expanduser() / ".cache"
    return base / "trainwatch" / "hosts"


class HostMirror:
    """The copies of one host's runs."""

    def __init__(self, folder: Path, host: str) -> None:
        self.host = host
        self.path = folder / host

    def run(self, run_id: str) -> RunDirectory:
        """The folder of a copy; it is made if it is missing. Raises OSError, and ValueError for no id of a run."""
        if not run_id or run_id.startswith(".") or "/" in run_id:
            raise ValueError(f"not a run id: {run_id!r}")
        directory = RunDirectory(make_private(self.path / "runs" / run_id))
        if not (directory.path / MARK).exists():
            self.heard(directory, 0.0)
        os.utime(directory.path / MARK)
        return directory

    def has(self, run_id: str) -> bool:
        """Whether there is a copy that can be opened."""
        return (self.path / "runs" / run_id / "run.json").is_file()

    def heard(self, run: RunDirectory, wall: float) -> None:
        """Remember until when the copy is known to agree. Errors are ignored."""
        with contextlib.suppress(OSError):
            write_atomically(run.path / MARK, encode_line(MirrorMark(host=self.host, heard_wall=wall)))

    def mark(self, run: RunDirectory) -> MirrorMark:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode((run.path / MARK).read_bytes(), type=MirrorMark)
        return MirrorMark(host=self.host)

    def keep_cards(self, cards: CardsNow) -> None:
        """Remember the list of runs. Errors are ignored."""
        with contextlib.suppress(OSError):
            make_private(self.path)
            write_atomically(self.path / CARDS, encode_line(cards))

    def cards(self) -> CardsNow:
        """The list as it was known last; empty if it never was."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode((self.path / CARDS).read_bytes(), type=CardsNow)
        return CardsNow()


def remove_old(folder: Path) -> None:
    """Remove the copies that nobody opened for KEPT_S. Errors are ignored."""
    with contextlib.suppress(OSError):
        for mark in folder.glob(f"*/runs/*/{MARK}"):
            with contextlib.suppress(OSError):
                if time.time() - mark.stat().st_mtime > KEPT_S:
                    shutil.rmtree(mark.parent)
