"""What a screen needs of a run of another machine beyond its journal and its charts: asked there, over the line.

Without a line each raises what its Protocol allows, with a sentence.
"""

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import msgspec

from ....model.checkpoints.checkpoint import Checkpoint, CheckpointListing
from ....model.checkpoints.checkpoint_results import CheckpointOverview, Comparison, PrunePlan
from ....model.incident import EvidenceFile
from ....model.launch.change import Change
from ....model.machine_details import MachineDetails
from ....model.ports.screen import OnProgress
from ....model.profile import Profile
from ....model.text.log_lines import LogLine, LogStretch, LogTally, Stopped
from ....store.clock import boot_seconds
from ..opened_run import OpenedRun
from .link import Link

AGAIN_S = 5.0


class FarRun:
    """Asks about one run over a line."""

    def __init__(self, link: Link, run_id: str) -> None:
        self._link, self._run = link, run_id

    def asked(self, what: str, type_: Any, **values: Any) -> Any:
        """Raises RuntimeError with a sentence."""
        try:
            return self._link.call(what, self._run, type_, **values)
        except msgspec.MsgspecError as error:
            name = self._link.host.name
            raise RuntimeError(f"{name} answered what this version does not understand ({error})") from error


class FarLogs:
    """Implements the screen's LogBrowser. What is wrong is raised as OSError."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def _asked(self, method: str, type_: Any, path: str, **values: Any) -> Any:
        try:
            return self._far.asked("log", type_, method=method, path=path, **values)
        except RuntimeError as error:
            raise OSError(0, str(error)) from error

    def size(self, path: str) -> int:
        return int(self._asked("size", int, path))

    def before(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        found: LogStretch = self._asked("before", LogStretch, path, offset=offset, lines=lines, pattern=_plain(only))
        return found

    def after(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        found: LogStretch = self._asked("after", LogStretch, path, offset=offset, lines=lines, pattern=_plain(only))
        return found

    def states(self, path: str, line: LogLine, most: int) -> tuple[str, ...]:
        return tuple(self._asked("states", tuple[str, ...], path, line=line, most=most))

    def find(
        self, path: str, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped
    ) -> int | None:
        """The whole search is made there; ``stopped`` is asked before it."""
        if stopped():
            return None
        found: int | None = self._asked(
            "find", int | None, path, pattern=_plain(pattern), offset=offset, backwards=backwards
        )
        return found

    def tally(self, path: str, pattern: re.Pattern[str], begin: int, end: int, stopped: Stopped) -> Iterator[LogTally]:
        """Counted there, some blocks for each question."""
        matches = 0
        while begin < end and not stopped():
            tally: LogTally | None = self._asked(
                "tally", LogTally | None, path, pattern=_plain(pattern), begin=begin, end=end
            )
            if tally is None or tally.offset <= begin:
                return
            matches, begin = matches + tally.matches, tally.offset
            yield LogTally(begin, matches)

    def line_at(self, path: str, number: int, stopped: Stopped) -> int | None:
        if stopped():
            return None
        found: int | None = self._asked("line_at", int | None, path, number=number)
        return found


def _plain(pattern: re.Pattern[str] | None) -> tuple[str, int] | None:
    return None if pattern is None else (pattern.pattern, pattern.flags)


class FarIncidents:
    """Implements the screen's IncidentFiles."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def files(self, incident: int) -> Sequence[EvidenceFile]:
        """Raises OSError with a sentence."""
        try:
            return tuple(self._far.asked("incident files", tuple[EvidenceFile, ...], incident=incident))
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
            self._found = self._far.asked("profiles", tuple[Profile, ...])

    @overload
    def __getitem__(self, index: int) -> Profile: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Profile, ...]: ...

    def __getitem__(self, index: int | slice) -> Profile | tuple[Profile, ...]:
        return self._profiles()[index]

    def __len__(self) -> int:
        return len(self._profiles())


class FarDetails:
    """Implements the screen's DetailSource; without a line there are none."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def look(self) -> MachineDetails:
        try:
            found: MachineDetails = self._far.asked("details", MachineDetails)
        except RuntimeError:
            return MachineDetails()
        return found


class FarLaunch:
    """Implements the screen's LaunchSettings."""

    def __init__(self, far: FarRun) -> None:
        self._far = far

    def values(self, profile: Profile | None, keys: Sequence[str]) -> Mapping[str, object]:
        name = None if profile is None else profile.name
        found: Mapping[str, object] = self._far.asked(
            "launch", dict[str, Any], method="values", profile=name, keys=list(keys)
        )
        return found

    def changes(self, profile: Profile | None) -> Sequence[Change]:
        name = None if profile is None else profile.name
        return tuple(self._far.asked("launch", tuple[Change, ...], method="changes", profile=name))


class FarCheckpoints:
    """Implements the screen's CheckpointJobs: reading works; what writes is for the command line."""

    def __init__(self, far: FarRun, host: str, run: OpenedRun) -> None:
        self._far, self._host, self._run = far, host, run

    @property
    def directory(self) -> str | None:
        """The output folder there, as far as it is known by now."""
        return self._run.output_dir

    def listing(self) -> CheckpointListing:
        found: CheckpointListing = self._far.asked("checkpoints", CheckpointListing, method="listing")
        return found

    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint:
        """``progress`` is not told: the work is done there."""
        progress(0, 0)
        found: Checkpoint = self._far.asked(
            "checkpoints", Checkpoint, method="verify", path=path, deep=deep, timeout_s=LONG_S
        )
        return found

    def show(self, path: str) -> CheckpointOverview:
        found: CheckpointOverview = self._far.asked("checkpoints", CheckpointOverview, method="show", path=path)
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
