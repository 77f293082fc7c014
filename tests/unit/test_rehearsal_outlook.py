"""What a rehearsal says of a hang tonight: the judge on the recorded start, with silence after it."""

from collections.abc import Sequence
from pathlib import Path

from tests.tiers import SECOND_TIER
from trainwatch.core.app.plan.specs import read_definitions
from trainwatch.core.app.rehearse.outlook import outlook
from trainwatch.core.app.wiring.sensors import replay_of
from trainwatch.core.model.observation import LogChunk, Observation, ProcessSample, Start
from trainwatch.core.model.run import RunSpec


def recorded(last: str) -> Sequence[Observation]:
    """A trainer that prints a step a second for a minute; ``last``: its last line."""
    seen: list[Observation] = [Start(t=0.5, attempt=1, pid=100, log="train.log")]
    for n in range(1, 61):
        seen.append(ProcessSample(t=float(n), cpu_cores=1.0, procs=1, states={"R": 1}))
        seen.append(LogChunk(t=n + 0.1, text=f"step {n}/900 loss 0.5\n"))
    return [*seen, LogChunk(t=60.2, text=last)]


@SECOND_TIER
def test_the_time_of_a_hang_is_that_between_two_steps_also_if_the_recording_ends_in_a_save(tmp_path: Path) -> None:
    spec = RunSpec(id="a", name="a", command=("python", "train.py"), cwd=str(tmp_path), created_wall=0.0)
    known = read_definitions(tmp_path)

    faults = outlook(
        lambda: replay_of(spec, known),
        recorded("saved checkpoints/step_000060.pt\n"),
        spec,
        resumes=True,
        has_loss=True,
    )

    hang = next(fault for fault in faults if fault.fault == "hang")
    assert hang.after_s is not None
    assert hang.after_s < 150.0
    assert hang.survives is True
