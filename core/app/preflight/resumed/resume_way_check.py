"""Whether the run survives a crash: how its trainer is resumed."""

from ....views.resume_words import resume_words
from ...plan.launch_plan import LaunchPlan
from ..check import Check, Machine, failed, passed, warned

REMEDY = "the script needs a way to go on from a checkpoint: docs/how-to/resume.md has the lines"
CORRECT = "write {resume} behind an option that it has, or give it one (docs/how-to/resume.md)"


def check_resume(plan: LaunchPlan, _machine: Machine) -> Check:
    """How the trainer is resumed after a crash. An option that its parser does not have ends each restart."""
    way = plan.spec.resume_way
    said = resume_words(way)
    if way is not None and way.will in {"yes", "self"}:
        return passed("resume", said)
    if way is not None and way.will == "no" and way.source == "command":
        return failed("resume", way.how, CORRECT)
    return warned("resume", said, REMEDY)
