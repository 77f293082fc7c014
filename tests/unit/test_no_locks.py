"""A state folder on a file system without locks: NFS without a lock server answers ENOLCK."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.store.lock import SupervisorLock, is_held


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_descriptor: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("no_locks")
def test_a_run_is_not_supervised_without_a_lock_and_the_message_names_place_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    (project / "trainwatch.toml").write_text('[run]\nname = "n"\ncommand = ["touch", "started"]\n')
    monkeypatch.setenv("TRAINWATCH_HOME", str(home))
    monkeypatch.chdir(project)
    assert main(["--headless"]) != 0
    said = capsys.readouterr().err
    assert str(home) in said
    assert "gives no locks (No locks available)" in said
    assert "TRAINWATCH_HOME" in said
    assert not (project / "started").exists()


@pytest.mark.usefixtures("no_locks")
def test_whether_a_supervisor_lives_is_not_guessed_without_locks(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="gives no locks"):
        SupervisorLock(path).acquire()
    with pytest.raises(OSError, match="gives no locks"):
        is_held(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
