"""How a run is resumed, in one line: what is said wherever a run is begun."""

from typing import Any

from ..model.launch.resume_way import ResumeWay

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
