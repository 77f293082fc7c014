"""Sample images are found below the output directory, within bounds; their names tell the step."""

import os
from pathlib import Path

import pytest

from trainwatch.core.sense.files import checkpoint_values
from trainwatch.core.sense.files.checkpoint_values import find_samples, moment_of


def picture(path: Path, mtime: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    os.utime(path, (mtime, mtime))
    return path


@pytest.mark.parametrize(
    ("name", "step", "epoch"),
    [
        ("sample/luca_000500_00_20251121232000_42.png", 500, None),
        ("sample/luca_e000004_01_20251121232000.png", None, 4),
        ("sample/000500_00_20251121232000.png", 500, None),
        ("samples/0004000.png", 4000, None),
        ("samples/step_1200_prompt_3.webp", 1200, None),
        ("samples/sample-step=1200.jpg", 1200, None),
        ("samples/1200steps_0.jpg", 1200, None),
        ("validation/checkpoint-2500/image_0.png", 2500, None),
        ("samples/epoch_12.png", None, 12),
        ("samples/epoch_3_step_900.png", 900, 3),
        ("images/global_step900/a.png", 900, None),
        ("samples/a cat, 4k.png", None, None),
        ("samples/seed_123456789012.png", None, None),
    ],
)
def test_step_and_epoch_are_parsed_from_the_name(name: str, step: int | None, epoch: int | None) -> None:
    assert moment_of(Path(name)) == (step, epoch)


def test_without_a_samples_folder_any_image_is_listed(tmp_path: Path) -> None:
    picture(tmp_path / "out" / "0000300.png", 1)
    assert [s.name for s in find_samples(tmp_path)] == ["0000300.png"]


def test_links_hidden_folders_and_deep_folders_are_not_searched_for_samples(tmp_path: Path) -> None:
    real = picture(tmp_path / "elsewhere" / "secret.png", 1)
    out = tmp_path / "out"
    picture(out / "sample" / "a.png", 1)
    (out / "sample" / "b.png").symlink_to(real)
    (out / "linked").symlink_to(real.parent)
    picture(out / ".cache" / "c.png", 1)
    picture(out / "sample" / "2" / "3" / "4" / "5" / "d.png", 1)
    os.mkfifo(out / "sample" / "pipe.png")
    assert [s.name for s in find_samples(out)] == ["a.png"]


def test_search_for_samples_stops_in_a_very_large_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_values, "ENTRIES", 5)
    for number in range(20):
        picture(tmp_path / "sample" / f"{number:04d}.png", number)
    assert len(find_samples(tmp_path)) == 4
