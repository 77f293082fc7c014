import os

from trainwatch.core.sense.process.proc_stat import ProcIo, parse_io, parse_stat, read_all, read_stat

NAMES = ("python", "a (b) c", "x) R 1 2 (", "tab\tname", "")


def stat_line(name: str, state: str = "S") -> str:
    rest = [7, 42, 42, 0, -1, 4194304, 0, 0, 0, 0, 11, 22, 33, 44, 20, 0, 9, 0, 5555, 1000, 25, *range(24, 51), 256]
    return f"42 ({name}) {state} " + " ".join(str(field) for field in rest) + "\n"


def test_stat_fields_are_parsed_after_any_process_name() -> None:
    for name in NAMES:
        stat = parse_stat(stat_line(name))
        assert stat is not None
        assert (stat.pid, stat.state, stat.parent) == (42, "S", 7)
        assert (stat.own_ticks, stat.children_ticks, stat.start_ticks) == (33, 77, 5555)
        assert stat.rss_bytes == 25 * os.sysconf("SC_PAGE_SIZE")


def test_invalid_stat_line_gives_none() -> None:
    for text in ("", "42", "42 (python)", "42 (python) S 1 2 3", "garbage " * 60):
        assert parse_stat(text) is None


def test_requested_bytes_and_disk_bytes_are_told_apart() -> None:
    text = "rchar: 900\nwchar: 10\nsyscr: 1\nsyscw: 1\nread_bytes: 100\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"
    assert parse_io(text) == ProcIo(900, 4096, 100)
    assert parse_io("rchar: 1\n") is None
    assert parse_io("rchar: x\nwchar: 1\nread_bytes: 1\nwrite_bytes: 1\n") is None


def test_own_process_is_among_all_processes() -> None:
    ours = read_all()[os.getpid()]
    assert ours.parent == os.getppid()
    assert ours.state == "R"
    assert read_stat(2**22 + 1) is None
