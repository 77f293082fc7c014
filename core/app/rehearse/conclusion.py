"""What follows from what a rehearsal saw: is tonight safe, why, and what to change. Pure."""

import shlex

import msgspec

from ...model.launch.rehearsal import Rehearsal, Verdict, Will
from ...model.launch.resume_support import PLACEHOLDER
from ...model.launch.resume_way import ResumeWay
from ..plan.launch_plan import LaunchPlan
from .order import Seen

SAVES = ("save", "ckpt", "checkpoint")
HOW_OFTEN = ("step", "every", "interval", "freq", "epoch", "_n", "num")
NOT_ALL = (
    "the weights were loaded, but the step was not, nor perhaps the optimizer: save step, optimizer and weights in one "
    "file, and load all three (docs/how-to/resume.md has the lines)"
)
OWN_LINES = "if your log prints steps in another form, tell it: docs/how-to/own-log-lines.md"


def conclude(plan: LaunchPlan, seen: Seen, known: Rehearsal, limit_s: float) -> Rehearsal:
    """``known``: the rehearsal without its verdict."""
    verdict, reason, advice = _verdict(plan, seen, limit_s)
    will, how, source = resume_words(plan, seen)
    return msgspec.structs.replace(
        known,
        verdict=verdict,
        reason=reason,
        advice=tuple(advice),
        saved_in=seen.saved_in,
        checkpoint=seen.checkpoint,
        checkpoint_after_s=seen.checkpoint_after_s,
        will=will,
        how=how,
        source=source,
        steps=seen.steps,
        loss=seen.loss,
        faults=seen.faults,
    )


def resume_words(plan: LaunchPlan, seen: Seen) -> tuple[Will, str, str]:
    """Whether a crash is resumed, how, and how that is known. What the launch plan expects counts only if it was seen.

    A trainer that was not told its checkpoint and goes on all the same finds it by itself.
    """
    way = plan.spec.resume_way or ResumeWay()
    if _resume_failed(seen):
        return "no", seen.ignored or (seen.steps.why if seen.steps.holds is False else seen.loss.why), "none"
    how = f"{way.how} ({way.place})" if way.place and way.place not in way.how else way.how
    if not seen.steps.holds:
        return "unknown", how, way.source
    if way.will in {"yes", "self"}:
        return way.will, how, way.source
    if seen.told:
        return "yes", f"told by {PLACEHOLDER} in the command", way.source
    return "self", "the trainer goes on by itself from its newest checkpoint", "self"


def _resume_failed(seen: Seen) -> bool:
    return bool(seen.ignored) or seen.steps.holds is False or seen.loss.holds is False


def _verdict(plan: LaunchPlan, seen: Seen, limit_s: float) -> tuple[Verdict, str, list[str]]:
    if seen.withheld and not seen.steps.holds:
        return (
            "unknown",
            f"the second attempt was begun without {seen.withheld}: whether the script resumes from it was not seen",
            ["rehearse again with --keep: the journal in the scratch folder says why it was not given"],
        )
    if seen.ignored or seen.steps.holds is False:
        return "unsafe", f"the resume does not take: {seen.ignored or seen.steps.why}", _how_to_resume(plan, seen)
    if seen.loss.holds is False:
        return (
            "unsafe",
            f"the step goes on after a resume, but the loss does not: {seen.loss.why}",
            ["load the weights and the optimizer from the checkpoint before the first step of a resumed run"],
        )
    if seen.finished and seen.checkpoint is not None:
        why = f"the training was done before it could be killed: {seen.over}"
        return "unknown", why, ["rehearse with more steps, or with more frequent checkpoints", *_how_often(plan)]
    if seen.stage in {"start", "checkpoint"}:
        return _no_checkpoint(plan, seen, limit_s)
    if seen.steps.holds is None:
        return _no_proof(plan, seen, limit_s)
    hang = next((fault for fault in seen.faults if fault.fault.startswith("hang")), None)
    if hang is None or hang.after_s is None:
        then = "nobody can tell when a hang would be seen" if hang is None else hang.then
        return "unknown", f"a resume is proven, but a hang is not: {then}", [OWN_LINES]
    loss = "the loss continues" if seen.loss.holds else f"whether the loss continues is unknown ({seen.loss.why})"
    at, first = seen.steps.checkpoint, seen.steps.first_after
    anew = at is not None and first is not None and first < at and plan.preset.resume != "weights"
    proven = f"resume proven: {seen.steps.why}; {loss}; a hang is seen after {hang.after_s:.0f} s"
    return "safe", proven, [NOT_ALL] if anew else []


def _no_checkpoint(plan: LaunchPlan, seen: Seen, limit_s: float) -> tuple[Verdict, str, list[str]]:
    at = "" if seen.last_step is None else f" (it came to step {seen.last_step}{_of(seen)})"
    advice = _how_often(plan)
    if seen.saved_in is None:
        advice.append("say where the trainer saves: --output-dir D")
    if seen.written:
        advice.append(f"it wrote {', '.join(seen.written)}: nothing there is a checkpoint that is understood")
    if seen.failure:
        last = next((line for line in reversed(seen.log_tail) if line.strip()), "")
        return "unsafe", f"the training failed before its first checkpoint: {seen.failure}", [f"its last line: {last}"]
    if seen.timed_out:
        longer = f"or give it longer: --timeout {limit_s * 4:.0f}"
        none = "no step was read from the log, and " if seen.last_step is None else ""
        advice += [*([OWN_LINES] if none else []), longer]
        return "unknown", f"{none}no checkpoint was reached within {limit_s:.0f} s{at}", advice
    why = f": {seen.over}" if seen.over else ""
    return "unknown", f"the training ended before it had saved a checkpoint that a resume can use{at}{why}", advice


def _no_proof(plan: LaunchPlan, seen: Seen, limit_s: float) -> tuple[Verdict, str, list[str]]:
    if seen.stage == "kill":
        if seen.timed_out:
            return (
                "unknown",
                f"the time was over before enough was seen ({limit_s:.0f} s)",
                [f"give it longer: --timeout {limit_s * 4:.0f}"],
            )
        return "unknown", f"the training ended before it could be killed: {seen.over}", _how_often(plan)
    if seen.failure:
        last = next((line for line in reversed(seen.log_tail) if line.strip()), "")
        return "unsafe", f"after the kill the resumed training failed: {seen.failure}", [f"its last line: {last}"]
    if seen.stage == "restart":
        if seen.timed_out:
            longer = f"give it longer: --timeout {limit_s * 4:.0f}"
            return "unknown", f"after the kill no step was seen within the time limit ({limit_s:.0f} s)", [longer]
        return "unsafe", f"after the kill it was not restarted: {seen.over}", _how_to_resume(plan, seen)
    return "unknown", f"whether a resume goes on cannot be told: {seen.steps.why}", [OWN_LINES]


def _of(seen: Seen) -> str:
    return "" if seen.total_steps is None else f" of {seen.total_steps}"


def _how_to_resume(plan: LaunchPlan, seen: Seen) -> list[str]:
    if seen.told and seen.loss.holds:
        return [NOT_ALL]
    if seen.told:
        return ["check that the script uses the path it is given, and has no option against it"]
    way = plan.spec.resume_way
    if way is not None and way.will == "self":
        return [f"it was read as going on by itself ({way.how}), and began anew: check what that depends on"]
    return [
        (
            "a crash would begin anew and may write over what is there: give the script an option for a checkpoint "
            "(docs/how-to/resume.md has the lines), then write it behind the command: "
            f"{shlex.join(plan.spec.command)} --resume '{PLACEHOLDER}'"
        )
    ]


def _how_often(plan: LaunchPlan) -> list[str]:
    """What to change, if it takes too long to the first checkpoint."""
    keys = [
        f"{key} = {value}"
        for key, value in plan.settings.items()
        if any(word in key.lower() for word in SAVES)
        and any(word in key.lower() for word in HOW_OFTEN)
        and isinstance(value, int | float | str)
        and str(value)
    ]
    if keys:
        return [f"let it save earlier: it has {', '.join(keys[:3])}"]
    return ["let it save earlier: set its option for that (often save_steps, save_every or save_interval)"]
