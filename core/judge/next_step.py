"""What is expected of the next step of a run, for people who look at it."""

from ..model.progress import Outlook
from .handlers import hang_check
from .hang import deadlines, pauses, phase_times
from .knowledge import Knowledge
from .state import JudgeState


def outlook_of(knowledge: Knowledge, state: JudgeState) -> Outlook:
    now = pauses.now(state.time)
    known = phase_times.habit(state.phase_times, state.progress.phase)
    patient_s = state.attempt.patient_until - now
    return Outlook(
        usual_s=deadlines.told_usual_s(state.clock),
        pause_s=max(state.clock.pause_s, known.longest_s, known.quiet_s),
        hang_t=hang_check.due_t(knowledge, state),
        patient_t=state.time.t + patient_s if patient_s > 0 else None,
    )
