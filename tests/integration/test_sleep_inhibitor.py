"""The lock against sleep, taken with a stand-in of systemd-inhibit that runs what it is given."""

import os
from pathlib import Path

import pytest

from tests.fakes.e2e_world import lives, until
from trainwatch.core.app.supervise.machine_end import SleepInhibitor
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ProcessIdentity

TARGET = AttemptTarget(
    number=1, trainer=ProcessIdentity(boot_id="b", pid=1, start_ticks=1), runner=None, log=None, directory="/a"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "systemd-inhibit").write_text(
        '#!/bin/sh\necho "$@" > "$PLACE/asked"\necho $$ > "$PLACE/pid"\n'
        'test -e "$PLACE/refuse" && { echo "Failed to inhibit: Access denied" >&2; exit 1; }\nexec sleep 600\n'
    )
    (tmp_path / "systemd-inhibit").chmod(0o755)
    (tmp_path / "booted").mkdir()
    return tmp_path


def inhibitor(place: Path, said: list[str], booted: str = "booted", settle_s: float = 60.0) -> SleepInhibitor:
    env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "PLACE": str(place)}
    return SleepInhibitor("luca", said.append, env, booted=place / booted, settle_s=settle_s)


def test_the_lock_is_held_while_a_trainer_runs(place: Path) -> None:
    said: list[str] = []
    lock = inhibitor(place, said, settle_s=0.2)
    lock.start()
    assert not (place / "asked").exists()
    lock.follow(TARGET)
    until(lambda: (place / "pid").exists() and (place / "pid").read_text().endswith("\n"), "it is taken")
    pid = int((place / "pid").read_text())
    until(lambda: said, "it is told")
    assert "--what=sleep:idle" in (place / "asked").read_text()
    assert "training luca" in (place / "asked").read_text()
    lock.follow(TARGET)
    assert lives(pid)
    lock.follow(None)
    until(lambda: not lives(pid), "it is given back")
    assert len(said) == 1


def test_a_lock_that_is_refused_is_told_once(place: Path) -> None:
    (place / "refuse").touch()
    said: list[str] = []
    lock = inhibitor(place, said)
    lock.follow(TARGET)
    until(lambda: said, "it is told")
    lock.follow(None)
    assert said == [
        "this machine may go to sleep while the trainer runs: systemd-inhibit: Failed to inhibit: Access denied"
    ]
    lock.stop()


def test_without_systemd_nothing_is_asked(place: Path) -> None:
    said: list[str] = []
    inhibitor(place, said, booted="no").follow(TARGET)
    assert not (place / "asked").exists()
    assert said == []
