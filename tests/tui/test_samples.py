"""Sample images in the terminal: real files, real decoding; a broken one is a sentence."""

import os
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker, healthy
from tests.fakes.screen_jobs import rich_run
from tests.tiers import second
from tests.tui.conftest import fills, look, until
from trainwatch.core.model.checkpoint import Sample
from trainwatch.core.sense.files.checkpoint_values import find_samples
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.screens import samples_screen
from trainwatch.tui.screens.samples_screen import SamplesScreen
from trainwatch.tui.ui import picture as pictures
from trainwatch.tui.ui.picture import PictureError, decode

Image = pytest.importorskip("PIL.Image")
RED, BLUE = (200, 10, 10), (10, 10, 200)


def picture(path: Path, size: tuple[int, int] = (64, 64), age_s: float = 600, **save: Any) -> Path:
    """Red above, blue below."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (0, size[1] // 2, size[0], size[1]))
    image.save(path, **save)
    wall = healthy().now_wall - age_s
    os.utime(path, (wall, wall))
    return path


class Folder:
    """The real search below a real folder."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    @property
    def directory(self) -> str | None:
        return None if self._directory is None else str(self._directory)

    def newest(self) -> tuple[Sample, ...]:
        return find_samples(self._directory) if self._directory is not None else ()


@asynccontextmanager
async def looking(
    folder: Path | None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[TrainwatchApp, Pilot[None]]]:
    app = TrainwatchApp(
        rich_run(healthy(), samples=Folder(folder)), picker=FakePicker(),
        interval_s=0,
    )  # fmt: skip
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, SamplesScreen))
        yield app, pilot


def front(app: TrainwatchApp) -> Any:
    return app.screen_stack[-1]


def reloaded(app: TrainwatchApp) -> bool:
    """Look again; one look at a time is taken."""
    front(app).reload()
    return True


def said(app: TrainwatchApp, name: str) -> str:
    return " ".join(" ".join(front(app).panes[name].plain_lines()).split())


def colours(app: TrainwatchApp, row: int) -> set[tuple[int, int, int]]:
    """Upper halves of a row of the picture."""
    strip = front(app).view.render_line(row)
    return {
        tuple(s.style.color.triplet) for s in strip if s.text == "▀" and s.style is not None and s.style.color is not None
    }  # fmt: skip


async def test_the_newest_sample_image_is_shown_with_step_and_age(tmp_path: Path) -> None:
    picture(tmp_path / "sample" / "luca_000500_00_20251121232000_42.png", age_s=1800)
    picture(tmp_path / "sample" / "luca_001000_00_20251121232000_42.png", age_s=600)
    async with looking(tmp_path) as (app, pilot):
        await until(pilot, lambda: front(app).fits)
        await pilot.pause()
        assert said(app, "caption").startswith("step 1,000 · 10 min ago · 1 of 2 · 64 × 64")
        height = front(app).view.size.height
        reds, blues = colours(app, 1), colours(app, height - 2)
        assert reds
        assert all(r > 150 and b < 60 for r, _, b in reds)
        assert all(b > 150 and r < 60 for r, _, b in blues)
        await pilot.press("right")
        await until(pilot, lambda: said(app, "caption").startswith("step 500 · 30 min ago · 2 of 2"))


async def test_a_newer_image_is_shown_unless_another_is_selected(tmp_path: Path) -> None:
    picture(tmp_path / "samples" / "0000500.webp", age_s=900)
    picture(tmp_path / "samples" / "0001000.jpg", age_s=600)
    async with looking(tmp_path) as (app, pilot):
        await until(pilot, lambda: "step 1,000" in said(app, "caption"))
        picture(tmp_path / "samples" / "0001500.png", age_s=300)
        await until(pilot, lambda: reloaded(app) and "step 1,500" in said(app, "caption"))
        await pilot.press("end")
        await until(pilot, lambda: "step 500" in said(app, "caption"))
        picture(tmp_path / "samples" / "0002000.png", age_s=100)
        await until(pilot, lambda: reloaded(app) and "of 4" in said(app, "caption"))
        assert "step 500" in said(app, "caption")
        await pilot.press("home")
        await until(pilot, lambda: "step 2,000" in said(app, "caption"))


async def test_a_broken_image_is_shown_as_one_line_of_text(tmp_path: Path) -> None:
    broken = tmp_path / "samples" / "0000500.png"
    broken.parent.mkdir()
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
    async with looking(tmp_path) as (app, pilot):
        await until(pilot, lambda: "0000500.png is damaged, half-written or no picture" in said(app, "picture"))
        picture(broken, age_s=60)  # it was only half-written
        await until(pilot, lambda: reloaded(app) and front(app).picture is not None)


async def test_without_the_images_extra_the_files_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_screen, "can_decode", lambda: False)
    picture(tmp_path / "samples" / "0000500.png")
    async with looking(tmp_path) as (app, pilot):
        await until(pilot, lambda: "step 500" in said(app, "samples"))
        assert "pip install 'trainwatch-tui[samples]'" in said(app, "picture")
        assert "10 min ago" in said(app, "samples")


async def test_samples_screen_shows_why_it_is_empty(tmp_path: Path) -> None:
    async with looking(tmp_path) as (app, pilot):
        await until(pilot, lambda: "No PNG, JPEG or WebP below" in said(app, "picture"))
    async with looking(None) as (app, _):
        assert "Set output_dir in trainwatch.toml" in said(app, "picture")


@pytest.mark.parametrize("size", [(80, 24), second((120, 40)), second((200, 50)), second((45, 30)), (30, 10)])
async def test_samples_screen_fits_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    picture(tmp_path / "samples" / "0000500.png", size=(300, 500))
    async with looking(tmp_path, size) as (app, pilot):
        await until(pilot, lambda: front(app).fits)
        view = front(app).view
        width, height = front(app).picture.pixels.size
        assert width == view.size.width or height >= view.size.height * 2 - 1, "it takes the room there is"
        fills(front(app).panes, *size)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def huge_png() -> bytes:
    """A few bytes that say they are 60 000 × 60 000 pixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x\x9c\x03\0\0\0\0\1") + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"GIF89a" + b"\0" * 20, "no picture"),
        (huge_png(), "pixels|no picture"),
        (b"\xff\xd8\xff\xe0" + b"\0" * 200, "no picture"),
    ],
)
def test_a_file_that_is_not_an_image_is_reported(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(PictureError, match=why):
        decode(str(path), (40, 40))


def test_an_image_in_another_format_is_not_decoded(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png", format="TIFF")
    with pytest.raises(PictureError, match="no picture"):
        decode(str(tmp_path / "a.png"), (40, 40))


def test_image_limits_are_checked_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = picture(tmp_path / "a.png", size=(100, 100))
    monkeypatch.setattr(pictures, "PIXELS", 9_999)
    with pytest.raises(PictureError, match="100 × 100 pixels"):
        decode(str(path), (40, 40))
    monkeypatch.setattr(pictures, "FILE_BYTES", 10)
    with pytest.raises(PictureError, match="are not shown"):
        decode(str(path), (40, 40))
    (tmp_path / "link.png").symlink_to(path)
    with pytest.raises(PictureError, match="cannot be read"):
        decode(str(tmp_path / "link.png"), (40, 40))
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(PictureError, match="is not a regular file"):
        decode(str(tmp_path / "pipe.png"), (40, 40))


def test_transparent_and_palette_images_are_drawn_on_a_background(tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(tmp_path / "a.png")
    shown = decode(str(tmp_path / "a.png"), (8, 8))
    assert shown.pixels.getpixel((0, 0)) == (128, 128, 128)
    Image.new("P", (8, 8)).save(tmp_path / "p.png")
    assert decode(str(tmp_path / "p.png"), (8, 8)).pixels.mode == "RGB"
