"""Where a run's output is, while it is supervised: the one place where a further output folder becomes known."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ...checkpoints.inspection import verify
from ...checkpoints.manage.pruning import delete_planned, plan_prune
from ...model.checkpoint import Checkpoint, KeepReason
from ...model.decision import Record
from ...model.fact import OutputKnown
from ...model.observation import HostSample, Observation, ProcessSample
from ...model.run import OutputPlace, RunSpec, is_below
from ...model.story import RunStory
from ...store.run_directory import RunDirectory

OnKnown = Callable[[str], None]


class RunOutput:
    """The folders that the run saves to: those that were told, and those that its processes were seen to write to.

    ``became_known`` is called with each further folder, in the order of ``tell``: its sensor, its lock and its disk.
    """

    def __init__(self, run: RunDirectory, spec: RunSpec, story: RunStory, note: Callable[[str], None]) -> None:
        self._run = run
        self._note = note
        self._told: list[OnKnown] = []
        self.spec = spec if story.run is None else spec.without_outputs().with_outputs(story.outputs)
        if story.outputs and story.outputs != spec.outputs:
            self._keep()  # the last supervisor ended between its journal and this file

    @property
    def folders(self) -> tuple[str, ...]:
        """All of them, the one that was told first."""
        return self.spec.output_folders

    def tell(self, known: OnKnown) -> None:
        """Call this with each folder that becomes known from now on."""
        self._told.append(known)

    def on_records(self, records: Sequence[Record]) -> None:
        """Take what the judge found, once it is in the journal."""
        for record in records:
            if isinstance(record.fact, OutputKnown):
                self.became_known(OutputPlace(folder=record.fact.folder, why=record.fact.why))

    def became_known(self, place: OutputPlace) -> None:
        """Keep one more folder, and tell those who work on it."""
        if place.folder in self.folders:
            return
        told = self.spec.without_outputs()
        self.spec = told.with_outputs((*self.spec.outputs, place))
        self._keep()
        for known in self._told:
            known(place.folder)

    def holds_output(self, path: Path) -> bool:
        """Whether one of the folders lies below a path: such a folder is no checkpoint itself."""
        return any(is_below(folder, str(path)) for folder in self.folders)

    def _keep(self) -> None:
        try:
            self._run.save_outputs(self.spec.outputs)
        except OSError as error:
            self._note(f"{self._run.outputs}: {error.strerror or error}; the journal has the output folders, too")


@dataclass
class RunRetention:
    """Implements the actor's Retention for all output folders of a run; each keeps as many as the settings say.

    Called by one thread at a time. ``good``: as for ``plan_prune``.
    """

    folders: Callable[[], Sequence[Path]]
    globs: Sequence[str] = ()
    good: Callable[[Sequence[Checkpoint]], Mapping[str, KeepReason]] = lambda _found: {}
    _verified: dict[tuple[str, int, float], Checkpoint] = field(default_factory=dict)
    delete = staticmethod(delete_planned)

    def plan(self, keep: int, *, deep: bool) -> tuple[Checkpoint, ...]:
        """Oldest first, folder by folder; those that stay are read once each. Raises ValueError if none is known."""
        folders = self.folders()
        if not folders:
            raise ValueError("no output folder is watched")
        there = [folder for folder in folders if folder.is_dir()] or folders[:1]
        plan = partial(plan_prune, keep=keep, deep=deep, verify_deep=self._verify, globs=self.globs, good=self.good)
        plans = [plan(each) for each in there]
        stay = {kept.checkpoint.path for plan in plans for kept in plan.keep}
        self._verified = {key: found for key, found in self._verified.items() if key[0] in stay}
        return tuple(found for plan in plans for found in reversed(plan.delete))

    def _verify(self, path: Path) -> Checkpoint:
        found = verify(path, deep=False)
        key = (str(path), found.size_bytes, found.mtime)
        if key not in self._verified:
            self._verified[key] = verify(path, deep=True)
        return self._verified[key]


OLD_FACTOR = 5.0
OLDEST_S = 15.0
"""A sample may be so many periods old, at least this long: a busy machine delays them."""


class ObservationWorks:
    """``seen`` gets every observation; ``why_not`` may be called from any thread."""

    def __init__(self, interval_s: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = max(OLDEST_S, OLD_FACTOR * interval_s)
        self._now = now
        self._newest: dict[type[Observation], float] = {}

    def seen(self, observation: Observation) -> None:
        """Note when the machine and the trainer's processes were last seen."""
        if isinstance(observation, HostSample | ProcessSample):
            self._newest[type(observation)] = self._now()

    def why_not(self, *, turned: float, live: bool, blocked: bool) -> str | None:
        """None if it works. ``turned``: the loop's last turn, monotonic; ``live``: a trainer runs."""
        if blocked:
            return "its journal cannot be written"
        if self._now() - turned > self._limit_s:
            return f"its loop has not turned for {self._now() - turned:.0f} s"
        needed: tuple[tuple[type[Observation], str], ...] = ((HostSample, "the machine"),)
        if live:
            needed = (*needed, (ProcessSample, "the trainer's processes"))
        for kind, what in needed:
            newest = self._newest.get(kind)
            if newest is None or self._now() - newest > self._limit_s:
                age = "yet" if newest is None else f"for {self._now() - newest:.0f} s"
                return f"{what} {'was' if kind is HostSample else 'were'} not seen {age}"
        return None
