"""Whether the run survives a crash: how its trainer is resumed."""

from ....model.launch.resume_support import PLACEHOLDER
from ....views.resume_words import resume_words, second_start_line
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


def check_second_start(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """A restart does not delete what it is to resume from."""
    spec, way = plan.spec, plan.spec.resume_way
    second = spec.second_start
    if not second.destroys:
        return None
    said = (second_start_line(second) or "").removeprefix("Restart: ")
    restarts = (way is not None and way.will in {"yes", "self"}) or spec.settings.restart.if_not_told == "go_on"
    if not second.left or not restarts or _takes_any_path(plan):
        return passed("restart", said)
    return failed(
        "restart",
        f"{second.left}, and a restart finds its checkpoint only there",
        "let an option decide about the deletion, or give the script an option for the path that it resumes from",
    )


def _takes_any_path(plan: LaunchPlan) -> bool:
    """Whether a launch can name a checkpoint that lies outside the output folder."""
    styles = [each for each in (plan.preset.resume_file, plan.preset.resume_directory) if each is not None]
    words = [word for style in styles for word in (*style.args, *style.env.values())]
    named = any(style.key is not None for style in styles) or any("{path" in word for word in words)
    return named or any(PLACEHOLDER in word for word in plan.spec.command)
