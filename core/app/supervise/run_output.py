"""Where a run's output is, while it is supervised: the one place where a further output folder becomes known."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ...model.fact import OutputKnown
from ...model.launch.output_place import OutputPlace, is_below
from ...model.record import Record
from ...model.run import RunSpec
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
