import os
from pathlib import Path

from tests.integration.sense_world import ListInbox, RunClock, running, wait_until
from trainwatch.core.model.observation import KernelLine
from trainwatch.core.sense.host.kernel_log import LINES_PER_S, KernelLog, parse_record


def record(text: str, sequence: int = 1) -> bytes:
    return f"6,{sequence},5140900,-;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n".encode()


def test_a_kernel_record_is_its_first_line() -> None:
    assert parse_record(record("NVRM: Xid (PCI:0000:01:00): 79")) == "NVRM: Xid (PCI:0000:01:00): 79"
    assert parse_record(rb"4,5,6,-;caf\xc3\xa9") == "caf\xc3\xa9"
    assert parse_record(b" SUBSYSTEM=pci") is None
    assert parse_record(b"") is None


def test_relevant_kernel_lines_are_reported_and_bounded_in_number(tmp_path: Path) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    keep = os.open(pipe, os.O_RDWR)
    inbox = ListInbox()
    sensor = KernelLog(inbox=inbox, clock=RunClock(), device=str(pipe), interval_s=0.002)
    try:
        with running(sensor):
            for text in ("usb 1-1: new device", "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."):
                os.write(keep, record(text))
                if "usb" in text:
                    wait_until(lambda: _empty(keep), "the first record to be taken")
            (line,) = wait_until(lambda: inbox.of(KernelLine), "the line")
            assert line.text.startswith("NVRM: Xid")
            for number in range(LINES_PER_S * 2):
                os.write(keep, record(f"misc dxg: dxgk: {number}"))
                wait_until(lambda: _empty(keep), "the record to be taken")
        assert len(inbox.of(KernelLine)) <= LINES_PER_S * 2
    finally:
        os.close(keep)


def _empty(fd: int) -> bool:
    import fcntl
    import struct
    import termios

    waiting: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    return waiting == 0


def test_an_unreadable_kernel_log_is_reported_once(tmp_path: Path) -> None:
    trouble: list[str] = []
    sensor = KernelLog(inbox=ListInbox(), clock=RunClock(), device=str(tmp_path / "none"), on_problem=trouble.append)
    with running(sensor):
        wait_until(lambda: trouble, "a word about it")
    assert len(trouble) == 1
    assert "kernel log cannot be read" in trouble[0]


def test_the_real_kernel_log_reader_stops_at_once() -> None:
    with running(KernelLog(inbox=ListInbox(), clock=RunClock())):
        pass
