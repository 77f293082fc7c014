"""Inside GNU screen keys go before the mouse."""

import shutil
from pathlib import Path

import pytest

from tests.fakes.tmux_terminal import NO_TMUX, terminal
from trainwatch.tui.ui.terminal import mouse_supported


def test_mouse_support_is_disabled_only_in_gnu_screen() -> None:
    assert mouse_supported({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"})
    assert not mouse_supported({"STY": "4242.pts-0.host"})


@NO_TMUX
@pytest.mark.tmux
@pytest.mark.skipif(shutil.which("screen") is None, reason="no GNU screen")
def test_escape_closes_a_screen_in_gnu_screen(tmp_path: Path) -> None:
    with terminal((100, 30), tmp_path, {"PATH": "/usr/bin:/bin", "TRAINWATCH_HOME": str(tmp_path / "home")}) as person:
        person.run(f"SCREENDIR={tmp_path / 'sockets'} exec screen -c /dev/null sh")
        person.until(lambda text: "$" in text or "#" in text, "a shell in it")
        person.trainwatch()
        person.see("No run is known yet")
        person.press("l")
        person.see("type one: no file is needed")
        person.press("Escape")
        person.see("No run is known yet")
        person.press("q")
        person.until(lambda _: person.ended, "it ends, and GNU screen with it")
