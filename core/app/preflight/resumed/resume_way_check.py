"""Whether the run survives a crash: how its trainer is resumed."""

from ....views.resume_words import resume_words
from ...plan.launch_plan import LaunchPlan
from ..check import Check, Machine, passed, warned

REMEDY = "write {resume} into the command where the path of a checkpoint belongs (`--resume {resume}`)"


def check_resume(plan: LaunchPlan, _machine: Machine) -> Check:
    """How the trainer is resumed after a crash."""
    way = plan.spec.resume_way
    said = resume_words(way)
    if way is not None and way.will in {"yes", "self"}:
        return passed("resume", said)
    return warned("resume", said, REMEDY)
