"""A log's own colours, bars and messages on one line, and rows that end at words."""

import pytest

from trainwatch.core.model.log_lines import LogLine
from trainwatch.core.sense.log.log_browser import painted, visible
from trainwatch.tui.log.log_view import colours_of, drawn, rows_of
from trainwatch.tui.ui.cells import width_of, wrapped

BAR = "steps:  60%|██████    | 6120/10260 [4:15:00<2:52:30, 2.50s/it, avr_loss=0.0912]"


@pytest.mark.parametrize(
    ("raw", "colours"),
    [
        (b"plain", ()),
        (b"\x1b[31mred\x1b[0m end", ((0, 3, "color(1)"),)),
        (b"\x1b[1;32mok\x1b[22m fine\x1b[39m.", ((0, 2, "bold color(2)"), (2, 7, "color(2)"), (7, 8, "default"))),
        (b"a \x1b[38;5;208mb\x1b[m", ((2, 3, "color(208)"),)),
        (b"\x1b[38;2;1;2;3;48;5;232mrgb", ((0, 3, "#010203 on color(232)"),)),
        (b"\x1b[97;101mx", ((0, 1, "color(15) on color(9)"),)),
        (b"\x1b[5;8mhidden\x1b[2J\x1b[H", ()),
        (b"\x1b[31mold\r\x1b[32mnew", ((0, 3, "color(2)"),)),
        (b"\x1b[31mkept\r", ((0, 4, "color(1)"),)),
        (b"\x1b[38;5mbroken \x1b[999mnumbers", ()),
        ("\x1b[36m漢\x07é\x1b[0m".encode(), ((0, 2, "color(6)"),)),
    ],
)
def test_colours_of_a_log_line_are_kept_and_other_sequences_removed(
    raw: bytes, colours: tuple[tuple[int, int, str], ...]
) -> None:
    shown = painted(raw)
    assert shown.text == visible(raw)
    assert colours_of(LogLine(0, 1, shown.text, ansi=shown.ansi)) == colours
    assert "\x1b" not in shown.text


def test_a_message_printed_over_a_bar_keeps_the_bar_on_a_row_of_its_own() -> None:
    over = painted(f"\r{BAR}\r{' ' * 90}\rsaving checkpoint: a.safetensors".encode())
    assert (over.text, over.bar) == ("saving checkpoint: a.safetensors", BAR)
    assert painted(f"\r{BAR}\r{BAR}".encode()).bar == ""
    assert painted(b"one state\ranother").bar == ""


def test_a_message_printed_behind_a_bar_stands_on_a_row_of_its_own() -> None:
    behind = painted(f"\r{BAR}saving checkpoint: a.safetensors".encode())
    assert behind.text[behind.cut :] == "saving checkpoint: a.safetensors"
    assert painted(BAR.encode()).cut == 0
    assert painted(b"12it [00:03,  3.50it/s]WARNING: late").cut == len("12it [00:03,  3.50it/s]")
    assert painted(b"INFO list [1, 2] of values").cut == 0
    line = LogLine(0, 1, behind.text, cut=behind.cut)
    rows = ["".join(text for _, text in row) for row in drawn(line, 100, None, "…", wrap=True)]
    assert rows == [BAR, "saving checkpoint: a.safetensors"]
    assert rows_of(line, 100) == 2


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("", 10, [""]),
        ("short", 10, ["short"]),
        ("two words here", 9, ["two words", "here"]),
        ("two words here", 8, ["two", "words", "here"]),
        ("exactly ten", 11, ["exactly ten"]),
        ("/a/path/that/is/longer", 10, ["/a/path/", "that/is/", "longer"]),
        ("    indented code that goes on", 16, ["    indented", "code that goes", "on"]),
        ("漢字 漢字 漢字", 10, ["漢字 漢字", "漢字"]),
        ("trailing   ", 9, ["trailing ", " "]),
    ],
)
def test_log_lines_wrap_at_words_and_only_longer_words_are_split(text: str, width: int, rows: list[str]) -> None:
    found = wrapped(text, width, 2)
    assert [text[begin:end] for begin, end in found] == rows
    assert all(width_of([("", text[a:b])]) <= width - (2 if n else 0) for n, (a, b) in enumerate(found))


def test_a_row_shows_own_colours_and_what_was_found() -> None:
    import re

    shown = painted(b"loss \x1b[32m0.25\x1b[0m ERROR: no")
    line = LogLine(0, 1, shown.text, ansi=shown.ansi)
    (row,) = drawn(line, 80, re.compile("25"), "…", wrap=True)
    assert row == (
        ("spark-danger", "loss "),
        ("own:color(2)", "0."),
        ("match", "25"),
        ("spark-danger", " ERROR: no"),
    )
    (cut_row,) = drawn(line, 10, None, "…", wrap=False)
    assert "".join(text for _, text in cut_row) == "loss 0.25…"
    (marked,) = drawn(line, 80, None, "…", wrap=True, marked=True)
    assert marked == (("cursor", "loss 0.25 ERROR: no"),)
