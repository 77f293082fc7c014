"""What the GPU page and the host page show beyond the samples: parsed from /proc, and kept while somebody looks."""

import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from trainwatch.core.model.machine_details import GpuDetails, HostDetails
from trainwatch.core.processes import all_processes, read_io, read_process
from trainwatch.core.sense.host.host_sensor import HostDetailReadings, mounts, read_machine, traffic
from trainwatch.core.sense.process.process_tree import Member, TreeDetailReadings
from trainwatch.core.sense.process.run_tree import Rates, UserNames, command_of
from trainwatch.core.store.latest import LOOKED_S, DetailFiles


def test_rates_are_per_second_and_a_counter_that_fell_is_unknown_and_not_zero() -> None:
    before = {"nvme0n1": (1000, 2000, 70), "eth0": (1000, 2000), "eth1": (10, 0), "unused": (0, 0)}
    now = {"nvme0n1": (2_001_000, 2000, 570), "eth0": (1000, 2300), "eth1": (5, 0), "new": (7, 7), "unused": (0, 0)}
    found = {each.name: each for each in traffic(before, now, 2.0)}
    assert found.keys() == {"nvme0n1", "eth0", "eth1", "new"}
    disk = found["nvme0n1"]
    assert (disk.received, disk.sent, disk.busy_pct) == (1_000_000.0, 0.0, 25.0)
    assert (found["eth0"].received, found["eth0"].sent) == (0.0, 150.0)
    assert (found["eth1"].received, found["new"].received) == (None, None)
    assert traffic(now, now, 0.0)[0].received is None, "the first reading"


def test_the_temperature_is_that_of_a_sensor_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    sensors = {"nvme": [SimpleNamespace(current=30.0)], "acpitz": [SimpleNamespace(current=20.0)]}
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: sensors)
    now = read_machine()
    assert HostDetailReadings().look(0.0, None, now).cpu_temp_c == 20.0
    sensors["k10temp"] = [SimpleNamespace(current=61.5)]
    assert HostDetailReadings().look(0.0, None, now).cpu_temp_c == 61.5


def test_only_local_disks_are_asked_for_their_room_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    places = (
        ("/dev/a", "/", "ext4"),
        ("/dev/a", "/home", "ext4"),
        ("host:/x", "/net", "nfs4"),
        ("proc", "/proc", "proc"),
    )
    parts = [SimpleNamespace(device=device, mountpoint=point, fstype=kind) for device, point, kind in places]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: parts)
    assert [each.path for each in mounts()] == ["/"]


def test_this_machine_is_read() -> None:
    readings = HostDetailReadings()
    before = read_machine()
    readings.look(0.0, None, before)
    found = readings.look(1.0, before, read_machine())
    assert len(found.cores_pct) >= (os.cpu_count() or 1) - 1
    assert found.load is not None
    assert found.ram_cached_bytes


def test_processes_of_a_tree_stand_below_their_parents_with_user_and_command() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        me, other = read_process(os.getpid()), read_process(child.pid)
        assert me is not None
        assert other is not None
        members = {stat.pid: Member(stat, read_io(stat.pid)) for stat in (other, me)}
        readings = TreeDetailReadings()
        everyone = all_processes()
        readings.look(members, everyone, 0.0)
        seen = readings.look(members, everyone, 1.0)
        found = seen.processes
        assert not {row.pid for row in seen.others} & set(members)
        assert 1 <= len(seen.others) <= 24
        assert [(row.pid, row.depth) for row in found] == [(os.getpid(), 0), (child.pid, 1)]
        assert found[1].command == "sleep 60"
        assert (found[1].cpu_pct, found[1].read) == (0.0, 0.0)
        assert found[0].rss_bytes
    finally:
        child.kill()
        child.wait()


def test_a_name_that_no_directory_knows_is_the_number() -> None:
    names = UserNames()
    names._ask(3_999_999_999)
    assert names._known[3_999_999_999] == "3999999999"
    assert names.of(2**22 + 1) is None
    assert command_of(2**22 + 1) is None
    shares = Rates()
    stat = read_process(os.getpid())
    assert stat is not None
    assert shares.cpu_pct(stat, 1.0) is None, "one look is no rate"


def test_details_are_wanted_while_somebody_looks(tmp_path: Path) -> None:
    desk, reader = DetailFiles(tmp_path), DetailFiles(tmp_path)
    assert not desk.wanted()
    assert reader.look().host is None
    assert desk.wanted()
    desk.put(HostDetails(t=3.0, cores_pct=(1.0, None)))
    desk.put(GpuDetails(t=4.0, driver="570"))
    found = reader.look()
    assert found.host == HostDetails(t=3.0, cores_pct=(1.0, None))
    assert found.gpus == GpuDetails(t=4.0, driver="570")
    assert found.tree is None
    old = time.time() - LOOKED_S - 1
    os.utime(tmp_path / "details.looked", (old, old))
    assert not desk.wanted()


@pytest.mark.parametrize("damage", [b"", b"\0" * 8, b"1234\0\0\0\x05junk!"])
def test_a_damaged_file_of_details_is_unknown(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "details.host").write_bytes(damage)
    assert DetailFiles(tmp_path).look().host is None
    DetailFiles(tmp_path / "gone").put(HostDetails(t=0.0))
    assert DetailFiles(tmp_path / "gone").look().gpus is None
