"""Folders that the run is seen to save to become output folders: their checkpoints are watched and resumed from.

What may be the run's and is not known to be is told at the first sight, while the person is there.
"""

import msgspec

from ...model.fact import OutputKnown
from ...model.launch.output_place import is_below
from ...model.observation import OutputSeen
from ..knowledge import Knowledge
from ..recovery.resume_point import unclear_output
from ..recovery.resume_point.training_times import training_of
from ..resume import output_folders
from ..resume.unclear_state import Training
from ..run_states import EndedEarly, Finished, GivenUp
from ..state import NOTHING, JudgeState, Result
from ..step_builder import StepBuilder


def on_output(knowledge: Knowledge, state: JudgeState, seen: OutputSeen) -> Result:
    """Take a sighting; one that comes after the end of an attempt may be of what it saved last."""
    if isinstance(state.machine, Finished | EndedEarly | GivenUp):
        return state, NOTHING
    outputs = output_folders.with_sighting(
        state.outputs,
        seen,
        created_wall=knowledge.created_wall,
        attempt=state.attempt.number,
        named=output_folders.is_named(state.diagnosis.tail, seen.path, knowledge.cwd),
    )
    builder = StepBuilder(knowledge, msgspec.structs.replace(state, outputs=outputs))
    _accept(builder, training_of(builder.state))
    unclear_output.tell(builder)
    return builder.state, tuple(builder.entries)


def on_lines(builder: StepBuilder, text: str) -> None:
    """The log may name what has just appeared."""
    state = builder.state
    outputs = output_folders.with_log(state.outputs, text, builder.knowledge.cwd, builder.t)
    if outputs is not state.outputs:
        builder.set(outputs=outputs)
        _accept(builder, training_of(builder.state))


def at_end(builder: StepBuilder) -> None:
    """The attempt has ended: no further save of it will come."""
    _accept(builder, msgspec.structs.replace(training_of(builder.state), over=True))


def _accept(builder: StepBuilder, training: Training) -> None:
    state = builder.state
    found = output_folders.to_accept(state.outputs, training, builder.knowledge.output_dir, state.checkpoints)
    for one in found:
        builder.set(outputs=output_folders.accepted(builder.state.outputs, one.folder))
        builder.fact(OutputKnown(folder=one.folder, why=one.evidence))
    if found:
        unclear_output.close(builder)
    # A folder around it, which was taken for state of an unknown make, is none.
    around = {k.path for k in state.checkpoints.known for one in found if is_below(one.folder, k.path)}
    if around:
        kept = tuple(k for k in state.checkpoints.known if k.path not in around)
        builder.set(checkpoints=msgspec.structs.replace(state.checkpoints, known=kept))
