"""Which entries of an output folder a run wrote, for those that its supervisor may not have seen."""

from collections.abc import Callable
from pathlib import Path

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.origin import Origin, origin_of
from ...sense.files.checkpoint_entries import entry_state, signature
from ...store.run_directory import RunDirectory
from .output_lists import OutputLists


def origins(begun_wall: float, run: RunDirectory | None = None) -> Callable[[Checkpoint], Origin]:
    """Tells it of a checkpoint by its times and by what ``run`` has listed of its folder; reads the file system."""
    lists = None if run is None else OutputLists(run.folders)

    def origin(checkpoint: Checkpoint) -> Origin:
        path = Path(checkpoint.path)
        try:
            found = signature(path)
        except OSError:
            return "unknown"
        if found is None:
            return origin_of(begun_wall, mtime=checkpoint.mtime)
        state, listed = entry_state(path, found), None if lists is None else lists.known(path.parent)
        return origin_of(
            begun_wall,
            mtime=checkpoint.mtime,
            changed=state.changed_ns / 1e9,
            born=None if state.born_ns is None else state.born_ns / 1e9,
            made=None if listed is None else listed.made(path.name, state),
        )

    return origin
