"""No checkpoint of an earlier attempt is written over: where each launch writes the same names, a restart has its own."""

from pathlib import Path

import pytest

from tests.unit.test_derive_launch import KOHYA, SDXL, checkpoint, preset, profile, run
from trainwatch.core.act.config.trainer_config import own_name
from trainwatch.core.model.run import RunSpec


def named(spec: RunSpec, resume: Path | None, attempt: int, framework: str = "kohya") -> str | None:
    changes = own_name(spec, preset(framework), None, resume, attempt)
    return str(changes[0].after) if changes else None


def out(tmp_path: Path, *names: str) -> RunSpec:
    for name in names:
        checkpoint(tmp_path, name)
    return run(tmp_path, *KOHYA, config=SDXL, output_dir=str(tmp_path))


@pytest.mark.parametrize("saved", ["luca-000002.safetensors", "luca.safetensors", "luca-step00000500.ckpt"])
def test_restart_saves_under_a_name_of_its_own(tmp_path: Path, saved: str) -> None:
    spec = out(tmp_path, saved)
    assert named(spec, tmp_path / saved, 2) == "luca-try2"
    assert named(spec, None, 3) == "luca-try3", "from the beginning, too"
    assert named(spec, tmp_path / saved, 1) == "luca-try2", "a first launch that goes on from one"


def test_name_is_changed_on_the_command_line(tmp_path: Path) -> None:
    checkpoint(tmp_path, "b-000001.safetensors")
    checkpoint(tmp_path, "last.safetensors")
    spec = run(tmp_path, "python", "sdxl_train_network.py", "--output_name", "b", output_dir=str(tmp_path))
    assert named(spec, None, 2) == "b-try2"
    assert named(run(tmp_path, "python", "sdxl_train_network.py", output_dir=str(tmp_path)), None, 2) == "last-try2"


def test_a_name_that_is_taken_by_another_run_is_not_taken_again(tmp_path: Path) -> None:
    spec = out(tmp_path, "luca-000001.safetensors", "luca-try2-000001.safetensors", "luca-try3.safetensors")
    assert named(spec, None, 2) == "luca-try4"


def test_name_is_kept_if_nothing_could_be_overwritten(tmp_path: Path) -> None:
    spec = out(tmp_path, "lucas-000001.safetensors", "other.safetensors")
    assert named(spec, None, 2) is None
    checkpoint(tmp_path, "luca-000001.safetensors")
    assert named(spec, None, 1) is None, "a first launch writes as the user says"
    assert named(spec, None, 2, "dit") is None
    checkpoint(tmp_path, "last.safetensors")
    own = run(tmp_path, "python", "mine.py", output_dir=str(tmp_path))
    assert named(own, None, 2) is None, "a script of one's own may not know the setting"
    shell = run(tmp_path, "bash", "-c", "python train_network.py --output_name luca", output_dir=str(tmp_path))
    assert named(shell, None, 2) is None
    assert own_name(spec, preset("kohya"), profile("stable"), None, 1) == ()
