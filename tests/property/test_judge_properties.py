"""What holds for the judge whatever happens."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Story, World, judge, story_text
from tests.scenarios.healthy import HEALTHY
from tests.scenarios.sick import SICK
from tests.tiers import examples
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model import observation as seen
from trainwatch.core.model.decision import Decision, GiveUp, StartAttempt
from trainwatch.core.model.fact import ActionWithheld, AttemptStarted, CommandReceived
from trainwatch.core.model.settings import Checkpoints, Profiles, Restart, Settings
from trainwatch.core.replay import Replay


def told(observations: list[seen.Observation]) -> str:
    fold = Replay(judge())
    for observation in observations:
        fold.feed(observation)
    return story_text(fold.entries)


def rechunked(observations: list[seen.Observation], cuts: list[int]) -> list[seen.Observation]:
    """The same bytes at the same times, cut elsewhere."""
    result: list[seen.Observation] = []
    at = 0
    for observation in observations:
        if not isinstance(observation, seen.LogChunk):
            result.append(observation)
            continue
        text = observation.text
        while text:
            size = cuts[at % len(cuts)]
            at += 1
            result.append(seen.LogChunk(t=observation.t, text=text[:size]))
            text = text[size:]
    return result


SHORT = ("dies_talking", "dies_in_eval", "second_attempt_dies", "slow_save", "upload", "finished")


@settings(max_examples=examples(24), deadline=None)
@given(name=st.sampled_from(SHORT), cuts=st.lists(st.integers(1, 60), min_size=1, max_size=7))
def test_judge_gives_the_same_facts_for_any_chunking_of_the_log(name: Any, cuts: list[int]) -> None:
    story = (HEALTHY.get(name) or SICK[name])(1, 5.0, 1).story
    assert told(rechunked(story.observations, cuts)) == told(story.observations)


verbs = st.sampled_from(["stop", "kill", "restart", "resume", "pause", "unpause", "profile", "ack", "snooze"])
texts = st.sampled_from(
    [
        "\rsteps: 1%| | 10/1000 [00:10<10:00, 1.00s/it, avr_loss=0.1]",
        "\rsteps: 2%| | 20/1000 [00:20<10:00, 1.00s/it, avr_loss=nan]",
        "saving checkpoint\n",
        "RuntimeError: CUDA error: unknown error\n",
        "torch.cuda.OutOfMemoryError: CUDA out of memory\n",
        "model saved.\n",
    ]
)
gaps = st.sampled_from([0.0, 0.5, 5.0, 39.0, 400.0])
happenings = st.one_of(
    st.tuples(gaps, st.just("tick"), st.none()),
    st.tuples(gaps, st.just("log"), texts),
    st.tuples(gaps, st.just("exit"), st.sampled_from([0, 1, None])),
    st.tuples(gaps, st.just("command"), verbs),
    st.tuples(gaps, st.just("save"), st.integers(1, 50)),
    st.tuples(gaps, st.just("states"), st.sampled_from([{"T": 3}, {"S": 3}, {"D": 1, "S": 2}])),
)
failing = st.dictionaries(
    st.sampled_from(["stop_attempt", "clear_gpu", "verify_checkpoint", "start_attempt", "capture_stacks"]),
    st.lists(st.booleans(), max_size=4),
)
SMALL = Settings(restart=Restart(max_restarts=2, backoff_s=(0.0, 5.0)))


def played(
    steps: list[tuple[float, str, object]], outcomes: dict[str, list[bool]], settings: Settings = SMALL
) -> World:
    world = World(judge(settings))
    for action, goods in outcomes.items():
        for good in goods:
            world.answer(action, ok=good, retryable=good)
    world.begin()
    for gap, kind, what in steps:
        t = world.t + gap
        match kind:
            case "tick":
                world.see(seen.Tick(t=t))
            case "log":
                world.see(seen.LogChunk(t=t, text=str(what)))
            case "exit":
                if world.live is not None:
                    world.see(seen.Exit(t=t, code=what))  # type: ignore[arg-type]
            case "command":
                profile = "safe" if what == "profile" else None
                world.see(seen.Command(t=t, verb=what, profile=profile, now=True))  # type: ignore[arg-type]
            case "save":
                world.see(seen.CheckpointEvent(t=t, path=f"out/step-{what}", event="complete", step=int(str(what))))
            case "states":
                world.see(seen.ProcessSample(t=t, cpu_cores=0.0, states=what, procs=3))  # type: ignore[arg-type]
    return world


@settings(max_examples=examples(150), deadline=None)
@given(steps=st.lists(happenings, max_size=40), outcomes=failing)
def test_two_attempts_never_run_at_once_and_giving_up_ends_all_decisions(steps: Any, outcomes: Any) -> None:
    world = played(steps, outcomes)  # World itself fails when a second one is started
    starts = [s.attempt for s in world.of(StartAttempt)]
    assert starts == sorted(set(starts))
    ids = [d.id for d in world.of(Decision)]
    assert ids == list(range(1, len(ids) + 1))
    given_up = False
    commanded = False
    for _, entry in world.entries:
        kind = type(entry).__name__
        if kind in {"CommandReceived", "AttemptStarted"}:
            commanded = True
        if isinstance(entry, GiveUp):
            given_up, commanded = True, False
        if given_up and not commanded:
            assert kind != "StartAttempt"
    assert all(d.reason for d in world.of(Decision))


@settings(max_examples=examples(60), deadline=None)
@given(steps=st.lists(happenings, max_size=30), more=st.lists(happenings, max_size=10))
def test_a_judge_restored_from_its_snapshot_continues_identically(steps: Any, more: Any) -> None:
    world = played(steps, {})
    text = json.dumps(to_snapshot(world.state), allow_nan=False)
    known = from_snapshot(json.loads(text))
    assert known == msgspec.structs.replace(world.state, taken_over=False)


DISRUPTIVE = {"stop_attempt", "start_attempt", "end_leftovers", "delete_checkpoint"}
by_itself = happenings.filter(lambda happening: happening[1] != "command")
observing = st.sampled_from(["ask", "notify"])


@settings(max_examples=examples(100), deadline=None)
@given(act=observing, steps=st.lists(by_itself, max_size=40), outcomes=failing)
def test_without_an_order_nothing_is_ended_started_or_deleted_unless_act_is_all(
    act: Any, steps: Any, outcomes: Any
) -> None:
    keeping = Settings(
        restart=Restart(act=act, max_restarts=2, backoff_s=(0.0, 5.0), ask_timeout_s=30.0),
        checkpoints=Checkpoints(keep_last=1),
        profiles=Profiles(use="low", ladder=("low", "high"), ramp=("1 checkpoint",)),
    )
    world = played(steps, outcomes, keeping)
    assert not DISRUPTIVE & set(world.decisions[1:])


@settings(max_examples=4, deadline=None)
@given(act=observing, name=st.sampled_from(["dies_talking", "second_attempt_dies"]))
def test_no_sick_run_is_ended_unless_act_is_all(act: Any, name: str) -> None:
    story = SICK[name](1, 5.0, 1).story
    given_settings = story.settings if story.settings is not None else Settings()
    watching = msgspec.structs.replace(given_settings, restart=Restart(act=act))
    fold = Replay(judge(watching))
    fold.feed_all(story.observations)
    assert not DISRUPTIVE & {d["decision"] for d in fold.result()["decisions"]}
    assert any(isinstance(entry, ActionWithheld) for _, entry in fold.entries)


@settings(max_examples=examples(60), deadline=None)
@given(act=observing, steps=st.lists(happenings, max_size=40), outcomes=failing)
def test_what_is_ended_or_started_was_ordered_unless_act_is_all(act: Any, steps: Any, outcomes: Any) -> None:
    watching = Settings(restart=Restart(act=act, max_restarts=2, backoff_s=(0.0, 5.0)))
    world = played(steps, outcomes, watching)
    ordered = True  # the first launch
    for _, entry in world.entries:
        if isinstance(entry, CommandReceived):
            ordered = ordered or entry.verb in {"stop", "kill", "restart", "resume", "profile"}
        elif isinstance(entry, AttemptStarted):
            ordered = False
        elif isinstance(entry, Decision) and entry.__struct_config__.tag in DISRUPTIVE:
            assert ordered


def test_judge_snapshot_of_another_version_is_not_read() -> None:
    snapshot = to_snapshot(judge().start())
    assert from_snapshot({**snapshot, "version": 999}) is None
    assert from_snapshot({**snapshot, "attempts": "many"}) is None
    assert from_snapshot({}) is None


def test_judge_snapshot_of_a_long_run_stays_small() -> None:
    fold = Replay(judge())
    story = Story(seed=1, gpus=4)
    for observation in story.start().load().train(800).save(60).train(100).observations:
        fold.feed(observation)
    assert len(json.dumps(to_snapshot(fold.state))) < 20_000


def test_judge_accepts_start_in_every_state() -> None:
    world = World(judge(SMALL)).see(seen.Start(t=1.0, attempt=4, pid=9))
    assert world.word == "starting"
    world.see(seen.Start(t=2.0, attempt=5, pid=10))
    assert world.word == "starting"
    assert "attempt 4 lost" in world.text()
