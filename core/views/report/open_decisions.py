"""What the user has to decide."""

from collections.abc import Iterator

from ...model.situation import Situation
from .. import quantity
from ..state.concerns import NAN, nan_since
from ..state.verdict import unwatched
from ..withheld_words import commands, would_have
from ..words import title_of

MARK_BAD = frozenset({"torn", "corrupt", "nonfinite"})


def waiting_for_a_person(now: Situation) -> Iterator[str]:
    """One sentence each, the most urgent first."""
    story = now.story
    if story.state == "given_up":
        reason = story.state_reason or "no reason given"
        yield f"No further attempt is made: {reason}. Fix the cause, then `trainwatch resume`."
    if story.state == "ended_early":
        reason = story.state_reason or "no reason given"
        yield f"The trainer exited before the end: {reason}. Read the end of its log, then `trainwatch resume`."
    if story.question is not None:
        asked = story.question.action
        text = would_have(story.question, story.wall0, now.now_wall)
        text = asked.question if asked.asks else text
        answers = "; ".join(f"{what}: `{command}`" for what, command in commands(story))
        yield f"{text[:1].upper()}{text[1:]} {answers}."
    elif story.state == "stopped":
        unclear = any(i.open and i.class_ == "not_understood" for i in story.incidents)
        how = "`trainwatch resume --from CHECKPOINT` or `--fresh`" if unclear else "`trainwatch resume`"
        why = (story.state_reason or "stopped by a person").removeprefix("held: ")
        yield f"The run is held: {why}. Continue with {how}."
    if unwatched(now):
        yield "No supervisor is watching. Start one with `trainwatch --headless`."
    nan = nan_since(story)
    if nan is not None:
        at = "" if nan.step is None else f" since step {quantity.count(nan.step)}"
        yield f"The loss is NaN{at}: what was saved since then may be worthless. Resume from a checkpoint before it."
    for incident in story.incidents:
        if incident.class_ in NAN and nan is not None:
            continue
        if incident.open and not incident.acknowledged and incident.severity != "info":
            title = title_of(incident) if incident.kind in {"crash", "hang"} else incident.reason
            yield f"Incident {incident.id} is open since {quantity.clock(incident.wall, now.now_wall)}: {title}."
    bad = [c for c in story.checkpoints if c.verdict in MARK_BAD and c.understood]
    if bad:
        names = ", ".join(c.name for c in bad[-3:])
        yield f"{quantity.plural(len(bad), 'checkpoint')} cannot be resumed from; you may remove it: {names}."
    unclear_ones = [c for c in story.checkpoints if not c.understood]
    if unclear_ones and not any(c.verdict == "complete" for c in story.checkpoints):
        names = ", ".join(c.name for c in unclear_ones[-3:])
        yield f"Keep {names}: nothing else was saved, and only the trainer can tell whether it can go on from there."
    for reading in story.health.values():
        if reading.level == "danger" and reading.metric.endswith("disk_free"):
            yield f"The disk is nearly full: {quantity.size(reading.value)} free."
