import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from tests.integration.sense_world import ListInbox, RunClock, running, wait_until
from trainwatch.core.checkpoints.inspection import inspect
from trainwatch.core.checkpoints.listing import list_checkpoints
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.observation import CheckpointEvent
from trainwatch.core.sense.files import checkpoint_directory
from trainwatch.core.sense.files.checkpoint_directory import CheckpointDirectory
from trainwatch.core.sense.files.checkpoint_scan import Looks, candidates

WATCH: Any = {"settle_s": 0.1, "rescan_s": 0.3}
EVENTS_ONLY: Any = {"settle_s": 0.1, "rescan_s": 3600.0}
WHOLE = b"<whole>"


class Structure:
    """Judges like the real one, by a mark at the end: of the file, or of a file in the directory."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def inspect(self, path: Path, _rewritten: bool = False) -> Checkpoint | None:
        self.asked.append(path.name)
        if path.is_dir():
            if not path.name.startswith("checkpoint"):
                return None
            files = [file for file in path.rglob("*") if file.is_file()]
            whole = any(file.read_bytes().endswith(WHOLE) for file in files)
            size = sum(file.stat().st_size for file in files)
        else:
            whole, size = path.read_bytes().endswith(WHOLE), path.stat().st_size
        number = "".join(c for c in path.stem if c.isdecimal())
        return Checkpoint(
            path=str(path),
            name=path.name,
            kind="directory" if path.is_dir() else "safetensors",
            step=int(number) if number else None,
            epoch=None,
            size_bytes=size,
            mtime=path.stat().st_mtime,
            verdict="complete" if whole else "torn",
            reason=None if whole else "it is cut off",
        )

    def list_directory(self, directory: Path) -> tuple[Checkpoint, ...]:
        return tuple(c for name in sorted(candidates(directory)) if (c := self.inspect(directory / name)) is not None)


@pytest.fixture
def inbox() -> ListInbox:
    return ListInbox()


@pytest.fixture
def structure() -> Structure:
    return Structure()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


Make = Callable[..., CheckpointDirectory]


@pytest.fixture
def make(inbox: ListInbox, structure: Structure, out: Path) -> Iterator[Make]:
    made: list[CheckpointDirectory] = []

    def build(watch: Any = EVENTS_ONLY, **settings: object) -> CheckpointDirectory:
        sensor = CheckpointDirectory(
            inbox=inbox,
            clock=RunClock(),
            directory=str(out),
            looks=Looks(structure.inspect, structure.list_directory),
            **watch,
            **settings,  # type: ignore[arg-type]
        )
        made.append(sensor)
        sensor.start()
        return sensor

    yield build
    for sensor in made:
        sensor.stop()


def story(inbox: ListInbox, name: str) -> list[str]:
    return [
        f"{e.event}/{e.verdict}" if e.verdict else e.event
        for e in inbox.of(CheckpointEvent)
        if Path(e.path).name == name
    ]


def wait_for(inbox: ListInbox, name: str, end: str) -> list[str]:
    wait_until(lambda: story(inbox, name)[-1:] == [end], f"{name}: {end}")
    return story(inbox, name)


def no_list(sensor: CheckpointDirectory, why: str) -> None:
    """The list is refused for this reason. Within half a second a busy machine may not have looked at all."""
    wait_until(lambda: why in str(sensor.list_all(0.5, expected=True)), why)


def age(path: Path) -> None:
    """As if it had been written an hour ago."""
    for each in (path, *path.rglob("*")) if path.is_dir() else (path,):
        os.utime(each, (each.stat().st_mtime - 3600,) * 2)


def test_existing_checkpoints_are_reported_at_once(make: Make, inbox: ListInbox, out: Path) -> None:
    (out / "lora-000002.safetensors").write_bytes(WHOLE)
    (out / "lora-000004.safetensors").write_bytes(b"half")
    (out / "checkpoint-500").mkdir()
    (out / "checkpoint-500" / "model.pt").write_bytes(WHOLE)
    (out / "train.log").write_text("no checkpoint")
    for path in out.iterdir():
        age(path)
    make()
    wait_until(lambda: len(inbox.of(CheckpointEvent)) == 3, "three events")
    assert story(inbox, "lora-000002.safetensors") == ["complete/complete"]
    assert story(inbox, "lora-000004.safetensors") == ["created/torn"]
    assert story(inbox, "checkpoint-500") == ["complete/complete"]
    newest = next(e for e in inbox.of(CheckpointEvent) if e.path == str(out / "checkpoint-500"))
    assert (newest.step, newest.size_bytes, newest.mtime) == (500, 7.0, (out / "checkpoint-500").stat().st_mtime)


def test_a_growing_checkpoint_is_reported_until_it_is_complete(
    make: Make, inbox: ListInbox, out: Path, tmp_path: Path
) -> None:
    sensor = make()
    wait_until(lambda: sensor.means == "events", "the watch")
    path = out / "lora-000004.safetensors"
    with (tmp_path / path.name).open("wb", buffering=0) as file:
        file.write(b"x" * 1000)
        (tmp_path / path.name).rename(path)  # it appears with its first bytes
        wait_until(lambda: story(inbox, path.name) == ["created/writing", "created/torn"], "a pause looks torn")
        file.write(b"y" * 1000)
        wait_until(lambda: story(inbox, path.name)[2:] == ["growing/writing", "created/torn"], "growth, and a pause")
        file.write(WHOLE)
    wait_for(inbox, path.name, "complete/complete")
    end = inbox.of(CheckpointEvent)[-1]
    assert (end.step, end.size_bytes, end.reason) == (4, 2007.0, None)
    torn = next(e for e in inbox.of(CheckpointEvent) if e.verdict == "torn")
    assert torn.reason == "it is cut off"


def test_an_atomically_renamed_checkpoint_is_complete_and_temporary_names_are_ignored(
    make: Make, inbox: ListInbox, structure: Structure, out: Path, tmp_path: Path
) -> None:
    sensor = make()
    wait_until(lambda: sensor.means == "events", "the watch")
    (out / "model.ckpt.tmp").write_bytes(WHOLE)
    (out / ".hidden.pt").write_bytes(WHOLE)
    (out / "tmp-checkpoint-500").mkdir()
    (out / "model.ckpt.tmp").rename(out / "model.ckpt")
    (tmp_path / "elsewhere.pth").write_bytes(WHOLE)
    (tmp_path / "elsewhere.pth").rename(out / "moved.pth")
    assert wait_for(inbox, "model.ckpt", "complete/complete") == ["created/writing", "complete/complete"]
    assert wait_for(inbox, "moved.pth", "complete/complete") == ["created/writing", "complete/complete"]
    assert not {"model.ckpt.tmp", ".hidden.pt", "tmp-checkpoint-500"} & set(structure.asked)


def test_a_checkpoint_directory_is_one_checkpoint(make: Make, inbox: ListInbox, out: Path) -> None:
    sensor = make()
    wait_until(lambda: sensor.means == "events", "the watch")
    folder = out / "checkpoint-epoch-3"
    (folder / "unet").mkdir(parents=True)
    (folder / "unet" / "model.safetensors").write_bytes(b"x" * 100)
    wait_for(inbox, folder.name, "created/torn")
    (folder / "training_state.json").write_bytes(b"{}" + WHOLE)
    wait_for(inbox, folder.name, "complete/complete")
    assert {Path(e.path).parent for e in inbox.of(CheckpointEvent)} == {out}
    shutil.rmtree(folder)
    wait_for(inbox, folder.name, "removed")


def test_an_overwritten_checkpoint_is_inspected_again(make: Make, inbox: ListInbox, out: Path) -> None:
    path = out / "last.pt"
    path.write_bytes(WHOLE)
    age(path)
    sensor = make()
    wait_for(inbox, path.name, "complete/complete")
    wait_until(lambda: sensor.means == "events", "the watch")
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(b"again, half")
    wait_for(inbox, path.name, "created/torn")
    path.write_bytes(b"again" + WHOLE)
    assert wait_for(inbox, path.name, "complete/complete").count("growing/writing") >= 1


def test_an_output_directory_may_appear_late_vanish_and_return(make: Make, inbox: ListInbox, out: Path) -> None:
    out.rmdir()
    sensor = make(WATCH)
    assert sensor.means is None
    out.mkdir()
    (out / "a.pt").write_bytes(WHOLE)
    wait_for(inbox, "a.pt", "complete/complete")
    shutil.rmtree(out)
    wait_until(lambda: sensor.means is None, "the folder to be missing")
    assert "removed" not in [event.event for event in inbox.of(CheckpointEvent)]  # its disk may only be unmounted
    out.mkdir()
    (out / "b.pt").write_bytes(WHOLE)
    wait_for(inbox, "b.pt", "complete/complete")
    wait_for(inbox, "a.pt", "removed")


@pytest.mark.parametrize("kind", ["9p", "nfs4", "fuse.sshfs"])
def test_a_directory_without_file_events_is_polled(
    make: Make, inbox: ListInbox, out: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(checkpoint_directory, "POLL_S", 0.1)
    sensor = make(EVENTS_ONLY, mountinfo=lambda: f"22 1 0:21 / {out.parent} rw - {kind} server rw\n")
    wait_until(lambda: sensor.means == "polling", "polling")
    (out / "a.pt").write_bytes(WHOLE)
    wait_for(inbox, "a.pt", "complete/complete")


def test_lost_file_events_are_found_by_the_periodic_scan(
    make: Make, inbox: ListInbox, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_watch_left(*_: object, **__: object) -> None:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(checkpoint_directory, "Inotify", no_watch_left)
    trouble: list[str] = []
    sensor = make(WATCH, on_problem=trouble.append)
    wait_until(lambda: sensor.means == "rescan", "the first look")
    (out / "a.pt").write_bytes(WHOLE)
    wait_for(inbox, "a.pt", "complete/complete")
    (out / "a.pt").unlink()
    wait_for(inbox, "a.pt", "removed")
    assert len(trouble) == 1
    assert trouble[0].startswith(f"{out}: no file events (inotify instance limit reached); it is scanned every 0.3 s")


def test_links_that_leave_the_output_directory_are_not_followed(
    make: Make, inbox: ListInbox, structure: Structure, out: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.pt").write_bytes(WHOLE)
    (tmp_path / "checkpoint-1").mkdir()
    (out / "away.pt").symlink_to(tmp_path / "secret.pt")
    (out / "checkpoint-away").symlink_to(tmp_path / "checkpoint-1")
    (out / "broken.pt").symlink_to(tmp_path / "nothing")
    (out / "step-7.pt").write_bytes(WHOLE)
    (out / "last.pt").symlink_to("step-7.pt")
    make(WATCH)
    wait_for(inbox, "last.pt", "complete/complete")
    wait_for(inbox, "step-7.pt", "complete/complete")
    assert set(structure.asked) == {"last.pt", "step-7.pt"}


def test_unchanged_checkpoints_are_not_inspected_again(
    make: Make, inbox: ListInbox, structure: Structure, out: Path
) -> None:
    (out / "checkpoint-5").mkdir()
    (out / "checkpoint-5" / "model.pt").write_bytes(WHOLE)
    (out / "samples").mkdir()
    (out / "a.pt").write_bytes(WHOLE)
    for path in out.iterdir():
        age(path)
    scans: list[None] = []
    sensor = make({"settle_s": 0.05, "rescan_s": 0.05}, mountinfo=lambda: "")
    wait_for(inbox, "a.pt", "complete/complete")
    asked = len(structure.asked)
    scan = sensor.scan

    def counted(*arguments: Any) -> None:
        scan(*arguments)
        scans.append(None)

    sensor.scan = counted  # type: ignore[method-assign,assignment]
    wait_until(lambda: len(scans) > 5, "some full scans")
    assert len(structure.asked) == asked
    (out / "samples" / "picture.png").write_bytes(b"")
    wait_until(lambda: structure.asked[asked:].count("samples") >= 2, "a scan of the folder that changed")
    count = len(scans)
    wait_until(lambda: len(scans) > count + 5, "more full scans")
    assert len(structure.asked) <= asked + 3
    assert len(inbox.of(CheckpointEvent)) == 2


def test_an_unreadable_checkpoint_is_reported_and_watching_goes_on(
    inbox: ListInbox, structure: Structure, out: Path
) -> None:
    def failing(path: Path, _rewritten: bool = False) -> Checkpoint | None:
        if path.name == "bad.pt":
            raise OSError(5, "Input/output error")
        return structure.inspect(path)

    trouble: list[str] = []
    sensor = CheckpointDirectory(
        inbox=inbox,
        clock=RunClock(),
        **WATCH,
        directory=str(out),
        looks=Looks(failing, structure.list_directory),
        on_problem=trouble.append,
    )
    with running(sensor):
        wait_until(lambda: sensor.means == "events", "the watch")
        (out / "bad.pt").write_bytes(WHOLE)
        (out / "good.pt").write_bytes(WHOLE)
        wait_for(inbox, "good.pt", "complete/complete")
        wait_until(lambda: trouble, "a word about it")
    assert trouble[0] == f"{out / 'bad.pt'}: cannot be inspected (Input/output error); it is not resumed from"


def test_checkpoints_are_verified_with_the_real_readers(inbox: ListInbox, out: Path) -> None:
    sensor = CheckpointDirectory(
        inbox=inbox,
        clock=RunClock(),
        **EVENTS_ONLY,
        directory=str(out),
        looks=Looks(lambda path, _rewritten: inspect(path), lambda directory: list_checkpoints(directory).checkpoints),
    )
    whole = save({"weight": np.zeros((64, 64), dtype=np.float32)}, metadata={"ss_steps": "4100"})
    (out / "train.log").write_text("step 1\n")
    (out / "samples").mkdir()
    with running(sensor):
        wait_until(lambda: sensor.means == "events", "the watch")
        path = out / "lora-000004.safetensors"
        with path.open("wb", buffering=0) as file:
            file.write(whole[: len(whole) // 2])
            wait_for(inbox, path.name, "created/torn")
            file.write(whole[len(whole) // 2 :])
        wait_for(inbox, path.name, "complete/complete")
        last = inbox.of(CheckpointEvent)[-1]
        assert (last.step, last.size_bytes) == (4100, float(len(whole)))
        folder = out / "checkpoint-500"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(whole)
        wait_for(inbox, folder.name, "complete/complete")
        last = inbox.of(CheckpointEvent)[-1]
        assert (last.verdict, last.reason) == ("complete", "weights only, no optimizer state")
    assert {Path(e.path).name for e in inbox.of(CheckpointEvent)} == {path.name, folder.name}


def test_a_list_is_complete_when_it_returns(make: Make, inbox: ListInbox, out: Path) -> None:
    """No matter how the folder is ordered and what was changed in the last moment."""
    for step in range(40):
        (out / f"step-{step}.pt").write_bytes(WHOLE)
        age(out / f"step-{step}.pt")
    sensor = make(known=[str(out / "step-7.pt"), str(out / "step-99.pt"), "/elsewhere/step-98.pt"])
    (out / "step-40.pt").write_bytes(WHOLE)
    assert sensor.list_all(60.0, expected=True) is None
    complete = {Path(e.path).name for e in inbox.of(CheckpointEvent) if e.event == "complete"}
    assert complete == {f"step-{step}.pt" for step in range(41)}
    removed = [Path(e.path).name for e in inbox.of(CheckpointEvent) if e.event == "removed"]
    assert removed == ["step-99.pt"]


def test_a_missing_folder_is_no_list_if_checkpoints_are_expected(make: Make, inbox: ListInbox, out: Path) -> None:
    out.rmdir()
    sensor = make(known=[str(out / "step-7.pt")])
    assert sensor.list_all(60.0, expected=False) is None
    no_list(sensor, "is missing (is its disk mounted?)")
    assert inbox.of(CheckpointEvent) == []
    out.mkdir()
    (out / "train.log").write_text("a folder that was made anew")
    assert sensor.list_all(60.0, expected=True) is None
    assert [e.event for e in inbox.of(CheckpointEvent)] == ["removed"]


def test_an_empty_mount_point_is_no_list_and_says_nothing_about_the_checkpoints_on_its_disk(
    make: Make, inbox: ListInbox, out: Path
) -> None:
    (out / ".trainwatch.lock").write_text("{}")
    told: list[str] = []
    sensor = make(known=[str(out / "step-7.pt")], on_problem=told.append)
    no_list(sensor, "is empty and has none of the 1 checkpoints that were in it (is its disk mounted?)")
    assert inbox.of(CheckpointEvent) == []
    assert any("counts as unknown" in each for each in told)
    (out / "step-7.pt").write_bytes(WHOLE)
    elsewhere = out.parent / "step-8.pt"  # so that the folder never shows it with the time of now
    elsewhere.write_bytes(WHOLE)
    age(elsewhere)
    elsewhere.rename(out / "step-8.pt")
    assert sensor.list_all(60.0, expected=True) is None
    assert story(inbox, "step-8.pt") == ["complete/complete"]
    assert not [e for e in inbox.of(CheckpointEvent) if e.event == "removed"]


def test_a_disk_that_goes_away_in_the_run_takes_no_checkpoint_with_it(
    make: Make, inbox: ListInbox, out: Path, tmp_path: Path
) -> None:
    other = Path(tempfile.mkdtemp(dir="/dev/shm"))
    if other.stat().st_dev == out.stat().st_dev:
        pytest.skip("/dev/shm is on the disk of the test")
    try:
        (out / "step-7.pt").write_bytes(WHOLE)
        age(out / "step-7.pt")
        sensor = make()
        wait_for(inbox, "step-7.pt", "complete/complete")
        out.rename(tmp_path / "mounted")
        out.symlink_to(other)  # the place below the mount: a trainer has written there meanwhile
        (other / "train.log").write_text("x")
        no_list(sensor, "is on another disk than before and has none of the 1 checkpoints")
        out.unlink()
        (tmp_path / "mounted").rename(out)
        assert sensor.list_all(60.0, expected=True) is None
        assert "removed" not in story(inbox, "step-7.pt")
    finally:
        shutil.rmtree(other)


def test_a_folder_whose_disk_fstab_names_and_that_is_not_mounted_is_no_list(
    make: Make, inbox: ListInbox, out: Path, tmp_path: Path
) -> None:
    (out / "train.log").write_text("x")
    sensor = make(
        known=[str(out / "step-7.pt")],
        fstab=lambda: f"nas:/export {tmp_path} nfs4 _netdev 0 0\n",
        mountinfo=lambda: "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
    )
    no_list(sensor, f"{tmp_path} is not mounted, and {out} has none of the 1 checkpoints")
    assert inbox.of(CheckpointEvent) == []


def test_a_list_with_a_checkpoint_that_cannot_be_read_is_not_complete(
    make: Make, inbox: ListInbox, structure: Structure, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out / "a.pt").write_bytes(WHOLE)
    (out / "b.pt").write_bytes(WHOLE)
    age(out / "a.pt")
    look, failed = structure.inspect, {"b.pt"}

    def failing(path: Path, _rewritten: bool = False) -> Checkpoint | None:
        if path.name in failed:
            raise OSError(116, "Stale file handle")
        return look(path)

    monkeypatch.setattr(structure, "inspect", failing)
    sensor = make(WATCH)
    no_list(sensor, "b.pt: cannot be inspected (Stale file handle)")
    wait_for(inbox, "a.pt", "complete/complete")
    assert story(inbox, "a.pt")[-1] == "complete/complete"
    failed.clear()
    assert sensor.list_all(60.0, expected=True) is None
    assert story(inbox, "b.pt")[-1] == "complete/complete"


def test_an_entry_that_cannot_be_read_now_is_not_removed(
    make: Make, inbox: ListInbox, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out / "a.pt").write_bytes(WHOLE)
    sensor = make(WATCH)
    wait_for(inbox, "a.pt", "complete/complete")

    def failing(path: Path, *, shallow: bool = False) -> object:
        del path, shallow
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("trainwatch.core.sense.files.checkpoint_scan.signature", failing)
        no_list(sensor, "Input/output error")
    assert sensor.list_all(60.0, expected=True) is None
    assert story(inbox, "a.pt")[-1] == "complete/complete"
