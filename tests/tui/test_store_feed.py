"""The real feed over a real journal, history and lock, and the real log reader on a real file."""

import time
from pathlib import Path

import msgspec

from tests.fakes.feed import (
    FakePicker,
    checkpoint,
    created,
    healthy,
    open_run,
    process,
    progress,
    readings,
    started,
    training,
)
from trainwatch.core.app.screen.store_feed import StoreFeed
from trainwatch.core.model.fact import CheckpointKnown
from trainwatch.core.model.observation import Command
from trainwatch.core.model.run import RunSpec
from trainwatch.core.sense.log.log_browser import FileLogBrowser
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter, load_story
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.state.run_progress import live_progress
from trainwatch.tui.app import TrainwatchApp

AGO_S = 300.0


def directory(home: Path) -> tuple[RunDirectory, float]:
    wall0 = time.time() - AGO_S
    spec = RunSpec(id="luca-1", name="luca", command=("python", "train.py"), cwd=str(home), created_wall=wall0)
    return RunDirectory.create(home, spec), wall0


def test_a_run_that_never_started_has_an_empty_story(tmp_path: Path) -> None:
    feed = StoreFeed(RunDirectory(tmp_path / "runs" / "nothing"), time.time())
    now = feed.poll()
    assert now.story.run is None
    assert now.supervisor_alive is False
    assert feed.series("gpu0.util", 0, 100, 10) == []
    reply = feed.send(Command(t=0.0, verb="kill"))
    assert not reply.ok
    assert "no supervisor" in reply.message


def test_feed_follows_journal_history_and_lock(tmp_path: Path) -> None:
    run, wall0 = directory(tmp_path)
    feed = StoreFeed(run, wall0)
    with JournalWriter(run.journal) as journal, SupervisorLock(run.lock):
        journal.append_all(0.0, wall0, [*created(), *started(1)])
        assert feed.poll().story.state == "starting"
        assert feed.poll().supervisor_alive is True
        journal.append_all(90.0, wall0 + 90, training(1, 20))
        history = HistoryWriter(run.history)
        for second in range(100, 200):
            history.add(readings(float(second)))
            history.add(process(float(second)))
            history.add(ProgressPoint(t=float(second), progress=progress(second)))
        history.commit()
        now = feed.poll()
        assert now.story.state == "running"
        assert live_progress(now).step == 199
        assert now.gpu is not None
        assert now.gpu.gpus[0].util_pct == 98
        assert AGO_S <= now.now_t < AGO_S + 60
        points = feed.series("gpu0.util", 100, 200, 10)
        assert [round(mean) for _, _, mean, _ in points] == [98] * 10
        assert feed.series("gpu0.unheard_of", 0, 1, 1) == ()
        history.close()
    assert feed.poll().supervisor_alive is False


async def test_dashboard_shows_a_run_from_real_files(tmp_path: Path) -> None:
    run, wall0 = directory(tmp_path)
    log = tmp_path / "train.log"
    log.write_bytes(b"loading\nsteps:   1%| | 100/10260\rsteps:   2%| | 199/10260\r")
    facts = started(1)
    with JournalWriter(run.journal) as journal:
        placed = [msgspec.structs.replace(f, log=str(log)) if hasattr(f, "log") else f for f in facts]
        journal.append_all(0.0, wall0, [*created(), *placed])
        journal.append_all(90.0, wall0 + 90, training(1, 199))
    app = TrainwatchApp(
        open_run(healthy(), run.id, feed=StoreFeed(run, wall0), logs=FileLogBrowser()),
        picker=FakePicker(),
        interval_s=0,
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        board = app.dashboard
        assert board is not None
        board.look()
        await pilot.pause()
        assert "No supervisor is running" in board.head.plain_lines()[0]
        assert board.log_pane.plain_lines()[:2] == ["loading", "steps:   2%| | 199/10260"]
        log.unlink()
        board.look()
        await pilot.pause()
        assert "Nothing written yet." in board.log_pane.plain_lines()[0]


def test_checkpoints_of_the_fake_story_equal_those_in_the_store(tmp_path: Path) -> None:
    """The fakes speak the store's language: what they tell survives a journal."""
    run, wall0 = directory(tmp_path)
    told = checkpoint(720, 30.0)
    with JournalWriter(run.journal) as journal:
        journal.append_all(0.0, wall0, [*created(), CheckpointKnown(checkpoint=told)])
    assert load_story(run.journal).checkpoints == (told,)
