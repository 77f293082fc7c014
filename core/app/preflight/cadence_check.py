"""Whether the run saves as often as it should, by what its last attempts showed."""

from ...store.journal import load_story
from ...store.run_directory import RunDirectory
from ...views.state.cadence import cadence, cadence_words
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, passed, warned


def check_cadence(plan: LaunchPlan, machine: Machine) -> Check | None:
    """Compare the interval between saves with the one that loses the least time. None: nothing is known yet."""
    run = RunDirectory(machine.home / "runs" / plan.spec.id)
    if not run.journal.exists():
        return None
    story = load_story(run.journal)
    known = cadence(story, story.t)
    if known.best_s is None or known.every_s is None:
        return None
    text = f"saves {cadence_words(known)}"
    if not known.is_off:
        return passed("save interval", text)
    return warned("save interval", text, "change how often the trainer saves (save_every_n_steps, save_steps …)")
