"""A training that saves checkpoints while no step is read from its log: it runs, and people are told what is not known.

A checkpoint of the attempt shows that it trains, so the run is no longer "starting". Which step it is at stays unknown.
"""

from ...model.incident import NO_STEP, Evidence
from ..findings import unread_steps
from ..findings.unread_steps import UnreadLog
from ..resume.known_checkpoint import KnownCheckpoint, base_name
from ..resume.save_overdue import TOGETHER_S
from ..run_machine import is_watched
from ..run_states import Running, Starting
from ..state import JudgeState
from ..step_builder import StepBuilder

TITLE = "no step is read from the log"
REASON = f"{TITLE}: position, pace and time left are not known"
FOLLOWS = "a hang shows only when GPU, processes and log are silent, and a resume cannot be verified by its step"
PAGE = "docs/how-to/own-log-lines.md"


def on_saved(builder: StepBuilder, known: KnownCheckpoint, now: float) -> None:
    """The run saved a checkpoint, or what counts as state and is not understood; ``now``: active seconds."""
    state = builder.state
    if not is_watched(state.machine) or state.attempt.beat_t is not None or known.t < state.attempt.start_t:
        return
    builder.set(unread=unread_steps.with_save(state.unread, now, TOGETHER_S))
    if isinstance(state.machine, Starting):
        builder.move("saved", Running(), f"it saved {base_name(known.path)}")
    _tell(builder)


def on_text(builder: StepBuilder, text: str) -> None:
    """The trainer printed text in which no step is read."""
    builder.set(unread=unread_steps.with_text(builder.state.unread, text, builder.knowledge.shapes))
    _tell(builder)


def is_over(state: JudgeState) -> bool:
    """Whether something is kept or told of an attempt that makes a step now."""
    return state.unread.saves > 0 or _is_told(state)


def on_step(builder: StepBuilder) -> None:
    """A step is read."""
    builder.set(unread=UnreadLog())
    for incident in builder.state.incidents:
        if incident.class_ == NO_STEP:
            builder.close_incident(incident.id, "a step is read")


def _is_told(state: JudgeState) -> bool:
    return any(incident.class_ == NO_STEP for incident in state.incidents)


def _tell(builder: StepBuilder) -> None:
    log = builder.state.unread
    if not unread_steps.is_shown(log) or _is_told(builder.state):
        return
    found = unread_steps.example_of(log)
    if found is None:
        advice = f"no line of it looks like a counter: print one per step (step 12/900 loss 0.5; more in {PAGE})"
    else:
        advice = (
            f"if \"{found.line}\" counts steps, write shapes = ['{found.shape}'] under [progress] in trainwatch.toml "
            f"(without the file: `run --progress-shape` with that expression); a live run takes it over as {PAGE} says"
        )
    builder.warn(
        "progress",
        NO_STEP,
        REASON,
        title=TITLE,
        evidence=() if found is None else (Evidence(what=f"it prints: {found.line}"),),
        explanation=f"{FOLLOWS}; {advice}",
    )
