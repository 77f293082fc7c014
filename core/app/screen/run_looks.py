"""When a person last looked at a run, for the screen, and what happened since."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ...model.edge import EDGE
from ...model.run import RunSpec
from ...model.situation import RunPlan, RunSettings
from ...model.story import Look, Summary
from ...store.last_look import read_look, write_look
from ...store.run_directory import RunDirectory, RunUnreadable
from ..errors import CliError

if TYPE_CHECKING:
    from ...model.preset import Profile


class RunLooks:
    """Implements the screen's Looks."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def last(self) -> Look | None:
        return read_look(self._run.last_look)

    def keep(self, look: Look) -> None:
        write_look(self._run.last_look, look)

    def summary(self, since_wall: float | None) -> Summary:
        """Reads the journal. Raises RuntimeError with a sentence."""
        from ...store.journal import JournalTooNew
        from ..runs.report import summary_of

        try:
            return summary_of(self._run, since_wall)
        except (JournalTooNew, RunUnreadable, OSError) as error:
            raise RuntimeError(str(error)) from error


# The profiles of one run, for the screen.


class RunProfiles(Sequence["Profile"]):
    """The ladder's, safest first; without one those of the framework. Read at first use; empty if that fails."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @cached_property
    def _profiles(self) -> "tuple[Profile, ...]":
        from ..plan.launch_plan import fitting_profiles
        from ..plan.specs import definitions_of

        try:
            known = definitions_of(self._spec).profiles
        except (CliError, OSError):
            return ()
        return fitting_profiles(self._spec, known)

    @overload
    def __getitem__(self, index: int) -> "Profile": ...

    @overload
    def __getitem__(self, index: slice) -> "tuple[Profile, ...]": ...

    def __getitem__(self, index: int | slice) -> "Profile | tuple[Profile, ...]":
        return self._profiles[index]

    def __len__(self) -> int:
        return len(self._profiles)


# What a run was started with, as names and values: to compare it with another run.

ON = "on"
"""The value of an option without a value."""
CONFIGS = frozenset({".toml", ".yaml", ".yml", ".json"})


def plan_of(spec: RunSpec) -> RunPlan:
    """Return what a first start of the run does, as the screen shows it before that start."""
    return RunPlan(
        name=spec.name,
        command=spec.command,
        cwd=spec.cwd,
        preset=spec.preset,
        profile=spec.settings.profiles.use,
        output_dir=spec.output_dir,
    )


def settings_of(run: RunDirectory, spec: RunSpec) -> RunSettings:
    """Of the newest launch; of the run's definition, if it was never launched. Unreadable files are left out."""
    from ...act.launch.attempt_records import read_order

    folder = next(iter(run.attempt_folders()), None)
    order = None if folder is None else read_order(folder)
    words = spec.command if order is None else order.argv
    found = {"preset": spec.preset, "working folder": spec.cwd}
    named = dict(options(words))
    config = _config(words, spec, folder)
    inside = {} if config is None else dict(_config_values(config))
    found |= named | inside
    found |= {f"${name}": value for name, value in spec.env.items()}
    return RunSettings(
        run_id=run.id,
        name=spec.name,
        values=EDGE.value(found),
        config_paths=frozenset(name for name, value in named.items() if inside and _is_path_of(config, value, spec)),
    )


def _is_path_of(config: Path | None, value: str, spec: RunSpec) -> bool:
    """The value names the config; the word is ``{config}`` before the first launch."""
    return config is not None and (value == "{config}" or Path(spec.cwd, value) == Path(spec.cwd, config))


def options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``--lr 1e-4``, ``--lr=1e-4`` and ``lr=1e-4`` as (lr, 1e-4); words without a name as (word 1, …)."""
    waiting, plain = "", 0
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("-") and not _is_number(word):
            if waiting:
                yield waiting, ON
            waiting = "" if equals else name.lstrip("-")
            if equals:
                yield name.lstrip("-"), value
        elif waiting:
            yield waiting, word
            waiting = ""
        elif equals and name.replace(".", "").replace("_", "").replace("+", "").isalnum():
            yield name.lstrip("+"), value
        else:
            plain += 1
            yield f"word {plain}", word
    if waiting:
        yield waiting, ON


def _is_number(word: str) -> bool:
    with contextlib.suppress(ValueError):
        float(word)
        return True
    return False


def _config(words: Sequence[str], spec: RunSpec, folder: Path | None) -> Path | None:
    """The config of that launch: its derived copy, else the user's own file."""
    named = [Path(word) for word in words if Path(word).suffix.lower() in CONFIGS]
    derived = [path for path in named if folder is not None and path.parent == folder]
    own = [] if spec.config is None else [Path(spec.config)]
    return next(iter((*derived, *own)), None)


def _config_values(path: Path) -> Iterator[tuple[str, str]]:
    """Its values as they are now; none if it cannot be read."""
    from ...act.config.nested_keys import DeriveError, leaves
    from ...act.config.trainer_config import read_config

    with contextlib.suppress(DeriveError, OSError, ValueError):
        yield from ((f"{key} (config)", str(value)) for key, value in leaves(read_config(path)))


# Services of the screen that are loaded when they are first used: most are not needed for the first picture.

Service = TypeVar("Service")


def later(load: Callable[[], Service]) -> Service:
    """Stand for what ``load`` returns; it is called once, when a name of the service is first asked for."""
    return cast("Service", _Later(load))


class _Later:
    def __init__(self, load: Callable[[], object]) -> None:
        self._load, self._loading = load, Lock()
        self._service: object = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._loading:  # services are used in several threads
            if self._service is None:
                self._service = self._load()
        return getattr(self._service, name)
