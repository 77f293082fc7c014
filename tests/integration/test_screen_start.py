"""Which run the command without a verb opens, and what it reads for that."""

from pathlib import Path

import pytest

from tests.fakes.e2e_world import World, world
from tests.fakes.tmux_terminal import NO_TMUX, terminal
from trainwatch.core.app.runs import watched_run as module
from trainwatch.core.app.runs.watched_run import watched_run

__all__ = ["world"]


def test_a_supervised_run_is_opened_without_reading_settings(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(world.home))
    monkeypatch.chdir(world.project)
    assert watched_run() is None, "no project here"
    world.write("--steps", "5000", "--step-time", "0.05")
    assert watched_run() is None, "never started"
    watcher = world.headless()
    world.at_step(1)

    found = watched_run()
    assert found is not None
    assert found.path == world.run.path
    deeper = world.project / "deeper"
    deeper.mkdir()
    monkeypatch.chdir(deeper)
    assert watched_run() is not None, "also from a folder below"

    config = world.project / "trainwatch.toml"
    config.write_text(config.read_text() + "\n")
    assert watched_run() is None, "what changed in the file must be read"

    watcher.murder()
    assert watched_run() is None, "it has no supervisor"


def test_an_unreadable_state_folder_is_reported_by_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trainwatch.toml").write_text("[run]\n")
    monkeypatch.chdir(tmp_path)

    def fail(_: object) -> list[object]:
        raise OSError("no")

    monkeypatch.setattr(module, "list_runs", fail)
    assert watched_run() is None


@pytest.mark.tmux
@NO_TMUX
def test_exported_lines_and_columns_do_not_override_the_terminal_size(world: World) -> None:
    world.write("--steps", "5000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    with terminal((120, 40), world.project, world.env) as person:
        person.run("export COLUMNS=60 LINES=15")
        person.trainwatch()
        text = person.see("● Training", "a attach")
        assert max(map(len, text.splitlines())) > 100
        assert len(text.rstrip().splitlines()) == 40
        for size in ((45, 30), (200, 50), (20, 5), (80, 24)):
            person.tmux("resize-window", "-x", str(size[0]), "-y", str(size[1]))
        person.until(lambda t: max(map(len, t.splitlines())) == 80 and "a attach" in t, "the last of many sizes")
        person.press("X", "F9", "C-g", "q")
        person.see("training and supervisor continue")
