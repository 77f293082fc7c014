"""Back to the settings that ran: a profile whose start dies before its first step must not end a run that was fine.

A switch is an experiment: where the new settings do not even start (a flag that the script does not know, a library
that is not there), the run goes on as it was, at once and uncharged, and does not try them again by itself. Known
false alarm: an accident that has nothing to do with the settings and strikes just then; the profile is then left
although it would have worked, and a person who asks for it again gets it.
"""

from ...model.fact import ProfileChanged
from ...model.profile import NO_PROFILE
from ...model.ramp import DeadRung
from ..step_builder import Draft
from . import ramp, treatment
from .ramp_state import Stood

OUTSIDE = frozenset(
    {"network_error", "disk_full", "io_error", "killed_by_user", "port_in_use", "gpu_lost", "driver_mismatch",
     "checkpoint_corrupt"}
)  # fmt: skip
"""Failures that say nothing about the settings that were to start."""


def remember(draft: Draft) -> None:
    """Before anything of the next attempt is chosen: what this one trains with is known to run, if it made a step."""
    attempt, stood = draft.state.attempt, draft.state.stood
    if attempt.beat_t is not None and (stood is None or stood.attempt != attempt.number):
        draft.set(stood=Stood(attempt=attempt.number, profile=attempt.profile, applied=draft.state.applied))


def applies(draft: Draft, failure: str, *, started: bool = True) -> bool:
    """Whether the newest launch had another profile than what ran before, and died before its first step.

    ``started``: the attempt began; else its launch itself failed.
    """
    state = draft.state
    stood = state.stood
    if stood is None or failure in OUTSIDE or state.profile == stood.profile:
        return False
    if any(rung.profile == stood.profile for rung in state.ramp.dead):
        return False  # what ran last did not hold either: there is nothing to go back to
    return not started or (state.attempt.beat_t is None and state.attempt.profile == state.profile)


def go_back(draft: Draft, failure: str, reason: str, incident: int) -> str:
    """The next launch has the settings that ran. Returns the sentence for people."""
    state = draft.state
    stood = state.stood
    assert stood is not None
    left = state.profile if state.profile is not None else NO_PROFILE
    to = stood.profile if stood.profile is not None else NO_PROFILE
    asked = state.profile_pending not in {None, left}
    words = f"{_named(left)} does not start here: back to {_named(to)}"
    dead = DeadRung(profile=left, ran_s=0.0, failure=failure)
    draft.note(f"{words} ({failure}: {reason})")
    ramp.does_not_start(draft, dead, to, reason, incident)
    if asked:
        return words  # a person or a remedy chose another one meanwhile
    draft.set(profile_pending=to)
    draft.fact(ProfileChanged(profile=stood.profile, pending=True, why=f"{words} ({failure})", dead=dead))
    treatment.restore(draft, stood.applied, words, incident)
    return words


def _named(profile: str) -> str:
    return "your own config as it stands" if profile == NO_PROFILE else f"profile {profile}"
