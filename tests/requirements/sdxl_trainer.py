"""A stand-in for sd-scripts that trains SDXL: its TOML config, its bar, LoRA files every two epochs, an event file.

It runs out of GPU memory with ``vae_batch_size`` above 1, and waits half way for a file ``go``. Twelve epochs of
twenty steps of 0.01 s stand for those of 855 steps of 2.5 s.
"""
# ruff: noqa: T201 - printing is what a trainer does

import argparse
import math
import sys
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fakes.kohya_trainer import OOM, save
from tests.fakes.tensorboard import event, record

EPOCHS, STEPS = 12, 20
TOTAL = EPOCHS * STEPS


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config_file", type=Path, required=True)
    config = tomllib.loads(parser.parse_args().config_file.read_text())
    out = Path(config["output_dir"])
    out.mkdir(parents=True, exist_ok=True)
    print(f"vae_batch_size: {config.get('vae_batch_size')}", flush=True)
    with (out / "events.out.tfevents.1800000000.box").open("ab") as events:
        for step in range(1, TOTAL + 1):
            time.sleep(0.01)
            loss = 0.1 + 1 / math.sqrt(step)
            print(
                f"\rsteps: {100 * step // TOTAL:3d}%|   | {step}/{TOTAL} [00:00<00:00,  2.50s/it, avr_loss={loss:.4f}]",
                end="",
                flush=True,
            )
            if step == 6 and int(config.get("vae_batch_size", 1)) > 1:
                sys.stderr.write("\n" + OOM)
                return 1
            events.write(record(event("loss/average", loss, step, time.time())))
            events.flush()
            epoch, rest = divmod(step, STEPS)
            if rest == 0 and epoch % 2 == 0 and epoch < EPOCHS:
                save(out / f"luca-{epoch:06d}.safetensors", step, epoch)
            if step == TOTAL // 2:
                while not Path("go").exists():
                    time.sleep(0.02)
    save(out / "luca.safetensors", TOTAL, EPOCHS)
    print("\nmodel saved.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
