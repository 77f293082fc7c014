"""How the trainer resumes, read again at each start of a run of which no way was known: its script may have one now."""

from ...store.journal import load_outline
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...views.resume_words import resume_line
from ..plan.definitions import definitions_of
from ..plan.resume_plan import KNOWN, with_way_now
from ..runs.output_owner import is_at_rest, trainer_pid
from .hand_over import end_supervisor


def read_way_again(run: RunDirectory) -> str | None:
    """Store the way to resume if nothing of the run is running, none was known, and there is one now.

    Returns a sentence about it; None if nothing has changed. A supervisor that waits beside a run that is over is
    ended: it has the former answer. Raises CliError.
    """
    known = run.load_spec()
    if known.resume_way is not None and known.resume_way.will in KNOWN:
        return None
    if trainer_pid(run) is not None:
        return None
    waits = is_held(run.lock)
    if waits:
        story = load_outline(run.journal)
        told = None if story.run is None else story.run.resume
        if told is None or told.will in KNOWN or not is_at_rest(run):
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
