"""What only moves is drawn every two seconds; an event, a level, a countdown and a new line at once."""

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakeFeed, healthy, hung
from tests.tui.conftest import until
from tests.tui.log_world import LogWorld
from tests.tui.test_partial_refresh import moved
from trainwatch.core.model.observation import GpuReading
from trainwatch.core.model.progress import Outlook
from trainwatch.core.model.story import Situation
from trainwatch.core.views.dashboard import dashboard_view
from trainwatch.tui.background import Poller, Round, Show, Snapshot, TaskQueue
from trainwatch.tui.screens.dashboard import Dashboard, at_once


def said(now: Situation) -> object:
    return at_once(now, dashboard_view(now))


def with_gpu(now: Situation, change: Callable[[GpuReading], GpuReading]) -> Situation:
    assert now.gpu is not None
    first, *others = now.gpu.gpus
    return msgspec.structs.replace(now, gpu=msgspec.structs.replace(now.gpu, gpus=(change(first), *others)))


def test_numbers_that_only_move_are_not_shown_at_once() -> None:
    assert said(moved(healthy(8), 1)) == said(moved(healthy(8), 2))


@pytest.mark.parametrize(
    "news",
    [
        lambda now: hung(),
        lambda now: msgspec.structs.replace(now, supervisor_alive=False),
        lambda now: msgspec.structs.replace(now, frozen="the supervisor does not respond"),
        lambda now: msgspec.structs.replace(now, step_t=now.now_t - 90.0, outlook=Outlook(usual_s=2.5)),
        lambda now: msgspec.structs.replace(now, gpu=None),
        lambda now: with_gpu(now, lambda g: msgspec.structs.replace(g, temp_c=99.0)),
        lambda now: with_gpu(now, lambda g: msgspec.structs.replace(g, trouble="lost")),
        lambda now: with_gpu(now, lambda g: msgspec.structs.replace(g, throttle=("power",))),
    ],
    ids=["hang", "supervisor", "frozen", "late step", "no gpu", "level", "gpu trouble", "throttle"],
)
def test_what_matters_is_shown_at_once(news: Callable[[Situation], Situation]) -> None:
    usual = moved(healthy(8), 1)
    assert said(news(usual)) != said(usual)


def test_a_countdown_moves_each_second() -> None:
    now = hung()
    assert said(msgspec.structs.replace(now, now_t=now.now_t + 1)) != said(now)


class Queue:
    """Takes what a poller gives to its queue."""

    def __init__(self) -> None:
        self.round: Round = lambda: None
        self.asked: list[Callable[[], Show]] = []

    def repeat(self, task: Round, period_s: float) -> None:
        self.round, self.period_s = task, period_s

    def submit(self, task: Callable[[], Show]) -> None:
        self.asked.append(task)


class Polled:
    """A poller on a fake clock, of which each regular poll is done by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.t, self.key = 10.0, "same"  # type: tuple[float, object]
        self.taken: list[Snapshot] = []
        self.queue = Queue()
        monkeypatch.setattr("trainwatch.tui.background.time", SimpleNamespace(monotonic=lambda: self.t))
        queue: Any = self.queue
        self.poller = Poller(
            FakeFeed(healthy()), queue, self.taken.append, period_s=1.0, at_once=lambda _: self.key
        )  # fmt: skip

    def poll_at(self, t: float) -> Show | None:
        self.t = t
        return self.queue.round()

    def shown_at(self, t: float) -> bool:
        show = self.poll_at(t)
        if show is not None:
            show()
        return show is not None


def test_what_was_asked_for_is_shown_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = Polled(monkeypatch)
    assert polled.shown_at(10.0)
    polled.poller.poll()
    polled.poller.poll()
    assert len(polled.queue.asked) == 1
    polled.queue.asked[0]()()
    assert len(polled.queue.asked) == 2, "asked for meanwhile"
    assert len(polled.taken) == 2


def test_a_run_that_cannot_be_read_is_shown_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = Polled(monkeypatch)
    monkeypatch.setattr(FakeFeed, "poll", lambda _: 1 / 0)
    assert polled.shown_at(10.0)
    assert polled.shown_at(11.0)
    assert [snapshot.trouble for snapshot in polled.taken] == ["cannot read the run: division by zero"] * 2


def test_a_queue_repeats_a_task_between_others() -> None:
    shown: list[str] = []
    app: Any = SimpleNamespace(is_running=True, call_later=lambda call, show: call(show))
    owner: Any = SimpleNamespace(app=app, is_attached=True)
    queue, often, rounds = TaskQueue(owner, in_order=True), threading.Event(), list[int]()

    def repeated() -> Show | None:
        rounds.append(len(rounds))
        if len(rounds) >= 3:
            often.set()
        return (lambda: shown.append("round")) if len(rounds) == 2 else None

    queue.repeat(repeated, 0.01)
    time.sleep(0.05)
    assert not rounds, "it begins with the first task"
    queue.submit(lambda: lambda: shown.append("asked"))
    assert often.wait(60)
    queue.close()
    assert shown == ["asked", "round"]


@asynccontextmanager
async def dashboard(world: LogWorld, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Dashboard, Pilot[None]]]:
    """A dashboard that polls only by hand, and for which two seconds never pass."""
    rounds: list[Round] = []
    monkeypatch.setattr(TaskQueue, "repeat", lambda _queue, task, _period_s: rounds.append(task))
    monkeypatch.setattr(Poller, "poll", lambda _poller: None)
    monkeypatch.setattr("trainwatch.tui.background.REST_S", 1e9)
    app = world.app()
    app.interval_s = 1.0
    async with app.run_test(size=(160, 48)) as pilot:
        board = app.dashboard
        assert board is not None
        board.screen_states["round"] = rounds[0]
        world.feed.now = moved(world.now, 1)
        await painted(board, pilot)
        await until(pilot, lambda: any("7302/10260" in line for line in board.log_pane.plain_lines()), "the log")
        await until(pilot, lambda: not board.output.viewer.driver.busy, "the end of reading")
        assert board.now == world.feed.now
        yield board, pilot


async def painted(board: Dashboard, pilot: Pilot[None]) -> set[str]:
    """The panes that a regular poll has painted."""
    task: Any = board.screen_states["round"]
    found: list[Show | None] = []
    before = {name: pane.paints for name, pane in board.panes.items()}
    thread = threading.Thread(target=lambda: found.append(task()))
    thread.start()
    thread.join()
    if found[0] is not None:
        found[0]()
    await pilot.pause()
    return {name for name, pane in board.panes.items() if pane.paints != before[name]}


async def test_a_hang_paints_the_head_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = LogWorld(tmp_path)
    async with dashboard(world, monkeypatch) as (board, pilot):
        world.feed.now = moved(world.now, 2)
        assert await painted(board, pilot) == set(), "steps and readings can wait"
        world.feed.now = hung()
        assert "head" in await painted(board, pilot)
        assert board.now == hung()
