"""A scenario: a story for any seed, sampling period and number of GPUs, and what the judge must conclude from it.

A healthy run must pass without a hang and without a stop. A sick one states when its trouble begins, how it may be
classified and how soon it must be found. The latencies are those that trainwatch promises for steps of 1 to 3 s.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from tests.builders import GpuShape, Story, judge
from trainwatch.core.model.decision import CaptureStacks, StartAttempt, StopAttempt
from trainwatch.core.model.fact import IncidentOpened
from trainwatch.core.model.run import Incident
from trainwatch.core.replay import Replay

DEAD_S = 180.0
BLOCKED_S = 900.0
TALKING_S = 420.0
SPIN_S = 420.0
PINNED_S = 900.0
STARTUP_S = 1200.0
PHASE_S = 750.0
SAVE_S = 620.0
FIRST_SAVE_S = 1820.0
EXITING_S = 600.0

EVALUATION = "\n***** Running Evaluation *****\n"

SIZES = ((1, 2.0, 1), (2, 1.0, 4), (3, 5.0, 2))
"""Seed, sampling period in seconds and number of GPUs that each scenario is run with."""


@dataclass(frozen=True)
class Sick:
    """``at``: when the trouble begins; ``kinds``: classes that fit it; ``within_s``: how soon it must be found.

    ``incident``: the kind of the incident. A ``hang`` ends in a stop, any other kind never does.
    """

    at: float
    kinds: tuple[str, ...]
    within_s: float
    incident: str = "hang"
    held: bool = False
    """A hang whose stop waits: a process is blocked in the kernel, which no signal ends."""


@dataclass(frozen=True)
class Case:
    """One story with what is expected of it: None = healthy."""

    story: Story
    sick: Sick | None = None
    calm: bool = False
    """Healthy, and nothing is worth an incident of any kind."""


Build = Callable[[int, float, int], Case]


def new(seed: int, period: float, gpus: int) -> Story:
    """A story of this size; its step time depends on the seed."""
    return Story(seed=seed, period_s=period, gpus=gpus, step_s=(1.0, 2.5, 1.7, 3.0)[seed % 4])


def begun(story: Story, steps: int = 200) -> Story:
    """Loaded and training."""
    return story.start().load().train(steps)


def in_trouble(story: Story) -> Story:
    """The trouble begins now."""
    story.trouble_t = story.t
    return story


def given(story: Story, **facts: object) -> Story:
    """What differs from the usual story (``power=False``: no reading of the power)."""
    for name, value in facts.items():
        setattr(story, name, value)
    return story


def blind(story: Story, **facts: object) -> Story:
    """Neither the load nor the power of a GPU is read."""
    return given(story, util=False, power=False, **facts)


def near_its_end(story: Story) -> Story:
    """350 of its 400 steps are made."""
    return begun(given(story, total=400), 350)


def level(percent: int, watts: float) -> GpuShape:
    """Always the same."""
    return lambda _rng, _gpu: (percent, watts)


def wavering(low: int, high: int, watts: float, by: float) -> GpuShape:
    """Between two utilisations in percent, at a power that differs by so many watts."""
    return lambda rng, _gpu: (rng.randint(low, high), watts + rng.uniform(-by, by))


def scattered(watts: float) -> GpuShape:
    """100 % at a power that scatters by a twelfth."""
    return lambda rng, _gpu: (rng.randint(98, 100), watts * rng.gauss(1.0, 0.06))


BEGINNING = 1000
"""Observations: loading and 200 steps of 2.5 s, with which half of the stories begin."""
_begun: dict[bytes, Replay] = {}


def replayed(case: Case) -> Replay:
    """Return the judge's entries for the story. A beginning that several stories share is judged once."""
    beginning, rest = case.story.observations[:BEGINNING], case.story.observations[BEGINNING:]
    known = sha256(msgspec.json.encode((case.story.settings, beginning))).digest()
    if known not in _begun:
        _begun[known] = Replay(judge(case.story.settings))
        _begun[known].feed_all(beginning)
    fold = copy(_begun[known])
    fold.entries = [*fold.entries]
    fold.feed_all(rest)
    return fold


def opened(fold: Replay, kind: str) -> list[tuple[float, Incident]]:
    """Return the incidents of a kind with their times."""
    return [(t, e.incident) for t, e in fold.entries if isinstance(e, IncidentOpened) and e.incident.kind == kind]


def fault(case: Case, fold: Replay) -> str | None:
    """Return what the judge did wrong, or None."""
    hangs = opened(fold, "hang")
    stops = [t for t, e in fold.entries if isinstance(e, StopAttempt)]
    if case.sick is None:
        if hangs:
            return f"a hang on a healthy run: {hangs[0][1].reason}"
        if stops and not opened(fold, "crash"):
            return "a stop of a healthy run"
        every = [e.incident.reason for _, e in fold.entries if isinstance(e, IncidentOpened)]
        return f"an incident on a calm run: {every[0]}" if case.calm and every else None
    found = opened(fold, case.sick.incident)
    if len(found) != 1:
        return f"{len(found)} incidents of kind {case.sick.incident} instead of one"
    t, incident = found[0]
    late_s = t - case.sick.at
    if not 0.0 <= late_s <= case.sick.within_s:
        return f"found after {late_s:.0f} s instead of {case.sick.within_s:.0f} s"
    if incident.class_ not in case.sick.kinds:
        return f"called {incident.class_} instead of {' or '.join(case.sick.kinds)}"
    if case.sick.incident != "hang":
        return "a stop for what deserves only a warning" if stops or hangs else None
    told = [*opened(fold, "quiet"), *opened(fold, "stall")]
    if not any(told_t <= t for told_t, _ in told):
        return "a hang that nobody was told of before"
    if not incident.evidence:
        return "a hang without evidence"
    if case.sick.held:
        return "a stop that no signal can carry out" if stops else None
    after = [e for at, e in fold.entries if at >= t and isinstance(e, CaptureStacks | StopAttempt | StartAttempt)]
    if [type(e) for e in after if not isinstance(e, StartAttempt)] != [CaptureStacks, StopAttempt]:
        return "not exactly one stop, with evidence taken before it"
    launched = any(isinstance(e, StartAttempt) for e in after)
    return "a launch after a training that was done" if incident.class_ == "exiting" and launched else None
