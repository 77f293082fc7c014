"""Pictures in the terminal: reading a file."""

import importlib.util
import os
import stat
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from PIL import Image


# Decodes an image file and shrinks it. The file is not trusted: limits are checked first, errors are sentences.

FILE_BYTES = 64 * 1024 * 1024
PIXELS = 50_000_000
"""A sample of 7000 × 7000; larger images are not decoded."""
FORMATS = ("PNG", "JPEG", "WEBP")
"""No other format is decoded, whatever the file's name: Pillow has dozens, some of them rarely reviewed."""
EXTRA = "trainwatch-tui[samples]"


class PictureError(Exception):
    """Why a picture cannot be shown, in a sentence."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """``pixels``: a Pillow image that fits the room; ``width``/``height`` of the file itself, in pixels."""

    pixels: Any
    width: int
    height: int


def can_decode() -> bool:
    """Whether the extra is installed; imports nothing."""
    return importlib.util.find_spec("PIL") is not None


def decode(path: str, room: tuple[int, int]) -> Picture:
    """Read and shrink to at most ``room`` (width, height in pixels). Raises PictureError. Called in a thread."""
    from PIL import Image

    try:
        # Neither follow a link nor wait for the other end of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise PictureError(f"cannot be read: {error.strerror}") from error
    with open(descriptor, "rb") as file:  # noqa: PTH123  it is a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PictureError("is not a regular file")
        if status.st_size > FILE_BYTES:
            raise PictureError(f"has {status.st_size / 1e6:,.0f} MB; more than {FILE_BYTES / 1e6:.0f} MB are not shown")
        if status.st_size == 0:
            raise PictureError("is empty; it may be written just now")
        try:
            with Image.open(file, formats=FORMATS) as image:
                return _shrunk(image, room)
        except PictureError:
            raise
        except Exception as error:  # a damaged file may raise anything
            # Pillow puts the repr of the file object into its message.
            why = str(error).partition("\n")[0].partition(" <_io")[0] or type(error).__name__
            raise PictureError(f"is damaged, half-written or no picture: {why}") from error


def _shrunk(image: "Image.Image", room: tuple[int, int]) -> Picture:
    width, height = image.size
    if width * height > PIXELS:
        raise PictureError(f"has {width:,} × {height:,} pixels, too many to decode")
    image.draft("RGB", (room[0] * 2, room[1] * 2))  # JPEG: decode at a smaller size
    image.thumbnail((max(1, room[0]), max(1, room[1])), reducing_gap=2.0)
    flat = image.convert("RGBA") if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info else image
    if flat.mode == "RGBA":
        from PIL import Image

        ground = Image.new("RGBA", flat.size, (128, 128, 128, 255))
        ground.alpha_composite(flat)
        flat = ground
    return Picture(pixels=flat.convert("RGB"), width=width, height=height)
