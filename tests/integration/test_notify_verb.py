"""``trainwatch notify test``: the notice that a run would send, now."""

import json
import sys
from pathlib import Path

import pytest

from trainwatch.cli import main

RUN = '[run]\nname = "luca"\ncommand = ["python", "train.py"]\n'


@pytest.fixture
def project(folder: Path) -> Path:
    return folder / "trainwatch.toml"


def test_notice_arrives_at_the_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = "import sys; open('heard', 'w').write(sys.stdin.read()); print('sent')"
    project.write_text(f"{RUN}[notify]\ncommand = {json.dumps([sys.executable, '-c', keep])}\n")
    assert main(["notify", "test", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["output"]) == (True, "sent")
    heard = json.loads(Path("heard").read_text())
    assert heard["run"] == "luca"
    assert "test" in heard["title"]


def test_notice_that_does_not_arrive_is_a_failure(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text(f'{RUN}[notify]\ncommand = ["false"]\n')
    assert main(["notify", "test"]) == 1
    assert "FAILED: notify.command returned 1" in capsys.readouterr().out


def test_project_that_notifies_nobody_says_what_to_add(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text(RUN)
    assert main(["notify", "test"]) == 2
    told = capsys.readouterr().err
    assert str(project) in told
    assert "[notify] urls" in told
