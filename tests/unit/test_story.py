"""The one fold over the journal."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import (
    AttemptEnded,
    AttemptStarted,
    CheckpointKnown,
    Fact,
    IncidentOpened,
    IncidentUpdated,
    RunCreated,
    StateChanged,
)
from trainwatch.core.model.run import Incident
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


def incident(number: int, *, is_open: bool = True) -> Incident:
    return Incident(
        id=number, t=5.0, wall=1005.0, attempt=1, kind="crash", class_="cuda_oom", reason="out of memory", open=is_open
    )


CREATED = RunCreated(run="r-1", name="r", command=("x",), cwd="/", preset="generic", max_restarts=3)


@given(
    st.lists(
        st.sampled_from(
            [
                CREATED,
                AttemptStarted(attempt=1, pid=1),
                AttemptStarted(attempt=2, pid=2),
                AttemptEnded(attempt=2, how="lost"),
                IncidentOpened(incident=incident(1)),
                IncidentUpdated(incident=incident(2)),
                StateChanged(state="running", reason=""),
                CheckpointKnown(checkpoint=checkpoint(1, 1.0)),
            ]
        )
    )
)
def test_story_accepts_and_encodes_facts_in_any_order(facts: list[Fact]) -> None:
    story = told(*[(float(i), fact) for i, fact in enumerate(facts)])
    assert story.seq == len(facts)
    assert msgspec.json.decode(msgspec.json.encode(story), type=RunStory) == story


def test_the_order_of_checkpoints_is_that_of_their_age_however_they_were_told() -> None:
    facts: list[tuple[float, Fact]] = [(0.0, CREATED)]
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
