"""A run with real logs in a folder: two attempts with indexes, a crash, bars that were painted over, an extra log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from textual.pilot import Pilot

from tests.fakes.feed import PLAN, WALL0, FakeFeed, FakePicker, healthy, open_run
from tests.tui.conftest import until
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.core.store.log_index import LogIndex, LogIndexWriter
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.screens.log_screen import LogScreen

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB"
TRACE = [
    "Traceback (most recent call last):",
    '  File "train_network.py", line 412, in <module>',
    "    loss = self.step(batch)",
]


class Stamps:
    """Indexes by attempt, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, attempt: int, offset: int) -> float | None:
        return LogIndex(self.folder / f"{attempt}.index").time_of(offset)


class LogWorld:
    """Files and the app on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = healthy()
        first, second = folder / "0001.log", folder / "0002.log"
        self.first, self.second, self.extra = first, second, folder / "events.log"
        crash_t = self.now.story.incidents[0].t
        begins = [a.t for a in self.now.story.attempts]
        self.write(1, first, [*_training(0, 400), *TRACE, OOM, "exit"], begins[0], crash_t)
        self.write(2, second, [*_training(400, 1600)], begins[1], self.now.now_t)
        with second.open("ab") as file:
            file.write(b"".join(b"\rsteps:  71%%| %d/10260 [avr_loss=0.0912]" % i for i in range(7290, 7303)))
        self.extra.write_text("".join(f"event {i}\n" for i in range(50)))
        attempts = tuple(
            msgspec.structs.replace(a, log=str(p))
            for a, p in zip(self.now.story.attempts, (first, second), strict=True)
        )
        line = first.read_bytes().split(b"\n").index(OOM.encode()) + 1
        crash = self.now.story.incidents[0]
        shown = msgspec.structs.replace(crash.evidence[0], what=OOM, line=line)
        incidents = (msgspec.structs.replace(crash, evidence=(shown, *crash.evidence[1:])),)
        story = msgspec.structs.replace(self.now.story, attempts=attempts, incidents=incidents)
        self.now = msgspec.structs.replace(self.now, story=story)
        self.feed = FakeFeed(self.now)

    def write(self, attempt: int, path: Path, lines: list[str], begin_t: float, end_t: float) -> None:
        path.write_bytes(b"")
        index = LogIndexWriter(self.folder / f"{attempt}.index", str(path), empty_t=begin_t)
        for number, line in enumerate(lines):
            with path.open("ab") as file:
                file.write(line.encode() + b"\n")
            if number % 5 == 4 or number == len(lines) - 1:
                index.look(begin_t + (end_t - begin_t) * (number + 1) / len(lines))

    def append(self, text: str) -> None:
        with self.second.open("ab") as file:
            file.write(text.encode())

    def app(self) -> TrainwatchApp:
        plan = msgspec.structs.replace(PLAN, logs=(str(self.extra),))
        run = open_run(self.now, feed=self.feed, logs=FileLogBrowser(), stamps=Stamps(self.folder), plan=plan)
        return TrainwatchApp(run, picker=FakePicker(), interval_s=0)

    @asynccontextmanager
    async def screen(self, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[LogScreen, Pilot[None]]]:
        app = self.app()
        async with app.run_test(size=size) as pilot:
            yield await open_log(app, pilot), pilot


async def open_log(app: TrainwatchApp, pilot: Pilot[None]) -> LogScreen:
    await pilot.pause()
    assert app.dashboard is not None
    app.dashboard.look()
    await pilot.press("2")
    await pilot.pause()
    screen = app.screen
    assert isinstance(screen, LogScreen)
    await settled(screen, pilot)
    return screen


async def settled(screen: LogScreen, pilot: Pilot[None]) -> None:
    """Nothing is being read or searched."""
    await until(pilot, lambda: not (screen.driver.busy or screen.viewer.looking), "the screen to settle")
    await pilot.pause()


def _training(first: int, count: int) -> list[str]:
    lines = []
    for i in range(first, first + count):
        if i % 40 == 7:
            lines.append(f"saving checkpoint: /data/outputs/luca/luca-step{i * 10:08d}.safetensors")
        elif i % 40 == 8:
            bars = "".join(f"\rsteps: {i + s}/10260 [2.50s/it, avr_loss=0.0{900 + s}]" for s in range(12))
            lines.append(bars)
        elif i % 40 == 20:
            lines.append(
                f"UserWarning: bucket {i} was resized; images that are larger than the bucket are scaled down "
                "before they are cropped, which may lose detail at their edges"
            )
        else:
            lines.append(f"INFO  bucket {i:04d}: resolution (1024, 1024), 4 images, mean ar error 0.0031")
    return lines


__all__ = ["WALL0", "LogWorld", "open_log", "settled"]
