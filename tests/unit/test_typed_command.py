"""A command that cannot be started as it stands: the message has the command to type."""

import os
import subprocess
from pathlib import Path

import pytest

from trainwatch.core.act.launch.spawn import why_not

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text, mode in (
        ("train.sh", "#!/bin/bash\necho ok\n", 0o644),
        ("windows.sh", "#!/bin/bash\r\necho ok\r\n", 0o755),
        ("moved.sh", "#!/opt/gone/bin/bash\necho ok\n", 0o755),
        ("weights.bin", "\0\1", 0o644),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        (("source", "v/bin/activate", "&&", "python", "t.py"), "bash -c 'source v/bin/activate && python t.py'"),
        (("source v/bin/activate && python t.py",), "bash -c 'source v/bin/activate && python t.py'"),
        ((".", "env.sh", ";", "python", "t.py"), "bash -c '. env.sh ; python t.py'"),
        (("conda", "activate", "x", "&&", "python", "t.py"), "bash -lic 'conda activate x && python t.py'"),
        (("CUDA_VISIBLE_DEVICES=0", "python", "t.py"), "env CUDA_VISIBLE_DEVICES=0 python t.py"),
        (("python t.py --lr 1",), "bash -c 'python t.py --lr 1'"),
        (("torchrunn t.py | tee log",), "bash -c 'torchrunn t.py | tee log'"),
    ],
)
def test_the_message_has_the_command_to_type(command: tuple[str, ...], typed: str, folder: Path) -> None:
    assert (why_not(list(command), ENV, str(folder)) or "").endswith(f"type it as: {typed}")


@pytest.mark.parametrize("command", [("nosuch",), ("./weights.bin",), ("./nosuch.sh",)])
def test_no_command_is_offered_if_none_is_known(command: tuple[str, ...], folder: Path) -> None:
    told = why_not(list(command), ENV, str(folder))
    assert told is not None
    assert "type it as" not in told


def test_a_script_with_line_ends_of_windows_is_told_how_to_mend_them(folder: Path) -> None:
    from trainwatch.core.act.launch.spawn import CannotStart, spawn

    log = os.open(os.devnull, os.O_WRONLY)
    order = {"argv": ["./windows.sh"], "env": ENV, "cwd": str(folder), "terminal": "file"}
    try:
        with pytest.raises(CannotStart) as ended:
            spawn(order, str(folder), log)
        with pytest.raises(CannotStart, match=r"correct that line$"):
            spawn(order | {"argv": ["./moved.sh"]}, str(folder), log)
    finally:
        os.close(log)
    mend = str(ended.value).partition("as on Windows: ")[2].partition("; or ")[0]
    subprocess.run(mend, shell=True, check=True)
    assert (folder / "windows.sh").read_bytes() == b"#!/bin/bash\necho ok\n"


def test_a_script_that_is_not_executable_is_given_to_an_interpreter(folder: Path) -> None:
    told = why_not(["./train.sh", "--out", "x"], ENV, str(folder)) or ""
    assert told.endswith("train.sh; chmod +x it, or start it through an interpreter, as in: bash ./train.sh")


def test_a_folder_is_no_program(folder: Path) -> None:
    assert why_not(["./"], ENV, str(folder)) == "not a program: ./ is a folder; name a file in it"
