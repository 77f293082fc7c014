"""Lightning: LightningCLI with a YAML file and tqdm's bar, and an argparse script with rich's."""

import csv
from pathlib import Path

from ..row import Row, Truth

PACKAGES = ("lightning", "jsonargparse[signatures]", "rich")
CONFIG = """\
seed_everything: 1
trainer:
  max_epochs: 4
  accelerator: cpu
  log_every_n_steps: 1
  logger: {class_path: lightning.pytorch.loggers.CSVLogger, init_args: {save_dir: .}}
  callbacks:
    - class_path: lightning.pytorch.callbacks.TQDMProgressBar
    - class_path: lightning.pytorch.callbacks.ModelCheckpoint
      init_args: {every_n_train_steps: 12, save_top_k: 3, monitor: step, mode: max}
data: {num_workers: 2}
"""


def metrics_of(folder: Path) -> Truth:
    """``metrics.csv`` of the newest version; its steps and epochs begin with 0."""
    newest = max(folder.glob("lightning_logs/version_*/metrics.csv"), key=lambda path: path.stat().st_mtime)
    rows = [row for row in csv.DictReader(newest.read_text().splitlines()) if row["train_loss"]]
    steps, epoch = int(rows[-1]["step"]) + 1, int(rows[-1]["epoch"])
    loss = float(rows[-1]["train_loss"])
    return Truth(step=12, total_steps=12, epoch=epoch, loss=loss, run_step=steps, run_total_steps=48)


ROWS = (
    Row(
        total_unsaid=True,
        name="lightning", title="Lightning, CLI and tqdm", environment="lightning", packages=PACKAGES,
        files={"main.py": "@lightning_cli.py", "config.yaml": CONFIG},
        command=("python", "main.py", "fit", "--config", "config.yaml"), preset="lightning",
        output_dir="lightning_logs/version_0/checkpoints", checkpoints="lightning_logs/version_*/checkpoints/*.ckpt",
        torn="lightning_logs/version_*/checkpoints/*.ckpt", final="lightning_logs/version_*/checkpoints/*step=48.ckpt",
        steps=48, save_every=12, workers=True, truth=metrics_of,
    ),
    Row(
        name="lightning-rich", title="Lightning, rich", environment="lightning", packages=PACKAGES,
        files={"train.py": "@lightning_rich.py"}, command=("python", "train.py"), preset="lightning",
        output_dir="lightning_logs/version_0/checkpoints", checkpoints="lightning_logs/version_*/checkpoints/*.ckpt",
        torn="lightning_logs/version_*/checkpoints/*.ckpt", final="lightning_logs/version_*/checkpoints/*step=48.ckpt",
        steps=48, save_every=6, workers=True, truth=metrics_of, exact=False,
    ),
)  # fmt: skip
