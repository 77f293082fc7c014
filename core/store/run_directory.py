"""A run's folder ``<home>/runs/<run_id>/``: its layout, its creation, and finding runs."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ..model.launch.output_place import OutputPlace
from ..model.run import RunSpec
from ..model.text.json_line import decode_exact, encode_exact
from ..model.text.suggestion import typed
from .annex import annexes
from .atomic import sync_directory, write_atomically
from .home import make_private, runs_folder
from .lock import is_held

SPEC_VERSION = 1
PLACES_SHOWN = 6
UNKNOWN_FIELD = "contains unknown field"
"""What msgspec says of a setting that this version does not have. No disk makes one out of another."""
_SLUG_LENGTH = 40


class RunNotFound(LookupError):  # noqa: N818  named after the condition
    """No such run. The message is a sentence for the user."""


class AmbiguousRun(LookupError):  # noqa: N818  named after the condition
    """Several runs match. The message names them."""

    def __init__(self, text: str, among: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.among = tuple(among)
        """Ids of the live ones, if it is that several are."""


class RunUnreadable(Exception):  # noqa: N818  named after the condition
    """``run.json`` is missing, damaged or of a newer trainwatch. The message is a sentence for the user."""


class RunDirectory(msgspec.Struct, frozen=True):
    """Paths of the files of one run. Only ``load_spec`` opens a file."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def spec(self) -> Path:
        """``run.json``: the RunSpec."""
        return self.path / "run.json"

    @property
    def spec_copy(self) -> Path:
        """``run-copy.json``: the same again, read if ``run.json`` is missing or damaged."""
        return self.path / "run-copy.json"

    @property
    def outputs(self) -> Path:
        """``outputs.json``: folders that the trainer was seen to save to; the journal has them, too."""
        return self.path / "outputs.json"

    @property
    def folders(self) -> Path:
        """``folders.json``: what stood in the output folders before the run wrote there."""
        return self.path / "folders.json"

    @property
    def journal(self) -> Path:
        """``journal.jsonl``: facts, decisions and outcomes."""
        return self.path / "journal.jsonl"

    @property
    def history(self) -> Path:
        """``history.sqlite``: metrics over time; the newest samples are in a file beside it."""
        return self.path / "history.sqlite"

    @property
    def trace(self) -> Path:
        """``trace.jsonl.gz``: observations, bounded."""
        return self.path / "trace.jsonl.gz"

    @property
    def trace_wanted(self) -> Path:
        """``trace.wanted``: asks the supervisor to write all observations that it has, and to remove this file."""
        return self.path / "trace.wanted"

    @property
    def plain_trace(self) -> Path:
        """``trace.jsonl``: the trace as the first release wrote it."""
        return self.path / "trace.jsonl"

    @property
    def lock(self) -> Path:
        """``supervisor.lock``: held by the living supervisor."""
        return self.path / "supervisor.lock"

    @property
    def life_sign(self) -> Path:
        """``supervisor.alive``: rewritten by the supervisor's loop about once a second."""
        return self.path / "supervisor.alive"

    @property
    def control(self) -> Path:
        """``control.json``: where the supervisor listens."""
        return self.path / "control.json"

    @property
    def last_look(self) -> Path:
        """``last_look.json``: when a person last looked at it on a screen, or with ``status``."""
        return self.path / "last_look.json"

    @property
    def hidden(self) -> Path:
        """``hidden``: an empty file; the list of runs on the screen leaves the run out."""
        return self.path / "hidden"

    @property
    def supervisor_log(self) -> Path:
        """``supervisor.log``: output of a detached supervisor."""
        return self.path / "supervisor.log"

    @property
    def attempts(self) -> Path:
        """Folder with one folder per attempt."""
        return self.path / "attempts"

    @property
    def incidents(self) -> Path:
        """Folder with one folder per incident."""
        return self.path / "incidents"

    @property
    def evaluations(self) -> Path:
        """``evaluations/``: the output and the result of each evaluation of a checkpoint."""
        return self.path / "evaluations"

    def attempt_folders(self) -> list[Path]:
        """The folders of all attempts, newest first; also those in an annex."""
        places = [self.attempts, *(annex / self.attempts.name for annex in annexes(self.path))]
        found = [folder for place in places if place.is_dir() for folder in place.iterdir()]
        return sorted(found, key=lambda folder: folder.name, reverse=True)

    def attempt(self, number: int) -> Path:
        """Folder of an attempt, which may not exist yet (``make_private`` of home.py makes it)."""
        own = self.attempts / f"{number:04d}"
        if not own.exists():
            for annex in annexes(self.path):
                if (there := annex / self.attempts.name / own.name).is_dir():
                    return there
        return own

    def incident(self, number: int) -> Path:
        """Folder of an incident's evidence, which may not exist yet."""
        return self.incidents / f"{number:04d}"

    def load_spec(self) -> RunSpec:
        """Read ``run.json``, or its copy if it is missing or damaged, with the folders found. Raises RunUnreadable."""
        try:
            return self._with_outputs(_read_spec(self.spec))
        except _TooNew:
            raise
        except RunUnreadable as error:
            with contextlib.suppress(RunUnreadable):
                return self._with_outputs(_read_spec(self.spec_copy))
            raise error from None

    def _with_outputs(self, spec: RunSpec) -> RunSpec:
        try:
            return spec.with_outputs(decode_exact(self.outputs.read_bytes(), tuple[OutputPlace, ...]))
        except (OSError, msgspec.MsgspecError):
            return spec

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


class _Where(msgspec.Struct):
    """What can be told of a run whose other fields are not understood."""

    name: str = ""
    cwd: str = ""
    project: str | None = None


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
                f"{path}: written by another version of trainwatch, probably a newer one ({error}); "
                "update trainwatch to open this run"
            ) from error
        raise RunUnreadable(f"{path}: damaged ({error}); the journal beside it is still readable") from error


def run_id_for(name: str, project: Path | None) -> str:
    """Return the id of the run ``name`` of a project: readable, and different for other projects.

    ``project``: its trainwatch.toml, or the working folder of a run without one. Slug of the name, "-", 8 hex digits.
    """
    import unicodedata

    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:_SLUG_LENGTH].strip("-") or "run"
    import hashlib  # slow to import, and not needed for the first screen

    digest = hashlib.sha256(f"{project or ''}\0{name}".encode()).hexdigest()[:8]
    return f"{slug}-{digest}"


def new_run_id(home: Path, name: str, project: Path | None) -> str:
    """Return a free id: that of ``run_id_for``, or with -2, -3 … appended."""
    wanted = run_id_for(name, project)
    runs = runs_folder(home)
    number = 1
    while True:
        candidate = wanted if number == 1 else f"{wanted}-{number}"
        if not (runs / candidate).exists():
            return candidate
        number += 1


def list_runs(home: Path) -> list[RunDirectory]:
    """Return the runs that can be opened, newest first."""
    return [directory for directory, _ in _known(home)]


def unreadable_runs(home: Path) -> list[str]:
    """Why the others cannot be opened, a sentence each."""
    return [str(error) for error, _ in _unreadable(home)]


def _unreadable(home: Path) -> Iterator[tuple[RunUnreadable, "_Where"]]:
    with contextlib.suppress(OSError):
        for path in sorted(runs_folder(home).iterdir()):
            if path.is_dir() and not path.name.startswith("."):
                run = RunDirectory(path)
                try:
                    run.load_spec()
                except RunUnreadable as error:
                    where = _Where()
                    with contextlib.suppress(OSError, msgspec.MsgspecError):
                        where = decode_exact(run.spec.read_bytes(), _Where)
                    yield error, where


def find_run(
    home: Path,
    name_or_id: str | None,
    *,
    project: Path | None = None,
    cwd: Path | None = None,
    anywhere: bool = True,
    live: Callable[[RunDirectory], bool] = lambda directory: is_held(directory.lock),
) -> RunDirectory:
    """Return the run for a name or an id.

    ``name_or_id``: an exact id, else a name, where runs of ``project`` (a trainwatch.toml) or ``cwd`` take precedence.
    None: the run of the project or of the working folder; without a project (``anywhere``) the only one there is. A run
    of another folder is never chosen because it is the live one. Of several launches of the same job the live one is
    chosen, else the newest; of different jobs the live one. Of several live ones none is chosen.
    Raises RunNotFound, AmbiguousRun (both with a sentence), or RunUnreadable when an exact id cannot be opened.
    """
    if name_or_id:
        exact = RunDirectory(runs_folder(home) / name_or_id)
        if "/" not in name_or_id and not name_or_id.startswith(".") and exact.path.is_dir():
            exact.load_spec()
            return exact
    known = _known(home)
    here = [(d, s) for d, s in known if _belongs(s, project, cwd)]
    if name_or_id:
        groups: tuple[list[tuple[RunDirectory, RunSpec]], ...] = (
            [(d, s) for d, s in here if s.name == name_or_id],
            [(d, s) for d, s in known if s.name == name_or_id],
        )
        missing = f'no run "{name_or_id}"'
    else:
        groups = (here, known) if anywhere and project is None else (here,)
        missing = "no run of this project" if project is not None else "no run was started in this folder"
    for group in groups:
        if group and (name_or_id or group is here or len({_job(spec) for _, spec in group}) == 1):
            return _choose(group, live, len({_place(spec) for _, spec in group}) > 1)
        if group:
            named = typed("runs")
            raise AmbiguousRun(
                f"{missing}; which one is meant? {_enumerate(d.id for d, _ in group)} (`{named}` shows where they are)"
            )
    for error, where in _unreadable(home):
        if where.name == name_or_id if name_or_id else _belongs(where, project, cwd):
            raise error
    if project is not None and not name_or_id:
        raise RunNotFound(f"{missing} yet; start it with `trainwatch` (the screen) or `trainwatch --headless`")
    listed, started = typed("runs"), typed("run -- COMMAND")
    hint = f"`{listed}` lists those that exist" if known else f"start one with `{started}`"
    raise RunNotFound(f"{missing}; {hint}")


def _choose(
    group: list[tuple[RunDirectory, RunSpec]], live: Callable[[RunDirectory], bool], places: bool
) -> RunDirectory:
    """``places``: they may be of several folders, so the sentence names those."""
    living = [pair for pair in group if live(pair[0])]
    if len(living) == 1:
        return living[0][0]
    if not living and len({_job(spec) for _, spec in group}) == 1:
        return group[0][0]
    asked = living or group
    told = f": {'; '.join(f'{d.id} in {_place(s)}' for d, s in asked[:PLACES_SHOWN])}" if places else ""
    lives = "several are live: " if living else ""
    raise AmbiguousRun(
        f"which run? {lives}{_enumerate(d.id for d, _ in asked)}; name one of them by its id{told}",
        [d.id for d, _ in living],
    )


def _place(spec: RunSpec) -> str:
    """Where a run belongs: the folder of its trainwatch.toml, else that in which it was started."""
    return str(Path(spec.project).parent) if spec.project else spec.cwd


def _job(spec: RunSpec) -> tuple[str, str]:
    """The part of an id that launches of the same job share: without -2."""
    return (spec.project or spec.cwd, spec.name)


def _belongs(spec: "RunSpec | _Where", project: Path | None, cwd: Path | None) -> bool:
    if project is not None and spec.project is not None and Path(spec.project) == project:
        return True
    return cwd is not None and spec.project is None and Path(spec.cwd) == cwd


def _known(home: Path) -> list[tuple[RunDirectory, RunSpec]]:
    """All runs that can be opened with their specs, newest first."""
    found: list[tuple[RunDirectory, RunSpec]] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in runs_folder(home).iterdir():
            if not path.name.startswith("."):
                with contextlib.suppress(RunUnreadable):
                    directory = RunDirectory(path)
                    found.append((directory, directory.load_spec()))
    return sorted(found, key=lambda pair: (pair[1].created_wall, pair[0].id), reverse=True)


def _enumerate(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
