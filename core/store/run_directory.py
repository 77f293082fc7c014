"""A run's folder ``<home>/runs/<run_id>/``: its layout and its creation."""

import contextlib
import re
from itertools import chain, count
from pathlib import Path

import msgspec

from ..model.json_line import decode_exact, encode_exact
from ..model.run import OutputPlace, RunSpec
from ..private_folder import NotOurs, check_ours
from ..spool import read_record
from .home import make_private, runs_folder, sync_directory, write_atomically

SPEC_VERSION = 1
UNKNOWN_FIELD = "contains unknown field"
"""What msgspec says of a field that this version does not have. No disk makes one out of another."""
_SLUG_LENGTH = 40


class RunUnreadable(Exception):  # noqa: N818  named after the condition
    """``run.json`` is missing, damaged or of a newer trainwatch. The message is a sentence for the user."""


class _Below:
    """A path in a run's folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, run: "RunDirectory", _type: type | None = None) -> Path:
        return run.path / self._name


class RunDirectory(msgspec.Struct, frozen=True):
    """Paths of the files of one run. Only ``load_spec`` opens a file."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    spec = _Below("run.json")
    """The RunSpec."""
    spec_copy = _Below("run-copy.json")
    """The same again, read if ``run.json`` is missing or damaged."""
    outputs = _Below("outputs.json")
    """Folders that the trainer was seen to save to; the journal has them, too."""
    folders = _Below("folders.json")
    """What stood in the output folders before the run wrote there."""
    journal = _Below("journal.jsonl")
    """Facts, decisions and outcomes."""
    history = _Below("history.sqlite")
    """Metrics over time; the newest samples are in a file beside it."""
    trace = _Below("trace.jsonl.gz")
    """Observations, bounded."""
    trace_wanted = _Below("trace.wanted")
    """Asks the supervisor to write all observations that it has, and to remove this file."""
    lock = _Below("supervisor.lock")
    """Held by the living supervisor."""
    life_sign = _Below("supervisor.alive")
    """Rewritten by the supervisor's loop about once a second."""
    control = _Below("control.json")
    """Where the supervisor listens."""
    order = _Below("order.json")
    """A command that the supervisor did not answer: it takes it before anything else once it goes on."""
    last_look = _Below("last_look.json")
    """When a person last looked at it on a screen, or with ``status``."""
    hidden = _Below("hidden")
    """An empty file; the list of runs on the screen leaves the run out."""
    supervisor_log = _Below("supervisor.log")
    """Output of a detached supervisor."""
    attempts = _Below("attempts")
    """Folder with one folder per attempt."""
    incidents = _Below("incidents")
    """Folder with one folder per incident."""
    evaluations = _Below("evaluations")
    """The output and the result of each evaluation of a checkpoint."""

    def attempt_folders(self) -> list[Path]:
        """The folders of all attempts, newest first."""
        found = self.attempts.iterdir() if self.attempts.is_dir() else ()
        return sorted(found, key=lambda folder: folder.name, reverse=True)

    def attempt(self, number: int) -> Path:
        """Folder of an attempt, which may not exist yet (``make_private`` of home.py makes it)."""
        return self.attempts / f"{number:04d}"

    def incident(self, number: int) -> Path:
        """Folder of an incident's evidence, which may not exist yet."""
        return self.incidents / f"{number:04d}"

    def load_spec(self) -> RunSpec:
        """Read ``run.json``, or its copy if it is missing or damaged, with the folders found. Raises RunUnreadable."""
        try:
            check_ours(self.path)
        except NotOurs as error:
            raise RunUnreadable(f"{error}: its command is not executed, and the run is not opened") from error
        except OSError:
            pass  # said of run.json
        try:
            return self._with_outputs(_read_spec(self.spec))
        except _TooNew:
            raise
        except RunUnreadable as error:
            with contextlib.suppress(RunUnreadable):
                return self._with_outputs(_read_spec(self.spec_copy))
            raise error from None

    def _with_outputs(self, spec: RunSpec) -> RunSpec:
        found = read_record(self.path, self.outputs.name, tuple[OutputPlace, ...])
        return spec if found is None else spec.with_outputs(found)

    def save_outputs(self, found: tuple[OutputPlace, ...]) -> None:
        """Replace ``outputs.json``. Raises OSError."""
        write_atomically(self.outputs, encode_exact(found))

    def save_spec(self, spec: RunSpec) -> None:
        """Replace ``run.json`` and its copy. Raises OSError."""
        data = encode_exact(spec.without_outputs())
        write_atomically(self.spec, data)
        write_atomically(self.spec_copy, data)

    @classmethod
    def create(cls, home: Path, spec: RunSpec) -> "RunDirectory":
        """Make the folder of a new run atomically. Raises FileExistsError if the id is taken, OSError."""
        runs = make_private(runs_folder(home))
        directory = cls(runs / spec.id)
        if not spec.id or spec.id.startswith(".") or "/" in spec.id:
            raise ValueError(f"not a run id: {spec.id!r}")
        fresh = runs / f".new-{spec.id}"
        import shutil  # slow to import: it loads three compression libraries

        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(fresh)  # left by an interrupted creation
        make_private(fresh / directory.attempts.name)
        make_private(fresh / directory.incidents.name)
        cls(fresh).save_spec(spec)
        try:
            fresh.rename(directory.path)
        except OSError as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if directory.path.exists():
                raise FileExistsError(f"run {spec.id} already exists in {runs}") from error
            raise
        sync_directory(runs)
        return directory


class _TooNew(RunUnreadable):
    """Of a newer trainwatch: its copy is no older state to go back to."""


class _Version(msgspec.Struct):
    version: int = 1


def _read_spec(path: Path) -> RunSpec:
    """Raises RunUnreadable."""
    try:
        data = path.read_bytes()
        version = decode_exact(data, _Version).version
        if version > SPEC_VERSION:
            raise _TooNew(
                f"{path}: written by a newer trainwatch (version {version}, this one reads {SPEC_VERSION}); "
                "update trainwatch to open this run"
            )
        return decode_exact(data, RunSpec)
    except OSError as error:
        raise RunUnreadable(f"{path}: {error.strerror or error}; the run cannot be opened") from error
    except msgspec.MsgspecError as error:
        if UNKNOWN_FIELD in str(error):
            raise _TooNew(
                f"{path}: written by another version of trainwatch, a newer one or one with settings that are gone "
                f"({error}); open this run with that version, update trainwatch "
                "if that is newer, or start the training as a new run"
            ) from error
        raise RunUnreadable(f"{path}: damaged ({error}); the journal beside it is still readable") from error


def run_id_for(name: str, project: Path | None) -> str:
    """Return the id of the run ``name`` of a project: readable, and different for other projects.

    ``project``: its trainwatch.toml, or the working folder of a run without one. Slug of the name, "-", 8 hex digits.
    """
    import unicodedata

    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:_SLUG_LENGTH].strip("-") or "run"
    from hashlib import sha256

    digest = sha256(f"{project or ''}\0{name}".encode()).hexdigest()[:8]
    return f"{slug}-{digest}"


def new_run_id(home: Path, name: str, project: Path | None) -> str:
    """Return a free id: that of ``run_id_for``, or with -2, -3 … appended."""
    wanted, runs = run_id_for(name, project), runs_folder(home)
    names = chain((wanted,), (f"{wanted}-{number}" for number in count(2)))
    return next(each for each in names if not (runs / each).exists())
