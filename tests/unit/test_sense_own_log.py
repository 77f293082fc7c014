"""The log of a trainer that prints nothing is found among the files that it writes."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from trainwatch.core.sense.files.inotify import OpenFile
from trainwatch.core.sense.log.log_tail import OwnLog


def last_step(text: str) -> int | None:
    found = re.findall(r"step (\d+)", text)
    return int(found[-1]) if found else None


class Scene:
    """A trainer with pid 7 in a folder, looked at every six seconds."""

    def __init__(self, folder: Path, *held: Path) -> None:
        self.t = 0.0
        self.steps = False
        self.held = held
        self.followed: list[str] = []
        self.said: list[str] = []
        self.sensor = OwnLog(
            pids=lambda: (7,),
            folder=str(folder),
            step_of=last_step,
            has_steps=lambda: self.steps,
            followed=lambda: self.followed,
            follow=self.followed.append,
            tell=self.said.append,
            open_files=self.open,
            clock=lambda: self.t,
        )

    def open(self, _pids: Iterable[int]) -> list[OpenFile]:
        return [OpenFile(7, str(path)) for path in self.held]

    def watch(self, *logs: Path, looks: int = 4) -> "Scene":
        for step in range(1, looks + 1):
            for log in logs:
                with log.open("a") as file:
                    file.write(f"step {step * 10}/100 loss 0.5\n")
            self.sensor.look()
            self.t += 6.0
        return self


def test_the_only_growing_log_that_the_trainer_holds_open_is_followed(tmp_path: Path) -> None:
    log = tmp_path / "training.log"
    scene = Scene(tmp_path, log, tmp_path / "weights.q7").watch(log)
    assert scene.followed == [str(log)]
    assert scene.said == [f"the trainer prints no step, but writes them to {log}: it is followed, too"]


def test_of_two_growing_logs_none_is_followed_and_both_are_named_once(tmp_path: Path) -> None:
    one, other = tmp_path / "a.log", tmp_path / "b.log"
    scene = Scene(tmp_path, one, other).watch(one, other, looks=6)
    assert scene.followed == []
    (said,) = scene.said
    assert f'logs = ["{one}", "{other}"]' in said


def test_a_log_that_nobody_holds_open_is_only_named(tmp_path: Path) -> None:
    log = tmp_path / "metrics.csv"
    scene = Scene(tmp_path).watch(log)
    assert scene.followed == []
    assert str(log) in scene.said[0]


@pytest.mark.parametrize("why", ["steps are printed", "it does not grow", "it is binary", "too early"])
def test_nothing_is_followed_without_evidence(why: str, tmp_path: Path) -> None:
    log = tmp_path / "training.log"
    scene = Scene(tmp_path, log)
    match why:
        case "steps are printed":
            scene.steps = True
            scene.watch(log)
        case "it does not grow":
            log.write_text("step 10/100\n")
            scene.watch()
        case "it is binary":
            log.write_bytes(b"\0step 1")
            scene.watch(log)
        case _:
            scene.watch(log, looks=2)
    assert (scene.followed, scene.said) == ([], [])
