import os
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.integration.sense_world import HandClock, ListInbox, target, wait_until
from trainwatch.core.model.observation import HostSample
from trainwatch.core.model.run import ProcessIdentity
from trainwatch.core.sense.host import host_sensor
from trainwatch.core.sense.host.disk_space import DiskSpace, Room, room_of
from trainwatch.core.sense.host.host_sensor import (
    Host,
    HostMemory,
    MemoryLimit,
    TrainerMemory,
    memory_limit,
    trainer_memory,
)

GIB = 2**30
MEMINFO = (
    "MemTotal:       33554432 kB\nMemFree: 1 kB\nMemAvailable:   16777216 kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n"
)


def test_memory_limit_is_the_lower_of_host_and_control_group() -> None:
    host = HostMemory(32.0 * GIB, 16.0 * GIB, None, None)
    assert trainer_memory(host, None) == TrainerMemory(32.0 * GIB, 16.0 * GIB, 16.0 * GIB)
    assert trainer_memory(host, MemoryLimit(64 * GIB, GIB, 0)) == TrainerMemory(32.0 * GIB, 16.0 * GIB, 16.0 * GIB)
    assert trainer_memory(host, MemoryLimit(8 * GIB, 3 * GIB, 0)) == TrainerMemory(8.0 * GIB, 3.0 * GIB, 5.0 * GIB)
    assert trainer_memory(host, MemoryLimit(30 * GIB, GIB, 0)).available == 16.0 * GIB
    assert trainer_memory(HostMemory(None, None, None, None), None) == TrainerMemory(None, None, None)


def group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def proc_with(tmp_path: Path, *, cgroup: str, mount: str) -> Path:
    proc = tmp_path / "proc"
    for name, text in {"self/cgroup": cgroup, "self/mountinfo": mount, "7/cgroup": cgroup}.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(text)
    return proc


def test_cgroup_v2_limit_is_the_tightest_of_all_parents(tmp_path: Path) -> None:
    base = tmp_path / "cg"
    group(base / "user/run", memory__max="max", memory__current=5 * GIB)
    stat = "anon 1\ninactive_file 1073741824"
    group(base / "user", memory__max=8 * GIB, memory__current=6 * GIB, memory__stat=stat, memory__events="oom_kill 2")
    proc = proc_with(tmp_path, cgroup="0::/user/run\n", mount=f"30 24 0:26 / {base} rw - cgroup2 cgroup2 rw\n")
    assert memory_limit(7, proc=proc) == MemoryLimit(8 * GIB, 5 * GIB, 2, base / "user")


def test_kills_of_the_group_are_counted_after_its_process_ended(tmp_path: Path) -> None:
    base = tmp_path / "cg"
    group(base / "run", memory__max=GIB, memory__current=1, memory__events="oom_kill 0")
    proc = proc_with(tmp_path, cgroup="0::/run\n", mount=f"30 24 0:26 / {base} rw - cgroup2 cgroup2 rw\n")
    (proc / "meminfo").write_text(MEMINFO)
    (proc / "vmstat").write_text("oom_kill 40\n")
    (proc / "self/cgroup").write_text("0::/\n")
    inbox = ListInbox()
    host = Host(inbox=inbox, clock=HandClock(), interval_s=1.0, proc=proc)
    host.target = target(ProcessIdentity(boot_id="b", pid=7, start_ticks=1))
    host.sample()
    (proc / "7/cgroup").unlink()
    (base / "run/memory.events").write_text("oom_kill 1\n")
    host.sample()
    (base / "run/memory.max").unlink()  # the group is gone, too
    host.sample()
    folder = str(base / "run")
    counted = [(each.oom_kills, each.oom_counter) for each in inbox.of(HostSample)]
    assert counted == [(0, folder), (1, folder), (40, "machine")]


def test_cgroup_v1_limit_and_unlimited_are_parsed(tmp_path: Path) -> None:
    base = tmp_path / "memory"
    group(base / "job", memory__limit_in_bytes=4 * GIB, memory__usage_in_bytes=GIB, memory__oom_control="oom_kill 1")
    group(base, memory__limit_in_bytes=9223372036854771712, memory__usage_in_bytes=GIB)
    mount = f"31 24 0:27 / {base} rw - cgroup cgroup rw,memory\n"
    assert memory_limit("self", proc=proc_with(tmp_path, cgroup="4:memory:/job\n", mount=mount)) == MemoryLimit(
        4 * GIB, GIB, 1, base / "job"
    )
    assert memory_limit("self", proc=proc_with(tmp_path, cgroup="4:memory:/\n", mount=mount)) is None


def test_cgroup_path_in_a_container_begins_at_the_mount(tmp_path: Path) -> None:
    base = tmp_path / "memory"
    group(base, memory__limit_in_bytes=2 * GIB, memory__usage_in_bytes=GIB)
    mount = f"31 24 0:27 /docker/abc {base} rw - cgroup cgroup rw,memory\n"
    proc = proc_with(tmp_path, cgroup="4:memory:/docker/abc\n", mount=mount)
    limit = memory_limit("self", proc=proc)
    assert limit is not None
    assert limit.limit_bytes == 2 * GIB


def test_unreadable_proc_gives_none_and_not_zero(tmp_path: Path) -> None:
    inbox = ListInbox()
    Host(inbox=inbox, clock=HandClock(), interval_s=1.0, proc=tmp_path).sample()
    assert inbox.of(HostSample) == [HostSample(t=0.0)]


def test_host_sample_contains_all_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc = tmp_path / "proc"
    (proc / "pressure").mkdir(parents=True)
    (proc / "meminfo").write_text(MEMINFO)
    (proc / "pressure/memory").write_text("some avg10=3.00 avg60=0 avg300=0 total=0\n")
    (proc / "vmstat").write_text("nr_free 1\noom_kill 4\noom_kill_x 9\n")
    (proc / "stat").write_text("cpu 0 0 0 100 0 0 0 0\n")
    inbox = ListInbox()
    patient_disk(monkeypatch)
    host = Host(inbox=inbox, clock=HandClock(), interval_s=1.0, output_dir=str(tmp_path / "not/yet"), proc=proc)
    host.sample()
    (proc / "stat").write_text("cpu 30 0 20 150 0 0 0 0\n")
    host.sample()
    first, second = inbox.of(HostSample)
    assert first.cpu_pct is None
    assert second.cpu_pct == 50.0
    assert (second.ram_total_bytes, second.ram_used_bytes) == (32.0 * GIB, 16.0 * GIB)
    assert (second.swap_used_bytes, second.psi_memory_pct, second.oom_kills) == (2.0**20, 3.0, 4)
    room = room_of(tmp_path)
    assert room is not None
    assert second.disk_free_bytes == pytest.approx(room.free_bytes, rel=0.1)
    assert (second.disk_total_bytes, second.disk_free_inodes is None) == (room.total_bytes, room.free_inodes is None)


def patient_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may not ask the disk within the usual 0.2 s."""
    monkeypatch.setattr(host_sensor, "DiskSpace", partial(DiskSpace, timeout_s=60.0))


def test_host_sensor_reads_the_real_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = ListInbox()
    patient_disk(monkeypatch)
    Host(inbox=inbox, clock=HandClock(), interval_s=1.0, output_dir="/nowhere/at/all").sample()
    sample = inbox.of(HostSample)[0]
    assert sample.ram_total_bytes is not None
    assert sample.ram_used_bytes is not None
    assert 0 < sample.ram_used_bytes <= sample.ram_total_bytes
    assert sample.disk_free_bytes is not None


def test_room_is_asked_for_in_one_thread_that_a_stuck_file_system_keeps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    free = threading.Event()
    free.set()
    space = os.statvfs_result((4096, 4096, 1000, 500, 400, 100, 50, 40, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: free.wait() and space)
    disk = DiskSpace(tmp_path, timeout_s=0.02)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", lambda _thread: 1 / 0)  # as at a limit of threads
        with pytest.raises(ZeroDivisionError):
            disk.room()
    wait_until(lambda: disk.room() is not None, "an answer")
    free.clear()
    wait_until(lambda: disk.room() is None, "no answer")
    assert disk.room() is None
    assert [thread.name for thread in threading.enumerate()].count("sense-disk") == 1
    free.set()
    wait_until(lambda: disk.room() is not None, "an answer again")


def test_a_file_system_without_a_limit_of_files_reports_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result((4096, 4096, 1000, 500, 400, 0, 0, 0, 0, 255)))
    assert room_of(tmp_path) == Room(400 * 4096.0, 1000 * 4096.0, None)
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result((4096, 4096, 1000, 500, 400, 9, 0, 0, 0, 255)))
    assert room_of(tmp_path) == Room(400 * 4096.0, 1000 * 4096.0, 0.0)


NET = "Inter-|\n face |bytes\n  eth0: {} 0 0 0 0 0 0 0 {} 0\n  tun0: {} 0 0 0 0 0 0 0 9 0\n"
DISK = "259 0 nvme0n1 1 0 {} 0 1 0 {} 0 0 7 7\n259 1 nvme0n1p1 1 0 900 0 1 0 900 0 0 7 7\n"


def test_rates_of_disks_and_networks_are_between_two_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, seconds = ListInbox(), iter((10.0, 12.0, 14.0))
    monkeypatch.setattr(host_sensor, "monotonic", lambda: next(seconds))
    (tmp_path / "net").mkdir()
    host = Host(inbox=inbox, clock=HandClock(), interval_s=1.0, proc=tmp_path)
    for received, sent, read, written in ((1000, 500, 0, 0), (5000, 700, 8, 16), (10, 800, 16, 32)):
        (tmp_path / "net/dev").write_text(NET.format(received, sent, received))
        (tmp_path / "diskstats").write_text(DISK.format(read, written))
        host.sample()
    first, second, third = inbox.of(HostSample)
    assert (first.net_received, first.disk_read) == (None, None), "unknown before there are two"
    assert (second.net_received, second.net_sent) == (2000.0, 100.0), "a tunnel's bytes are those of eth0"
    assert (second.disk_read, second.disk_written) == (8 * 512 / 2, 16 * 512 / 2)
    assert (third.net_received, third.net_sent) == (None, None), "the counter fell: the interface came back"
    assert third.disk_read == 8 * 512 / 2
