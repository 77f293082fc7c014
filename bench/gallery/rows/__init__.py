"""All rows, in the order of the table: one file for each family, each with ``ROWS``."""

from importlib import import_module
from pkgutil import iter_modules

from ..row import Row

ORDER = (
    "hf", "hf-yaml", "hf-json", "hf-notqdm", "trl", "lightning", "lightning-rich", "accelerate", "accelerate-ranks",
    "diffusers", "diffusers-lora", "kohya", "nanogpt", "dit", "timm", "ultralytics", "keras", "torchrun",
    "llamafactory", "torchtune", "plain", "train-sh", "learner", "hydra", "typer", "tyro", "absl", "notebook",
)  # fmt: skip


def all_rows() -> dict[str, Row]:
    """Every row by its name, in the order of the table."""
    found = {row.name: row for module in iter_modules(__path__) for row in _rows(module.name)}
    return {name: found[name] for name in (*[n for n in ORDER if n in found], *sorted(found.keys() - set(ORDER)))}


def _rows(module: str) -> tuple[Row, ...]:
    rows: tuple[Row, ...] = import_module(f"{__name__}.{module}").ROWS
    return rows
