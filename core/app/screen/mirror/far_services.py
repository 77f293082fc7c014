"""What a screen needs of a run of another machine beyond its journal and its charts: asked there, over the line.

Without a line each raises what its Protocol allows, with a sentence.
"""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, overload

from ....model.checkpoints.checkpoint import Checkpoint, CheckpointListing
from ....model.checkpoints.checkpoint_results import CheckpointOverview, Comparison, PrunePlan
from ....model.incident import EvidenceFile
from ....model.launch.change import Change
from ....model.launch.elsewhere.nodes import RankTable
from ....model.machine_details import MachineDetails
from ....model.ports.screen import OnProgress
from ....model.shipped.profile import Profile
from ....store.clock import boot_seconds
from ..opened_run import OpenedRun
from .far_run import FarRun

AGAIN_S = 5.0


class FarIncidents:
    """Implements the screen's IncidentFiles."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def files(self, incident: int) -> Sequence[EvidenceFile]:
        """Raises OSError with a sentence."""
        try:
            return tuple(
                self._far.known("incident files", tuple[EvidenceFile, ...], name="evidence", incident=incident)
            )
        except RuntimeError as error:
            raise OSError(0, str(error)) from error


class FarProfiles(Sequence[Profile]):
    """Asked for in the background, again after AGAIN_S if there was no answer; empty before. Never waits."""

    def __init__(self, far: FarRun) -> None:
        self._far = far
        self._found: tuple[Profile, ...] | None = None
        self._asked_at = -AGAIN_S
        self._profiles()

    def _profiles(self) -> tuple[Profile, ...]:
        if self._found is None and boot_seconds() - self._asked_at >= AGAIN_S:
            self._asked_at = boot_seconds()
            threading.Thread(target=self._ask, name="profiles", daemon=True).start()
        return self._found or ()

    def _ask(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._found = self._far.known("profiles", tuple[Profile, ...])

    @overload
    def __getitem__(self, index: int) -> Profile: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Profile, ...]: ...

    def __getitem__(self, index: int | slice) -> Profile | tuple[Profile, ...]:
        return self._profiles()[index]

    def __len__(self) -> int:
        return len(self._profiles())


class FarRanks:
    """Implements the screen's RankSource; without a line, the table as it was."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def look(self) -> RankTable:
        try:
            found: RankTable = self._far.known("ranks", RankTable)
        except RuntimeError:
            return RankTable()
        return found


class FarCauses:
    """Implements the screen's Causes: the pattern is written into the project's file there."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def classes(self) -> Sequence[tuple[str, str]]:
        return tuple(self._far.known("causes", tuple[tuple[str, str], ...], name="failure classes", method="classes"))

    def teach(self, attempt: int, failure: str) -> str:
        return str(self._far.asked("causes", str, method="teach", attempt=attempt, failure=failure))


class FarDetails:
    """Implements the screen's DetailSource; without a line there are none."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def look(self) -> MachineDetails:
        try:
            found: MachineDetails = self._far.known("details", MachineDetails)
        except RuntimeError:
            return MachineDetails()
        return found


class FarLaunch:
    """Implements the screen's LaunchSettings."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def values(self, profile: Profile | None, keys: Sequence[str]) -> Mapping[str, object]:
        name = None if profile is None else profile.name
        found: Mapping[str, object] = self._far.known(
            "launch", dict[str, Any], name="settings", method="values", profile=name, keys=list(keys)
        )
        return found

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        name = None if profile is None else profile.name
        return tuple(self._far.known("launch", tuple[Change, ...], name="settings", method="changes", profile=name))


class FarCheckpoints:
    """Implements the screen's CheckpointJobs: reading works; what writes is for the command line."""

    def __init__(self, far: FarRun, host: str, run: OpenedRun) -> None:
        self._far, self._host, self._run = far, host, run

    @property
    def directory(self) -> str | None:
        """The output folder there, as far as it is known by now."""
        return self._run.output_dir

    def listing(self) -> CheckpointListing:
        found: CheckpointListing = self._far.known("checkpoints", CheckpointListing, method="listing")
        return found

    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint:
        """``progress`` is not told: the work is done there."""
        progress(0, 0)
        found: Checkpoint = self._far.asked(
            "checkpoints", Checkpoint, method="verify", path=path, deep=deep, timeout_s=LONG_S
        )
        return found

    def show(self, path: str) -> CheckpointOverview:
        found: CheckpointOverview = self._far.known("checkpoints", CheckpointOverview, method="show", path=path)
        return found

    def compare(self, a: str, b: str, *, progress: OnProgress) -> Comparison:
        progress(0, 0)
        found: Comparison = self._far.asked("checkpoints", Comparison, method="compare", a=a, b=b, timeout_s=LONG_S)
        return found

    def backup(self, path: str, destination: str, *, progress: OnProgress) -> str:  # noqa: ARG002
        """Raises RuntimeError: the destination would be a folder of the other machine."""
        raise RuntimeError(f"on the machine itself: trainwatch --on {self._host} checkpoints backup {path} FOLDER")

    def plan_prune(self, keep: int, *, progress: OnProgress) -> PrunePlan:  # noqa: ARG002
        """Raises RuntimeError: nothing is deleted from afar by a key."""
        raise RuntimeError(
            f"on the machine itself: trainwatch --on {self._host} checkpoints prune FOLDER --keep {keep}"
        )

    def prune(self, plan: PrunePlan) -> str:  # noqa: ARG002
        """Raises RuntimeError, as ``plan_prune``."""
        raise RuntimeError(f"on the machine itself: trainwatch --on {self._host} checkpoints prune")


LONG_S = 3600.0
"""A checkpoint of many gigabytes is read there."""
