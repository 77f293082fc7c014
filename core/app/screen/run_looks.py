"""When a person last looked at a run, for the screen, and what happened since."""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

from ...model.run import RunSpec
from ...model.story import Look, Summary
from ...store.learned import read_look, write_look
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


# Services of the screen that are loaded when they are first used: most are not needed for the first picture.


def later(module: str, name: str, *args: object) -> Any:
    """Stand for ``name(*args)`` of a module; it is imported and made when a name of it is first asked for."""
    return _Later(module, name, args)


class _Later:
    def __init__(self, module: str, name: str, args: tuple[object, ...]) -> None:
        self._what, self._loading = (module, name, args), Lock()
        self._service: object = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._loading:  # services are used in several threads
            if self._service is None:
                module, made, args = self._what
                self._service = getattr(import_module(module, __package__), made)(*args)
        return getattr(self._service, name)
