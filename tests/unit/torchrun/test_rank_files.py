"""Log and error files that torchrun keeps for each rank."""

import json
import os
from pathlib import Path

import pytest

from trainwatch.core.rank_files import LEFT_S, RankFiles


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
