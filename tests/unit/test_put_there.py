"""A copy of trainwatch for another machine: the wheel, and the script that unpacks it there."""

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from trainwatch import __version__
from trainwatch.core.act.remote import MARK, look_there, remove_there_script, unpack_there_script
from trainwatch.core.app.hosts.own_copy import own_wheel
from trainwatch.core.model.host import Host

TOOLS = ("sh", "base64", "mkdir", "cat", "rm", "ln", "mv", "env", "printf")
BOX = Host(name="box1", ssh="box1")


def test_the_wheel_holds_the_whole_package_and_starts(tmp_path: Path) -> None:
    name, data = own_wheel()
    assert name == f"trainwatch_tui-{__version__}-py3-none-any.whl"
    wheel = zipfile.ZipFile(io.BytesIO(data))
    names = wheel.namelist()
    for wanted in ("trainwatch/cli/__init__.py", "trainwatch/core/model/run.py", "trainwatch/configs/failures.toml"):
        assert wanted in names
    assert not [each for each in names if each.endswith(".pyc") or "__pycache__" in each]
    (record,) = [each for each in names if each.endswith("RECORD")]
    rows = list(csv.reader(wheel.read(record).decode().splitlines()))
    assert [row[0] for row in rows] == names
    for file, digest, _ in rows[:-1:40]:
        found = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(file)).digest()).rstrip(b"=").decode()
        assert digest == f"sha256={found}"
    assert f"\nVersion: {__version__}\n" in wheel.read(record.replace("RECORD", "METADATA")).decode()
    wheel.extractall(tmp_path)
    env = {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path), "PATH": os.defpath}
    done = subprocess.run(
        [sys.executable, "-c", "import trainwatch, trainwatch.cli; print(trainwatch.__file__)"],
        env=env, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.startswith(str(tmp_path))
    assert own_wheel()[1] == data


def machine(tmp_path: Path, python: str | None) -> dict[str, str]:
    """Variables of a machine with a few tools, and a ``python3`` that is this script."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    if python is not None:
        (tools / "python3").write_text(f"#!/bin/sh\n{python}\n")
        (tools / "python3").chmod(0o755)
    return {"PATH": str(tools), "HOME": str(tmp_path / "home")}


def unpacked(env: dict[str, str]) -> int:
    script = unpack_there_script("x.whl", "9.9", (64, 65, 66))
    return subprocess.run(["sh", "-c", script], env=env, input=b"wheel", capture_output=True, check=False).returncode


def own_folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".local" / "share" / "trainwatch" / "from-another-host"


def test_a_machine_without_a_new_python_is_told_as_such(tmp_path: Path) -> None:
    env = machine(tmp_path, "exit 1  # the check of the version fails")
    said = subprocess.run(["sh", "-c", look_there(BOX)], env=env, capture_output=True, text=True, check=True).stdout
    assert said == f"{MARK}\nversion=\npath=\npython=\n"


def test_what_fails_there_leaves_no_environment_and_the_one_before(tmp_path: Path) -> None:
    env = machine(tmp_path, 'case "$*" in *venv*) exit 1;; esac')
    assert unpacked(env) == 64
    own = own_folder(tmp_path)
    assert not list(own.glob("venv*"))
    assert own.stat().st_mode & 0o077 == 0
    (own / "venv").symlink_to("/before")
    made = 'case "$*" in *"-m venv"*) shift 2; mkdir -p "$1/bin"; printf "#!/bin/sh\\nexit $PIP\\n" > "$1/bin/python"; '
    made += 'printf "#!/bin/sh\\n" > "$1/bin/trainwatch"; /bin/chmod +x "$1"/bin/*;; esac'
    (tmp_path / "bin" / "python3").write_text(f"#!/bin/sh\n{made}\n")
    assert unpacked(env | {"PIP": "1"}) == 65
    assert [path.name for path in own.glob("venv*")] == ["venv"]
    assert (own / "venv").readlink() == Path("/before")
    assert unpacked(env | {"PIP": "0"}) == 0
    assert (own / "venv").readlink().name.startswith("venv-9.9-")
    assert not list(own.glob("*.whl"))
    neighbour = own.parent / "theirs"
    neighbour.write_text("")
    assert subprocess.run(["sh", "-c", remove_there_script()], env=env, check=False).returncode == 0
    assert not own.exists()
    assert neighbour.exists()


def test_a_folder_that_cannot_be_written_is_told_as_such(tmp_path: Path) -> None:
    env = machine(tmp_path, "exit 0")
    (tmp_path / "home").write_text("no folder")
    assert unpacked(env) == 66
