"""What is found out about a process that somebody started by hand: real ones, of every odd kind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes.e2e_world import command_line
from tests.integration.act_world import wait_for
from tests.integration.adopt_world import HandMade
from trainwatch.core.act.adopt import AdoptionError, Trainer, _argv, log_of, look_at
from trainwatch.core.act.config.trainer_config import config_of
from trainwatch.core.processes import is_alive

SLEEP = (sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)")


def running(user: HandMade, *argv: str, **more: object) -> Trainer:
    """A process that has replaced its shell already."""
    made = user.start(*(argv or SLEEP), **more)
    wait_for(lambda: Path(f"/proc/{made.pid}/cmdline").read_bytes().count(b"\0") == len(argv or SLEEP), "exec")
    return look_at(made.pid)


def test_adopt_finds_command_folder_environment_and_log(user: HandMade) -> None:
    with (user.root / "o.log").open("wb") as log:
        env = user.environ | {"WANDB_API_KEY": "s3cret", "TMUX_PANE": "%7", "OLDPWD": "/x"}
        found = running(user, stdout=log, stderr=log, env=env)
    assert found.argv == SLEEP
    assert found.cwd == str(user.root)
    assert found.env["WANDB_API_KEY"] == "s3cret"
    assert "PATH" in found.env
    assert not {"TMUX_PANE", "OLDPWD", "TRAINWATCH_ATTEMPT"} & set(found.env)
    assert found.attempt is None
    assert abs(found.started_wall - time.time()) < 20
    assert is_alive(found.identity)
    assert log_of(found, None).log == str(user.root / "o.log")


def test_an_adopted_trainer_with_two_output_files_is_read_from_both(user: HandMade) -> None:
    with (user.root / "o.log").open("wb") as out, (user.root / "e.log").open("wb") as err:
        place = log_of(running(user, stdout=out, stderr=err), None)
    assert (place.log, place.more) == (str(user.root / "e.log"), (str(user.root / "o.log"),))


def test_adopt_finds_a_log_written_by_tee(user: HandMade) -> None:
    shell = user.start("bash", "-c", 'python=$1; shift; $python "$@" 2>&1 | tee mine.txt', "x", *SLEEP)
    wait_for(lambda: (user.root / "mine.txt").exists() and (user.root / "mine.txt").stat().st_size, "tee writes")
    child = wait_for(
        lambda: next((pid for pid in children(shell.pid) if b"time.sleep" in command_line(pid)), None), "the trainer"
    )
    assert log_of(look_at(child), None).log == str(user.root / "mine.txt")


def test_adopt_finds_a_log_that_the_trainer_opened(user: HandMade) -> None:
    code = "import time; f = open('own.log', 'a'); f.write('x'); f.flush(); time.sleep(600)"
    made = user.start(sys.executable, "-c", code, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (user.root / "own.log").exists() and (user.root / "own.log").stat().st_size, "it writes")
    assert log_of(look_at(made.pid), None).log == str(user.root / "own.log")


def test_adopt_names_a_deleted_log_and_asks_for_another(user: HandMade) -> None:
    path = user.root / "o.log"
    with path.open("wb") as log:
        found = running(user, stdout=log, stderr=log)
    path.unlink()
    with pytest.raises(AdoptionError, match=r"deleted .*o\.log.*--log F") as caught:
        log_of(look_at(found.identity.pid), None)
    assert caught.value.kind == "unclear"


def test_adopt_asks_for_a_log_if_the_output_is_not_readable(user: HandMade) -> None:
    found = running(user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with pytest.raises(AdoptionError, match=r"/dev/null.*--log F"):
        log_of(found, None)
    (user.root / "given.log").write_text("x")
    assert log_of(found, user.root / "given.log").log == str(user.root / "given.log")
    with pytest.raises(AdoptionError, match="no such log") as caught:
        log_of(found, user.root / "nothing.log")
    assert caught.value.kind == "missing"


def test_adopt_refuses_itself_and_its_parents() -> None:
    for pid in (os.getpid(), os.getppid(), 1):
        with pytest.raises(AdoptionError) as caught:
            look_at(pid)
        assert caught.value.kind == "refused"


def test_adopt_of_a_thread_id_names_its_process(user: HandMade) -> None:
    code = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); time.sleep(600)"
    made = user.start(sys.executable, "-c", code)
    tasks = wait_for(
        lambda: [int(p.name) for p in Path(f"/proc/{made.pid}/task").iterdir() if p.name != str(made.pid)], "a thread"
    )
    with pytest.raises(AdoptionError, match=f"--pid {made.pid}"):
        look_at(tasks[0])


def test_adopt_refuses_a_command_line_that_was_overwritten() -> None:
    assert _argv([b"ray::Trainer.train() step 7"]) == ()
    assert _argv([b"python", b"train.py", b"", b""]) == ("python", "train.py")
    assert _argv([b"python", b"--name", b"\xff"]) == ()


def test_adopt_finds_the_trainers_config_in_its_command(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("x = 1")
    (tmp_path / "data.toml").write_text("x = 1")
    for words in (["--config_file", "a.toml"], ["--config=a.toml"], ["--config-file=a.toml"]):
        argv = ["accelerate", "launch", "t.py", "--dataset_config", "data.toml", *words]
        assert config_of(argv, str(tmp_path)) == str(tmp_path / "a.toml")
    assert config_of(["t.py", "--config", "gone.yaml"], str(tmp_path)) is None
    assert config_of(["t.py", "--config"], str(tmp_path)) is None


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
