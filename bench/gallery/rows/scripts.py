"""Scripts of one's own: torchrun with a snapshot, argparse, and a shell script around it."""

import re
from pathlib import Path

from ..row import Row, Truth
from .vision import newest_log

ONE_FILE = "the script has one snapshot and writes it over in place"


def ranks_of(folder: Path) -> Truth:
    """The log alone: two ranks print their own loss, in any order; the number of epochs is never printed."""
    steps = re.findall(r"\[RANK 0\] Epoch (\d+) \| Step (\d+)/(\d+)", newest_log(folder).read_text())
    epoch, step, total = map(int, steps[-1])
    return Truth(step=step, total_steps=total, epoch=epoch, run_step=epoch * total + step)


def lines_of(folder: Path) -> Truth:
    """The last line of steps: the script keeps its numbers nowhere else."""
    log = newest_log(folder).read_text()
    step, total, epoch, loss = re.findall(r"step (\d+)/(\d+) epoch (\d+) loss ([\d.]+)", log)[-1]
    return Truth(
        step=int(step), total_steps=int(total), epoch=int(epoch), loss=float(loss), run_step=int(step),
        run_total_steps=int(total),
    )  # fmt: skip


ROWS = (
    Row(
        total_unsaid=True,
        name="torchrun", title="torchrun, 2 × gloo", environment="torch", packages=(), version_of="torch",
        files={"train.py": "@ddp_trainer.py"},
        command=("torchrun", "--standalone", "--nproc_per_node=2", "train.py", "4", "1"), preset="generic",
        output_dir=".", checkpoints="snapshot.pt", torn="snapshot.pt", final="snapshot.pt", steps=48, save_every=12,
        ranks=2, launcher=True, truth=ranks_of, steps_in_files=False, cannot={"torn": ONE_FILE},
    ),
    Row(
        name="plain", title="argparse script", environment="torch", packages=(), version_of="torch",
        files={"train.py": "@plain_trainer.py"}, command=("python", "train.py"), preset="generic",
        output_dir="checkpoints", checkpoints="checkpoints/*.pt", torn="checkpoints/*.pt",
        final="checkpoints/step_000048.pt", steps=48, save_every=10, log_every=2, workers=True, truth=lines_of,
    ),
    Row(
        name="train-sh", title="train.sh with tee", environment="torch", packages=(), version_of="torch",
        files={"train.py": "@plain_trainer.py", "train.sh": "@train.sh"}, command=("bash", "train.sh"),
        preset="generic", output_dir="checkpoints", checkpoints="checkpoints/*.pt", torn="checkpoints/*.pt",
        final="checkpoints/step_000048.pt", steps=48, save_every=10, log_every=2, workers=True, launcher=True,
        truth=lines_of,
    ),
)  # fmt: skip
