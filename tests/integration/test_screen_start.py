"""The screen that the command without a verb opens, in terminals of many sizes."""

import pytest

from tests.fakes.e2e_world import World
from tests.fakes.tmux_terminal import NO_TMUX, terminal


@pytest.mark.tmux
@NO_TMUX
def test_exported_lines_and_columns_do_not_override_the_terminal_size(world: World) -> None:
    world.write("--steps", "5000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    with terminal((120, 40), world.project, world.env) as person:
        person.run("export COLUMNS=60 LINES=15")
        person.trainwatch()
        text = person.see("● Training", "a attach")
        assert max(map(len, text.splitlines())) > 100
        assert len(text.rstrip().splitlines()) == 40
        for size in ((45, 30), (200, 50), (20, 5), (80, 24)):
            person.tmux("resize-window", "-x", str(size[0]), "-y", str(size[1]))
        person.until(lambda t: max(map(len, t.splitlines())) == 80 and "a attach" in t, "the last of many sizes")
        person.press("X", "F9", "C-g", "q")
        person.see("training and supervisor continue")
