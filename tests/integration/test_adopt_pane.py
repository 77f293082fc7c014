"""Trainers in tmux panes: which process it is, and that its output is had whole and the pane is left as it was."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.act_world import wait_for
from tests.integration.adopt_world import HandMade, hand_made
from tests.tiers import SECOND_TIER
from trainwatch.core import processes
from trainwatch.core.act.adopt import AdoptionError, PaneSeen, look_at, pane_on, panes_of, tap, trainer_in
from trainwatch.core.model.settings import Tmux

pytestmark = [pytest.mark.tmux, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

COUNTING = """if True:
    import time
    for i in range(100000):
        print(f"count {i}", flush=True)
        time.sleep(0.002)
"""


@pytest.fixture
def user(tmp_path: Path) -> Iterator[HandMade]:
    with hand_made(tmp_path) as made:
        (tmp_path / "counting.py").write_text(COUNTING)
        yield made


def panes(user: HandMade, session: str = "luca") -> list[PaneSeen]:
    return panes_of(Tmux(socket=user.socket), session, user.environ)


def trainer(user: HandMade, session: str = "luca") -> tuple[int, PaneSeen]:
    """Once something runs in the session."""

    def look() -> tuple[int, PaneSeen] | None:
        try:
            return trainer_in(panes(user, session), session)
        except AdoptionError:
            return None

    return wait_for(look, "a trainer in the pane")


def test_adopt_takes_the_topmost_program_of_a_pane(user: HandMade) -> None:
    (user.root / "train.sh").write_text(f"#!/bin/bash\n{sys.executable} counting.py\necho over\n")
    (user.root / "train.sh").chmod(0o755)
    user.session()
    user.type("./train.sh | tee copy.txt")
    wait_for(lambda: "count 5" in user.tmux("capture-pane", "-p", "-t", "=luca:"), "all of them run")
    pid, _ = trainer(user)
    assert Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1] == b"counting.py"


def test_adopt_takes_a_pane_whose_process_is_the_trainer(user: HandMade) -> None:
    user.session("luca", sys.executable, "counting.py")
    pid, pane = trainer(user)
    assert pid == pane.pid


def test_a_pane_with_only_shells_holds_no_training(user: HandMade) -> None:
    user.session()
    (pane,) = panes(user)
    wait_for(lambda: Path(f"/proc/{pane.pid}/comm").read_text() == "bash\n", "the shell")
    with pytest.raises(AdoptionError, match="only shells") as caught:
        trainer_in(panes(user), "luca")
    assert caught.value.kind == "missing"


def test_several_trainings_in_a_session_are_named_and_a_pane_can_be_chosen(user: HandMade) -> None:
    user.session("luca", sys.executable, "counting.py")
    user.tmux("split-window", "-d", "-t", "=luca:", "-c", str(user.root), sys.executable, "counting.py")
    both = panes(user)
    for pane in both:
        trainer(user, pane.id)  # has been started
    with pytest.raises(AdoptionError, match=rf"{both[0].pid} \(.*{both[1].pid} \(.*--pid") as caught:
        trainer_in(both, "luca")
    assert caught.value.kind == "unclear"
    assert trainer(user, "luca:0.1")[0] == both[1].pid
    assert trainer(user, both[0].id)[0] == both[0].pid


def test_pane_is_found_by_its_terminal(user: HandMade) -> None:
    assert pane_on(Tmux(socket=user.socket), "/dev/pts/0", user.environ) is None
    user.session("luca", sys.executable, "counting.py")
    pid, pane = trainer(user)
    found = look_at(pid)
    assert found.stdout.kind == "terminal"
    assert pane_on(Tmux(socket=user.socket), found.stdout.path, user.environ) == pane


def test_pane_copy_loses_no_line_after_the_history(user: HandMade) -> None:
    user.session()
    user.type(f"{sys.executable} counting.py; echo the-end; read x")
    pid, pane = trainer(user)
    wait_for(lambda: "count 300" in user.tmux("capture-pane", "-p", "-S", "-", "-t", pane.id), "a history")
    log = user.root / "50% #S" / "train.log"  # what tmux would fill in
    log.parent.mkdir()
    identity = look_at(pid).identity
    tap(Tmux(socket=user.socket), pane, identity, log, user.environ)
    wait_for(lambda: copiers(log), "the copy begins")
    wait_for(lambda: "count 900" in log.read_text(), "the copy goes on")
    numbers = [int(n) for n in re.findall(r"^count (\d+)\r?\n", log.read_text(), re.MULTILINE)]
    assert numbers == list(range(len(numbers)))
    assert log.stat().st_mode & 0o777 == 0o600
    user.tmux("send-keys", "-t", pane.id, "C-c")
    wait_for(lambda: not copiers(log), "the copy ends with the trainer")
    user.type("typed-afterwards")
    wait_for(lambda: "typed-afterwards" in user.tmux("capture-pane", "-p", "-t", pane.id), "a person types")
    wait_for(lambda: user.tmux("display-message", "-p", "-t", pane.id, "#{pane_pipe}").strip() == "0", "tmux saw it")
    assert "KeyboardInterrupt" in log.read_text()
    assert "typed-afterwards" not in log.read_text()


@SECOND_TIER
def test_pane_that_is_piped_already_is_refused(user: HandMade) -> None:
    user.session("luca", sys.executable, "counting.py")
    pid, pane = trainer(user)
    user.tmux("pipe-pane", "-t", pane.id, f"cat >> {user.root}/theirs.txt")
    with pytest.raises(AdoptionError, match=r"tmux pipe-pane.*--log F"):
        tap(Tmux(socket=user.socket), pane, look_at(pid).identity, user.root / "ours.log", user.environ)
    theirs = user.root / "theirs.txt"
    size = wait_for(lambda: theirs.exists() and theirs.stat().st_size, "theirs")
    wait_for(lambda: theirs.stat().st_size > size, "theirs goes on")
    assert not (user.root / "ours.log").exists()


def copiers(log: Path) -> list[int]:
    found = []
    for process in processes.all_processes().values():
        try:
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--copy" in words and os.fsencode(log) in words:
            found.append(process.pid)
    return found
