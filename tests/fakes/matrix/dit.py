"""The shipped DiT trainer with the faults of the matrix: YAML config, dotted overrides, directories of C1.

Four epochs of ten steps, a checkpoint directory every ten.
"""

import argparse
import shutil
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tests.fakes.matrix import faults, no_compiler  # noqa: F401
from trainwatch.configs.examples import dit_trainer as shipped
from trainwatch.configs.examples.demo_parts import add_arguments


class Training(shipped.Training):
    """Its loop, with other trouble and other saves."""

    def _make_trouble(self, source: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
        faults.spoil(self.model.parameters(), self.step)
        faults.give_up_on_nan(self.loss, self.step)
        if faults.loader_sticks(self.step, int(self.settings["data.num_workers"])):
            return iter(self._loader(shipped.StuckPictures))
        faults.after_step(self.step, batch=int(self.settings["training.batch_size"]))
        return source

    def _write(self, folder: Path, parts: dict[str, Any]) -> None:
        self._damaged = faults.write_all(
            {folder / file: partial(torch.save, state) for file, state in parts.items()},
            self.step,
            spoiled=folder / ("model.pt" if faults.FAULT == "nan-saved" else "optimizer.pt"),
        )

    def _save(self, name: str) -> None:
        super()._save(name)
        faults.saved(self.out / name, damaged=self._damaged)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--resume")
    add_arguments(parser)
    args, overrides = parser.parse_known_args()
    settings = shipped.read_settings(Path(args.config), overrides)
    faults.begin({**settings, "resume": args.resume})
    if faults.FAULT == "import":
        import flash_attn  # type: ignore[import-not-found]  # noqa: F401
    if unknown := sorted(set(settings) - set(shipped.DEFAULTS)):
        parser.error(f"unrecognized arguments: {' '.join(f'--{name}' for name in unknown)}")
    for left in Path(settings["output_dir"]).glob(".tmp-*"):
        shutil.rmtree(left)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step")
    return Training(args, settings).run()


if __name__ == "__main__":
    sys.exit(main())
