"""The notification command, with real commands that behave and misbehave."""

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.e2e_world import lives
from tests.integration.act_world import growing, python, wait_for
from trainwatch.core.act.notify import KEPT_BYTES, Outbox, run_at_end, run_with_event
from trainwatch.core.model.decision import RunAtEnd
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import End, Notify, Settings

notify = partial(run_with_event, "notify.command")
EVENT = {"event": "incident", "title": "crash ✓", "incident": 3}


def test_a_notify_command_gets_the_event_as_one_json_object(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    report = notify(
        python(f"import sys; open({str(heard)!r}, 'w').write(sys.stdin.read()); print('sent')"), EVENT, timeout_s=20
    )
    assert (report.ok, report.code, report.output) == (True, 0, "sent")
    assert json.loads(heard.read_text()) == EVENT


def test_a_failing_notify_command_is_reported_with_its_last_output() -> None:
    report = notify(python("import sys; print('no route'); sys.exit(4)"), EVENT, timeout_s=20)
    assert (report.ok, report.code, report.detail) == (False, 4, "notify.command returned 4: no route")


def test_a_hanging_notify_command_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $$ $! > {pids}; wait"
    for timeout_s in growing(0.5):
        report = notify(["sh", "-c", script], EVENT, timeout_s=timeout_s)
        assert not report.ok
        assert f"took more than {timeout_s:g} s" in report.detail
        if pids.exists():
            break
    both = [int(pid) for pid in pids.read_text().split()]
    assert len(both) == 2
    wait_for(lambda: not any(lives(pid) for pid in both), "both are gone")


def test_a_notify_command_that_never_reads_and_writes_without_end_is_ended() -> None:
    for timeout_s in growing(0.5):
        report = notify(["yes"], {"body": "x" * 1_000_000}, timeout_s=timeout_s)
        assert not report.ok
        if report.output:
            break
    assert 0 < len(report.output) <= KEPT_BYTES


def test_a_notify_child_that_keeps_the_output_open_does_not_block() -> None:
    code = "import subprocess; p = subprocess.Popen(['sleep', '600'], start_new_session=True); print(p.pid)"
    report = notify(python(code), EVENT, timeout_s=20)
    assert report.ok
    os.kill(int(report.output), signal.SIGKILL)


def test_a_notify_command_that_cannot_run_is_reported_in_one_sentence() -> None:
    missing = notify(["no-such-notifier"], EVENT, timeout_s=1)
    assert missing.detail == "notify.command: not found: no-such-notifier; give the full path"
    assert not notify([sys.executable, "a\0b"], EVENT, timeout_s=1).ok


def test_a_failing_command_of_the_end_is_told_and_named_by_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = tmp_path / "heard"
    keep = python(f"import sys; open({str(heard)!r}, 'w').write(sys.stdin.read())")
    settings = Settings(notify=Notify(command=tuple(keep)), end=End(at_give_up=("no-such-command",)))
    monkeypatch.setattr("trainwatch.core.act.notify.END_TIMEOUT_S", 0.5)
    spec = RunSpec(
        id="luca-1",
        name="luca",
        command=("x",),
        cwd=str(tmp_path),
        created_wall=0.0,
        settings=settings,
        output_dir="/o",
    )
    order = RunAtEnd(id=1, reason="run it", event="end_by", command=("no-such-command",))
    report = run_at_end(spec, order)
    assert (report.ok, report.detail) == (False, "end.at_give_up: not found: no-such-command; give the full path")
    assert json.loads(heard.read_text())["body"].startswith(report.detail)
    late = run_at_end(spec, RunAtEnd(id=2, reason="run it", event="give_up", command=("sleep", "60")))
    assert "end.at_give_up took more than 0.5 s and was ended" in late.detail
    assert "took more than" in heard.read_text()
    heard.unlink()
    monkeypatch.undo()
    done = run_at_end(spec, RunAtEnd(id=3, reason="run it", event="finish", command=tuple(keep)))
    assert done.ok
    assert json.loads(heard.read_text())["output_dir"] == "/o"
    begins = [Outbox(spec, str(tmp_path)).begins(t) for t in (5.0, 5.0, 9.0, 9.0)]
    assert begins == [True, False, True, False], "never twice for one end, whoever asks"
