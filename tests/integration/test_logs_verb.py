"""``trainwatch logs``: the trainer's output as it is, its end, and what is added, over all attempts."""

from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.app.runs.trainer_log import BLOCK_BYTES, log_pieces
from trainwatch.core.model.fact import AttemptStarted
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.run_directory import RunDirectory


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    spec = RunSpec(id="luca-1", name="luca", command=("python", "train.py"), cwd="/w", created_wall=1.0)
    return RunDirectory.create(tmp_path / "home", spec)


def started(run: RunDirectory, number: int, text: str) -> Path:
    log = run.path / f"{number}.log"
    log.write_text(text)
    with JournalWriter(run.journal) as journal:
        journal.append(0, 0, fact=AttemptStarted(attempt=number, pid=1, log=str(log)))
    return log


def test_end_of_the_newest_log_is_printed(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    started(run, 1, "old\n")
    log = started(run, 2, "".join(f"step {n}\n" for n in range(300)))
    assert main(["logs", "luca", "-n", "3"]) == 0
    assert capsys.readouterr().out == "step 297\nstep 298\nstep 299\n"
    assert main(["logs", "luca"]) == 0
    assert capsys.readouterr().out.count("\n") == 100
    assert main(["logs", "luca", "--all"]) == 0
    assert capsys.readouterr().out == log.read_text()
    assert main(["logs", "luca", "--attempt", "1"]) == 0
    assert capsys.readouterr().out == "old\n"
    assert main(["logs", "luca", "--path"]) == 0
    assert capsys.readouterr().out == f"{log}\n"


@pytest.mark.parametrize("size", [BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
def test_last_lines_are_found_across_blocks(run: RunDirectory, size: int) -> None:
    log = started(run, 1, "x" * (size - 7) + "\nlast\n" + "open")
    assert "".join(log_pieces(run, log, 2, follow=False)) == "last\nopen"
    assert "".join(log_pieces(run, log, 3, follow=False)) == log.read_text()
    assert "".join(log_pieces(run, log, 9, follow=False)) == log.read_text()


def test_log_that_is_followed_goes_on_with_the_next_attempt(run: RunDirectory) -> None:
    log = started(run, 1, "one\n")
    pieces = log_pieces(run, log, 10, follow=True)
    assert next(pieces) == "one\n"
    with log.open("a") as file:
        file.write("two\n")
    assert next(pieces) == "two\n"
    newest = started(run, 2, "three\n")
    assert next(pieces) == f"\n==> {newest} <==\n"
    assert next(pieces) == "three\n"


def test_run_without_a_log_is_exit_code_3(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "luca"]) == 3
    assert "no attempt was started yet" in capsys.readouterr().err
    started(run, 1, "x").unlink()
    assert main(["logs", "luca"]) == 3
    assert "the log was removed" in capsys.readouterr().err
