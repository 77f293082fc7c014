"""Sample images that are the same every time, for pictures of the screen."""

import math
import os
from pathlib import Path

from trainwatch.core.model.checkpoint import Sample
from trainwatch.core.sense.files.checkpoint_values import find_samples


def paint(path: Path, wall: float, turn: float = 0.0, side: int = 96) -> None:
    """A hill at sunset, a little different at each turn."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (side, side))
    for y in range(side):
        for x in range(side):
            hill = side * (0.62 + 0.12 * math.sin(x / side * 5 + turn))
            sun = math.hypot(x - side * (0.3 + turn / 10), y - side * 0.35) < side * 0.12
            if y > hill:
                colour = (24, 60 + int(70 * (side - y) / side), 40)
            elif sun:
                colour = (255, 214, 120)
            else:
                colour = (90 + int(150 * y / side), 70 + int(60 * y / side), 130)
            image.putpixel((x, y), colour)
    image.save(path)
    os.utime(path, (wall, wall))


class PaintedFolder:
    """The services of sample images, over pictures that it paints."""

    def __init__(self, folder: Path, now_wall: float, count: int = 8) -> None:
        self._folder = folder
        for number in range(1, count + 1):
            name = f"luca_{number * 855:06d}_00_20251121232000_42.png"
            paint(folder / "sample" / name, now_wall - (count - number) * 2140 - 240, number / 4)

    @property
    def directory(self) -> str:
        return str(self._folder)

    def newest(self) -> tuple[Sample, ...]:
        return find_samples(self._folder)

    def fetch(self, sample: Sample) -> str:
        return sample.path
