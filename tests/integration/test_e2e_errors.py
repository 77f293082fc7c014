"""What goes wrong at the command line: each one clear line, the right exit code, and nothing left behind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import Done, World, until, world_at
from tests.tiers import SECOND_TIER


def one_line(done: Done, code: int, *words: str) -> None:
    assert done.code == code, done
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in lines[0]


@pytest.fixture
def empty(world: World, tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_a_detached_run_is_supervised_without_a_terminal_and_passes_arguments_unchanged(world: World) -> None:
    words = ["--headless", "a b", "c;d", "é\"'$HOME", "", "--", "-x"]
    code = "import json, sys, time; print(json.dumps(sys.argv[1:]), flush=True); time.sleep(1)"
    done = world.asks("run", "--detach", "--name", "words", "--", sys.executable, "-c", code, *words)
    assert done.code == 0, done
    assert "trainwatch status" in done.out
    world.in_state("finished")
    assert json.loads(world.log()) == words
    until(lambda: not world.status()["supervisor"]["alive"], "its supervisor ends with it")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-program", "x"], ("no-such-program", "not found")),
        (["./train.py"], ("./train.py", "not found")),
        (["./notes.txt"], ("./notes.txt", "not executable")),
        (["./folder"], ("./folder",)),
    ],
)
def test_run_refuses_a_command_that_cannot_start_and_creates_nothing(
    world: World, empty: Path, command: list[str], words: tuple[str, ...]
) -> None:
    (empty / "notes.txt").write_text("x")
    (empty / "folder").mkdir()
    one_line(world.asks("run", "--", *command, cwd=empty), 2, *words)
    done = world.asks("run", "--dry-run", "--", *command, cwd=empty)
    assert done.code == 0, done.err
    shown = done.out
    assert [line for line in shown.splitlines() if line.startswith("problem ") and words[-1] in line], shown
    assert shown.endswith("nothing was started (--dry-run); it would be refused: see *problem* above\n")
    assert world.runs() == []


def test_a_config_command_that_cannot_start_is_reported_with_its_line(world: World) -> None:
    world.write(command=["no-such-program", "x"])
    one_line(world.asks("--headless"), 2, "no-such-program", "trainwatch.toml:")
    assert world.runs() == []


def test_run_without_a_command_is_a_usage_error(world: World, empty: Path) -> None:
    one_line(world.asks("run", cwd=empty), 2, "no command", "trainwatch run -- ")
    one_line(world.asks("run", "--", cwd=empty), 2, "no command", "trainwatch run -- ")
    assert world.runs() == []


def test_an_unknown_config_key_is_reported_with_file_line_and_nearest_key(world: World) -> None:
    world.write()
    config = world.project / "trainwatch.toml"
    config.write_text(config.read_text().replace("max_restarts", "max_restart"))
    line = config.read_text().splitlines().index("max_restart = 3") + 1
    place = f'trainwatch.toml:{line}: unknown key "max_restart"; did you mean "max_restarts"?'
    one_line(world.asks("--headless"), 2, place)
    check = world.asks("check")
    assert check.code == 1
    assert place in check.out
    assert world.runs() == []


def test_verbs_without_project_and_run_exit_with_not_found(world: World, empty: Path) -> None:
    for words in (["--headless"], ["status"], ["events"], ["stop", "--yes"], ["resume"], ["attach"], ["ack"]):
        one_line(world.asks(*words, cwd=empty), 3, "trainwatch run")
    one_line(world.asks("status", "nobody", cwd=empty), 3, "nobody")
    one_line(world.asks("events", "nobody", "--json", cwd=empty), 3, "nobody")
    assert world.asks("runs", "--json", cwd=empty).json == {"runs": [], "queued": []}


def test_an_output_directory_that_cannot_be_created_is_reported(world: World) -> None:
    (world.project / "out").write_text("a file")
    world.write("--diary", str(world.project / "diary"))
    one_line(world.asks("--headless"), 2, "out", "is no folder", "trainwatch.toml:")
    assert world.runs() == []
    done = world.asks("run", "--output-dir", "out", "--", sys.executable, "-c", "pass")
    one_line(done, 2, "out", "is no folder")


def test_an_unreadable_log_is_reported(world: World, empty: Path) -> None:
    (empty / "folder").mkdir()
    for verb in ("diagnose", "progress"):
        one_line(world.asks(verb, "folder", cwd=empty), 2, "folder", "directory")
        one_line(world.asks(verb, "missing.log", cwd=empty), 3, "missing.log")


@SECOND_TIER
def test_an_unreadable_extra_log_is_reported_and_the_run_goes_on(world: World) -> None:
    (world.project / "folder.log").mkdir()
    world.write("--steps", "30", logs=["folder.log"])
    done = world.do("--headless")
    assert done.code == 0, done.err
    assert "folder.log: the log cannot be read" in done.out


@pytest.fixture(scope="module")
def without_tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Done]]:
    """A run that is over, on a machine that has no tmux, and what was said."""
    with world_at(tmp_path_factory.mktemp("finished")) as made:
        tools = made.short / "tools"
        tools.mkdir()
        (tools / "sh").symlink_to("/bin/sh")
        made.write("--steps", "30", more={"tmux": {"enabled": True}})
        yield made, made.do("--headless", env={"PATH": str(tools)})


@pytest.fixture
def finished(without_tmux: tuple[World, Done]) -> World:
    return without_tmux[0]


def test_a_run_works_without_tmux_and_reports_it_once(without_tmux: tuple[World, Done]) -> None:
    _, done = without_tmux
    assert done.code == 0, done.err
    assert done.out.count("tmux is not installed") == 1
    usual = ("trainwatch: length: ", "trainwatch: this process is the supervisor")
    assert [line for line in done.err.splitlines() if not line.startswith(usual)] == []


def test_verbs_that_need_a_supervisor_exit_with_5_without_one(finished: World) -> None:
    for words in (
        ["stop", "--yes"],
        ["kill", "--yes"],
        ["pause"],
        ["unpause"],
        ["profile", "normal"],
        ["ack"],
        ["snooze"],
    ):
        one_line(finished.asks(*words), 5, "is finished: nothing of it runs, and no supervisor", "--from newest")


def test_attach_without_a_terminal_names_the_command_that_prints_the_log(finished: World) -> None:
    done = finished.asks("attach")
    one_line(done, 2, "attach needs a terminal", f"`trainwatch logs {finished.run.id}`")
    assert finished.asks("logs", finished.run.id).out


def test_an_unwritable_state_folder_is_reported(world: World, tmp_path: Path) -> None:
    world.write("--steps", "10")
    (tmp_path / "file").write_text("")
    done = world.do("--headless", env={"TRAINWATCH_HOME": str(tmp_path / "file")})
    assert done.code in {1, 2}
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_closed_output_pipe_ends_the_command_without_an_error(finished: World) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "trainwatch", "events", "--json"]
    done = subprocess.run(
        words, cwd=finished.project, env=finished.env, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=100
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
