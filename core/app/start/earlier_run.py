"""The newest known run of the same command in the same place, and what became of it."""

import os
from typing import Literal, NamedTuple

from ...model.run import TERMINAL_STATES, RunSpec
from ...model.story import RunStory
from ...source.same_training import is_same, may_save_alike
from ...store.journal import JournalTooNew, load_story
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...views.state.held_words import reason_of
from ..runs.known_runs import all_runs
from ..runs.output_owner import is_at_rest, trainer_pid
from ..runs.unwatched import as_found

Condition = Literal["supervised", "trains", "interrupted", "ended"]
"""A supervisor has it; its trainer lives without one; nobody ended it; it is finished, given up or stopped.

A supervisor that waits beside a run that is over, with no question, does not matter.
"""


class EarlierRun(NamedTuple):
    """A run that was launched at least once."""

    run: RunDirectory
    spec: RunSpec
    story: RunStory
    condition: Condition
    held_for_room: str = ""
    """The reason, if its restart is held until there is room on a disk."""

    @property
    def trained(self) -> bool:
        """Whether it made a step or a checkpoint, as far as that is known."""
        return (
            self.story.run is None
            or bool(self.story.checkpoints)
            or any(a.last_step for a in self.story.attempts)
            or bool(self.story.progress.step)
        )

    @property
    def how(self) -> str:
        """Its state as words."""
        reason = f" ({self.story.state_reason})" if self.story.state_reason else ""
        return f"{self.story.state.replace('_', ' ')}{reason}"


def earlier_run(spec: RunSpec) -> EarlierRun | None:
    """The newest run that was launched with this command, in this working folder and for this output folder.

    A command in another spelling (``--a=b``, another order, ``python -u``) is the same one. An output folder that one
    of them does not know may be the same. A run of a trainwatch.toml is the same run whatever its command says now.
    """
    for run in all_runs():
        known = run.load_spec()
        if known.id == spec.id and spec.project is not None:
            found = described(run)
            return found if found is not None and found.story.attempts else None
        if _real(known.cwd) != _real(spec.cwd) or not is_same(known, spec):
            continue
        if known.output_dir and spec.output_dir and _real(known.output_dir) != _real(spec.output_dir):
            continue
        found = described(run)
        if found is not None and found.story.attempts:
            return found
    return None


def described(run: RunDirectory) -> EarlierRun | None:
    """A run with its condition; None if its journal is of a newer version."""
    try:
        told = load_story(run.journal)
        story = as_found(run, told)
    except JournalTooNew:
        return None
    condition: Condition = (
        "supervised"
        if is_held(run.lock) and not is_at_rest(run, story)
        else "trains"
        if trainer_pid(run) is not None
        else "ended"
        if story.state in TERMINAL_STATES
        else "interrupted"
    )
    held = reason_of(told) if condition == "interrupted" and told.state_why.waits_for_room else ""
    return EarlierRun(run, run.load_spec(), story, condition, held)


def runs_into(spec: RunSpec) -> RunDirectory | None:
    """The newest run, of any command, that was launched into the same output folder; None if there is none known."""
    if spec.output_dir is None:
        return None
    wanted = _real(spec.output_dir)
    for run in all_runs():
        known = run.load_spec()
        if known.output_dir and _real(known.output_dir) == wanted and run.attempt_folders():
            return run
    return None


def saved_alike(spec: RunSpec) -> RunSpec | None:
    """The newest run of the same script with other options, if this one may save into its folder; else None.

    Only for a run whose output folder is not known. A script that saved into two folders makes one for each launch.
    """
    if spec.output_dir is not None:
        return None
    here = (run for run in all_runs() if run.id != spec.id)
    known = [each for run in here if _real((each := run.load_spec()).cwd) == _real(spec.cwd) and run.attempt_folders()]
    alike = [each for each in known if may_save_alike(each, spec)]
    return alike[0] if len({_real(each.output_dir or "") for each in alike}) == 1 else None


def _real(path: str) -> str:
    return os.path.realpath(path)
