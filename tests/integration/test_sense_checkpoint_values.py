"""The sensor that reads the values of new checkpoints, on real files."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.integration.sense_world import ListInbox, RunClock, wait_until
from trainwatch.core.checkpoints.inspection import verify
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.observation import CheckpointValues
from trainwatch.core.sense.files import checkpoint_values
from trainwatch.core.sense.files.checkpoint_values import CheckpointValuesSensor


def saved(folder: Path, name: str, mtime: float, **tensors: float) -> tuple[Path, float]:
    """A checkpoint whose tensors end with these values."""
    arrays = {key: np.array([0.5, 1.5, value], dtype=np.float32) for key, value in tensors.items()}
    path = folder / name
    save_file(arrays, path)
    os.utime(path, (mtime, mtime))
    return path, mtime


class Reader:
    """The real verification; ``gate`` closed: it waits at its first progress."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[str] = []

    def __call__(self, path: Path, progress: Callable[[int, int], None]) -> Checkpoint:
        self.asked.append(path.name)
        while not self.gate.is_set():
            progress(0, 1)
            time.sleep(0.001)
        return verify(path, deep=True, progress=progress)


@pytest.fixture
def inbox() -> ListInbox:
    return ListInbox()


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def sensor(inbox: ListInbox, reader: Reader) -> Iterator[CheckpointValuesSensor]:
    made = CheckpointValuesSensor(inbox=inbox, clock=RunClock(), verify=reader, verify_fast=reader)
    yield made
    made.stop()


def names(inbox: ListInbox) -> list[str]:
    return [Path(read.path).name for read in inbox.of(CheckpointValues)]


def test_nan_and_infinity_are_told_apart_by_tensor(
    tmp_path: Path, inbox: ListInbox, sensor: CheckpointValuesSensor
) -> None:
    sensor.start()
    sensor.completed(*saved(tmp_path, "a.safetensors", 100.0, fine=1.0, inf=np.inf, low=-np.inf, nan=np.nan))
    wait_until(lambda: inbox.of(CheckpointValues), "it is read")
    (read,) = inbox.of(CheckpointValues)
    assert (set(read.nonfinite), read.nan, read.mtime) == ({"inf", "low", "nan"}, ("nan",), 100.0)
    assert read.reason is not None


def test_after_a_nan_the_ones_before_are_read_to_compare(
    tmp_path: Path, inbox: ListInbox, sensor: CheckpointValuesSensor
) -> None:
    for step in (1, 2, 3):
        sensor.completed(*saved(tmp_path, f"{step}.safetensors", 100.0 + step, w=np.nan if step == 3 else 1.0))
    sensor.start()
    wait_until(lambda: len(names(inbox)) == 3, "it is read")
    assert names(inbox) == ["3.safetensors", "2.safetensors", "1.safetensors"]


def test_a_trainer_that_saves_fast_is_sampled(
    tmp_path: Path, inbox: ListInbox, reader: Reader, sensor: CheckpointValuesSensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_values, "SHARE", 1e-9)
    sensor.start()
    sensor.completed(*saved(tmp_path, "1.safetensors", 101.0, w=1.0))
    wait_until(lambda: names(inbox) == ["1.safetensors"], "it is read")
    for step in range(2, 8):
        sensor.completed(*saved(tmp_path, f"{step}.safetensors", 100.0 + step, w=1.0))
    sensor.finish()
    assert names(inbox) == ["1.safetensors", "7.safetensors"], "the last one is read before the end is reported"
    sensor.finish()
    assert reader.asked == ["1.safetensors", "7.safetensors"]


def test_the_last_checkpoint_goes_before_one_that_is_being_read(
    tmp_path: Path, inbox: ListInbox, reader: Reader, sensor: CheckpointValuesSensor
) -> None:
    reader.gate.clear()
    sensor.start()
    sensor.completed(*saved(tmp_path, "1.safetensors", 101.0, w=1.0))
    wait_until(lambda: reader.asked == ["1.safetensors"], "it is read")
    sensor.completed(*saved(tmp_path, "2.safetensors", 102.0, w=np.nan))
    opener = threading.Timer(0.05, reader.gate.set)
    opener.start()
    sensor.finish()
    opener.join()
    assert "2.safetensors" in names(inbox)


def test_a_file_that_vanished_or_was_written_again_says_nothing(
    tmp_path: Path, inbox: ListInbox, reader: Reader, sensor: CheckpointValuesSensor
) -> None:
    path, mtime = saved(tmp_path, "1.safetensors", 101.0, w=np.nan)
    sensor.completed(tmp_path / "gone.safetensors", 105.0)
    sensor.completed(path, mtime - 5.0)
    sensor.start()
    wait_until(lambda: "gone.safetensors" in reader.asked, "it is read")
    sensor.finish()
    assert names(inbox) == []


def test_a_save_that_replaces_one_of_the_same_time_is_read_again(
    tmp_path: Path, inbox: ListInbox, sensor: CheckpointValuesSensor
) -> None:
    for value in (1.0, np.nan):
        (tmp_path / "last.safetensors").unlink(missing_ok=True)
        sensor.completed(*saved(tmp_path, "last.safetensors", 101.0, w=value))
        sensor.finish()
    assert [seen.nan for seen in inbox.of(CheckpointValues)] == [(), ("w",)]


def test_stop_does_not_wait_for_a_long_reading(tmp_path: Path, reader: Reader, sensor: CheckpointValuesSensor) -> None:
    reader.gate.clear()
    before = set(threading.enumerate())
    sensor.start()
    sensor.completed(*saved(tmp_path, "1.safetensors", 101.0, w=1.0))
    wait_until(lambda: reader.asked != [], "it is read")
    (thread,) = set(threading.enumerate()) - before
    sensor.stop()
    wait_until(lambda: not thread.is_alive(), "its thread ends although the reading would go on for ever")
    assert not reader.gate.is_set()
