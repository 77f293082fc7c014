"""``adopt`` without options finds the one training that runs, and asks if there are several."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.act_world import wait_for
from tests.integration.adopt_world import HandMade
from trainwatch.core import processes
from trainwatch.core.act.adopt import AdoptionError, panes_of_server
from trainwatch.core.app.adopt import Candidate, choose, training_among
from trainwatch.core.app.gpu_survey import GpuSeen, GpuSurvey, GpuUser
from trainwatch.core.model.settings import Tmux

IDLE = (sys.executable, "-c", "import time; time.sleep(600)")
NO_GPU = GpuSurvey(trouble="no driver is installed")
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


def near(*roots: int) -> dict[int, processes.Process]:
    """Only what this test started: other tests of this machine train, too."""
    every = processes.all_processes()
    kept = {each.pid for root in roots for each in processes.descendants(root, every)} | set(roots)
    kept |= processes.ancestors(os.getpid(), every)
    return {pid: each for pid, each in every.items() if pid in kept}


def started(user: HandMade, *argv: str, log: str | None = None) -> int:
    if log is None:
        made = user.start(*argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    else:
        with (user.root / log).open("wb") as file:
            made = user.start(*argv, stdout=file, stderr=file)
    wait_for(lambda: Path(f"/proc/{made.pid}/cmdline").read_bytes().count(b"\0") == len(argv), "exec")
    return made.pid


def test_a_training_with_a_log_is_found_beside_other_programs(user: HandMade) -> None:
    server = started(user, *IDLE)
    trainer = started(user, *user.train(), log="mine.log")
    wait_for(user.checkpoints, "a checkpoint")
    found = training_among((), near(server, trainer), NO_GPU, ())
    assert found.pid == trainer
    assert "mine.log shows step" in found.signs[0]
    with pytest.raises(AdoptionError, match="no training was found"):
        training_among((), near(server, trainer), NO_GPU, {trainer})


def test_a_process_on_a_gpu_is_found_by_the_drivers_list(user: HandMade) -> None:
    other, quiet = started(user, *IDLE), started(user, *IDLE)
    gpus = GpuSurvey(gpus=(GpuSeen(index=3, users=(GpuUser(pid=quiet, mem_bytes=9e9),)),))
    found = training_among((), near(other, quiet), gpus, ())
    assert (found.pid, found.signs) == (quiet, ("uses GPU 3",))


def test_two_trainings_are_listed(user: HandMade) -> None:
    pids = [started(user, *IDLE), started(user, *IDLE)]
    gpus = GpuSurvey(gpus=(GpuSeen(index=0, users=tuple(GpuUser(pid=pid) for pid in pids)),))
    with pytest.raises(AdoptionError, match="2 trainings may be meant") as caught:
        training_among((), near(*pids), gpus, ())
    assert all(f"--pid {pid}:" in str(caught.value) for pid in pids)


@pytest.mark.tmux
@needs_tmux
def test_a_program_in_a_tmux_pane_is_found_with_its_session(user: HandMade) -> None:
    user.session("night", *IDLE)
    panes = panes_of_server(Tmux(socket=user.socket), user.environ)
    found = training_among(panes, near(*(pane.pid for pane in panes)), NO_GPU, ())
    assert found.pane is not None
    assert found.pane.session == "night"
    assert panes_of_server(Tmux(socket=f"{user.socket}-none"), user.environ) == []


def test_signs_of_a_training_are_preferred_to_a_pane() -> None:
    signed = Candidate(pid=2, name="python3", command="python3 train.py", signs=("uses GPU 0",))
    plain = Candidate(pid=1, name="python3", command="python3 -m http.server")
    assert choose([plain, signed]) == signed
    with pytest.raises(AdoptionError, match="no training was found"):
        choose([plain])
