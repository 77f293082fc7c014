"""The scenario library: no hang and no stop on a healthy run; a sick one is found in time, rightly, and once."""

import pytest

from tests.builders import judge, story_text
from tests.scenarios.families import HEALTHY, SICK, Case
from tests.scenarios.goldens import check
from trainwatch.core.model.decision import CaptureStacks, Decision, StartAttempt, StopAttempt
from trainwatch.core.model.fact import IncidentOpened
from trainwatch.core.replay import Replay

SIZES = ((1, 2.0, 1), (2, 1.0, 4), (3, 5.0, 2))
"""Seed, sampling period and GPUs that each family is run with; the first one's text is golden."""


def replayed(case: Case) -> Replay:
    fold = Replay(judge())
    for observation in case.story.observations:
        fold.feed(observation)
    return fold


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"seed{s[0]}-{s[1]:g}s-{s[2]}gpu")
@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_healthy(name: str, size: tuple[int, float, int]) -> None:
    fold = replayed(HEALTHY[name](*size))
    incidents = [e.incident for _, e in fold.entries if isinstance(e, IncidentOpened)]
    assert [i.reason for i in incidents if i.kind == "hang"] == []
    if not any(i.kind == "crash" for i in incidents):
        assert [e for _, e in fold.entries if isinstance(e, StopAttempt)] == []
    if size == SIZES[0]:
        check(f"healthy_{name}", story_text(fold.entries))


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"seed{s[0]}-{s[1]:g}s-{s[2]}gpu")
@pytest.mark.parametrize("name", sorted(SICK))
def test_sick(name: str, size: tuple[int, float, int]) -> None:
    case = SICK[name](*size)
    fold = replayed(case)
    assert case.sick is not None
    hangs = [(t, e.incident) for t, e in fold.entries if isinstance(e, IncidentOpened) and e.incident.kind == "hang"]
    assert len(hangs) == 1
    t, hang = hangs[0]
    assert hang.class_ in case.sick.kinds
    assert 0.0 <= t - case.sick.at <= case.sick.within_s
    assert hang.evidence
    after = [e for at, e in fold.entries if at >= t and isinstance(e, Decision)]
    acts = [type(e) for e in after if isinstance(e, CaptureStacks | StopAttempt)]
    assert acts == [CaptureStacks, StopAttempt]
    if hang.class_ == "exiting":
        assert not any(isinstance(e, StartAttempt) for e in after)
    if size == SIZES[0]:
        check(f"sick_{name}", story_text(fold.entries))
