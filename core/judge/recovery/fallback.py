"""Back to the settings that ran: a change of ours that fails before its first step must not end a run.

A profile or a remedy is an experiment. If the new settings do not even start (a flag that the script does not know, a
library that is missing), the run goes on as before, at once and uncharged, and does not take them again by itself. A
first start with a profile goes back to the user's own settings in the same way, if its failure is one of code or
settings. Known false alarm: a failure that has nothing to do with the settings and comes just then. The profile is then
left although it would have worked; an operator who asks for it again gets it.
"""

from ...model.fact import ProfileChanged
from ...model.launch.ramp_rule import FailedRung
from ...model.shipped.profile import NO_PROFILE
from ..state import JudgeState
from ..step_builder import StepBuilder
from .remedies import ramp, remedy_choice
from .remedies.ramp_state import SettingsThatRan

OWN = SettingsThatRan(attempt=0)
"""The user's own settings, before any attempt has trained."""


def remember(builder: StepBuilder) -> None:
    """Note the settings of this attempt if it made a step. Call it before anything of the next attempt is chosen."""
    if not builder.state.trained and has_trained(builder.state):
        builder.set(trained=True)
    attempt, ran = builder.state.attempt, builder.state.ran
    if attempt.beat_t is not None and (ran is None or ran.attempt != attempt.number):
        builder.set(ran=SettingsThatRan(attempt=attempt.number, profile=attempt.profile, applied=builder.state.applied))


def has_trained(state: JudgeState) -> bool:
    """Whether an attempt of this run made verified progress: its step number rose, or it wrote a checkpoint."""
    logs = (state.reading, *state.other_logs.values())
    return state.trained or state.attempt.saved or any(read.advanced for read in logs)


def settings_that_ran(state: JudgeState, *, started: bool = True) -> SettingsThatRan | None:
    """What to go back to; None unless the newest launch had new settings of ours and failed before its first step.

    ``started``: the attempt began; else its launch failed.
    """
    ran = state.ran
    if ran is None:
        # Nothing has trained: without our change the first start is the user's own.
        return OWN if state.profile is not None and _failed_at_start(state, started=started) else None
    if (state.profile, state.applied) == (ran.profile, ran.applied):
        return None
    if state.profile != ran.profile and any(rung.profile == ran.profile for rung in state.ramp.failed):
        return None  # what ran last did not hold either
    return ran if _failed_at_start(state, started=started) else None


def _failed_at_start(state: JudgeState, *, started: bool) -> bool:
    return not started or (state.attempt.beat_t is None and state.attempt.profile == state.profile)


def go_back(builder: StepBuilder, ran: SettingsThatRan, failure: str, reason: str, incident: int) -> str:
    """The next launch has the settings that ran. Returns why, as a sentence for people."""
    state = builder.state
    if state.profile == ran.profile:
        return _without_new_remedies(builder, ran, failure, reason, incident)
    left = state.profile if state.profile is not None else NO_PROFILE
    to = ran.profile if ran.profile is not None else NO_PROFILE
    asked = state.profile_pending not in {None, left}
    words = f"{_named(left)} does not start here: back to {_named(to)}"
    failed = FailedRung(profile=left, ran_s=0.0, failure=failure)
    builder.note(f"{words} ({failure}: {reason})")
    ramp.does_not_start(builder, failed, to, reason, incident)
    if asked:
        return words  # an operator or a remedy chose another profile meanwhile
    builder.set(profile_pending=to)
    builder.fact(ProfileChanged(profile=ran.profile, pending=True, why=f"{words} ({failure})", failed=failed))
    remedy_choice.restore(builder, ran.applied, words, incident)
    return words


def _without_new_remedies(builder: StepBuilder, ran: SettingsThatRan, failure: str, reason: str, incident: int) -> str:
    before = {known.name for known in ran.applied}
    names = tuple(known.name for known in builder.state.applied if known.name not in before)
    words = f"trainwatch's own change ({', '.join(names)}) does not start here: it is taken back"
    builder.note(f"{words} ({failure}: {reason})")
    builder.set(withdrawn=(*builder.state.withdrawn, *names))
    remedy_choice.restore(builder, ran.applied, words, incident)
    return words


def _named(profile: str) -> str:
    return "your own config as it stands" if profile == NO_PROFILE else f"profile {profile}"
