"""What counts as trainwatch's own files."""

from pathlib import Path

from trainwatch.core.app.supervise import state_keeper
from trainwatch.core.app.supervise.state_keeper import PACKAGE, fingerprint


def test_its_own_files_are_those_of_the_package_and_nothing_beside_them() -> None:
    assert PACKAGE.name == "trainwatch"
    assert (PACKAGE / "core" / "app" / "supervise" / Path(state_keeper.__file__).name).is_file()
    assert not (PACKAGE / "tests").exists(), "a test that is edited is no upgrade"


def test_a_source_file_that_is_replaced_added_or_removed_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    file = tmp_path / "core" / "a.py"
    file.write_text("a = 1\n")
    seen = [fingerprint(tmp_path)]
    (tmp_path / "core" / "__pycache__").mkdir()
    (tmp_path / "core" / "__pycache__" / "a.py").write_text("")
    (tmp_path / "core" / "notes.txt").write_text("")
    assert fingerprint(tmp_path) == seen[0]
    file.write_text("a = 22\n")
    seen.append(fingerprint(tmp_path))
    (tmp_path / "b.toml").write_text("")
    seen.append(fingerprint(tmp_path))
    file.unlink()
    seen.append(fingerprint(tmp_path))
    assert len(set(seen)) == 4
