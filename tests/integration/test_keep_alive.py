"""``[supervisor] keep_alive``: the runner replaces a dead or frozen supervisor, never one that was ended on purpose."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import World, lives, until
from tests.tiers import SECOND_TIER
from trainwatch.core import spool
from trainwatch.core.act.launch.keep_alive import LOOKS, SupervisorWatch
from trainwatch.core.store.lock import LifeSignWriter, SupervisorLock, holder_pid

HOLDER = """
import sys, time
from pathlib import Path
from trainwatch.core.processes import own_process
from trainwatch.core.store.lock import LifeSignWriter
from trainwatch.core.store.lock import SupervisorLock
folder = Path(sys.argv[1])
with SupervisorLock(folder / "lock"):
    LifeSignWriter(folder / "alive", start_ticks=own_process().start_ticks).beat()
    print("held", flush=True)
    sys.stdin.read()
"""
"""A supervisor that gives one sign of life and then no more."""


@pytest.fixture
def wanted(tmp_path: Path) -> dict[str, Any]:
    return {
        "argv": ["/bin/sh", "-c", f"echo $MARK $PPID > {tmp_path}/started"],
        "env": {"MARK": "replaced"},
        "lock": str(tmp_path / "lock"),
        "life_sign": str(tmp_path / "alive"),
        "log": str(tmp_path / "supervisor.log"),
        "frozen_s": 0.6,
    }


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def watch_of(tmp_path: Path, wanted: dict[str, Any]) -> SupervisorWatch:
    attempt = tmp_path / "attempts" / "0001"
    attempt.mkdir(parents=True)
    return SupervisorWatch(wanted, str(attempt))


def test_a_supervisor_that_was_killed_is_replaced_by_no_descendant_of_the_runner(
    tmp_path: Path, wanted: dict[str, Any], holder: "subprocess.Popen[str]"
) -> None:
    watch = watch_of(tmp_path, wanted)
    assert watch.look() is False
    assert not (tmp_path / "started").exists()
    holder.kill()
    holder.wait()
    assert watch.look() is False
    until(lambda: (tmp_path / "started").exists() and (tmp_path / "started").read_text(), "the new one")
    mark, parent = (tmp_path / "started").read_text().split()
    assert mark == "replaced"
    assert int(parent) != os.getpid()
    (tmp_path / "started").unlink()
    watch.look()
    assert not (tmp_path / "started").exists(), "the new one has time to start"


def test_a_supervisor_that_was_ended_on_purpose_is_not_replaced(
    tmp_path: Path, wanted: dict[str, Any], holder: "subprocess.Popen[str]"
) -> None:
    watch = watch_of(tmp_path, wanted)
    holder.communicate("")
    assert holder_pid(tmp_path / "lock") is None
    assert watch.look() is True
    assert not (tmp_path / "started").exists()


def test_a_frozen_supervisor_is_killed_first_and_replaced_when_its_lock_is_free(
    tmp_path: Path, wanted: dict[str, Any], holder: "subprocess.Popen[str]"
) -> None:
    watch = watch_of(tmp_path, wanted)
    holder.send_signal(signal.SIGSTOP)
    for _ in range(LOOKS):
        watch.look()
        assert holder.poll() is None
    watch.look()
    assert holder.wait(10) == -signal.SIGKILL
    assert not (tmp_path / "started").exists()
    watch.look()
    until((tmp_path / "started").exists, "the new one")


def test_a_supervisor_whose_sign_of_life_cannot_be_written_is_not_ended(
    tmp_path: Path, wanted: dict[str, Any], holder: "subprocess.Popen[str]"
) -> None:
    """On a disk that became read-only an old sign tells nothing."""
    watch, alive = watch_of(tmp_path, wanted), tmp_path / "alive"
    sign = os.memfd_create("sign", os.MFD_ALLOW_SEALING)
    os.write(sign, alive.read_bytes())
    fcntl.fcntl(sign, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    alive.unlink()
    alive.symlink_to(f"/proc/{os.getpid()}/fd/{sign}")
    for _ in range(LOOKS):
        watch.look()
    with pytest.raises(PermissionError):
        watch.look()
    os.close(sign)
    assert holder.poll() is None


def test_a_supervisor_that_follows_one_that_ended_in_order_is_watched_too(
    tmp_path: Path, wanted: dict[str, Any], holder: "subprocess.Popen[str]"
) -> None:
    """An upgrade ends the old version in order; so does a person who starts another supervisor. The trainer goes on."""
    watch = watch_of(tmp_path, wanted)
    holder.communicate("")
    watch.start()
    time.sleep(3 * wanted["frozen_s"] / LOOKS)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.kill()
    until((tmp_path / "started").exists, "the third one")
    watch._over.set()


def test_a_supervisor_that_gives_signs_of_life_is_left_alone(tmp_path: Path, wanted: dict[str, Any]) -> None:
    watch = watch_of(tmp_path, wanted)
    with SupervisorLock(tmp_path / "lock"):
        for number in range(3 * LOOKS):
            if number % LOOKS == 0:
                LifeSignWriter(tmp_path / "alive", start_ticks=number).beat()
            assert watch.look() is False


@pytest.mark.parametrize("sign", ["{pid} 1 {now} boot", "{pid}", "damaged 1 2", "1e9 x"])
def test_a_sign_of_life_of_another_process_kills_nobody(tmp_path: Path, wanted: dict[str, Any], sign: str) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        watch = watch_of(tmp_path, wanted)
        (tmp_path / "alive").write_text(sign.format(pid=bystander.pid, now=time.monotonic()))
        with SupervisorLock(tmp_path / "lock"):
            for _ in range(LOOKS + 3):
                watch.look()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_the_watch_ends_when_the_next_attempt_has_started_or_the_folder_is_gone(
    tmp_path: Path, wanted: dict[str, Any], holder: "subprocess.Popen[str]"
) -> None:
    watch = watch_of(tmp_path, wanted)
    assert watch.look() is False
    later = tmp_path / "attempts" / "0002"
    later.mkdir()
    assert watch.look() is False
    spool.write(str(later), spool.START, {})
    assert watch.look() is True
    assert SupervisorWatch({**wanted, "lock": str(tmp_path / "gone" / "lock")}, str(tmp_path)).look() is True


@SECOND_TIER
def test_supervision_goes_on_after_kill_stop_and_the_death_of_both(world: World) -> None:
    world.write(
        "--steps", "5000", "--step-time", "0.02", "--save-every", "20",
        more={"supervisor": {"keep_alive": True, "frozen_s": 1.5}},
    )  # fmt: skip
    first = world.headless()
    world.at_step(10)
    trainer = world.attempt().trainer.pid

    first.murder()
    second = until(lambda: holder_pid(world.run.lock), "a dead one is replaced", 60)
    until(lambda: world.status()["supervisor"]["responsive"], "it watches")
    os.kill(second, signal.SIGSTOP)
    third = until(lambda: (pid := holder_pid(world.run.lock)) != second and pid, "a frozen one is replaced", 90)
    assert not lives(second)
    assert lives(trainer)
    assert world.status()["attempt"] == 1

    until(lambda: world.status()["supervisor"]["responsive"], "it watches")
    os.kill(third, signal.SIGKILL)
    os.kill(trainer, signal.SIGKILL)
    until(lambda: world.status()["attempt"] == 2 and world.status()["state"] == "running", "both are replaced", 90)
    fourth = until(lambda: holder_pid(world.run.lock), "its supervisor")
    os.kill(fourth, signal.SIGTERM)
    until(lambda: not lives(fourth), "ended on purpose")
    time.sleep(4)
    assert holder_pid(world.run.lock) is None
