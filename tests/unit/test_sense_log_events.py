from pathlib import Path

import pytest

from trainwatch.core.sense.log.log_tail import FollowedFile, LogEvents
from trainwatch.core.sense.sampler import Wakeup


@pytest.fixture
def file(tmp_path: Path) -> FollowedFile:
    (tmp_path / "train.log").write_text("old\n")
    followed = FollowedFile(str(tmp_path / "train.log"))
    followed.refresh()
    followed.read(100)
    return followed


def append(file: FollowedFile) -> None:
    with Path(file.path).open("a") as log:
        log.write("steps: 1/10\n")


def test_a_log_counts_as_told_of_after_its_first_event_and_text(file: FollowedFile) -> None:
    events, wakeup = LogEvents(), Wakeup()
    assert not events.follow([file])
    events.found(file.path)  # text from before the watch began
    events.answered()
    append(file)
    assert events.wait(5.0, wakeup)
    events.found(file.path)
    events.answered()
    assert events.follow([file])
    wakeup.wake()
    assert not events.wait(5.0, wakeup)


def test_a_log_in_which_text_appears_without_an_event_is_polled_for_ever(file: FollowedFile) -> None:
    events = LogEvents()
    events.follow([file])
    append(file)
    events.found(file.path)
    events.answered()
    assert events.follow([file])
    events.found(file.path)
    assert not events.follow([file])
    append(file)
    events.found(file.path)
    events.answered()
    assert not events.follow([file])


def test_the_file_that_takes_the_place_of_a_log_is_watched(file: FollowedFile) -> None:
    events, wakeup = LogEvents(), Wakeup()
    events.follow([file])
    append(file)
    events.found(file.path)
    events.answered()
    file.read(100)
    Path(file.path).rename(f"{file.path}.1")
    Path(file.path).write_text("new\n")
    for _ in range(3):
        file.refresh()
    events.follow([file])
    events.wait(0.0, wakeup)
    events.answered()
    append(file)
    assert events.wait(5.0, wakeup)
    assert events.follow([file])


def test_one_log_without_events_keeps_all_of_them_polled(file: FollowedFile, tmp_path: Path) -> None:
    events = LogEvents()
    missing = FollowedFile(str(tmp_path / "later.log"))
    missing.refresh()
    events.follow([file, missing])
    append(file)
    events.found(file.path)
    assert not events.follow([file, missing])
    assert events.follow([file])
