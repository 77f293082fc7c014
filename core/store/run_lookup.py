"""Which runs there are, and which one a name means."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ..model.run import RunSpec
from ..model.text import typed
from ..spool import read_record
from .home import runs_folder
from .lock import is_held
from .run_directory import RunDirectory, RunUnreadable

PLACES_SHOWN = 6


class RunNotFound(LookupError):  # noqa: N818  named after the condition
    """No such run. The message is a sentence for the user."""


class AmbiguousRun(LookupError):  # noqa: N818  named after the condition
    """Several runs match. The message names them."""

    def __init__(self, text: str, among: Sequence[str] = (), *, live: bool = False) -> None:
        super().__init__(text)
        self.among = tuple(among)
        """Ids of those that may be meant, newest first; empty if they are only runs of other folders."""
        self.live = live
        """Whether a supervisor holds each of them."""


class _Where(msgspec.Struct):
    """What can be told of a run whose other fields are not understood."""

    name: str = ""
    cwd: str = ""
    project: str | None = None


def list_runs(home: Path) -> list[RunDirectory]:
    """Return the runs that can be opened, newest first."""
    return [directory for directory, _ in _known(home)]


def unreadable_runs(home: Path) -> list[str]:
    """Why the others cannot be opened, a sentence each."""
    return [str(error) for error, _ in _unreadable(home)]


def _each(home: Path) -> Iterator[tuple[RunDirectory, RunSpec | RunUnreadable]]:
    """All runs by their ids, each with its spec or why it cannot be opened."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for run in map(RunDirectory, sorted(runs_folder(home).iterdir())):
            if not run.id.startswith("."):
                try:
                    yield run, run.load_spec()
                except RunUnreadable as error:
                    yield run, error


def _known(home: Path) -> list[tuple[RunDirectory, RunSpec]]:
    """All runs that can be opened with their specs, newest first."""
    found = [(run, spec) for run, spec in _each(home) if isinstance(spec, RunSpec)]
    return sorted(found, key=lambda pair: (pair[1].created_wall, pair[0].id), reverse=True)


def _unreadable(home: Path) -> Iterator[tuple[RunUnreadable, _Where]]:
    for run, error in _each(home):
        if isinstance(error, RunUnreadable) and run.path.is_dir():
            yield error, read_record(run.path, run.spec.name, _Where) or _Where()


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
            named, ids = typed("runs"), enumerate_runs(d.id for d, _ in group)
            raise AmbiguousRun(f"{missing}; which one is meant? {ids} (`{named}` shows where they are)")
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
        f"which run? {lives}{enumerate_runs(d.id for d, _ in asked)}; name one of them by its id{told}",
        [d.id for d, _ in asked],
        live=bool(living),
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


def enumerate_runs(names: Iterable[str]) -> str:
    """The first six of these ids, and how many more there are."""
    shown = list(names)
    more = f" and {len(shown) - PLACES_SHOWN} more" if len(shown) > PLACES_SHOWN else ""
    return ", ".join(shown[:PLACES_SHOWN]) + more
