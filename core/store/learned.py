"""What is kept from run to run, one small file per job: habits, rehearsals, trials."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from ..model.launch import Rehearsal
from ..model.run import Habits, faded, without_pace
from .atomic import write_atomically
from .home import make_private

# Habits of a job, kept from run to run: ``<home>/habits/KEY.json``, one small file per job.
#
# A file that is unreadable, damaged or of another version counts as absent, and what cannot be written is lost; the
# run is not affected. At most ``FILES`` jobs are kept, those that ran last.

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


# What rehearsals proved: ``<home>/rehearsals/proven/KEY.json``, one small file per command and working folder.
#
# A file that is unreadable, damaged or of another version counts as absent.

SOURCE_SUFFIXES = frozenset({".py", ".sh", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini"})
MOST_FILES = 2000
MOST_FOLDERS = 500
MOST_BYTES = 4_000_000
"""A larger file is no source."""
LEFT_OUT = frozenset({"node_modules", "site-packages", "wandb", "mlruns", "__pycache__"})


class _RehearsalsStored(msgspec.Struct, frozen=True, kw_only=True):
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
    write_atomically(path, msgspec.json.encode(_RehearsalsStored(version=VERSION, source=source, result=result)))


def known_rehearsal(home: Path, command: Sequence[str], cwd: str, config: str | None) -> Rehearsal | None:
    """The newest rehearsal of this command in this folder, if its source is unchanged since; None without one."""
    try:
        stored = msgspec.json.decode(_path(home, command, cwd).read_bytes(), type=_RehearsalsStored)
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
