"""The one fold over the journal."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.core.model.attempt import Incident
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import ClearGpu, NotifyPeople, Record, StopAttempt
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
from trainwatch.core.model.observation import Outcome
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


def test_story_has_the_start_and_end_of_an_attempt() -> None:
    story = told(
        (0.0, CREATED),
        (1.0, AttemptStarted(attempt=1, pid=42, log="/log")),
        (9.0, AttemptEnded(attempt=1, how="crashed", code=1, last_step=120, productive_s=7.0)),
    )
    assert story.attempt is not None
    assert (story.attempt.pid, story.attempt.how, story.attempt.last_step) == (42, "crashed", 120)
    assert story.attempt.ended_t == 9.0
    assert story.wall0 == 1000.0
    assert story.budget_max == 3


def test_an_attempt_adopted_by_a_new_supervisor_stays_one_attempt() -> None:
    story = told(
        (0.0, CREATED),
        (1.0, AttemptStarted(attempt=1, pid=42, resume_from="/out/c-5", resume_step=5)),
        (60.0, AttemptStarted(attempt=1, pid=42, adopted=True)),
    )
    assert len(story.attempts) == 1
    assert story.attempts[0].adopted
    assert story.attempts[0].resume_step == 5
    assert story.attempts[0].t == 1.0


def test_story_closes_an_incident_with_its_end() -> None:
    story = told(
        (1.0, IncidentOpened(incident=incident(1))),
        (2.0, IncidentUpdated(incident=msgspec.structs.replace(incident(1, is_open=False), ending="recovered"))),
    )
    assert story.open_incidents == ()
    assert story.incidents[0].ending == "recovered"


def test_story_has_each_decision_with_its_result() -> None:
    story = RunStory()
    bodies: list[dict[str, Any]] = [
        {"decision": NotifyPeople(id=1, reason="crash", event="incident", title="crash")},
        {"decision": StopAttempt(id=2, reason="end what is left", incident=1, attempt=1)},
        {"decision": ClearGpu(id=3, reason="wait for the GPU", incident=1, attempt=1)},
        {"outcome": Outcome(t=4.0, decision=2, action="stop_attempt", ok=True, detail="nothing was left")},
        {"outcome": Outcome(t=4.0, decision=1, action="notify", ok=True)},
        {"outcome": Outcome(t=4.0, decision=9, action="ignore_problem of", ok=False)},
    ]
    for seq, body in enumerate(bodies, 1):
        story = apply(story, Record(seq=seq, t=float(seq), wall=1000.0 + seq, **body))
    stop, clear = story.actions
    assert (stop.kind, stop.incident, stop.t, stop.done_t, stop.ok, stop.detail) == (
        "stop_attempt", 1, 2.0, 4.0, True, "nothing was left",
    )  # fmt: skip
    assert (clear.kind, clear.done_t, clear.ok) == ("clear_gpu", None, None)


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
