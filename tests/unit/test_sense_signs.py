"""Traffic of sockets, mounts that do not answer, and memory that is read back from the swap."""

import os
import socket
import struct
from pathlib import Path

import pytest

from tests.integration.sense_world import wait_until
from trainwatch.core.processes import PAGE_BYTES, Process
from trainwatch.core.sense.process.signs import (
    MountProbe,
    Paging,
    SocketBytes,
    Traffic,
    established,
    parse_message,
    worked_for,
)

HERE, THERE = "10.9.0.1", "10.9.0.2"


def message(source: str, target: str, *, family: int = socket.AF_INET, info: bytes | None = None) -> bytes:
    addresses = b"".join(socket.inet_pton(family, a).ljust(16, b"\0") for a in (source, target))
    head = struct.pack("=BBBBHH", family, 1, 0, 0, 1, 2) + addresses + bytes(12) + struct.pack("=5I", 0, 0, 0, 0, 77)
    info = info if info is not None else bytes(120) + struct.pack("=QQ", 5_000_000, 300) + bytes(80)
    return head + struct.pack("=HH", 5, 8) + bytes(4) + struct.pack("=HH", 4 + len(info), 2) + info


@pytest.mark.parametrize(
    ("source", "target", "family", "found"),
    [
        (HERE, THERE, socket.AF_INET, Traffic(77, 5_000_300)),
        ("fd00::1", "fd00::2", socket.AF_INET6, Traffic(77, 5_000_300)),
        (HERE, HERE, socket.AF_INET, None),
        (HERE, "127.0.0.1", socket.AF_INET, None),
        ("fd00::1", "::1", socket.AF_INET6, None),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.2", socket.AF_INET6, None),
    ],
)
def test_traffic_is_counted_but_not_on_loopback(source: str, target: str, family: int, found: Traffic | None) -> None:
    assert parse_message(message(source, target, family=family)) == found


def test_socket_without_counters_has_no_traffic() -> None:
    assert parse_message(message(HERE, THERE, info=bytes(100))) is None
    assert parse_message(message(HERE, THERE)[:40]) is None


def test_real_connection_on_loopback_counts_nothing() -> None:
    sockets = SocketBytes()
    assert sockets.look([os.getpid()], 0.0) == 0.0
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        other, _ = server.accept()
        with other:
            client.sendall(b"x" * 200_000)
            assert other.recv(1000)
            assert sockets.look([os.getpid()], 1.0) is None
            assert sockets.look([os.getpid()], 10.0) == 0.0
    assert isinstance(established(), list)


def test_traffic_of_a_trainer_in_another_network_namespace_is_unknown(tmp_path: Path) -> None:
    for pid, net in (("self", "net:[1]"), ("7", "net:[2]")):
        (tmp_path / pid / "ns").mkdir(parents=True)
        (tmp_path / pid / "ns" / "net").symlink_to(net)
    assert SocketBytes(str(tmp_path)).look([7], 0.0) is None


def blocked() -> list[Process]:
    """This process, as if it was blocked."""
    return [Process(os.getpid(), 7, 1, 1, 1, "D", "python")]


ROOT_IS_MOUNTED = pytest.mark.skipif(
    all(line.split()[4] != "/" for line in Path("/proc/self/mountinfo").read_text().splitlines()),
    reason="a change of root without a mount of its own: the table of mounts does not tell where this process is",
)


@ROOT_IS_MOUNTED
def test_mounts_are_asked_only_while_a_process_is_blocked() -> None:
    probe = MountProbe(after_s=0.0)
    assert probe.check([Process(os.getpid(), 7, 1, 1, 1, "S", "python")]) is None
    wait_until(lambda: probe.check(blocked()) == (), "an answer")
    assert MountProbe(after_s=60.0).check(blocked()) is None


@ROOT_IS_MOUNTED
def test_mount_that_does_not_answer_in_time_is_named_until_it_does(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    asks = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    probe = MountProbe(after_s=0.0, limit_s=0.2, question=asks)
    wait_until(lambda: bool(probe.check(blocked())), "a silent mount")
    assert all(os.path.ismount(mount) for mount in probe.check(blocked()) or ())
    gate.touch()
    wait_until(lambda: probe.check(blocked()) == (), "an answer")


def test_memory_that_is_read_back_is_no_work(tmp_path: Path) -> None:
    assert worked_for(100, 900, 0) == 900  # a mapped file
    assert worked_for(100, 900, 800) == 100  # a swap storm
    assert worked_for(1000, 900, 900) == 1000
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("pswpin 10\npswpout 3\nworkingset_refault_file 5\nnr_free 9\n")
    paging = Paging(str(vmstat))
    assert paging.read_back() == 0
    vmstat.write_text("pswpin 12\npswpout 9\nworkingset_refault_file 6\nnr_free 9\n")
    assert paging.read_back() == 3 * PAGE_BYTES
    assert Paging(str(tmp_path / "none")).read_back() == 0
