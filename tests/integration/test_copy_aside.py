"""Copies of what an attempt may write over: shared blocks if the file system can, else bytes, only with room for them."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainwatch.core.checkpoints.manage.copies import copy_aside, folder_for_copies
from trainwatch.core.model.run import need_bytes


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    (folder / "state_30").mkdir(parents=True)
    (folder / "state_30" / "w.npy").write_bytes(b"w" * 5000)
    (folder / "state_30" / "last").symlink_to("w.npy")
    (folder / "whatever.q7").write_bytes(b"q" * 3000)
    return folder


@pytest.mark.parametrize("link", [False, True])
def test_files_and_folders_are_copied_and_a_copy_is_not_the_original(out: Path, link: bool) -> None:
    """A start that was read as deleting its folder wrote to ``last.pt`` in place: a link to it held no weights then."""
    target = folder_for_copies(out, out.parent / "instead", wall=0.0)
    made = copy_aside([out / "whatever.q7", out / "state_30"], target, link=link)

    assert (made.folder, made.size_bytes, made.refused) == (str(target), 8005, "")
    assert target.parent == out.parent / "out.kept"
    with (out / "whatever.q7").open("r+b") as again:  # as torch.save does: the same inode
        again.truncate(0)
    assert (target / "whatever.q7").read_bytes() == b"q" * 3000
    assert (target / "state_30" / "w.npy").read_bytes() == b"w" * 5000
    assert (target / "state_30" / "w.npy").samefile(out / "state_30" / "w.npy") == link
    assert (target / "state_30" / "last").readlink() == Path("w.npy")
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_without_room_nothing_is_copied(out: Path) -> None:
    target = out.parent / "out.kept" / "1"
    made = copy_aside([out / "whatever.q7"], target, clone=lambda *_: False, spare_bytes=1 << 62)

    assert (made.folder, made.no_room, "one more save need" in made.refused) == ("", True, True)
    assert list((out.parent / "out.kept").iterdir()) == []
    clone = lambda source, to: bool(os.write(to, os.pread(source, 1 << 20, 0)))  # noqa: E731  it takes no room
    assert copy_aside([out / "whatever.q7"], target, clone=clone, spare_bytes=1 << 62).size_bytes == 3000
    linked = copy_aside(
        [out / "whatever.q7"], target.with_name("2"), link=True, clone=lambda *_: False, spare_bytes=1 << 62
    )
    assert Path(linked.folder, "whatever.q7").samefile(out / "whatever.q7"), "better than no start at all"


@pytest.mark.parametrize(("free", "refused"), [(12_288, ""), (6_000, "one more save need 6.41 kB")])
def test_a_small_disk_needs_as_much_as_a_launch_on_it(
    out: Path, monkeypatch: pytest.MonkeyPatch, free: int, refused: str
) -> None:
    """4 kB checkpoints on a disk of 40 kB were held for 64 MB that it never has."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=40_960, free=free))
    made = copy_aside([out / "whatever.q7"], out.parent / "out.kept" / "1", clone=lambda *_: False)

    assert made.refused.endswith(refused)
    assert made.no_room == bool(refused)
    assert need_bytes(3000, 40_960) == 6_409.6


def test_a_disk_that_fails_is_an_error_and_leaves_nothing(out: Path) -> None:
    def fails(source: int, target: int) -> bool:
        del source, target
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        copy_aside([out / "whatever.q7"], out.parent / "out.kept" / "1", clone=fails)
    assert list((out.parent / "out.kept").iterdir()) == []


def test_where_nothing_can_be_written_beside_the_folder_the_run_keeps_the_copies(tmp_path: Path) -> None:
    out = tmp_path / "missing" / "out"

    assert folder_for_copies(out, tmp_path / "run" / "kept").parent == tmp_path / "run" / "kept"


def test_two_files_of_one_name_are_both_copied(out: Path) -> None:
    for number in ("1", "2"):
        (out / number).mkdir()
        (out / number / "last.pt").write_text(number)

    made = copy_aside([out / "1" / "last.pt", out / "2" / "last.pt"], out.parent / "out.kept" / "1")

    assert [(Path(made.folder) / number / "last.pt").read_text() for number in ("1", "2")] == ["1", "2"]


def test_of_a_link_what_it_leads_to_is_copied(out: Path) -> None:
    (out / "last.q7").symlink_to("whatever.q7")

    made = copy_aside([out / "last.q7"], out.parent / "out.kept" / "1")

    with (out / "last.q7").open("wb"):  # a save through the link
        pass
    assert (Path(made.folder) / "last.q7").read_bytes() == b"q" * 3000
