"""The run that a screen has open, with the output folders that were found since it was opened."""

from collections.abc import Callable
from contextlib import suppress

from ...model.run import RunSpec


class OpenedRun:
    """``read_spec``: reads the run as it is now; None: it does not change."""

    def __init__(self, spec: RunSpec, read_spec: Callable[[], RunSpec] | None = None) -> None:
        self.spec = spec
        self._read_spec = read_spec

    def look_again(self) -> RunSpec:
        """The run with the folders that are known now. A record that cannot be read changes nothing."""
        from ...store.run_directory import RunUnreadable

        if self._read_spec is not None:
            with suppress(RunUnreadable):
                self.spec = self.spec.with_outputs(self._read_spec().outputs)
        return self.spec

    @property
    def output_dir(self) -> str | None:
        """Where the trainer saves; as long as that is not known, each question reads the run again."""
        return self.spec.output_dir if self.spec.output_dir is not None else self.look_again().output_dir
