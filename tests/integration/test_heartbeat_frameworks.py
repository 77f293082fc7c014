"""The callbacks of trainbeat in real frameworks: step, loss, total, save now, and end after a save."""

import contextlib
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.gallery.environments import cache_folder
from bench.gallery.rows.checkouts import KOHYA

import trainbeat
from tests.fakes.e2e_world import PATIENCE_S, until
from tests.fakes.framework_python import python_with
from tests.pages import REPOSITORY, blocks
from tests.tiers import SECOND_TIER
from trainbeat import Page, page_path

pytestmark = [SECOND_TIER, pytest.mark.timeout(600)]

TRANSFORMERS = """
import sys, time, torch, trainbeat
from transformers import Trainer, TrainingArguments

class Data(torch.utils.data.Dataset):
    def __len__(self): return 4000
    def __getitem__(self, i): return {"x": torch.ones(4) * (i % 7), "labels": torch.tensor([1.0])}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        time.sleep(0.02)
        found = self.layer(x)
        return {"loss": ((found - labels) ** 2).mean(), "logits": found}

args = TrainingArguments(output_dir="out", max_steps=900, per_device_train_batch_size=2, gradient_accumulation_steps=2,
                         save_strategy="no", logging_steps=1, report_to=[], use_cpu=True, disable_tqdm=True)
Trainer(model=Model(), args=args, train_dataset=Data(), callbacks=[trainbeat.callback_for("transformers")]).train()
"""
LIGHTNING = """
import sys, time, torch, trainbeat
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
import lightning as L

kind = sys.argv[1]

class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield (torch.ones(4), torch.ones(1))

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        torch.nn.init.zeros_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)
        self.automatic_optimization = kind != "manual"
    def training_step(self, batch, index):
        time.sleep(0.02)
        loss = ((self.layer(batch[0]) - batch[1]) ** 2).mean()
        if kind == "manual":
            for optimizer in self.optimizers():
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in self.optimizers():
                optimizer.step()
        return loss
    def configure_optimizers(self):
        if kind == "manual":
            return [torch.optim.SGD([p], lr=0.0) for p in (self.layer.weight, self.layer.bias)]
        return torch.optim.SGD(self.parameters(), lr=0.0)

data = DataLoader(TensorDataset(torch.ones(1001, 4), torch.ones(1001, 1)), batch_size=1)
words = {"accumulated": {"max_epochs": 2, "accumulate_grad_batches": 4}, "manual": {"max_epochs": 2},
         "steps": {"max_steps": 700}, "endless": {"max_epochs": 1}, "unlimited": {"max_epochs": -1}}[kind]
if kind == "endless":
    data = DataLoader(Endless(), batch_size=1)
trainer = L.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, default_root_dir="out",
                    enable_model_summary=False, callbacks=[trainbeat.callback_for("lightning")], **words)
trainer.fit(Model(), data)
"""
ACCELERATE = """
import time, torch, trainbeat
from accelerate import Accelerator

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.DataLoader(torch.ones(4000, 4), batch_size=2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
output_dir, global_step, max_steps, running_loss = "out", 0, 900, None
for batch in data:
    with accelerator.accumulate(model):
        loss = ((model(batch) - 1) ** 2).mean()
        running_loss = loss.item()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    time.sleep(0.02)
    if accelerator.sync_gradients:
        global_step += 1
        wanted = trainbeat.step(global_step, loss=running_loss, total=max_steps)
        if wanted.save:
            accelerator.save_state(f"{output_dir}/checkpoint-{global_step}")
        if wanted.stop:
            break
"""


class Training:
    """A script with a copy of trainbeat.py beside it, as a supervisor would start it."""

    def __init__(self, folder: Path, python: str, script: str, *words: str, env: Mapping[str, str]) -> None:
        self.folder = folder
        attempt = folder / "attempt"
        attempt.mkdir()
        shutil.copy(trainbeat.__file__, folder / "trainbeat.py")
        (folder / "train.py").write_text(script)
        self._page = Path(page_path(str(attempt)))
        self._log = (folder / "log").open("wb")
        env = {k: v for k, v in os.environ.items() if k not in {"RANK", "WORLD_SIZE"}} | dict(env)
        self.process = subprocess.Popen(
            [python, "train.py", *words], cwd=folder, stdout=self._log, stderr=subprocess.STDOUT,
            env=env | {"TRAINWATCH_ATTEMPT": str(attempt), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip

    @property
    def said(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def told(self) -> dict[str, Any]:
        """What it told last; empty before that."""
        assert self.process.poll() in {None, 0}, self.said
        if not self._page.exists():
            return {}
        with contextlib.suppress(ValueError):
            return Page(str(self._page)).read() or {}
        return {}

    def at(self, step: int) -> dict[str, Any]:
        """Wait until it tells this step and a loss."""

        def look() -> dict[str, Any] | None:
            told = self.told()
            return told if (told.get("step") or 0) >= step and told["loss"] is not None else None

        return until(look, f"step {step} of: {self.said}")

    def ask(self, *, stop: bool = False) -> None:
        Page(str(self._page)).ask(stop=stop)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()
        self._page.unlink(missing_ok=True)


@contextlib.contextmanager
def training(
    folder: Path, python: str, script: str, *words: str, env: Mapping[str, str] | None = None
) -> Iterator[Training]:
    made = Training(folder, python, script, *words, env=env or {})
    try:
        yield made
    finally:
        made.end()


def saves_and_ends(run: Training, pattern: str) -> None:
    """A checkpoint when it is asked, training goes on; at a stop another one, at the last step that was made."""

    def saved() -> list[int]:
        return sorted(int(re.findall(r"\d+", path.name)[-1]) for path in run.folder.rglob(pattern))

    run.ask()
    (first,) = until(saved, "the checkpoint")
    told = run.at(first + 3)
    assert told["step"] > first
    run.ask(stop=True)
    assert run.process.wait(PATIENCE_S) == 0, run.said
    last = run.told()["step"]
    assert saved() == [first, last]


@pytest.mark.parametrize(
    ("packages", "script", "most"),
    [(("transformers", "accelerate"), TRANSFORMERS, 1000), (("accelerate", "torch"), ACCELERATE, 10)],
    ids=["transformers", "accelerate in a loop of one's own"],
)
def test_a_framework_tells_its_steps_saves_and_ends(
    tmp_path: Path, packages: tuple[str, ...], script: str, most: float
) -> None:
    with training(tmp_path, python_with(*packages), script) as run:
        told = run.at(3)
        assert told["total"] == 900
        assert 0 <= told["loss"] < most
        saves_and_ends(run, "checkpoint-*")


@pytest.mark.parametrize(
    ("kind", "total"),
    [("accumulated", 502), ("steps", 700), ("manual", None), ("endless", None), ("unlimited", None)],
)
def test_lightning_tells_its_steps_loss_and_length_saves_and_ends(tmp_path: Path, kind: str, total: int | None) -> None:
    with training(tmp_path, python_with("lightning"), LIGHTNING, kind) as run:
        told = run.at(2)
        assert told["total"] == total
        assert math.isclose(told["loss"], 1.0), "the loss of a step, whatever is accumulated"
        saves_and_ends(run, "trainwatch-step=*.ckpt")


def kohya_sources() -> Path:
    """The checkout of sd-scripts that the gallery uses."""
    found = cache_folder(None) / "checkouts" / "sd-scripts"
    if not (found / "train_network.py").is_file():
        pytest.skip(f"no sources of kohya sd-scripts in {found} (git clone https://github.com/kohya-ss/sd-scripts)")
    return found


def with_recipe(script: str) -> str:
    """The script with the lines of the page, put where it says."""
    (block,) = (
        [line.text for line in block.lines]
        for block in blocks()
        if block.page.name == "heartbeat.md" and any("optimizer_train_fn()" in line.text for line in block.lines)
    )
    first, *rest = block
    assert first.endswith("# at the top"), first
    at, given, wanted = 0, script.splitlines(), iter(rest)
    for line in wanted:
        code, _, comment = (part.strip() for part in line.partition("#"))
        indent = line[: len(line) - len(line.lstrip())]
        if comment.startswith("was: "):
            at = given.index(f"{indent}{comment.removeprefix('was: ')}", at)
            given[at] = next(wanted)
        elif comment.startswith("is there"):
            at = given.index(f"{indent}{code}", at) + 1
        elif code:
            given.insert(at, line)
            at += 1
    return "\n".join([first, *given, ""])


def test_kohya_with_the_lines_of_the_page_tells_its_steps_saves_and_ends(tmp_path: Path) -> None:
    python, sources = python_with("diffusers", "transformers", "accelerate", "toml", "cv2"), kohya_sources()
    script = with_recipe((sources / "train_network.py").read_text(encoding="utf-8"))
    for name in ("tiny_sd.py", "sitecustomize.py", "stand_in_sd.py"):
        (found,) = (REPOSITORY / "bench" / "gallery").glob(f"*/{name}")
        shutil.copy(found, tmp_path)
    subprocess.run([python, "tiny_sd.py"], cwd=tmp_path, check=True, capture_output=True)
    config = "\n".join(line for line in KOHYA.splitlines() if not line.startswith(("max_train_steps", "save_every")))
    (tmp_path / "luca.toml").write_text(f"{config}\nmax_train_steps = 900\n")
    (tmp_path / "ledger").mkdir()
    env = {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{sources}", "GALLERY_STAND_IN": "stand_in_sd", "ACCELERATE_USE_CPU": "true",
        "GALLERY_LEDGER": str(tmp_path / "ledger"), "GALLERY_STEP_S": "0.05",
    }  # fmt: skip
    with training(tmp_path, python, script, "--config_file", "luca.toml", env=env) as run:
        told = run.at(3)
        assert told["total"] == 900
        assert 0 < told["loss"] < 10
        saves_and_ends(run, "thing-step*-state")
        assert not list(tmp_path.glob("out/thing.safetensors")), "no file of a finished training"
