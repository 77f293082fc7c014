"""Make a folder of small random pictures: ``images.py FOLDER CLASSES PER_CLASS SIZE``."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

folder, classes, each, size = Path(sys.argv[1]), *map(int, sys.argv[2:5])
random = np.random.default_rng(0)
for kind in range(classes):
    (folder / f"class{kind}").mkdir(parents=True)
    for number in range(each):
        pixels = random.integers(0, 64, (size, size, 3), dtype=np.uint8)
        pixels[..., kind % 3] += 128
        Image.fromarray(pixels).save(folder / f"class{kind}" / f"{number:03d}.png")
