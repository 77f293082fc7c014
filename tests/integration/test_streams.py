"""Verbs on odd standard streams: closed, full, or of an encoding that lacks the characters of a log."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEADER = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
ONE_TENSOR = len(HEADER).to_bytes(8, "little") + HEADER + bytes(4)


def verb(tmp_path: Path, shell: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    own = {**os.environ, "TRAINWATCH_HOME": str(tmp_path / "home"), "T": f"{sys.executable} -m trainwatch", **env}
    return subprocess.run(["sh", "-c", shell], capture_output=True, cwd=tmp_path, env=own, timeout=60, check=False)


@pytest.mark.parametrize("shell", ["$T runs >&-", "$T runs --json >&-", "$T runs >&- 2>&-"])
def test_a_closed_stdout_discards_output_without_an_error(tmp_path: Path, shell: str) -> None:
    done = verb(tmp_path, shell)
    assert (done.returncode, done.stderr) == (0, b"")


GONE = "mkdir gone; cd gone; rmdir ../gone; $T"
NO_FOLDER = b"trainwatch: the working folder does not exist any more: cd to one that does\n"


@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("$T progress - <&-", 2, b"trainwatch: -: standard input is closed; give the log's path\n"),
        ("$T presets --json >/dev/full", 1, b"trainwatch: the output: No space left on device\n"),
        *(
            (f"{GONE} {words}", 2, NO_FOLDER)
            for words in ("", "status", "--headless", "run -- true", "init", "stop --yes", "profiles")
        ),
    ],
)
def test_what_a_verb_lacks_is_reported_in_one_line(tmp_path: Path, shell: str, code: int, said: bytes) -> None:
    done = verb(tmp_path, shell)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_run_that_is_named_needs_no_working_folder(tmp_path: Path) -> None:
    done = verb(tmp_path, f"{GONE} status nothing")
    assert done.returncode == 3
    assert b'no run "nothing"' in done.stderr


def test_characters_that_the_terminal_lacks_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("RuntimeError: CUDA error: unspecified launch failure – naïve\n", encoding="utf-8")
    done = verb(tmp_path, "$T diagnose a.log", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"unspecified launch failure ? na?ve" in done.stdout


def test_a_file_name_that_is_not_utf8_does_not_hide_others(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name in (b"bad\xff\xfe-000007.safetensors", b"good-000008.safetensors", b"two\nlines-000009.safetensors"):
        (folder / os.fsdecode(name)).write_bytes(ONE_TENSOR)
    done = verb(tmp_path, "$T checkpoints list out --json && $T checkpoints list out")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"good-000008" in done.stdout
    assert "bad\N{REPLACEMENT CHARACTER}".encode() in done.stdout
    assert len(done.stdout.splitlines()) == 1 + 3  # the object, and a line each
