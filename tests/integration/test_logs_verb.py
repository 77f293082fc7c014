"""``trainwatch logs``: the trainer's output as it is, its end, and what is added, over all attempts."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.app.runs.known_runs import BLOCK_BYTES, log_pieces
from trainwatch.core.model.fact import AttemptStarted, ProgressMade, StateChanged
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.log_index import FILE_NAME, LogIndexWriter
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
        journal.append_all(0, 0, [AttemptStarted(attempt=number, pid=1, log=str(log))])
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
    assert "".join(log_pieces(run, log, 2, None)) == "last\nopen"
    assert "".join(log_pieces(run, log, 3, None)) == log.read_text()
    assert "".join(log_pieces(run, log, 9, None)) == log.read_text()


def test_log_that_is_followed_goes_on_with_the_next_attempt(run: RunDirectory) -> None:
    log = started(run, 1, "one\n")
    pieces = log_pieces(run, log, 10, lambda: False)
    assert next(pieces) == "one\n"
    with log.open("a") as file:
        file.write("two\n")
    assert next(pieces) == "two\n"
    newest = started(run, 2, "three\n")
    assert next(pieces) == f"\n==> {newest} <==\n"
    assert next(pieces) == "three\n"


def follow(run: RunDirectory, verb: str, *options: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "trainwatch", verb, run.id, *options]
    env = {**os.environ, "TRAINWATCH_HOME": str(run.path.parents[1])}
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)


def test_following_waits_for_the_first_attempt_and_ends_with_the_run(run: RunDirectory) -> None:
    with (
        follow(run, "logs", "-f") as logs,
        follow(run, "events", "-f", "--json") as events,
        follow(run, "events", "-F", "--json") as for_ever,
    ):
        started(run, 1, "one\n")
        assert logs.stdout is not None
        assert logs.stdout.readline() == "one\n"
        with JournalWriter(run.journal) as journal:
            journal.append_all(1, 1, [StateChanged(state="finished", reason="done")])
        assert logs.wait(60) == 0
        printed, _ = events.communicate(timeout=60)
        assert '"finished"' in printed.splitlines()[-1]
        assert for_ever.poll() is None
        for_ever.terminate()


def test_a_brief_status_says_what_changed(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    started(run, 1, "one\n")
    assert main(["status", "luca", "--json", "--brief"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"run", "state", "step", "total", "eta_s", "trouble", "needs_you", "id"} == set(told)
    assert len(json.dumps(told)) <= 300
    assert main(["status", "luca", "--json", "--brief", "--since", told["id"]]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": told["id"], "unchanged": True}
    left = ProgressMade(attempt=1, progress=Progress(step=5, total_steps=9, eta_s=4.0))
    early, done = (StateChanged(state="ended_early", reason="x"), StateChanged(state="finished", reason="x"))
    for ended, eta_s in ((early, None), (done, 4.0)):
        with JournalWriter(run.journal) as journal:
            journal.append_all(1, 1, [left, ended])
        assert main(["status", "luca", "--json", "--brief", "--since", told["id"]]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["state"], told["eta_s"]) == (ended.state, eta_s)


def test_run_without_a_log_is_exit_code_3(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "luca"]) == 3
    assert "no attempt was started yet" in capsys.readouterr().err
    started(run, 1, "x").unlink()
    assert main(["logs", "luca"]) == 3
    assert "the log was removed" in capsys.readouterr().err


OSC_52 = "\x1b]52;c;cm0gLXJmIH4=\x07"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"step 1{OSC_52} loss 0.5", "step 1 loss 0.5"),
        ("\x1b]0;owned\x1b\\step 2", "step 2"),
        ("\x1b]2;open until the end of the line", ""),
        ("\x1b[31mred\x1b[0m \x1b[1;38;5;12mblue\x1b[m", "\x1b[31mred\x1b[0m \x1b[1;38;5;12mblue\x1b[m"),
        ("\x1b[2J\x1b[H\x1b[A\x1b[?1049hstep 3\x1b[K", "step 3"),
        ("\x1bP+q544e\x1b\\\x1b_Ga=d\x1b\\\x1bcstep 4", "step 4"),
        ("\x9b2Jstep\x9d52;c;eA==\x9c 5\x07\x08", "\\x9b2Jstep\\x9d52;c;eA==\\x9c 5\\x07\\x08"),
        ("out/\u202egnp.tp", "out/\\u202egnp.tp"),
        ("10 %|#|\r20 %|##|\tnaïve 学習　済み 👩\u200d💻", "10 %|#|\r20 %|##|\tnaïve 学習　済み 👩\u200d💻"),
    ],
)
def test_what_acts_on_a_terminal_does_not_reach_it(
    run: RunDirectory, capfd: pytest.CaptureFixture[str], written: str, shown: str
) -> None:
    started(run, 1, "").write_bytes(f"{written}\n".encode())
    assert main(["logs", "luca"]) == 0
    assert capfd.readouterr().out.replace("\r\n", "\n") == f"{shown}\n"


def test_a_secret_on_the_border_of_two_blocks_is_hidden(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    started(run, 1, "x" * (BLOCK_BYTES - 20) + " HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrSt7890\n")
    assert main(["logs", "luca", "--all"]) == 0
    out = capsys.readouterr().out
    assert "AbCd" not in out
    assert "7890" not in out


def test_lines_around_a_time_are_those_that_were_written_then(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    log = run.path / "1.log"
    with JournalWriter(run.journal) as journal:
        journal.append_all(0, 0, [AttemptStarted(attempt=1, pid=1, log=str(log))])
    log.touch()
    run.attempt(1).mkdir(parents=True)
    index = LogIndexWriter(run.attempt(1) / FILE_NAME, str(log), empty_t=0.0)
    for second in range(1, 200):
        with log.open("a") as file:
            file.write(f"step {second}\n")
        index.look(float(second))
    at = datetime.fromtimestamp(100).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    assert main(["logs", "luca", "--at", at, "-n", "4"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["step 99", "step 100", "step 101", "step 102"]
    assert main(["logs", "luca", "--at", "1969-12-30 00:00"]) == 3
    assert main(["logs", "luca", "--at", "soon"]) == 2
