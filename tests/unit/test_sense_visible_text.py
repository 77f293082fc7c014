"""A log line becomes the text that a terminal would show."""

import pytest

from trainwatch.core.sense.log.visible_text import LINE_CHARS, visible


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


def test_long_terminal_lines_are_cut() -> None:
    assert len(visible(b"x" * 100_000)) == LINE_CHARS
