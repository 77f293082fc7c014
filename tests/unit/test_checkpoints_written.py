"""Which checkpoint a file that was written belongs to, and in which folder it is kept."""

from pathlib import Path

import pytest
from safetensors.numpy import save_file

from tests.fakes.checkpoint_layouts import weights
from trainwatch.core.checkpoints import state_of


def kept_in(path: Path, *stops: Path) -> str | None:
    found = state_of(path, set(stops))
    return None if found is None else str(Path(found.path).parent)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("results/000-DiT/checkpoints/0000010.safetensors", "results/000-DiT/checkpoints"),
        ("out/checkpoint-500/model.safetensors", "out"),
        ("out/checkpoint-500/unet/diffusion_pytorch_model.safetensors", "out"),
        ("out/model.safetensors", "out"),
        ("runs/train/weights/last.safetensors", "runs/train/weights"),
    ],
)
def test_a_written_file_belongs_to_the_outermost_folder_that_is_one_checkpoint(
    tmp_path: Path, name: str, folder: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    save_file(weights(), path)
    assert kept_in(path, tmp_path) == str(tmp_path / folder)


@pytest.mark.parametrize("name", ["out/train.log", "out/tokenizer/tokenizer.json", "out/a.tmp", "out/notes.txt"])
def test_other_files_belong_to_none(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("step 3\n")
    assert kept_in(path, tmp_path) is None
