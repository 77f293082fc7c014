"""The one fold over the journal."""

from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import (
    CheckpointKnown,
    Fact,
    RunCreated,
)
from trainwatch.core.model.story import RunStory
from trainwatch.core.model.story_fold import apply, apply_all


def told(*facts: tuple[float, Fact]) -> RunStory:
    story = RunStory()
    for seq, (t, fact) in enumerate(facts, 1):
        story = apply(story, Record(seq=seq, t=t, wall=1000.0 + t, fact=fact))
    return story


def checkpoint(step: int, mtime: float, verdict: str = "complete") -> Checkpoint:
    return Checkpoint(
        path=f"/out/c-{step}",
        name=f"c-{step}",
        kind="directory",
        step=step,
        epoch=None,
        size_bytes=10,
        mtime=mtime,
        verdict=verdict,  # type: ignore[arg-type]
    )


def test_the_order_of_checkpoints_is_that_of_their_age_however_they_were_told() -> None:
    created = RunCreated(run="r-1", name="r", command=("x",), cwd="/", preset="generic", max_restarts=3)
    facts: list[tuple[float, Fact]] = [(0.0, created)]
    known = [checkpoint(step, mtime) for step, mtime in ((30, 30.0), (10, 10.0), (21, 20.0), (20, 20.0), (40, 40.0))]
    facts += [(1.0 + at, CheckpointKnown(checkpoint=each)) for at, each in enumerate(known)]
    facts += [(7.0, CheckpointKnown(checkpoint=known[1], removed=True))]
    facts += [(8.0, CheckpointKnown(checkpoint=checkpoint(20, 35.0)))]
    records = [Record(seq=seq, t=t, wall=1000.0 + t, fact=fact) for seq, (t, fact) in enumerate(facts, 1)]
    one_by_one = told(*facts)
    assert [c.step for c in one_by_one.checkpoints] == [21, 30, 20, 40]
    assert apply_all(RunStory(), records) == one_by_one
    for cut in range(len(records)):
        assert apply_all(apply_all(RunStory(), records[:cut]), records[cut:]) == one_by_one
    assert "/out/c-10" not in one_by_one.checkpoint_times
