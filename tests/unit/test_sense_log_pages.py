import os
from pathlib import Path

import pytest

from trainwatch.core.sense.log.log_pages import LINE_CHARS, LogPages, visible

PAGES = LogPages()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain", "plain"),
        (b"\x1b[31mred\x1b[0m and \x1b]0;title\x07on", "red and on"),
        (b"\r 10%|#  |\r 20%|## |", " 20%|## |"),
        (b" 20%|## |\r", " 20%|## |"),
        (b"done\r\n"[:-1], "done"),
        (b"bar\r        \r", "bar"),
        (b"a\x00b\x07c\x08", "abc"),
        (b"\xff\xfe ok", "�� ok"),
        ("漢é".encode(), "漢é"),
        (b"\x1b[2K\x1b[1Aup", "up"),
    ],
)
def test_line_is_shown_as_a_terminal_would_leave_it(raw: bytes, shown: str) -> None:
    assert visible(raw) == shown


def test_long_lines_are_cut() -> None:
    assert len(visible(b"x" * 100_000)) == LINE_CHARS


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_bytes(b"".join(f"line {i}\n".encode() for i in range(5000)) + b"\r 10%|# |\r 20%|##|")
    return path


def test_tail_returns_whole_lines_and_the_unfinished_one(log: Path) -> None:
    page = PAGES.tail(str(log), 3)
    assert page.lines == ("line 4997", "line 4998", "line 4999")
    assert page.unfinished == " 20%|##|"
    assert page.at_end


def test_following_returns_each_new_line_once(log: Path) -> None:
    page = PAGES.tail(str(log), 3)
    with log.open("ab") as file:
        file.write(b"\r 30%|###|\nnext\nhalf")
    later = PAGES.after(str(log), page.end)
    assert (later.lines, later.unfinished) == ((" 30%|###|", "next"), "half")
    assert PAGES.after(str(log), later.end).lines == ()


def test_long_progress_bar_is_read_from_its_last_state(tmp_path: Path) -> None:
    path = tmp_path / "bar.log"
    path.write_bytes(b"start\n" + b"".join(f"\r{i:6d}/999999 [loss=0.1]".encode() for i in range(100_000)))
    page = PAGES.tail(str(path), 10)
    assert page.unfinished == " 99999/999999 [loss=0.1]"
    at, pages = 0, 0
    while not (page := PAGES.after(str(path), at)).at_end:
        assert page.end > at
        at, pages = page.end, pages + 1
    assert page.unfinished == " 99999/999999 [loss=0.1]"
    assert pages < 20


def test_search_works_in_both_directions(log: Path) -> None:
    first = PAGES.search(str(log), "line 1234$", 0, backwards=False)
    assert first is not None
    assert PAGES.after(str(log), first, 20).lines[0] == "line 1234"
    again = PAGES.search(str(log), r"line 12\d4", first + 1, backwards=False)
    assert again is not None
    assert PAGES.after(str(log), again, 20).lines[0] == "line 1244"
    assert PAGES.search(str(log), r"line 12\d4", again, backwards=True) == first
    assert PAGES.search(str(log), "20%", 0, backwards=False) is not None
    assert PAGES.search(str(log), "nothing of it", 0, backwards=False) is None
    assert PAGES.search(str(log), "nothing of it", 10**9, backwards=True) is None


def test_invalid_pattern_is_searched_literally(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a\nvalue [loss\nb\n")
    assert PAGES.search(str(path), "[loss", 0, backwards=False) == 2


def test_search_matches_visible_text_only(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"old hidden\rnew\nlo\x1b[1mss\x1b[0m=3\n")
    assert PAGES.search(str(path), "hidden", 0, backwards=False) is None
    assert PAGES.search(str(path), "loss=3", 0, backwards=False) == 15


def test_lines_longer_than_a_search_block(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first\n" + b"y" * (3 << 20) + b"\nlast hit\n")
    at = PAGES.search(str(path), "last hit", 0, backwards=False)
    assert at == 6 + (3 << 20) + 1
    assert PAGES.search(str(path), "last hit", path.stat().st_size, backwards=True) == at
    assert PAGES.search(str(path), "first", path.stat().st_size, backwards=True) == 0


def test_cost_of_a_page_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as file:
        file.truncate(50 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    assert PAGES.tail(str(path), 1).lines == ("last",)
    assert len(PAGES.before(str(path), 1 << 30, 10).lines) <= 10
    assert PAGES.after(str(path), 10 << 30).end > 10 << 30


def test_missing_truncated_and_unreadable_logs_are_handled(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert PAGES.tail(str(path), 5).lines == ()
    assert PAGES.search(str(path), "x", 0, backwards=False) is None
    path.write_text("a\nb\n")
    assert PAGES.after(str(path), 10_000).lines == ("a", "b")
    assert PAGES.before(str(path), 10_000, 1).lines == ("b",)
    with pytest.raises(IsADirectoryError):
        PAGES.tail(str(tmp_path), 5)
