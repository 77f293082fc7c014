"""What the GPU page and the host page show beyond the samples: parsed from /proc, and kept while somebody looks."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from trainwatch.core.model.machine_details import GpuDetails, HostDetails
from trainwatch.core.sense.host import host_details
from trainwatch.core.sense.host.host_details import Counters, HostDetailReadings, rates
from trainwatch.core.sense.process.proc_stat import read_all, read_io, read_stat
from trainwatch.core.sense.process.process_tree import Member, TreeDetailReadings
from trainwatch.core.sense.process.run_tree import CpuShares, UserNames, command_of
from trainwatch.core.store.detail_files import LOOKED_S, DetailFiles, DetailReader

STAT = """cpu  100 0 100 800 0 0 0 0 0 0
cpu0 60 0 40 400 0 0 0 0 0 0
cpu1 40 0 60 400 0 0 0 0 0 0
intr 1
"""
DISKS = """ 259 0 nvme0n1 100 0 2000 50 10 0 4000 20 0 70 90 0 0 0 0
 259 1 nvme0n1p1 90 0 1900 40 9 0 3900 10 0 60 80 0 0 0 0
   7 0 loop0 10 0 20 0 0 0 0 0 0 0 0
 253 0 dm-0 5 0 100 0 0 0 0 0 0 10 0
"""
NETWORKS = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  999999    1    0    0    0     0          0         0   999999    1    0    0    0     0       0          0
  eth0: 1000       1    0    0    0     0          0         0     2000    1    0    0    0     0       0          0
veth12: 5          1    0    0    0     0          0         0        5    1    0    0    0     0       0          0
"""


def counters(t: float, **changed: object) -> Counters:
    usual: dict[str, object] = {
        "cores": host_details.parse_cores(STAT),
        "swap": (0, 0),
        "disks": host_details.parse_disks(DISKS),
        "networks": host_details.parse_networks(NETWORKS),
    }
    return Counters(t=t, **(usual | changed))  # type: ignore[arg-type]


def test_only_whole_disks_and_outside_networks_are_counted() -> None:
    now = counters(0.0)
    assert dict(now.disks) == {"nvme0n1": (2000 * 512, 4000 * 512, 70)}
    assert dict(now.networks) == {"eth0": (1000, 2000)}
    assert dict(now.cores) == {0: (100, 500), 1: (100, 500)}


def test_rates_are_per_second_between_two_readings() -> None:
    later = counters(
        2.0,
        cores={0: (150, 600), 1: (100, 600)},
        swap=(4096, 0),
        disks={"nvme0n1": (2000 * 512 + 2_000_000, 4000 * 512, 70 + 500)},
        networks={"eth0": (1000, 2000 + 300)},
    )
    found = rates(counters(0.0), later)
    assert found.cores_pct == (50.0, 0.0)
    assert (found.swap_in, found.swap_out) == (2048.0, 0.0)
    assert found.disks is not None
    assert found.networks is not None
    (disk,), (network,) = found.disks, found.networks
    assert (disk.received, disk.sent, disk.busy_pct) == (1_000_000.0, 0.0, 25.0)
    assert (network.received, network.sent) == (0.0, 150.0)


def test_a_counter_that_fell_and_the_first_reading_are_unknown_and_not_zero() -> None:
    found = rates(counters(0.0), counters(1.0, networks={"eth0": (10, 3000)}))
    assert found.networks is not None
    assert found.networks[0].received is None
    first = rates(counters(0.0), counters(0.0))
    assert first.cores_pct == (None, None)
    assert first.disks is not None
    assert first.disks[0].received is None


def test_a_core_that_is_switched_off_is_unknown() -> None:
    found = rates(counters(0.0), counters(1.0, cores={0: (150, 600), 2: (1, 2)}))
    assert found.cores_pct == (50.0, None, None)


def test_the_temperature_is_that_of_a_sensor_of_the_processor(tmp_path: Path) -> None:
    for number, (name, value) in enumerate((("nvme", 30_000), ("k10temp", 61_500), ("acpitz", 20_000))):
        folder = tmp_path / "sys" / "class" / "hwmon" / f"hwmon{number}"
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "temp1_input").write_text(f"{value}\n")
    assert HostDetailReadings(tmp_path, tmp_path / "sys").look(0.0).cpu_temp_c == 61.5
    nothing = HostDetailReadings(tmp_path / "none", tmp_path / "none").look(0.0)
    assert nothing == HostDetails(t=0.0, disks=(), networks=())


def test_only_local_disks_are_asked_for_their_room_each_once() -> None:
    text = (
        "1 0 259:1 / / rw - ext4 /dev/a rw\n2 1 259:1 /x /home rw - ext4 /dev/a rw\n"
        "3 1 0:40 / /net rw - nfs4 host:/x rw\n4 1 259:9 / /data rw - xfs /dev/b rw\n5 1 0:2 / /proc rw - proc proc rw\n"
    )
    assert host_details.local_mounts(text) == ["/", "/data"]


def test_this_machine_is_read() -> None:
    readings = HostDetailReadings()
    readings.look(0.0)
    found = readings.look(1.0)
    assert len(found.cores_pct) >= (os.cpu_count() or 1) - 1
    assert found.load is not None
    assert found.ram_cached_bytes


def test_processes_of_a_tree_stand_below_their_parents_with_user_and_command() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        me, other = read_stat(os.getpid()), read_stat(child.pid)
        assert me is not None
        assert other is not None
        members = {stat.pid: Member(stat, read_io(stat.pid)) for stat in (other, me)}
        readings = TreeDetailReadings()
        everyone = read_all()
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
    shares = CpuShares()
    stat = read_stat(os.getpid())
    assert stat is not None
    assert shares.of(stat, 1.0) is None, "one look is no rate"


def test_details_are_wanted_while_somebody_looks(tmp_path: Path) -> None:
    desk, reader = DetailFiles(tmp_path), DetailReader(tmp_path)
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
    assert DetailReader(tmp_path).look().host is None
    DetailFiles(tmp_path / "gone").put(HostDetails(t=0.0))
    assert DetailReader(tmp_path / "gone").look().gpus is None
