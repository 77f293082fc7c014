"""Log and error files that torchrun keeps for each rank."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import until
from trainwatch.core.processes import all_processes, variables_of
from trainwatch.core.rank_files import LEFT_S, Called, RankFiles, Ranks, torchrun_in


def error(folder: Path, message: object) -> None:
    (folder / "error.json").write_text(json.dumps({"message": message}))


def test_newest_and_earlier_line_of_a_rank_with_their_ages(tmp_path: Path) -> None:
    files, log = RankFiles(), tmp_path / "stdout.log"
    log.write_text("step 1/9\n")
    now = log.stat().st_mtime
    os.utime(log, (now, now))
    files.look(str(tmp_path), 0, 7, 100.0)
    log.write_text("step 1/9\nstep 2/9\r")
    told = files.look(str(tmp_path), 0, 7, 112.0)
    assert (told.line, told.line_age_s) == ("step 2/9", 0.0)
    assert told.earlier == "step 1/9"
    assert told.earlier_age_s == pytest.approx(12.0, abs=1.0)
    assert files.look(str(tmp_path), 0, 7, 115.0).line_age_s == 3.0


def test_log_that_a_healthy_agent_began_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    files, log = RankFiles(), tmp_path / "stdout.log"
    log.write_text("step 1/9\nstep 2/9\n")
    files.look(str(tmp_path), 0, 7, 1.0)
    log.write_text("step 1/9\n")
    assert files.look(str(tmp_path), 0, 8, 2.0).line == "step 1/9"


def test_error_file_is_told_once_and_an_old_one_never(tmp_path: Path) -> None:
    error(tmp_path, "of the start before")
    files = RankFiles()
    files.look(str(tmp_path), 3, 7, 1.0)
    assert list(files.ended(1.0, over=False)) == []
    error(
        tmp_path,
        {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback\nValueError: x", "timestamp": "9"}},
    )
    os.utime(tmp_path / "error.json", (5, 5))
    (ended,) = files.ended(2.0, over=False)
    assert (ended.rank, ended.pid, ended.wall, ended.text) == (3, 7, 9.0, "Traceback\nValueError: x")
    assert list(files.ended(3.0, over=True)) == []


def test_last_words_of_a_rank_without_an_error_file(tmp_path: Path) -> None:
    (tmp_path / "stderr.log").write_text("terminate called\nSegmentation fault\n")
    files = RankFiles()
    files.look(str(tmp_path), 1, 7, 1.0)
    assert list(files.ended(1.0 + LEFT_S / 2, over=False)) == []
    (ended,) = files.ended(1.0 + LEFT_S + 1.0, over=False)
    assert ended.text.endswith("Segmentation fault\n")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"message": 3}'])
def test_error_file_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    files = RankFiles()
    files.look(str(tmp_path), 1, 7, 1.0)
    (tmp_path / "error.json").write_text(text)
    assert list(files.ended(2.0, over=True)) == []


def test_errors_of_several_ranks_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    files = RankFiles()
    for rank, at in ((0, "20"), (1, "10")):
        folder = tmp_path / str(rank)
        folder.mkdir()
        files.look(str(folder), rank, 7 + rank, 1.0)
        error(folder, {"message": "e", "extraInfo": {"py_callstack": f"error {rank}", "timestamp": at}})
    assert [each.rank for each in files.ended(2.0, over=True)] == [1, 0]


@pytest.fixture
def called(tmp_path: Path) -> Iterator[Callable[..., Called | None]]:
    """What is read of the command line of a process that was started with these words."""
    (tmp_path / "torchrun").write_text("import time\ntime.sleep(600)\n")
    begun: list[subprocess.Popen[bytes]] = []

    def starts(*words: str) -> Called | None:
        argv = [word.replace("torchrun", str(tmp_path / "torchrun"), 1) for word in words]
        begun.append(subprocess.Popen([sys.executable, *argv]))
        until(lambda: b"python" in Path(f"/proc/{begun[-1].pid}/cmdline").read_bytes(), "it runs")
        return torchrun_in(begun[-1].pid)

    yield starts
    for process in begun:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("torchrun --nnodes=2 --max-restarts=3 train.py", Called(3, 600.0)),
        ("torchrun --nnodes 1:4 --rdzv_backend c10d --rdzv_conf join_timeout=1800,read_timeout=9 train.py", Called(None, 1800.0)),
        ("torchrun --nnodes=2 --rdzv-conf=timeout=90 train.py --nnodes 1", Called(None, 90.0)),
        ("torchrun --nproc-per-node 8 train.py", None),
        ("torchrun --standalone --nnodes=2 train.py", None),
        ("-c import\\ntime;time.sleep(600) torchrun --nnodes=2", None),
    ],
)  # fmt: skip
def test_how_long_a_torchrun_of_several_nodes_waits_is_read_from_its_command_line(
    called: Callable[..., Called | None], words: str, expected: Called | None
) -> None:
    assert called(*(word.replace("\\n", " ") for word in words.split())) == expected


def test_a_process_that_has_ended_is_no_torchrun() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert torchrun_in(gone.pid) is None


def test_a_torchrun_that_waits_for_other_nodes_is_seen_before_its_first_worker(
    called: Callable[..., Called | None],
) -> None:
    assert called("torchrun", "--nnodes=2", "--rdzv-conf", "join_timeout=900") is not None
    tree = {pid: stat for pid, stat in all_processes().items() if stat.parent == os.getpid()}
    ranks = Ranks(variables_of)
    ranks.look(tree, 1.0)
    found, agents = ranks.look(tree, 2.0)
    assert [(agent.workers, agent.join_s) for agent in agents] == [(0, 900.0)]
    assert found == []
