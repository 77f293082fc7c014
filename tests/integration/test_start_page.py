"""The first page of somebody who has no run yet: the machine as it is, and what to do first."""

import os
import re
from pathlib import Path

from tests.fakes.tmux_terminal import NO_TMUX, terminal


@NO_TMUX
def test_without_a_run_the_machine_and_what_to_do_first_are_shown(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "TRAINWATCH"))}
    env |= {"TRAINWATCH_HOME": str(tmp_path / "home"), "TMUX_TMPDIR": str(tmp_path)}
    with terminal((100, 30), tmp_path, env) as person:
        person.trainwatch()
        person.see("start here", "d  see the demo", "l  start a training", "a  ")
        person.until(lambda text: re.search(r"RAM +[\d.]+ of [\d.]+ GiB", text), "the memory of the machine")
        person.until(lambda text: re.search(r"cpu +\d+ %", text), "the use of the processor")
        person.until(
            lambda text: re.search(r"processes .*\n.*pid .*\n.* \d+ +\S+ +(runs|sleeps|blocked)", text), "rows"
        )
        person.press("l")
        person.see("type the command that starts your training")
        person.press("Escape")
        person.see("start here")
        person.press("q")
        person.until(lambda _: person.ended, "the end")
    assert list((tmp_path / "home" / "machine").iterdir()) == [], "what was measured is gone"
