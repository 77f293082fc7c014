"""The profiles of one run, for the screen."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

from ...model.run import RunSpec
from ..errors import CliError

if TYPE_CHECKING:
    from ...model.shipped.profile import Profile


class RunProfiles(Sequence["Profile"]):
    """The ladder's, safest first; without one those of the framework. Read at first use; empty if that fails."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    @cached_property
    def _profiles(self) -> "tuple[Profile, ...]":
        from ..plan.definitions import definitions_of
        from ..plan.fitting_profiles import fitting_profiles

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
