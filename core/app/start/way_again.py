"""How the trainer resumes, read again at each start of a run of which no way was known: its script may have one now."""

from ...model.observation import Command
from ...store.journal import load_story
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory
from ...views.resume_words import resume_line
from ..plan.definitions import definitions_of
from ..plan.resume_plan import KNOWN, with_way_now
from ..runs.output_owner import is_at_rest, trainer_pid
from ..supervise.machine_end import others_end_with
from .hand_over import end_supervisor


def read_way_again(run: RunDirectory, command: Command | None = None) -> str | None:
    """Store the way to resume if none was known, and there is one now.

    Returns a sentence about it; None if nothing has changed. A supervisor that waits beside a run that is over is
    ended: it has the former answer. While the trainer runs, this is done for a restart only: the trainer goes on
    meanwhile, and the next supervisor ends it as ordered. ``command``: what is ordered. Raises CliError.
    """
    known = run.load_spec()
    if known.resume_way is not None and known.resume_way.will in KNOWN:
        return None
    trains, waits = trainer_pid(run) is not None, is_held(run.lock)
    if trains and not _begins_from_a_checkpoint(command):
        return None
    if waits:
        story = load_story(run.journal)
        told = None if story.run is None else story.run.resume
        if told is None or told.will in KNOWN or not (_may_be_replaced(run) if trains else is_at_rest(run)):
            return None
    spec = with_way_now(known, definitions_of(known).preset_of(known))
    if spec.resume_way is None or spec.resume_way.will not in KNOWN:
        return None
    if waits:
        end_supervisor(run, "a resume by a way that was found now")
    run.save_spec(spec)
    if known.resume_way is None and not waits:  # it was not asked yet
        return None
    return f"run {run.id} can be resumed now: {resume_line(spec.resume_way)}"


def _begins_from_a_checkpoint(command: Command | None) -> bool:
    """Whether it is a restart that may resume. An answer to a question is for the supervisor that asked."""
    return command is not None and command.verb == "restart" and not command.fresh and command.incident is None


def _may_be_replaced(run: RunDirectory) -> bool:
    """Whether the trainer goes on without its supervisor."""
    pid = holder_pid(run.lock)
    return pid is not None and not others_end_with(pid)
