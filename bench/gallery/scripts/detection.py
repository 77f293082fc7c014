"""Make a tiny detection data set in the form that Ultralytics reads, with its data.yaml and a tiny model.yaml."""

from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path("dataset").resolve()
MODEL = """
nc: 2
backbone:
  - [-1, 1, Conv, [8, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, C2f, [16, True]]
  - [-1, 1, Conv, [32, 3, 2]]
head:
  - [[2, 3], 1, Detect, [nc]]
"""

random = np.random.default_rng(0)
for part, number in (("train", 96), ("val", 16)):
    images, labels = ROOT / "images" / part, ROOT / "labels" / part
    images.mkdir(parents=True)
    labels.mkdir(parents=True)
    for index in range(number):
        pixels = random.integers(0, 60, (64, 64, 3), dtype=np.uint8)
        left, top = random.integers(0, 32, 2)
        pixels[top : top + 24, left : left + 24, index % 2] += 150
        Image.fromarray(pixels).save(images / f"{index:03d}.png")
        box = f"{index % 2} {(left + 12) / 64:.4f} {(top + 12) / 64:.4f} 0.375 0.375\n"
        (labels / f"{index:03d}.txt").write_text(box)
Path("data.yaml").write_text(f"path: {ROOT}\ntrain: images/train\nval: images/val\nnames: [red, green]\n")
Path("tiny.yaml").write_text(MODEL)
