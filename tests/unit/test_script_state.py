"""A script that was changed between two attempts."""

from pathlib import Path

from trainwatch.core.act.launch.launching import keep, kept, read_script
from trainwatch.core.model.preset import ScriptChange, ScriptState, change_of

BEFORE = ScriptState(path="/w/train.py", size=9, mtime=100.0, sha256="aa")


def test_another_content_is_a_change_and_a_newer_time_alone_is_none() -> None:
    now = ScriptState(path="/w/train.py", size=9, mtime=160.0, sha256="bb")
    touched = ScriptState(path="/w/train.py", size=9, mtime=160.0, sha256="aa")

    assert change_of(BEFORE, now, 1) == ScriptChange(path="/w/train.py", mtime=160.0, attempt=1)
    assert change_of(BEFORE, touched, 1) is None


def test_nothing_is_said_of_what_is_not_known() -> None:
    elsewhere = ScriptState(path="/w/other.py", size=1, mtime=1.0, sha256="bb")

    assert change_of(None, BEFORE, 1) is None
    assert change_of(BEFORE, None, 1) is None
    assert change_of(BEFORE, elsewhere, 1) is None


def test_the_script_of_a_launch_is_kept_in_its_folder(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("lr = 1e-3\n")
    folder = tmp_path / "0001"
    folder.mkdir()
    assert kept(folder) is None
    keep(folder, read_script(script))
    script.write_text("lr = 5e-1\n")

    changed = change_of(kept(folder), read_script(script), 1)

    assert changed is not None
    assert changed.path == str(script)
    assert read_script(tmp_path / "none.py") is None
