"""A training that is started by ``ssh HOST …``: a real sshd on loopback, a lost line, a stop, and an end there."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import World, lives, until
from tests.fakes.ssh_host import LACKS, SshHost, env_for, ssh_host
from tests.tiers import SECOND_TIER

pytestmark = [
    SECOND_TIER,
    pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)} (package openssh-server)"),
]
TRAINER = """
import os, sys, time
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
for step in range(1, 3000):
    print(f"step {step}/3000 loss {1 / step:.4f}", flush=True)
    time.sleep(0.1)
    if step == int(sys.argv[2]):
        sys.exit("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB")
"""


class Far:
    """What runs on the host."""

    def __init__(self, host: SshHost, world: World) -> None:
        self.host, self.world = host, world
        self.script = host.user.home / "train.py"
        self.script.write_text(TRAINER)
        self.script.chmod(0o644)
        self.pids_file = host.user.home / f"pids-{world.short.name}"

    def pids(self) -> list[int]:
        return [int(pid) for pid in self.pids_file.read_text().split()] if self.pids_file.exists() else []

    def begin(self, *, fails_at: int = 0) -> None:
        python = self.host.user.python[-1]
        command = ["ssh", "box1", python, "-u", str(self.script), str(self.pids_file), str(fails_at)]
        self.world.write(command=command)
        self.world.headless()


@pytest.fixture
def far(world: World) -> Iterator[Far]:
    with ssh_host() as host:
        world.env = env_for(host, world.env)
        made = Far(host, world)
        yield made
        for pid in filter(lives, made.pids()):
            if str(made.script).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def test_a_lost_line_starts_no_second_trainer_there(far: Far) -> None:
    far.begin()
    far.world.in_state("running")
    until(lambda: (far.world.status()["progress"]["step"] or 0) > 3, "its steps are read from the log")
    (there,) = until(far.pids, "it runs there")
    os.kill(far.world.attempt().trainer.pid, signal.SIGKILL)
    story = far.world.in_state("given_up")
    assert "may run on" in story.state_reason
    assert "ssh box1" in story.state_reason
    assert far.pids() == [there]
    assert len(story.attempts) == 1


def test_an_exit_status_of_the_trainer_itself_is_an_end_there_and_is_restarted(far: Far) -> None:
    far.begin(fails_at=5)
    until(lambda: len(far.pids()) >= 2, "it was started again")
    story = until(lambda: found if (found := far.world.story()).incidents else None, "the crash is known")
    assert (story.incidents[0].kind, story.incidents[0].class_) == ("crash", "cuda_oom")
    assert story.attempts[0].code == 1


def test_a_stop_says_that_the_training_may_run_on_there(far: Far) -> None:
    far.begin()
    far.world.in_state("running")
    until(far.pids, "it runs there")
    far.world.do("stop", "--yes")
    story = until(lambda: s if (s := far.world.story()).state in {"stopped", "given_up"} else None, "it is over here")
    assert not far.world.alive()
    told = " ".join([story.state_reason, *story.notices])
    assert "may run on" in told
