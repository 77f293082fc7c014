"""A run that climbs its ladder, dies on the top rung and goes on one below: real processes."""

import re

from tests.fakes.e2e_world import World
from tests.tiers import SECOND_TIER


@SECOND_TIER
def test_ramp_climbs_falls_back_and_does_not_retry_the_failed_profile(world: World) -> None:
    folder = world.project / "profiles"
    folder.mkdir()
    for name, flags in (("calm", '"0.03"'), ("brisk", '"0.02"'), ("hot", '"0.01", "--crash-at", "80"')):
        (folder / f"{name}.toml").write_text(f'title = "{name}"\nflags = ["--step-time", {flags}]\n')
    ladder = ["calm", "brisk", "hot"]
    world.write(
        "--steps", "160", "--save-every", "15",
        more={"profiles": {"use": "calm", "ladder": ladder, "ramp": ["1 checkpoint"]}},
    )  # fmt: skip

    assert world.headless().ends(60.0) == 0

    story = world.story()
    assert [a.profile for a in story.attempts] == ["calm", "brisk", "hot", "brisk"]
    assert [(s.fact.direction, s.fact.after) for s in story.ramp] == [("up", "brisk"), ("up", "hot"), ("back", "brisk")]
    steps = [step for number in (1, 2, 3, 4) for step in world.steps(number)]
    assert steps[-1] == 160
    climbs = [a.resume_step for a in story.attempts[1:3]]
    assert climbs == [world.steps(1)[-1], world.steps(2)[-1]], "a climb loses no step"
    status = world.status()
    assert [rung["profile"] for rung in status["ramp"]["dead"]] == ["hot"]
    assert status["profile"] == "brisk"
    told = r"the ramp fell from hot: cuda_unknown_error after \d+ s there"
    assert re.search(told, world.asks("status").out)
    said = world.asks("events").out
    assert "RAMP up: calm -> brisk: 1 checkpoint on calm without trouble" in said
    assert "RAMP back: hot -> brisk: hot died after" in said
    assert "ramp back: hot → brisk" in world.asks("report").out
    assert len(world.lives()) == 4
