"""The keys checkpoint_globs and sample_globs of a preset reach everything that looks into the output folder."""

from pathlib import Path

import msgspec
import pytest

from tests.fakes.checkpoint_layouts import safetensors_file
from tests.integration.sense_world import ListInbox, RunClock
from trainwatch.core.app.plan.specs import definitions_of
from trainwatch.core.app.preflight.after_run import read_after
from trainwatch.core.app.runs.output_folder import OutputLists, find_run_samples, list_run_checkpoints
from trainwatch.core.app.screen.run_services import RunServices
from trainwatch.core.app.supervise.run_output import RunOutput
from trainwatch.core.app.wiring.sensors import checkpoint_sensor
from trainwatch.core.config.document import ConfigError
from trainwatch.core.config.shipped import load_presets
from trainwatch.core.model.observation import CheckpointEvent
from trainwatch.core.model.run import OutputPlace, RunSpec
from trainwatch.core.model.story import RunStory
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.run_directory import RunDirectory


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    """A run with a preset of its own; in its output folder two weights and two pictures, one each by the preset."""
    (tmp_path / "presets").mkdir()
    keys = 'checkpoint_globs = ["epoch-*"]\nsample_globs = ["media/*.png"]\n'
    (tmp_path / "presets" / "mine.toml").write_text(keys)
    out = tmp_path / "out"
    for name in ("epoch-1.safetensors", "best.safetensors"):
        safetensors_file(out).rename(out / name)
    for picture in (out / "media" / "a.png", out / "samples" / "b.png"):
        picture.parent.mkdir()
        picture.write_bytes(b"")
    return RunSpec(
        id="x", name="x", command=("true",), cwd=str(tmp_path), created_wall=0.0, preset="mine",
        output_dir=str(out), project=str(tmp_path / "trainwatch.toml"),
    )  # fmt: skip


def test_checkpoint_globs_select_what_lists_show(spec: RunSpec, tmp_path: Path) -> None:
    expected = ["epoch-1.safetensors"]
    assert [c.name for c in list_run_checkpoints(spec, definitions_of(spec).preset_of(spec)).checkpoints] == expected
    services = RunServices(RunDirectory(tmp_path / "no run"), spec)
    assert [c.name for c in services.listing().checkpoints] == expected
    run = RunDirectory.create(tmp_path / "home", spec)
    JournalWriter(run.journal).close()
    assert [c.name for c in read_after(run).listing.checkpoints] == expected


def test_the_screen_of_an_open_run_shows_folders_that_are_found_later(spec: RunSpec, tmp_path: Path) -> None:
    untold = msgspec.structs.replace(spec, output_dir=None, preset="generic")
    run = RunDirectory.create(tmp_path / "home", untold)
    opened = RunServices(run, run.load_spec())
    shown = [opened.directory]
    with pytest.raises(RuntimeError, match="no output folder is known"):
        opened.listing()
    run.save_outputs((OutputPlace(folder=str(tmp_path / "out"), why="w"),))
    assert [*shown, opened.directory] == [None, str(tmp_path / "out")]
    assert len(opened.listing().checkpoints) == 2
    (tmp_path / "more").mkdir()
    safetensors_file(tmp_path / "more")
    places = tuple(OutputPlace(folder=str(tmp_path / name), why="w") for name in ("out", "more"))
    run.save_outputs(places)
    assert len(opened.listing().checkpoints) == 3


def test_sample_globs_select_sample_images(spec: RunSpec, tmp_path: Path) -> None:
    assert [s.name for s in find_run_samples(spec, definitions_of(spec).preset_of(spec))] == ["a.png"]
    assert [s.name for s in RunServices(RunDirectory(tmp_path / "no run"), spec).newest()] == ["a.png"]


def test_checkpoint_globs_select_what_the_supervisor_watches(spec: RunSpec, tmp_path: Path) -> None:
    inbox = ListInbox()
    preset = definitions_of(spec).preset_of(spec)
    sensor = checkpoint_sensor(
        RunOutput(RunDirectory.create(tmp_path / "home", spec), spec, RunStory(), print),
        preset,
        None,
        OutputLists(tmp_path / "folders.json"),
        lambda _path, _told: None,
        known=(),
        inbox=inbox,
        clock=RunClock(),
        on_problem=lambda _text: None,
    )
    sensor.start()
    assert sensor.drain(10.0)
    sensor.stop()
    assert {Path(event.path).name for event in inbox.of(CheckpointEvent)} == {"epoch-1.safetensors"}


def test_a_checkpoint_pattern_with_a_folder_is_refused(spec: RunSpec) -> None:
    project = Path(str(spec.project))
    (project.parent / "presets" / "mine.toml").write_text('title = "x"\ncheckpoint_globs = ["runs/*.pt"]\n')
    with pytest.raises(ConfigError, match=r'mine\.toml:2: .*a pattern has no "/"'):
        load_presets(project)
