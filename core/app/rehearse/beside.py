"""Which live runs a rehearsal would take a GPU from."""

from collections.abc import Callable, Collection, Sequence

from ...act.launch.launching import find_attempt
from ...act.stop.stopping import members
from ...store.journal import load_story
from ...store.run_directory import RunDirectory
from ..gpu_survey import GpuSurvey, survey


def beside(others: Sequence[tuple[RunDirectory, str]], look: Callable[[], GpuSurvey] = survey) -> list[str]:
    """The sentences about those live runs.

    A machine without a GPU has none to take. A run that has trained and is not in the driver's list is on none; an
    empty list tells nothing, because the driver of WSL2 lists no process.
    """
    if not others:
        return []
    seen = look()
    if not seen.gpus and not seen.stuck:
        return []
    pids = {user.pid for gpu in seen.gpus for user in gpu.users or ()}
    told = not seen.stuck and bool(pids) and all(gpu.users is not None for gpu in seen.gpus)
    return [sentence for run, sentence in others if not (told and _is_elsewhere(run, pids))]


def _is_elsewhere(run: RunDirectory, pids: Collection[int]) -> bool:
    """Whether none of its processes is on a GPU, although it trains."""
    targets = [target for folder in run.attempt_folders() if (target := find_attempt(folder)) is not None]
    own = {pid for target in targets for pid in (target.trainer.pid, *(process.pid for process in members(target)))}
    return load_story(run.journal).state == "running" and bool(own) and own.isdisjoint(pids)
