"""The lines of a log with their places: the same lines whichever way they are read."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from trainwatch.core.model.log_lines import LogLine, LogStretch
from trainwatch.core.sense.log import log_browser
from trainwatch.core.sense.log.log_browser import FileLogBrowser, LineMatcher, visible

READER = FileLogBrowser()


def never() -> bool:
    return False


def everything_before(path: Path, lines: int, only: re.Pattern[str] | None = None) -> list[LogLine]:
    found: list[LogLine] = []
    at = READER.size(str(path))
    while at > 0:
        page = READER.before(str(path), at, lines, only)
        found[:0] = page.lines
        at = page.start
    return found


def everything_after(path: Path, lines: int, only: re.Pattern[str] | None = None) -> list[LogLine]:
    found: list[LogLine] = []
    at = 0
    while True:
        page = READER.after(str(path), at, lines, only)
        found += page.lines
        if page.end == at or page.end >= page.file_size or (page.lines and page.lines[-1].open):
            return found
        at = page.end


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_browser, "BLOCK_BYTES", 64)
    monkeypatch.setattr(log_browser, "SCAN_BYTES", 96)
    monkeypatch.setattr(log_browser, "LONGEST_LINE", 4096)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    rows = [f"line {i}" + " é" * (i % 3) for i in range(500)]
    rows[77] = "\r 10%|#  |\r 20%|## |\r 30%|###|"
    rows[78] = ""
    rows[200] = "\x1b[31mloss=nan\x1b[0m"
    path.write_text("\n".join(rows) + "\n\r 1%|\r 2%|", newline="")
    return path


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("lines", [1, 3, 7, 600])
def test_forwards_and_backwards_are_the_same_lines(log: Path, lines: int) -> None:
    forwards, backwards = everything_after(log, lines), everything_before(log, lines)
    assert forwards == backwards
    assert len(forwards) == 501
    assert all(a.offset + a.size == b.offset for a, b in pairwise(forwards))
    assert forwards[77].states == 3
    assert forwards[77].text == " 30%|###|"
    assert forwards[-1].open
    assert forwards[-1].text == " 2%|"


def test_unfinished_log_line_is_excluded_from_the_end_of_the_page(log: Path) -> None:
    page = READER.before(str(log), READER.size(str(log)), 5)
    assert page.lines[-1].open
    assert page.end == page.lines[-1].offset
    hidden = READER.before(str(log), READER.size(str(log)), 5, re.compile("line"))
    assert hidden.end == page.end


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("pattern", ["line 1.3", "loss=nan", "^line 4", "nothing", "30%", "é$", r"2%\|"])
def test_log_search_and_filter_agree(log: Path, pattern: str) -> None:
    compiled = re.compile(pattern)
    expected = [line.offset for line in everything_after(log, 900, compiled)]
    at, found = 0, []
    while (hit := READER.find(str(log), compiled, at, backwards=False, stopped=never)) is not None:
        found.append(hit)
        at = hit + 1
    assert found == expected
    at, found = READER.size(str(log)), []
    while (hit := READER.find(str(log), compiled, at, backwards=True, stopped=never)) is not None:
        found.append(hit)
        at = hit
    assert found[::-1] == expected


@pytest.mark.usefixtures("small_blocks")
def test_log_line_is_found_by_its_number(log: Path) -> None:
    lines = everything_after(log, 900)
    for number in (1, 2, 78, 79, 201, 500):
        assert READER.line_at(str(log), number, never) == lines[number - 1].offset
    assert READER.line_at(str(log), 9999, never) is None


def test_an_endless_log_line_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_browser, "LONGEST_LINE", 1000)
    monkeypatch.setattr(log_browser, "BLOCK_BYTES", 500)
    monkeypatch.setattr(log_browser, "SCAN_BYTES", 500)
    path = tmp_path / "bar.log"
    path.write_bytes(b"begin\n" + b"".join(b"\r step %05d" % i for i in range(2000)))
    page = READER.before(str(path), READER.size(str(path)), 3)
    assert page.lines[-1].text == " step 01999"
    assert sum(line.size for line in page.lines) < 5000
    assert everything_before(path, 50)[0].text == "begin"
    assert everything_after(path, 50)[0].text == "begin"


def test_a_missing_log_has_no_lines(tmp_path: Path) -> None:
    path = str(tmp_path / "none.log")
    assert READER.size(path) == 0
    assert READER.before(path, 100, 10) == READER.after(path, 0, 10) == LogStretch()
    assert READER.find(path, re.compile("x"), 0, backwards=False, stopped=never) is None
    assert READER.line_at(path, 1, never) is None


@pytest.mark.parametrize("text", [b"nothing\n", b"No Such Thing\n", b"no s\x07uch thing\n", b"no \xc5\xbfuch thing\n"])
def test_case_insensitive_word_search_equals_a_regular_expression(text: bytes) -> None:
    pattern = re.compile("no such thing", re.IGNORECASE)
    assert bool(list(LineMatcher(pattern).numbers(text))) == bool(pattern.search(visible(text)))
