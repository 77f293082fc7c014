"""The end of the incident *quiet*."""

from ...model.incident import EndedBy
from ..step_builder import StepBuilder


def close_quiet(builder: StepBuilder, ending: str, by: EndedBy = "") -> None:
    """Close it if it is open. ``ending``: how the silence ended."""
    quiet = builder.state.quiet
    if quiet is not None:
        builder.set(quiet=None)
        builder.close_incident(quiet.incident, ending, ended_by=by)
