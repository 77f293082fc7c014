"""The line to another machine, with a program in the place of ssh that runs the command here, or talks as told."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import own_runtime, until
from trainwatch.core.app.screen.mirror.link import Link, LinkLost
from trainwatch.core.model.remote.host import Host
from trainwatch.core.model.remote.messages import CardsNow

TALKS = """#!{python}
import os, sys, time
sys.path[:0] = {path!r}
from trainwatch.core.act.remote.there import MARK
from trainwatch.core.model.remote.messages import Ask, Hello, Ping, Pong
from trainwatch.core.store.mirror.frames import Frames, FrameWriter
os.write(1, b"welcome to box1\\n" + MARK.encode() + b"trainwatch 0.1.0\\n")
out = FrameWriter(1)
out.send(Hello(version="0.1.0", protocol={protocol}, wall=time.time() + {ahead}))
frames = Frames(0, Ask)
while (asked := frames.next()) is not None:
    if isinstance(asked, Ping):
        out.send(Pong(number=asked.number, wall=time.time() + {ahead}))
"""


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, value in (own_runtime(tmp_path) | {"TRAINWATCH_HOME": str(tmp_path / "home")}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{folder}:/usr/local/bin:/usr/bin:/bin")
    return folder


def ssh_is(folder: Path, text: str) -> None:
    (folder / "ssh").write_text(text)
    (folder / "ssh").chmod(0o755)


def talking(folder: Path, *, ahead: float = 0.0, protocol: int = 1) -> None:
    ssh_is(folder, TALKS.format(python=sys.executable, path=sys.path, ahead=ahead, protocol=protocol))


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link(Host(name="box1", ssh="box1"), lambda _told: None, list)
    yield made
    made.close()


def test_a_clock_that_is_ahead_is_measured(bin_folder: Path, link: Link) -> None:
    talking(bin_folder, ahead=3600.0)
    link.start()
    ahead_s = until(lambda: link.state.ahead_s, "a measured clock")
    round_trip_s = link.state.round_trip_s
    assert round_trip_s is not None
    assert abs(ahead_s - 3600) <= round_trip_s
    assert (link.state.lost_s, link.state.why) == (None, "")


def test_another_protocol_is_refused_with_what_to_do(bin_folder: Path, link: Link) -> None:
    talking(bin_folder, protocol=99)
    link.start()
    until(lambda: "upgrade the older one" in link.state.why, "the reason")
    assert link.state.lost_s is not None
    with pytest.raises(LinkLost, match="nothing was asked there"):
        link.call("cards", "", CardsNow)


def test_an_answer_that_never_comes_is_not_waited_for_without_end(bin_folder: Path, link: Link) -> None:
    talking(bin_folder)
    link.start()
    until(lambda: link.state.lost_s is None, "a line")
    with pytest.raises(LinkLost, match="whether it was done there is not known here"):
        link.call("cards", "", CardsNow, timeout_s=0.2)


def test_the_side_that_serves_answers_over_its_pipes(bin_folder: Path, link: Link) -> None:
    own = f"{sys.executable} -m trainwatch"
    ssh_is(bin_folder, f'#!/bin/sh\nfor last; do :; done\nPYTHONPATH={":".join(sys.path)} exec sh -c "$last"\n')
    made = Link(Host(name="box1", ssh="box1", command=own), lambda _told: None, list)
    try:
        made.start()
        until(lambda: made.state.lost_s is None, "a line")
        assert made.call("cards", "", CardsNow).cards == ()
        with pytest.raises(RuntimeError, match="no run"):
            made.call("details", "nobody-00000000", dict)
        with pytest.raises(RuntimeError, match="does not know 'erase'"):
            made.call("erase", "", dict)
    finally:
        made.close()
