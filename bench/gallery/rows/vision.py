"""timm with the train.py of its repository, and Ultralytics with its command."""

import csv
import re
from pathlib import Path

from ..row import Row, Truth

IMAGES = "python images.py data/train 3 32 32 && python images.py data/val 3 8 32 && rm images.py"
TIMM = "data --model resnet10t --num-classes 3 --img-size 32 -b 8 --epochs 4 --device cpu -j 2 --log-interval 1"
YOLO = (
    "model=tiny.yaml data=data.yaml epochs=4 imgsz=64 batch=8 nbs=8 workers=2 device=cpu optimizer=AdamW save_period=1"
)


def summary_of(folder: Path) -> Truth:
    """``summary.csv``; epochs and steps are printed from 0. The loss of the last step stands in the log alone."""
    newest = max(folder.glob("output/train/*/summary.csv"), key=lambda path: path.stat().st_mtime)
    epoch = int(list(csv.DictReader(newest.read_text().splitlines()))[-1]["epoch"])
    log = newest_log(folder).read_text()
    losses = re.findall(r"Train: \d+ \[.*?Loss: ([\d.]+) \(", log)
    return Truth(
        step=11, total_steps=12, epoch=epoch, loss=float(losses[-1]), run_step=12 * (epoch + 1), run_total_steps=48
    )


def results_of(folder: Path) -> Truth:
    """``results.csv``. There is no loss as one number."""
    newest = max(folder.glob("runs/detect/*/results.csv"), key=lambda path: path.stat().st_mtime)
    epoch = int(list(csv.DictReader(newest.read_text().splitlines()))[-1]["epoch"])
    return Truth(
        step=12, total_steps=12, epoch=epoch, total_epochs=4, run_step=12 * epoch, run_total_steps=48
    )  # fmt: skip


def newest_log(folder: Path) -> Path:
    """The log of the last attempt: the only place where some frameworks write their numbers."""
    return max(folder.parent.glob("home/runs/*/attempts/*/train.log"))


ROWS = (
    Row(
        name="timm", title="timm", environment="timm", packages=("timm",), checkout="pytorch-image-models",
        files={"images.py": "@images.py"}, prepare=("bash", "-c", IMAGES),
        command=("python", "{checkout}/train.py", *TIMM.split()), preset="timm",
        output_dir="output/train/*", checkpoints="output/train/*/checkpoint-*.pth.tar",
        torn="output/train/*/checkpoint-*.pth.tar", final="output/train/*/checkpoint-3.pth.tar",
        steps=48, save_every=12, workers=True, truth=summary_of, steps_in_files=False, exact=False,
    ),
    Row(
        name="ultralytics", title="Ultralytics", environment="ultralytics", packages=("ultralytics",),
        files={"detection.py": "@detection.py"}, prepare=("bash", "-c", "python detection.py && rm detection.py"),
        command=("yolo", "detect", "train", *YOLO.split(), "plots=False"), env={"YOLO_CONFIG_DIR": "settings"},
        preset="ultralytics", output_dir="runs/detect/train/weights",
        checkpoints="runs/detect/train*/weights/epoch*.pt",
        torn="runs/detect/train*/weights/*.pt", final="runs/detect/train*/weights/last.pt",
        steps=48, save_every=12, workers=True, truth=results_of, steps_in_files=False, exact=False,
        cannot={"worker": "on the CPU Ultralytics sets workers=0"},
    ),
)  # fmt: skip
