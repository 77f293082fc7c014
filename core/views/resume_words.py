"""How a run is resumed, in one line: what is said wherever a run is begun."""

from collections.abc import Sequence
from typing import Any

from ..model.launch.resume_way import ResumeWay, SecondStart

UNKNOWN = ResumeWay()
REHEARSE = "`trainwatch rehearse` tells in a minute"


def resume_line(way: ResumeWay | None) -> str:
    """``Resume: yes (`--resume …`, train.py:41)``."""
    return f"Resume: {resume_words(way)}"


def resume_words(way: ResumeWay | None) -> str:
    """The same without its head."""
    way = UNKNOWN if way is None else way
    match way.will:
        case "yes":
            return f"yes (`{way.how}`, {way.place})"
        case "self":
            return f"by itself ({way.how})"
        case "no":
            return f"NO: {way.how}"
        case "unknown":
            how = way.how or "nothing is known of how this command resumes"
            return f"unknown: {how}; {REHEARSE}"


def resume_object(way: ResumeWay | None) -> dict[str, Any]:
    """The object of ``--json``. ``how``: a text; ``place``: where it was found; ``why``: evidence."""
    way = UNKNOWN if way is None else way
    return {"will": way.will, "how": way.how, "source": way.source, "place": way.place or None, "why": list(way.why)}


def second_start_line(second: SecondStart) -> str | None:
    """What a restart leaves out, or does before it, so that nothing is deleted; None if the command deletes nothing."""
    if not second.destroys:
        return None
    parts = [f"a restart would drop {change.key}" for change in second.drops]
    parts += [change.why for change in second.drops] or [second.destroys[0]]
    if second.left or second.may:
        parts.append("before a restart what it resumes from is put outside the folder")
    return f"Restart: {'; '.join(dict.fromkeys(parts))}"


def second_start_object(second: SecondStart, argv: Sequence[str]) -> dict[str, Any]:
    """The object of ``--json``. ``argv``: of a restart, with ``{resume}`` for the checkpoint."""
    return {"argv": list(argv), "drops": [change.key for change in second.drops], "destroys": list(second.destroys)}
