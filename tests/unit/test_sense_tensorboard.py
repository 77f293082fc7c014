"""TensorBoard event files: read while they grow, equal to what was logged, and put where the other metrics go."""

import os
from pathlib import Path

import pytest

from tests.fakes.tensorboard import event, record
from tests.integration.sense_world import HandClock, ListInbox
from trainwatch.core.model.observation import MOST_METRICS, MetricValues
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ProcessIdentity
from trainwatch.core.sense.files.scalars import Damaged, Scalar, ScalarFiles, read_records, scalars

FIXTURES = Path(__file__).parents[1] / "fixtures" / "tensorboard"


def all_in(path: Path) -> list[Scalar]:
    found, _ = read_records(path)
    return [scalar for data in found for scalar in scalars(data)]


def test_what_pytorch_logged_is_read() -> None:
    found = [(s.tag, s.step, round(s.value, 6)) for s in all_in(FIXTURES / "torch.tfevents")]
    losses = [("train/loss", i * 100, round(1 / i, 6)) for i in range(1, 6)]
    rates = [("lr", i * 100, round(1e-4 / i, 6)) for i in range(1, 6)]
    assert sorted(found) == sorted([*losses, *rates, ("val_loss", -1, 0.25)])


def test_scalars_that_are_tensors_are_read() -> None:
    found = {(s.tag, s.step): round(s.value, 4) for s in all_in(FIXTURES / "tensors.tfevents")}
    assert {key: value for key, value in found.items() if key[1] == 2} == {
        ("epoch_loss", 2): 0.1667, ("epoch_accuracy", 2): 0.7, ("double", 2): 2.0, ("count", 2): 1.0,
    }  # fmt: skip
    assert found["count", 0] == -1.0
    assert "matrix" not in {tag for tag, _ in found}


@pytest.mark.parametrize("cut", [0, 5, 11, 12, 30, -5, -1])
def test_a_record_that_is_not_whole_is_read_again_later(tmp_path: Path, cut: int) -> None:
    first, second = record(event("loss", 0.5, 1, 10.0)), record(event("loss", 0.25, 2, 20.0))
    path = tmp_path / "events"
    path.write_bytes(first + second[:cut])
    found, offset = read_records(path)
    assert (len(found), offset) == (1, len(first))
    path.write_bytes(first + second)
    rest, _ = read_records(path, offset)
    assert [next(scalars(data)).value for data in rest] == [0.25]


def test_the_last_record_with_a_wrong_checksum_is_not_written_to_its_end_yet(tmp_path: Path) -> None:
    first, second = record(event("loss", 0.5, 1, 10.0)), record(event("loss", 0.25, 2, 20.0))
    path = tmp_path / "events"
    path.write_bytes(first + second[:-8] + bytes(8))
    assert read_records(path)[1] == len(first)
    path.write_bytes(first + second[:-8] + bytes(8) + first)
    found, _ = read_records(path)
    assert len(found) == 2


def test_room_made_in_advance_is_no_damage_and_a_wrong_length_is(tmp_path: Path) -> None:
    first = record(event("loss", 0.5, 1, 10.0))
    path = tmp_path / "events"
    path.write_bytes(first + bytes(100))
    assert read_records(path)[1] == len(first)
    path.write_bytes(first + b"\x01" * 100)
    with pytest.raises(Damaged, match=f"no record at byte {len(first)}"):
        read_records(path, len(first))


# --- the sensor ---


class Watched:
    """A sensor on files that a test writes."""

    def __init__(self, *roots: Path) -> None:
        self.clock, self.inbox = HandClock(), ListInbox()
        self.clock.t = 100.0
        self.problems: list[str] = []
        self.sensor = ScalarFiles(
            inbox=self.inbox, clock=self.clock, roots=lambda: [str(root) for root in roots],
            on_problem=self.problems.append,
        )  # fmt: skip
        self.begin(1)

    def begin(self, number: int) -> None:
        trainer = ProcessIdentity(pid=os.getpid(), start_ticks=0, boot_id="")
        self.sensor.follow(AttemptTarget(number=number, trainer=trainer, runner=None, log=None, directory="/"))

    def writes(self, path: Path, *values: tuple[str, float, int], ago_s: float = 0.0) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        wall = self.clock.wall() - ago_s
        with path.open("ab") as file:
            for tag, value, step in values:
                file.write(record(event(tag, value, step, wall)))
        os.utime(path, (self.clock.wall(), self.clock.wall()))

    @property
    def got(self) -> list[MetricValues]:
        return self.inbox.of(MetricValues)

    def looks(self, after_s: float = 11.0) -> list[dict[str, float]]:
        self.clock.t += after_s
        self.inbox.clear()
        self.sensor.sample()
        return [got.values for got in self.got]


def test_a_file_in_the_output_folder_is_followed(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "out", tmp_path)
    path = tmp_path / "out" / "runs" / "may" / "events.out.tfevents.1"
    watched.writes(path, ("train/loss", 0.5, 10), ("lr", 0.25, 10))
    assert watched.looks() == [{"train/loss": 0.5, "lr": 0.25}]
    (got,) = watched.got
    assert (got.step, got.source, got.folder, got.t) == (10, "tensorboard", str(tmp_path / "out"), watched.clock.t)
    assert watched.looks() == []
    watched.writes(path, ("train/loss", 0.25, 20))
    assert watched.looks() == [{"train/loss": 0.25}]


@pytest.mark.parametrize(
    ("folder", "of"), [("elsewhere", "elsewhere"), ("cwd/mine/may", "cwd/mine")], ids=["held open", "written"]
)
def test_a_file_elsewhere_is_read_when_the_trainer_has_it_open_or_was_seen_to_write_it(
    tmp_path: Path, folder: str, of: str
) -> None:
    """tensorboard's own writer opens its file for each flush only."""
    watched = Watched(tmp_path / "out", tmp_path / "cwd")
    path = tmp_path / folder / "events.out.tfevents.1"
    watched.writes(path, ("loss", 0.5, 1))
    assert watched.looks() == []
    watched.sensor.noticed(str(tmp_path / "cwd" / "picture.png"))
    watched.sensor.noticed(str(path))
    assert watched.looks() == [{"loss": 0.5}]
    assert watched.got[0].folder == str(tmp_path / of)


def test_values_have_the_time_at_which_they_were_logged(tmp_path: Path) -> None:
    """A writer flushes every two minutes."""
    watched = Watched(tmp_path)
    watched.clock.t = 500.0
    path = tmp_path / "runs" / "events.out.tfevents.1"
    for ago_s in (120.0, 60.0, 0.0):
        watched.writes(path, ("loss", ago_s, 1), ago_s=ago_s)
    assert watched.looks(11.0) == [{"loss": 120.0}, {"loss": 60.0}, {"loss": 0.0}]
    assert [got.at_t for got in watched.got] == [380.0, 440.0, 500.0]
    assert {got.t for got in watched.got} == {511.0}
    watched.writes(path, ("loss", 0.5, 2), ("loss", 0.25, 3), ago_s=500.0)
    assert watched.looks() == [{"loss": 0.25}]


def test_files_of_an_earlier_run_are_not_read(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    path = tmp_path / "runs" / "events.out.tfevents.1"
    watched.writes(path, ("loss", 0.5, 1))
    os.utime(path, (1.0, 1.0))
    assert watched.looks() == []


def test_a_tag_of_two_folders_has_the_folder_before_it(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    logs = tmp_path / "logs"
    watched.writes(logs / "train" / "events.out.tfevents.1", ("epoch_loss", 0.5, 1), ago_s=2.0)
    watched.writes(logs / "validation" / "events.out.tfevents.2", ("epoch_loss", 0.75, 1))
    merged = {name: value for values in watched.looks() for name, value in values.items()}
    assert merged == {"epoch_loss": 0.5, "validation/epoch_loss": 0.75}
    watched.begin(2)
    watched.writes(logs / "try2" / "events.out.tfevents.3", ("epoch_loss", 0.25, 1))
    assert watched.looks() == [{"epoch_loss": 0.25}]


def test_a_file_that_begins_anew_is_read_anew(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    path = tmp_path / "runs" / "events.out.tfevents.1"
    watched.writes(path, ("loss", 0.5, 1), ("loss", 0.5, 2))
    watched.looks()
    path.write_bytes(b"")
    watched.writes(path, ("loss", 0.125, 1))
    assert watched.looks() == [{"loss": 0.125}]


def test_a_damaged_file_is_told_once_and_the_others_are_read(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.writes(tmp_path / "runs" / "b" / "events.out.tfevents.2", ("loss", 0.5, 1))
    bad = tmp_path / "runs" / "a" / "events.out.tfevents.1"
    watched.writes(bad, ("x", 1.0, 1))
    with bad.open("ab") as file:
        file.write(b"\x01" * 64)
    os.utime(bad, (watched.clock.wall(), watched.clock.wall()))
    merged = {name for values in watched.looks() for name in values}
    assert merged == {"loss", "x"}
    watched.looks()
    (problem,) = watched.problems
    assert problem.startswith(f"{bad}: no record at byte")


def test_what_the_writer_left_at_its_end_is_read_at_once(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.looks()
    watched.writes(tmp_path / "runs" / "events.out.tfevents.1", ("loss", 0.5, 1))
    assert watched.looks(0.1) == []
    watched.sensor.drain()
    assert [got.values for got in watched.got] == [{"loss": 0.5}]


def test_names_beyond_the_bound_are_counted(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    tags = [(f"layer{n}", 1.0, 1) for n in range(MOST_METRICS + 3)]
    watched.writes(tmp_path / "runs" / "events.out.tfevents.1", *tags)
    (values,) = watched.looks()
    assert (len(values), watched.got[0].left_out) == (MOST_METRICS, 3)
