"""The watched output folder: what is not known as something else is reported, with what its writer does to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.integration.sense_world import ListInbox, RunClock, wait_until
from trainwatch.core.checkpoints.inspection import inspect_any
from trainwatch.core.checkpoints.listing import state_in
from trainwatch.core.model.observation import CheckpointEvent
from trainwatch.core.sense.files.checkpoint_directory import CheckpointDirectory
from trainwatch.core.sense.files.checkpoint_scan import Looks


@pytest.fixture
def inbox() -> ListInbox:
    return ListInbox()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def sensor(inbox: ListInbox, out: Path) -> Iterator[CheckpointDirectory]:
    made = CheckpointDirectory(
        inbox=inbox,
        clock=RunClock(),
        settle_s=0.1,
        rescan_s=0.3,
        directory=str(out),
        looks=Looks(lambda path, rewritten: inspect_any(path, rewritten=rewritten), state_in),
    )
    yield made
    made.stop()


def settled(inbox: ListInbox, name: str) -> list[CheckpointEvent]:
    return [e for e in inbox.of(CheckpointEvent) if Path(e.path).name == name and e.verdict not in {None, "writing"}]


def test_what_is_there_at_the_start_is_reported(sensor: CheckpointDirectory, inbox: ListInbox, out: Path) -> None:
    (out / "whatever.q7").write_bytes(b"\x00\x01")
    (out / "train.log").write_text("step 1")
    for path in out.iterdir():
        os.utime(path, (1000, 1000))
    sensor.start()
    assert sensor.drain(60.0)

    (event,) = inbox.of(CheckpointEvent)
    assert (Path(event.path).name, event.event, event.verdict) == ("whatever.q7", "created", "opaque")
    assert (event.understood, event.unknown_make, event.form) == (False, True, "file")


def test_a_file_that_is_written_again_is_reported_again(
    sensor: CheckpointDirectory, inbox: ListInbox, out: Path
) -> None:
    sensor.start()
    for value in (b"\x00\x01", b"\x00\x02"):
        count = len(settled(inbox, "memory.q7"))
        (out / "memory.q7").write_bytes(value)
        wait_until(lambda count=count: len(settled(inbox, "memory.q7")) > count, "memory.q7 settles")  # type: ignore[misc]


def test_text_is_state_once_it_was_written_again_and_a_log_never(
    sensor: CheckpointDirectory, inbox: ListInbox, out: Path
) -> None:
    sensor.start()
    (out / "run.q7").write_text("w = 0.50")
    (out / "other.q8").write_text("line 1")
    assert sensor.drain(60.0)
    assert sensor.drain(60.0)
    assert inbox.of(CheckpointEvent) == []
    with (out / "other.q8").open("a") as log:
        log.write("\nline 2")
    (out / "run.q7").write_text("w = 0.25")

    wait_until(lambda: bool(settled(inbox, "run.q7")), "run.q7 is state")
    assert settled(inbox, "other.q8") == []


def test_a_checkpoint_deep_in_a_folder_of_logs_is_noticed(
    sensor: CheckpointDirectory, inbox: ListInbox, out: Path
) -> None:
    sensor.start()
    deep = out / "lightning_logs" / "version_0" / "checkpoints"
    deep.mkdir(parents=True)
    (deep.parent / "hparams.yaml").write_text("a: 1")
    assert sensor.drain(60.0)
    torch.save({"state_dict": {"w": torch.ones(2)}}, deep / "epoch=0-step=5.ckpt")

    wait_until(lambda: bool(settled(inbox, "lightning_logs")), "the folder is state")
    assert "version_0/checkpoints/epoch=0-step=5.ckpt" in (settled(inbox, "lightning_logs")[0].reason or "")


def test_an_opaque_file_of_torch_is_reported_as_complete(
    sensor: CheckpointDirectory, inbox: ListInbox, out: Path
) -> None:
    sensor.start()
    torch.save({"w": torch.ones(2), "x": Odd()}, out / "all.pt")

    wait_until(lambda: bool(settled(inbox, "all.pt")), "all.pt settles")
    event = settled(inbox, "all.pt")[-1]
    assert (event.event, event.verdict, event.understood, event.unknown_make) == ("complete", "opaque", False, False)


class Odd:
    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Odd, ()
