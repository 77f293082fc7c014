"""``trainwatch diagnose``: what else was so at the end as options, and lines that a person teaches."""

import json
import re
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.core.config.shipped import FILE_NAME, learned_patterns, with_learned
from trainwatch.core.judge.failure.circumstances import last_line, pattern_of

LINE = "the frobnicator of /data/x lost 12 widgets at 0xdeadbeef 'now'"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.log"
    path.write_text(f"step 1\n2026-01-01 00:00:01 ERROR {LINE}\n", encoding="utf-8")
    return path


def answer(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["diagnose", *args, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_taught_line_is_known_from_then_on_with_other_numbers(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, str(log), "--exit-code", "1")["failure"] == "unknown"
    assert main(["diagnose", str(log), "--exit-code", "1", "--teach", "io_error"]) == 0
    assert FILE_NAME in capsys.readouterr().out
    log.write_text(LINE.replace("12", "7").replace("/data/x", "/mnt/y") + "\n", encoding="utf-8")
    assert answer(capsys, str(log), "--exit-code", "1")["failure"] == "io_error"
    assert main(["diagnose", str(log), "--teach", "hang", "--json"]) == 0
    assert list(learned_patterns(log.parent)) == ["io_error", "hang"]


def test_teaching_changes_no_file_of_the_project(log: Path) -> None:
    project = log.parent / "trainwatch.toml"
    project.write_text('[run]\ncommand = ["true"]\n', encoding="utf-8")
    before = project.read_bytes()
    assert main(["diagnose", str(log), "--teach", "io_error"]) == 0
    assert project.read_bytes() == before


@pytest.mark.parametrize("text", ["patterns = 3", "[patterns]\nodd = ['x']", "[patterns]\nhang = 'x'", "not toml ["])
def test_damaged_file_is_not_replaced_and_does_not_count(log: Path, text: str) -> None:
    path = log.parent / FILE_NAME
    path.write_text(text, encoding="utf-8")
    assert main(["diagnose", str(log), "--teach", "io_error"]) == 2
    assert path.read_text(encoding="utf-8") == text
    assert learned_patterns(log.parent) == {}


def test_unknown_class_and_empty_log_are_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(log), "--teach", "io_eror"]) == 2
    assert 'did you mean "io_error"' in capsys.readouterr().err
    log.write_text("", encoding="utf-8")
    assert main(["diagnose", str(log), "--teach", "io_error"]) == 2
    assert not (log.parent / FILE_NAME).exists()


def test_options_say_what_else_was_so(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = log.parent / "dmesg.txt"
    kernel.write_text("NVRM: Xid (PCI:0000:41:00): 79, pid=7, GPU has fallen off the bus.\n", encoding="utf-8")
    options = {
        "disk_full": ("--disk-free", "1000"),
        "host_oom": ("--oom-kills", "1", "--exit-code", "-9"),
        "checkpoint_corrupt": ("--checkpoint", "torn"),
        "gpu_lost": ("--kernel-log", str(kernel)),
    }
    for failure, given in options.items():
        assert answer(capsys, str(log), *given)["failure"] == failure


def test_a_log_or_a_run_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose"]) == 2
    assert "--run RUN" in capsys.readouterr().err


def test_pattern_matches_the_line_and_skeleton_has_nothing_that_varies() -> None:
    assert re.search(pattern_of(LINE), LINE)
    bar = " 50%|█████     | 5/10 [00:01<00:01, 5.0it/s]"
    assert last_line(f"[rank0]: boom now\n{bar}\n---\n") == "boom now"
    assert last_line("---\n") == ""


def test_learned_patterns_are_added_to_those_of_the_project(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('[patterns]\nhang = ["b"]\n', encoding="utf-8")
    assert with_learned({"hang": ("a",)}, tmp_path) == {"hang": ("a", "b")}
