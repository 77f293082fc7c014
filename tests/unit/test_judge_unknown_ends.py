"""An end whose cause nobody knows is remembered by its last line; the third time a person is asked for its class."""

from pathlib import Path

from tests.builders import World
from tests.shipped import CATALOGUE, SHAPES
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.recovery.takeover import from_story
from trainwatch.core.judge.state import to_snapshot
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.observation import Exit, LogChunk
from trainwatch.core.model.story import RunStory
from trainwatch.core.store.learned import KEPT, UnknownEnds

SKELETON = "the frobnicator of # lost # widgets"


def crashed(text: str, known: dict[str, int]) -> World:
    world = World(Judge(Knowledge(catalogue=CATALOGUE, shapes=SHAPES, unknown_ends=known))).begin()
    world.see(LogChunk(t=world.t + 1.0, text=text))
    return world.see(Exit(t=world.t + 2.0, code=1))


def test_third_end_with_the_same_line_says_so() -> None:
    text = "[rank0]: the frobnicator of /data/x lost 12 widgets\n"
    second = crashed(text, {SKELETON: 1})
    assert second.state.unknown_ends == (SKELETON,)
    assert "--teach" not in second.incidents[0].explanation
    third = crashed(text, {SKELETON: 2})
    assert "3 attempts on this machine" in third.incidents[0].explanation
    assert "--teach CLASS" in third.incidents[0].explanation


def test_known_causes_and_silent_ends_are_not_remembered() -> None:
    assert crashed("ModuleNotFoundError: No module named 'x'\n", {}).state.unknown_ends == ()
    assert crashed("\n", {}).state.unknown_ends == ()


def test_ends_are_counted_in_a_file_that_may_be_lost(tmp_path: Path) -> None:
    ends = UnknownEnds(tmp_path)
    assert ends.read() == {}
    for _ in range(2):
        ends.add("a")
    assert ends.read() == {"a": 2}
    ends.path.write_text("broken")
    assert ends.read() == {}
    for n in range(KEPT + 5):
        ends.add(f"line {n}")
    assert len(ends.read()) == KEPT
    assert "line 0" not in ends.read()


def test_a_line_that_shows_a_step_is_no_cause() -> None:
    world = crashed("step 285/400 loss 0.0035\n", {"step #/# loss #": 5})
    assert world.state.unknown_ends == ()
    assert "--teach" not in world.incidents[0].explanation


def test_an_end_that_the_last_supervisor_counted_is_not_counted_again() -> None:
    ended = crashed("the frobnicator of /data/x lost 12 widgets\n", {})
    assert from_story(RunStory(), to_snapshot(ended.state), None).unknown_ends == ()
