"""Scripts that no preset knows, each written as somebody would: folders, names, options and log lines of their own."""

import re
from pathlib import Path

from ..row import Row, Truth
from .vision import newest_log

HYDRA = {
    "main.py": "@hydra_app.py",
    "conf/config.yaml": """\
defaults:
  - model: mlp
  - _self_
seed: 7
trainer:
  max_steps: 60
  save_every: 12
  log_every: 3
  resume_from: null   # path of a .pt to continue from
optim:
  lr: 0.003
hydra:
  job:
    chdir: true
""",
    "conf/model/mlp.yaml": "width: 32\n",
}
ENVIRONMENT = "scripts"
PACKAGES = ("hydra-core", "typer", "tyro", "absl-py", "tqdm")


def last_epoch(folder: Path) -> Truth:
    """The last line of the table; epochs count from 0."""
    rows = re.findall(r"(?m)^(\d+) +([\d.]+) +[\d.]+ +[\d.]+ +\d\d:\d\d", newest_log(folder).read_text())
    epoch, loss = rows[-1]
    return Truth(epoch=int(epoch), loss=float(loss), unsaid=("step", "total_steps", "run_step", "run_total_steps"))


def last_step(pattern: str, folder: Path, *, total: int | None = None) -> Truth:
    """``pattern``: step and loss in the log."""
    step, loss = re.findall(pattern, newest_log(folder).read_text())[-1]
    return Truth(step=int(step), total_steps=total, loss=float(loss), run_step=int(step), run_total_steps=total)


def last_bar(folder: Path) -> Truth:
    """The bar of the fifth epoch of five."""
    loss = re.findall(r"12/12 \[.*?loss=([\d.]+)", newest_log(folder).read_text())[-1]
    return Truth(
        step=12, total_steps=12, epoch=5, total_epochs=5, loss=float(loss), run_step=60, run_total_steps=60
    )  # fmt: skip


ROWS = (
    Row(
        name="learner", title="script: epochs in the manner of fastai", environment=ENVIRONMENT, packages=PACKAGES,
        version_of="torch", files={"train_tabular.py": "@epoch_learner.py"}, command=("python", "train_tabular.py"),
        preset="generic", output_dir="models", checkpoints="models/*.pth", torn="models/*.pth",
        final="models/tabular_5.pth", steps=72, save_every=12, log_every=0, steps_in_files=False, truth=last_epoch,
        exact=False,
    ),
    Row(
        total_unsaid=True,
        name="hydra", title="script: Hydra, dated folders", environment=ENVIRONMENT, packages=PACKAGES,
        version_of="hydra-core", files=HYDRA, command=("python", "main.py", "optim.lr=0.01"), preset="generic",
        output_dir="outputs/*/*/ckpts", checkpoints="outputs/*/*/ckpts/*.pt", torn="outputs/*/*/ckpts/*.pt",
        final="outputs/*/*/ckpts/model-60.pt", steps=60, save_every=12, log_every=3, exact=False,
        truth=lambda folder: last_step(r"global_step=(\d+) loss=([\d.]+)", folder),
    ),
    Row(
        name="typer", title="script: typer, subcommands", environment=ENVIRONMENT, packages=PACKAGES,
        version_of="typer", files={"cli.py": "@typer_subcommands.py"}, command=("python", "cli.py", "train", "first"),
        preset="generic", output_dir="workspace/first/snapshots", checkpoints="workspace/first/snapshots/*.pt",
        torn="workspace/first/snapshots/*.pt", final="workspace/first/snapshots/snap_60.pt", steps=60, save_every=15,
        exact=False, truth=lambda folder: last_step(r"\[it +(\d+)/60\] loss: ([\d.]+)", folder, total=60),
    ),
    Row(
        total_unsaid=True,
        name="tyro", title="script: tyro, nested settings", environment=ENVIRONMENT, packages=PACKAGES,
        version_of="tyro", files={"run.py": "@tyro_nested.py"}, command=("python", "run.py", "--max-iter", "60"),
        preset="generic", output_dir="exp", checkpoints="exp/iter*", torn="exp/iter*/net.pt",
        final="exp/iter000060/net.pt", steps=60, save_every=15, exact=False,
        truth=lambda folder: last_step(r"Iter (\d+) .*?loss ([\d.]+)", folder),
    ),
    Row(
        total_unsaid=True,
        name="absl", title="script: absl, folder from the environment", environment=ENVIRONMENT, packages=PACKAGES,
        version_of="absl-py", files={"launch.py": "@absl_environment.py"},
        command=("python", "launch.py", "--experiment=wide", "--learning_rate=0.02"),
        env={"EXPERIMENT_DIR": "../elsewhere"}, preset="generic", output_dir="../elsewhere/wide",
        checkpoints="../elsewhere/wide/*.pt", torn="../elsewhere/wide/*.pt", final="../elsewhere/wide/ckpt_60.pt",
        steps=60, save_every=15, log_every=5, exact=False,
        truth=lambda folder: last_step(r"\] \[(\d+)\] train_loss=([\d.]+)", folder),
    ),
    Row(
        name="notebook", title="script: a notebook's cells", environment=ENVIRONMENT, packages=PACKAGES,
        version_of="torch", files={"Untitled3.py": "@notebook.py"}, command=("python", "Untitled3.py"),
        preset="generic", output_dir="my_model_v2_final", checkpoints="my_model_v2_final/*.pt",
        torn="my_model_v2_final/*.pt", final="my_model_v2_final/model_epoch5.pt", steps=60, save_every=12,
        resumes=False, steps_in_files=False, exact=False, truth=last_bar,
    ),
)  # fmt: skip
