"""What holds for the ramp whatever happens."""

from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.builders import Story, World, judge
from tests.tiers import examples
from trainwatch.core.model.decision import StartAttempt
from trainwatch.core.model.fact import RampMoved
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk
from trainwatch.core.model.settings import Profiles, Restart, Settings

LADDER = ("a", "b", "c", "d")
ENDS = {
    "oom": "\nCUDA out of memory\n",
    "cuda": "\nCUDA error: unknown error\n",
    "bug": "\nAttributeError: x\n",
    "network": "\nfailure in name resolution\n",
}
happenings = st.one_of(st.just("save"), st.just("train"), st.just("pause"), st.sampled_from(sorted(ENDS)))


@example(begins="a", goal="1 checkpoint", story=["train", "save", "train", "bug", "bug"])
@example(begins="a", goal="1 checkpoint", story=["train", "save", "save", "bug", "bug"])
@settings(max_examples=examples(60), deadline=None)
@given(
    begins=st.sampled_from(LADDER),
    goal=st.sampled_from(["1 checkpoint", "2 checkpoints", "0.01 hours"]),
    story=st.lists(happenings, max_size=25),
)
def test_ramp_moves_up_one_profile_at_a_checkpoint_and_never_to_one_that_crashed(
    begins: str, goal: str, story: list[str]
) -> None:
    profiles = Profiles(use=begins, ladder=LADDER, ramp=(goal,))
    world = World(judge(Settings(profiles=profiles, restart=Restart(backoff_s=(0.0,), max_restarts=50)))).begin()
    step = 0
    for what in story:
        moved = len(world.of(RampMoved))
        if world.live is None:
            world.wait(700.0, every_s=5.0)
        if world.live is None:
            break
        if what == "save":
            step += 5
            path = f"out/step-{step}"
            world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=step, size_bytes=1e6))
        elif what == "train":
            world.watch(Story(meta=False, period_s=5.0, step=step).train(4))
        elif what == "pause":
            world.command("pause").wait(60.0, every_s=5.0).command("resume")
        else:
            world.see(LogChunk(t=world.t, text=ENDS[what]), Exit(t=world.t + 0.1, code=1))
        for move in world.of(RampMoved)[moved:]:
            assert move.direction == ("up" if what == "save" else "back")
    dead: set[str] = set()
    for move in world.of(RampMoved):
        if move.after not in LADDER:  # a first start failed: back to the settings of the user's own config
            assert move.direction == "back"
            continue
        at, to = LADDER.index(move.before), LADDER.index(move.after)
        assert to - at == (1 if move.direction == "up" else -1)
        assert move.direction == "back" or move.after not in dead
        dead |= {move.before} if move.direction == "back" else set()
    launched = [LADDER.index(s.profile) for s in world.of(StartAttempt) if s.profile in LADDER]
    assert all(abs(b - a) <= 1 for a, b in pairwise(launched))
