"""Habits of a job, kept from run to run: ``<home>/habits/KEY.json``, one small file per job.

A file that is unreadable, damaged or of another version counts as absent, and what cannot be written is lost; the run
is not affected. At most ``FILES`` jobs are kept, those that ran last.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from ...model.launch.habits import Habits, faded, without_pace
from ..atomic import write_atomically
from ..home import make_private

VERSION = 1
FILES = 200
"""Jobs that are kept, each in 1–2 kB."""
LIMIT_BYTES = 64 * 1024
"""A larger file is ignored."""

ATTEMPT_FLAG = re.compile(
    r"--?(?:"
    r"(?:auto[-_]?)?resume(?:[-_](?:from|path|ckpt|checkpoint|from[-_]checkpoint|training))*|"
    r"(?:load|init|start|restore|continue)[-_]?(?:from|ckpt|checkpoint|state|step|epoch)[-_a-z]*|ckpt[-_]path|"
    r"(?:output|out|log|logging|save|work|run|job|checkpoint)[-_]?(?:dir|path|folder|name|id)|"
    r"(?:experiment|exp|wandb)[-_](?:name|id|run[-_a-z]*)|"
    r"(?:main|master|rdzv)[-_](?:process[-_])?(?:port|addr|endpoint|id)|local[-_]rank|seed"
    r")",
    re.IGNORECASE,
)
"""Options that belong to one launch and not to the job: resume point, output, name."""
PLACEHOLDER = re.compile(r"\{(?:resume|output_dir)\}")
OVERRIDE = re.compile(r"\+{0,2}(?:[\w.]+\.)?(?:resume\w*|ckpt_path|output_dir|run_name|seed)=.*", re.IGNORECASE)
"""The same as Hydra and OmegaConf write it: ``trainer.resume_from=PATH``."""
INTERPRETER = re.compile(r"(?:.*/)?(python|pypy)[\d.]*$")


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    habits: Habits
    config: str = ""


class HabitsFile:
    """The habits of one job: a command in a folder. Reading and writing never raise."""

    def __init__(self, home: Path, command: Sequence[str], cwd: str, config: Path | None = None) -> None:
        self.path = home / "habits" / f"{job_key(command, cwd)}.json"
        self._config = _digest_of(config)

    def read(self) -> Habits | None:
        """The values for the next run; None if nothing is known. After a change of the config only the lengths."""
        try:
            if self.path.stat().st_size > LIMIT_BYTES:
                return None
            stored = msgspec.json.decode(self.path.read_bytes(), type=_Stored)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if stored.version != VERSION:
            return None
        habits = faded(stored.habits)
        return habits if stored.config == self._config else without_pace(habits)

    def write(self, habits: Habits) -> None:
        """Replace the file. If it cannot be written, the old one stays."""
        with contextlib.suppress(OSError):
            folder = make_private(self.path.parent)
            new = not self.path.exists()
            stored = _Stored(version=VERSION, habits=habits, config=self._config)
            write_atomically(self.path, msgspec.json.encode(stored))
            if new:
                _keep_newest(folder)


def job_key(command: Sequence[str], cwd: str) -> str:
    """16 hex digits of the command and its folder, without what belongs to one launch."""
    words = "\0".join((cwd, *normalised(command)))
    return sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def normalised(command: Sequence[str]) -> tuple[str, ...]:
    """The command without options, overrides and placeholders of one launch; interpreters without path and version."""
    return tuple(_lasting(command))


def _lasting(command: Sequence[str]) -> Iterator[str]:
    skip_value = False
    for word in command:
        value, skip_value = skip_value and not word.startswith("-"), False
        if value:
            continue
        flag, equals, _ = word.partition("=")
        if ATTEMPT_FLAG.fullmatch(flag):
            skip_value = not equals
        elif OVERRIDE.fullmatch(word) is None and PLACEHOLDER.search(word) is None:
            interpreter = INTERPRETER.match(word)
            yield interpreter[1] if interpreter is not None else word


def _digest_of(config: Path | None) -> str:
    if config is None:
        return ""
    try:
        return sha256(config.read_bytes()).hexdigest()[:16]
    except OSError:
        return "unreadable"


def _keep_newest(folder: Path) -> None:
    known = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in known[FILES:]:
        path.unlink(missing_ok=True)
