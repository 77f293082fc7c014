"""The training script of somebody who reads the documentation: a config, an option to resume, checkpoints in `outputs`.

Standard library only. Nothing in it knows trainwatch.
"""
# ruff: noqa: T201 - printing is what a trainer does

import argparse
import json
import struct
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="cfg.yaml")
    parser.add_argument("--output_dir", default="outputs")
    parser.add_argument("--resume", help="a checkpoint to go on from")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--mode")
    parser.add_argument("--safe_mode", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    lines = Path(args.config).read_text().splitlines() if Path(args.config).exists() else []
    config = dict(line.split(": ") for line in lines if ": " in line)
    steps, every = int(config.get("steps", 60)), int(config.get("save_steps", 20))
    first, weight = 0, 1.0
    if args.resume:
        first, weight = load(Path(args.resume))
        print(f"resumed from {args.resume} at step {first}")
    crashes = [int(step) for step in config.get("crash_at", "").split()]
    for step in range(first + 1, steps + 1):
        time.sleep(float(config.get("step_time", 0.05)))
        if step in crashes and not (mark := Path(args.output_dir) / f".crashed-{step}").exists():
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
            raise RuntimeError("CUDA error: unknown error")
        weight *= 0.998
        print(f"step {step}/{steps} loss {weight:.4f} lr {args.lr:.2e}", flush=True)
        if step % every == 0:
            save(Path(args.output_dir), step, weight)
    print("training complete", flush=True)


def save(out: Path, step: int, weight: float) -> None:
    folder = out / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    header += b" " * (-len(header) % 8)
    model = struct.pack("<Q", len(header)) + header + struct.pack("<f", weight)
    (folder / "model.safetensors").write_bytes(model)
    (folder / "training_state.json").write_text(json.dumps({"global_step": step, "weight": weight}))


def load(folder: Path) -> tuple[int, float]:
    state = json.loads((folder / "training_state.json").read_text())
    return state["global_step"], state["weight"]


if __name__ == "__main__":
    main()
