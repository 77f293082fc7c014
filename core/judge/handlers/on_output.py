"""Folders that the run is seen to save to become output folders: their checkpoints are watched and resumed from."""

import msgspec

from ...model.fact import OutputKnown
from ...model.launch.output_place import is_below
from ...model.observation import OutputSeen
from ..knowledge import Knowledge
from ..recovery.unclear_states import training_of
from ..resume import output_folders
from ..resume.unclear_state import Training
from ..run_machine import is_live
from ..state import NOTHING, JudgeState, Result
from ..step_builder import StepBuilder


def on_output(knowledge: Knowledge, state: JudgeState, seen: OutputSeen) -> Result:
    """Take a sighting; nothing follows from one while no attempt runs."""
    if not is_live(state.machine):
        return state, NOTHING
    outputs = output_folders.with_sighting(
        state.outputs, seen, created_wall=knowledge.created_wall, attempt=state.attempt.number
    )
    builder = StepBuilder(knowledge, msgspec.structs.replace(state, outputs=outputs))
    _accept(builder, training_of(builder.state))
    return builder.state, tuple(builder.entries)


def at_end(builder: StepBuilder) -> None:
    """The attempt has ended: what was seen so far is all."""
    _accept(builder, msgspec.structs.replace(training_of(builder.state), over=True))
    builder.set(outputs=msgspec.structs.replace(builder.state.outputs, seen=()))


def _accept(builder: StepBuilder, training: Training) -> None:
    state = builder.state
    found = output_folders.to_accept(state.outputs, training, builder.knowledge.output_dir, state.checkpoints)
    for one in found:
        builder.set(outputs=output_folders.accepted(builder.state.outputs, one.folder))
        builder.fact(OutputKnown(folder=one.folder, why=one.evidence))
    # A folder around it, which was taken for state of an unknown make, is none.
    around = {k.path for k in state.checkpoints.known for one in found if is_below(one.folder, k.path)}
    if around:
        kept = tuple(k for k in state.checkpoints.known if k.path not in around)
        builder.set(checkpoints=msgspec.structs.replace(state.checkpoints, known=kept))
