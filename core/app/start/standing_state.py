"""What stands in an output folder that a start from the beginning may write over."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ...act.config.derive import DeriveError
from ...act.config.output_names import saved_under
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.origin import Origin
from ...model.checkpoints.other_files import says_state
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from ..errors import CliError, ExitCode
from ..plan.resume_plan import word_by_itself
from ..runs.output_folder import list_run_checkpoints, list_run_state

SHOWN = 4
"""Most checkpoints that a sentence names."""


def standing(
    spec: RunSpec, preset: Preset, profile: Profile | None, origin: Callable[[Checkpoint], Origin] | None = None
) -> tuple[Checkpoint, ...]:
    """The checkpoints in the output folder that the trainer may write over, newest first; none if none is known.

    Of a framework whose saves have the run's name, only those of that name. Of what is not understood, what its name
    calls the state of a training. ``origin``: tells what the earlier run of the command wrote: whatever may be its
    state counts as well. Raises CliError (exit code 1) if the folder
    cannot be read: then nobody can tell.
    """
    try:
        found = list_run_checkpoints(spec, preset).checkpoints
        own = list_run_state(spec, preset, origin or _of_anybody)
        listed = {known.path for known in found}
        found = (*found, *(c for c in own if c.path not in listed and (origin is not None or says_state(c.name))))
    except OSError as error:
        raise CliError(
            ExitCode.FAILED, f"{spec.output_dir}: {error.strerror or error}: cannot see what a start would write over"
        ) from error
    try:
        name = saved_under(spec, preset, profile)
    except DeriveError:  # the launch reports what is wrong with the config
        name = None
    return found if name is None else tuple(c for c in found if name.match(c.name))


def _of_anybody(_: Checkpoint) -> Origin:
    return "unknown"


def resumes_by_itself(command: Sequence[str], there: Sequence[Checkpoint]) -> bool:
    """Whether the command, as it was written, goes on from what is there: it names a checkpoint, or says "latest"."""
    places = {Path(c.path).resolve() for c in there}
    if word_by_itself(command) is not None:
        return True
    for word in command:
        _, equals, value = word.partition("=")
        given = value if equals else word
        if given and "{" not in given and "\0" not in given and Path(given).resolve() in places:
            return True
    return False


def names_of(found: Sequence[Checkpoint]) -> str:
    """``checkpoint-500, checkpoint-400 and 3 more``."""
    names = [c.name for c in found[:SHOWN]]
    more = len(found) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
