"""Which actions wait for others, and which outcomes reach the loop if another version of trainwatch is to go on."""

import threading
from collections.abc import Iterator

import pytest

from tests.integration.sense_world import HandClock, ListInbox
from trainwatch.core.model.decision import CaptureStacks, ClearGpu, Decision, StartAttempt, StopAttempt
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.supervisor.action_threads import ActionThreads

LAUNCH = StartAttempt(id=1, reason="first launch", attempt=1)
WAIT = ClearGpu(id=1, reason="wait until the GPU memory is released", attempt=1)


class FakeActor:
    """``ok``: how every action ends; None: with a bug."""

    def __init__(self, ok: bool | None) -> None:
        self.ok = ok
        self.performed: list[Decision] = []

    def perform(self, decision: Decision) -> Outcome:
        self.performed.append(decision)
        if self.ok is None:
            raise ImportError("a module of the old version is gone")
        return Outcome(t=0.0, decision=decision.id, action=str(decision.__struct_config__.tag), ok=self.ok)

    def follow(self, target: AttemptTarget | None) -> None: ...


@pytest.mark.parametrize(
    ("decision", "ok", "replaced", "performed", "told"),
    [
        pytest.param(LAUNCH, True, [True], False, False, id="replaced before a launch"),
        pytest.param(LAUNCH, False, [False, True], True, False, id="replaced during a launch that fails"),
        pytest.param(LAUNCH, True, [False, True], True, True, id="replaced during a launch that succeeds"),
        pytest.param(LAUNCH, False, [False, False], True, True, id="a launch fails by itself"),
        pytest.param(WAIT, False, [True], True, True, id="another action fails"),
        pytest.param(WAIT, None, [True], True, False, id="a bug after replaced files"),
        pytest.param(WAIT, None, [False], True, True, id="a bug"),
    ],
)
def test_what_replaced_files_may_have_caused_is_left_to_the_new_version(
    decision: Decision, ok: bool | None, replaced: list[bool], performed: bool, told: bool
) -> None:
    answers: Iterator[bool] = iter(replaced)
    actor, inbox = FakeActor(ok), ListInbox()
    threads = ActionThreads(actor, inbox, HandClock(), lambda: next(answers))
    threads.submit(decision)
    threads._in_order.submit(lambda: None).result(10)
    assert bool(actor.performed) == performed
    assert bool(inbox.of(Outcome)) == told


@pytest.mark.parametrize(("incident", "waits"), [(1, True), (None, False)])
def test_a_stop_because_of_an_incident_comes_after_its_stacks(incident: int | None, waits: bool) -> None:
    seen = threading.Event()

    class SlowProbe(FakeActor):
        def perform(self, decision: Decision) -> Outcome:
            if isinstance(decision, CaptureStacks):
                assert seen.wait(10)
            return super().perform(decision)

    actor = SlowProbe(True)
    threads = ActionThreads(actor, ListInbox(), HandClock(), lambda: False)
    threads.submit(CaptureStacks(id=1, reason="evidence", attempt=1, incident=1))
    stop = StopAttempt(id=2, reason="back to a checkpoint", attempt=1, incident=incident)
    threads.submit(stop)
    after = threads._in_order.submit(lambda: None)
    if waits:
        with pytest.raises(TimeoutError):
            after.result(0.2)
        assert actor.performed == []
    seen.set()
    after.result(10)
    threads._at_once.shutdown()
    assert len(actor.performed) == 2
    assert not waits or actor.performed[-1] == stop
