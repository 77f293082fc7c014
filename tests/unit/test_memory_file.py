"""A file in memory behind a link: what readers find when folders, the link or the writer go."""

import os
from pathlib import Path

import pytest

from trainwatch.core.store.memory_file import MemoryFile


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the folder in memory."""
    place = tmp_path / "memory"
    place.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    return place


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "sign"


def test_what_is_written_is_in_memory_and_read_by_its_name(path: Path, memory: Path) -> None:
    file = MemoryFile(path)
    file.write(b"one")
    inode = path.stat().st_ino
    file.write(b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_ino == inode
    assert path.resolve().is_relative_to(memory)
    assert path.stat().st_mode & 0o777 == 0o600
    file.close()


def test_an_ordinary_file_is_left_at_the_end(path: Path, memory: Path) -> None:
    file = MemoryFile(path)
    file.write(b"the newest")
    file.close()
    assert not path.is_symlink()
    assert path.read_bytes() == b"the newest"
    assert [each for each in memory.rglob("*") if each.is_file()] == []


def test_an_ordinary_file_of_an_earlier_version_gives_way(path: Path) -> None:
    path.write_bytes(b"older and longer")
    file = MemoryFile(path)
    file.write(b"new")
    assert path.read_bytes() == b"new"
    file.close()


def test_the_next_writer_goes_on_with_the_file_of_a_killed_one(path: Path, memory: Path) -> None:
    killed = MemoryFile(path)
    killed.write(b"old")
    file = MemoryFile(path)
    file.write(b"new")
    assert path.read_bytes() == b"new"
    assert len([each for each in memory.rglob("*") if each.is_file()]) == 1
    file.close()


@pytest.mark.parametrize("lost", ["name", "memory", "folder"])
def test_what_is_deleted_is_made_again(path: Path, lost: str) -> None:
    file = MemoryFile(path)
    file.write(b"one")
    place = path.resolve()
    if lost == "memory":
        place.unlink()
        place.parent.rmdir()
    else:
        path.unlink()
    if lost == "folder":
        path.parent.rmdir()
        with pytest.raises(OSError, match="No such file"):
            file.write(b"two")
        path.parent.mkdir()
    file.write(b"three")
    assert path.read_bytes() == b"three"
    file.close()


def test_after_a_restart_of_the_machine_the_link_leads_nowhere_and_is_used_again(path: Path) -> None:
    before = MemoryFile(path)
    before.write(b"one")
    path.resolve().unlink()
    with pytest.raises(FileNotFoundError):
        path.read_bytes()
    file = MemoryFile(path)
    file.write(b"two")
    assert path.read_bytes() == b"two"
    file.close()


@pytest.mark.parametrize("why", ["elsewhere", "no links"])
def test_without_memory_or_links_it_is_an_ordinary_file(path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    earlier = MemoryFile(path)
    earlier.write(b"in memory")
    if why == "no links":
        path.unlink()

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError("no links here")

        monkeypatch.setattr(os, "symlink", refuse)
    file = MemoryFile(path, in_memory=why == "no links")
    file.write(b"on the disk")
    assert not path.is_symlink()
    assert path.read_bytes() == b"on the disk"
    assert list(path.parent.iterdir()) == [path]
    file.close()
    assert path.read_bytes() == b"on the disk"
