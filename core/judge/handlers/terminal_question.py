"""A trainer that waits at its terminal for an answer. It is not hung, and a restart would ask the same question.

Sources: wandb's choice of an account at the start, Hugging Face's "trust remote code? [y/N]", scripts that ask before
they overwrite an output directory. Known false alarms: a process that sleeps for another reason; so if the kernel does
not show what it waits for, the last line of the log must end like a prompt.
"""

from ...model.observation import ProcessSample
from ...model.text.patterns import LazyPattern
from ..hang import active_time, step_clock, step_peak
from ..state import JudgeState
from ..step_builder import StepBuilder
from ..text.lines import plain

ASKS = "asks"
"""Class of the incident (kind ``stall``)."""
SURE_S = 15.0
"""How long it must wait before people are notified: a person at the terminal answers sooner."""
PROMPT = LazyPattern(r"[?:>)\]]\s*$")
"""End of an unfinished last line that asks for something."""


def asks(state: JudgeState, sample: ProcessSample) -> bool:
    """Return whether it waits for an answer.

    If the kernel does not show it for certain, the last line of the log must ask for input, too.
    """
    if sample.asks is None:
        return False
    return sample.asks == "yes" or PROMPT.search(_last_line(state)) is not None


def check(builder: StepBuilder, sample: ProcessSample) -> None:
    """Report the question, and that it was answered."""
    state = builder.state
    now = active_time.now(state.time)
    known = next((i for i in state.incidents if i.class_ == ASKS), None)
    if not asks(state, sample):
        if state.asks_since is not None:
            waited_s = now - state.asks_since
            builder.set(
                asks_since=None,
                clock=step_clock.restart_wait(state.clock, now),
                peak=step_peak.excuse(state.peak, waited_s),
            )
        if known is not None:
            builder.close_incident(known.id, "it was answered")
        return
    if state.asks_since is None:
        builder.set(asks_since=now)
    elif known is None and now - state.asks_since >= SURE_S:
        line = _last_line(state).strip()[-120:]
        shown = f' ("{line}")' if line else ""
        where = "in its own terminal" if state.attempt.adopted else f"with `{builder.knowledge.typed('attach')}`"
        builder.warn(
            "stall", ASKS, f"the trainer waits for an answer{shown}: give it {where}", title="waits for an answer"
        )


def _last_line(state: JudgeState) -> str:
    return plain(state.diagnosis.fold.rest)
