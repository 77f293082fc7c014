"""One cell of the matrix: a project of one framework with one fault, watched to its end, and what is to be said of it."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.e2e_world import Watcher, World, world_at
from trainwatch.core.model.decision import StartAttempt, StopAttempt
from trainwatch.core.model.fact import Note
from trainwatch.core.model.story import RunStory

REPOSITORY = Path(__file__).parents[2]
TRAINERS = REPOSITORY / "tests" / "fakes" / "matrix"
PATIENCE_S = 200.0
TOGETHER = 3
"""Cells that live at the same time: most of a cell's time is waiting."""
HANGS = frozenset({"hang", "hang-loader"})
OLD_WALL = 1_600_000_000
"""Long before any run: when the user's own file in the output directory was written."""

KOHYA = """# My own notes stay where they are.
[model_arguments]
pretrained_model_name_or_path = "{project}/base.safetensors"
network_module = "networks.lora"
[training_arguments]
output_dir = "{out}"
output_name = "luca"
train_batch_size = {batch}            # as much as fits
gradient_accumulation_steps = 1
max_train_epochs = 4
save_every_n_epochs = 1
save_state = {state}
learning_rate = 1e-3
mixed_precision = "{precision}"
max_data_loader_n_workers = {workers}
persistent_data_loader_workers = false
"""
DIT = """# My own notes stay where they are.
output_dir: {out}
model: {{image_size: 8, channels: 4}}
data:
  samples: 40
  num_workers: {workers}   # as many as cores
training:
  batch_size: 2            # a flag says otherwise
  gradient_accumulation_steps: 1
  num_epochs: 4
  learning_rate: 1.0e-3
  save_steps: 10
  save_epochs: 0
  log_steps: 1
  warmup_steps: 2
{typo}"""
HF = """# My own notes stay where they are.
model_name_or_path: {project}/base.safetensors
output_dir: {out}
per_device_train_batch_size: {batch}   # as much as fits
gradient_accumulation_steps: 1
learning_rate: 1.0e-3
max_steps: 40
save_strategy: steps
save_steps: 10
logging_steps: 1
dataloader_num_workers: {workers}
{typo}"""


class Cell(msgspec.Struct, frozen=True):
    """A framework and a fault. ``light``: train and save without PyTorch (``tests/fakes/matrix/tensors.py``)."""

    framework: str
    fault: str
    light: bool = False


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell showed. ``touched``: the user's files that changed; ``read``: what each process of the trainer saw."""

    story: RunStory
    state: str
    notes: tuple[str, ...]
    starts: tuple[StartAttempt, ...]
    stops: int
    read: tuple[dict[str, Any], ...]
    touched: tuple[str, ...]
    said: str


def run_cells(cells: list[Cell], root: Path) -> Iterator[tuple[Cell, Seen]]:
    """All of them, several at a time."""
    with ThreadPoolExecutor(TOGETHER) as threads:
        seen = threads.map(lambda cell: _run(cell, root / f"{cell.framework}-{cell.fault}"), cells)
        yield from zip(cells, seen, strict=True)


def _run(cell: Cell, root: Path) -> Seen:
    root.mkdir(parents=True)
    with world_at(root) as world:
        notes = root / "notes"
        notes.mkdir()
        _write_project(world, cell)
        before = _sums(world.project)
        watcher = world.headless(env=_environment(cell, notes))
        state = _at_rest(world, watcher)
        after = _sums(world.project) | _sums(world.out)
        expected = before | _saved(notes)
        records = world.records()
        return Seen(
            story=world.story(),
            state=state,
            notes=tuple(r.fact.text for r in records if isinstance(r.fact, Note)),
            starts=tuple(world.decisions(StartAttempt)),
            stops=len([r for r in records if isinstance(r.decision, StopAttempt)]),
            read=tuple(json.loads(line) for line in _lines(notes / "read.jsonl")),
            touched=tuple(sorted(path for path, total in expected.items() if after.get(path) != total)),
            said=watcher.said,
        )


def _at_rest(world: World, watcher: Watcher) -> str:
    """Wait until nothing more happens by itself; the journal is read now and then only: many cells share the cores."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        state = world.story().state
        if watcher.process.poll() is not None or state == "stopped":
            return world.story().state
        time.sleep(0.2)
    return f"no end within {PATIENCE_S:g} s, {world.story().state}"


def _write_project(world: World, cell: Cell) -> None:
    fault, project = cell.fault, world.project
    world.out.mkdir()
    (project / "base.safetensors").write_bytes(b"the user's base model")
    (project / "images").mkdir()
    (project / "images" / "1.png").write_bytes(b"the user's picture")
    own = world.out / "checkpoint-90"  # a stale one of another training, newer by its number
    own.mkdir()
    (own / "trainer_state.json").write_text('{"global_step": 90}')
    (own / "model.safetensors").write_bytes((10**6).to_bytes(8, "little"))  # cut off
    for path in (*own.iterdir(), own):
        os.utime(path, (OLD_WALL, OLD_WALL))
    values = {
        "project": project,
        "out": world.out,
        "batch": 4,
        "workers": 2 if fault == "hang-loader" else 0,
        "state": str(fault == "nan-optimizer").lower(),
        "precision": "bf61" if fault == "typo" else "bf16",
        "typo": "",
    }
    script = str(TRAINERS / f"{cell.framework}.py")
    match cell.framework:
        case "kohya":
            name, text, more = "luca.toml", KOHYA, ["--config_file", "{config}"]
        case "dit":
            name, text = "train_config.yaml", DIT
            more = ["--config", "{config}", "--step-time", "0.025", "--training.batch_size", "4"]
            values["typo"] = "  learning_rte: 1.0e-4\n" if fault == "typo" else ""
        case _:
            name, text, more = "sft.yaml", HF, ["--config", "{config}"]
            values["typo"] = "learning_rat: 1.0e-4\n" if fault == "typo" else ""
    (project / name).write_text(text.format(**values))
    world.write(
        command=[sys.executable, script, *more],
        config=name,
        preset=cell.framework,
        more={
            "watch": {"interval_s": 0.5, "summary_s": 60},
            "remedies": {"apply": "all" if fault == "nan" else "equivalent"},
            # A busy machine makes steps wait for seconds: only where a hang is the fault the watch is impatient.
            "hang": {"min_s": 15, "max_s": 30, "startup_s": 180}
            if fault in HANGS
            else {"min_s": 90, "max_s": 90, "startup_s": 180},
        },
    )


def _environment(cell: Cell, notes: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    light = {"MATRIX_LIGHT": "1"} if cell.light else {}
    return {"MATRIX_FAULT": cell.fault, "MATRIX_NOTES": str(notes), "PYTHONPATH": path} | light


def _sums(folder: Path) -> dict[str, str]:
    """Every file of a folder by its content."""
    return {
        str(path.resolve()): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _saved(notes: Path) -> dict[str, str]:
    """What the trainer itself wrote, damage included: the newest sum of each file."""
    rows = (line.split(" ", 1) for line in _lines(notes / "saved.txt"))
    return {path: total for total, path in rows}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
