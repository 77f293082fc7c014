"""Small files that are kept from run to run: habits, rehearsals, trials, last looks, ratings, the queue.

A file that is unreadable, damaged or of another version counts as absent, and what cannot be written is lost, except
where a class says otherwise: the run is not affected.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from ..atomic_files import opened
from ..file_walk import walk
from ..model.checkpoint import Rating
from ..model.launch import QUEUE_VERSION, Queue, Rehearsal, TrialResult
from ..model.run import Habits, faded, without_pace
from ..model.story import Look
from .home import make_private, write_all, write_atomically

VERSION = 1
LIMIT_BYTES = 4 << 20
"""A larger file is ignored."""
T = TypeVar("T")


class _Versioned(msgspec.Struct, frozen=True, kw_only=True):
    version: int = VERSION


def _read(path: Path, kind: type[T]) -> T | None:
    """None if it is missing, damaged or of another version."""
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(LIMIT_BYTES), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return None if isinstance(found, _Versioned) and found.version != VERSION else found


# --- habits of a job: ``<home>/habits/KEY.json``, one file per job; those that ran last are kept ---

FILES = 200
"""Jobs that are kept, each in 1–2 kB."""
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


class _Stored(_Versioned, frozen=True, kw_only=True):
    habits: Habits
    config: str = ""


class HabitsFile:
    """The habits of one job: a command in a folder. Reading and writing never raise."""

    def __init__(self, home: Path, command: Sequence[str], cwd: str, config: Path | None = None) -> None:
        self.path = home / "habits" / f"{job_key(command, cwd)}.json"
        self._config = ""
        if config is not None:
            try:
                self._config = sha256(config.read_bytes()).hexdigest()[:16]
            except OSError:
                self._config = "unreadable"

    def read(self) -> Habits | None:
        """The values for the next run; None if nothing is known. After a change of the config only the lengths."""
        stored = _read(self.path, _Stored)
        if stored is None:
            return None
        habits = faded(stored.habits)
        return habits if stored.config == self._config else without_pace(habits)

    def write(self, habits: Habits) -> None:
        """Replace the file. If it cannot be written, the old one stays."""
        with contextlib.suppress(OSError):
            folder, new = make_private(self.path.parent), not self.path.exists()
            stored = _Stored(habits=habits, config=self._config)
            write_atomically(self.path, msgspec.json.encode(stored))
            known = sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime) if new else []
            for path in known[FILES:]:
                path.unlink(missing_ok=True)


def job_key(command: Sequence[str], cwd: str) -> str:
    """16 hex digits of the command and its folder, without what belongs to one launch."""
    return _key(normalised(command), cwd)


def _key(words: Sequence[str], cwd: str) -> str:
    return sha256("\0".join((cwd, *words)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def normalised(command: Sequence[str]) -> tuple[str, ...]:
    """The command without options, overrides and placeholders of one launch; interpreters without path and version."""
    skip_value, kept = False, list[str]()
    for word in command:
        value, skip_value = skip_value and not word.startswith("-"), False
        if value:
            continue
        flag, equals, _ = word.partition("=")
        if ATTEMPT_FLAG.fullmatch(flag):
            skip_value = not equals
        elif OVERRIDE.fullmatch(word) is None and PLACEHOLDER.search(word) is None:
            interpreter = INTERPRETER.match(word)
            kept.append(word if interpreter is None else interpreter[1])
    return tuple(kept)


# --- what rehearsals proved: ``<home>/rehearsals/proven/KEY.json``, one file per command and working folder ---

SOURCE_SUFFIXES = frozenset({".py", ".sh", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini"})
MOST_FILES = 2000
MOST_DEPTH, MOST_ENTRIES = 16, 20_000
MOST_BYTES = 4_000_000
"""A larger file is no source."""
LEFT_OUT = frozenset({"node_modules", "site-packages", "wandb", "mlruns", "__pycache__"})
NAMED = re.compile(r"[\w./@+-]+\.(?:py|sh|toml|ya?ml|json|cfg|ini)(?!\w)")
"""A file that a shell script speaks of; of ``$DIR/train.py`` what stands behind the variable."""


class _Proven(_Versioned, frozen=True, kw_only=True):
    """``sources``: the files that it depends on, with digests of what they hold."""

    sources: dict[str, str]
    result: Rehearsal


def rehearsals_folder(home: Path) -> Path:
    """State folder of rehearsals; no list of runs shows them."""
    return Path(os.path.normpath(home)) / "rehearsals"


def keep_rehearsal(home: Path, cwd: str, result: Rehearsal, sources: dict[str, str]) -> None:
    """Replace what is known of this command in this folder. Raises OSError."""
    path = make_private(rehearsals_folder(home) / "proven") / f"{_key(result.command, cwd)}.json"
    write_atomically(path, msgspec.json.encode(_Proven(sources=sources, result=result)))


def known_rehearsal(
    home: Path, command: Sequence[str], cwd: str, sources: Callable[[], Mapping[str, str]]
) -> tuple[Rehearsal, tuple[str, ...]] | None:
    """The newest rehearsal of this command in this folder, and the sources that differ since; None without one."""
    stored = _read(rehearsals_folder(home) / "proven" / f"{_key(command, cwd)}.json", _Proven)
    if stored is None:
        return None
    now, then = sources(), stored.sources
    return stored.result, tuple(sorted(path for path in {*now, *then} if now.get(path) != then.get(path)))


def source_digests(words: Sequence[str], cwd: str) -> dict[str, str]:
    """The scripts and configs that words name, those that shell scripts among them name, and the sources beside."""
    found: dict[str, str] = {}
    for path in _sources(words, Path(cwd)):
        with contextlib.suppress(OSError):
            if path.stat().st_size <= MOST_BYTES:
                found[str(path)] = sha256(path.read_bytes()).hexdigest()[:16]
    return found


def _sources(words: Sequence[str], cwd: Path) -> list[Path]:
    found: dict[Path, None] = {}
    waiting = [cwd / part for word in words for part in (word, word.partition("=")[2]) if part and "\0" not in part]
    while waiting:
        path = Path(os.path.normpath(waiting.pop(0)))
        if path in found or not path.is_file():
            continue
        shell = path.suffix in {"", ".sh", ".bash"} and _is_script(path)
        if not (shell or path.suffix in SOURCE_SUFFIXES):
            continue
        found[path] = None
        for name in NAMED.findall(path.read_text(errors="replace")) if shell else ():
            waiting += [place / part for part in (name, name.partition("/")[2]) if part for place in (cwd, path.parent)]
    for folder in dict.fromkeys(path.parent for path in found if path.suffix == ".py"):
        inside = walk([str(folder)], depth=MOST_DEPTH, most=MOST_ENTRIES, into=_holds_source)
        found |= dict.fromkeys(Path(each.path) for each in inside if each.name.endswith(".py"))
    return list(found)[:MOST_FILES]


def _is_script(path: Path) -> bool:
    """Whether it is a text that a shell may run."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return path.stat().st_size <= MOST_BYTES and (path.suffix != "" or file.read(2) == b"#!")
    return False


def _holds_source(folder: os.DirEntry[str]) -> bool:
    return not (
        folder.name in LEFT_OUT or folder.name.startswith(".") or os.path.exists(f"{folder.path}/pyvenv.cfg")  # noqa: PTH110
    )


# --- results of trials, one JSON object per line, by run: ``<home>/trials/results/RUN.jsonl``, append-only ---


def trials_folder(home: Path) -> Path:
    """State folder of trials, for their runs and results; no list of runs shows them."""
    return Path(os.path.normpath(home)) / "trials"


def keep_trial(home: Path, run_id: str, result: TrialResult) -> None:
    """Add a result. Raises OSError."""
    path = make_private(trials_folder(home) / "results") / f"{run_id}.jsonl"
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as descriptor:
        write_all(descriptor, msgspec.json.encode(result) + b"\n")
        os.fsync(descriptor)


def newest_trials(home: Path, run_id: str) -> dict[str, TrialResult]:
    """The newest result of each profile that was measured for a run. A damaged line is skipped."""
    found: dict[str, TrialResult] = {}
    with contextlib.suppress(OSError), (trials_folder(home) / "results" / f"{run_id}.jsonl").open("rb") as lines:
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError):
                result = msgspec.json.decode(line, type=TrialResult)
                found[result.profile] = result
    return found


# --- when a person last looked at a run: a file in its folder ---


def read_look(path: Path) -> Look | None:
    """None: never, or the file cannot be read."""
    return _read(path, Look)


def write_look(path: Path, look: Look) -> None:
    """Does nothing if the run's folder is gone or cannot be written."""
    with contextlib.suppress(OSError):
        write_atomically(path, msgspec.json.encode(look), durable=False)


# --- lists that a person made: a damaged one is not written over ---


class ListUnreadable(Exception):  # noqa: N818  named after the condition
    """The file is damaged or of a newer trainwatch. The message is a sentence for the user; nothing is written."""


class _Ratings(_Versioned, frozen=True, kw_only=True):
    ratings: tuple[Rating, ...] = ()


L = TypeVar("L", Queue, _Ratings)


def _read_list(path: Path, kind: type[L], version: int) -> L:
    """The list; empty if there is none. Raises ListUnreadable, OSError."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return kind()
    except msgspec.MsgspecError as error:
        raise ListUnreadable(f"{path}: damaged ({error}); move it away to begin anew") from None
    if found.version > version:
        raise ListUnreadable(f"{path}: written by a newer trainwatch; update trainwatch to use it")
    return found


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """No other process changes the list meanwhile. Makes its folder. Raises OSError."""
    make_private(path.parent)
    with opened(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _write_list(path: Path, found: Queue | _Ratings) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(found)))


def read_ratings(home: Path) -> tuple[Rating, ...]:
    """What a person thinks of checkpoints, oldest first. Raises ListUnreadable, OSError."""
    return _read_list(home / "ratings.json", _Ratings, VERSION).ratings


def put_rating(home: Path, rating: Rating) -> None:
    """Add a rating in place of the one before of this checkpoint; 0 stars and no note remove it. Raises as above."""
    with _locked(home / "ratings.json"):
        others = tuple(known for known in read_ratings(home) if known.key != rating.key)
        kept = (*others, rating) if rating.stars or rating.note else others
        _write_list(home / "ratings.json", _Ratings(ratings=kept))


class QueueFile:
    """The queue of one state folder: ``queue/queue.json``, replaced under a lock. Only its owner may read it."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(os.path.normpath(home)) / "queue"
        self.path = self.folder / "queue.json"
        self.worker_lock = self.folder / "worker.lock"
        """Held by the process that starts queued runs."""
        self.worker_log = self.folder / "worker.log"
        """Output of that process."""

    def read(self) -> Queue:
        """The queue; empty if there is none. Raises ListUnreadable, OSError."""
        return _read_list(self.path, Queue, QUEUE_VERSION)

    def update(self, change: Callable[[Queue], Queue]) -> Queue:
        """Change the queue: no other process changes it in between. Returns the new one. Raises as ``read``."""
        with _locked(self.path):
            before = self.read()
            after = change(before)
            if after != before:
                _write_list(self.path, after)
            return after
