"""A stand-in for a kohya script: a TOML config with sections, epochs, weights-only LoRA files, trouble on request.

It needs ``train_batch_size`` x 4 GB of a GPU with 10 GB, loads its data with workers that deadlock above one, and its
step counter starts anew after ``network_weights``, as kohya's does. Standard library only.
"""
# ruff: noqa: T201 - printing is what a trainer does

import argparse
import json
import os
import struct
import sys
import time
import tomllib
from pathlib import Path

OOM = """Traceback (most recent call last):
  File "train_network.py", line 7, in <module>
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB
"""
TRITON = """Traceback (most recent call last):
  File "train_network.py", line 9, in <module>
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
triton.compiler.errors.CompilationError: at 12:8
"""
ITEMS = 32
"""Images in the data set."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config_file", type=Path, required=True)
    parser.add_argument("--needs-no-compile", action="store_true")
    parser.add_argument("--crash-in-epoch", type=int)
    parser.add_argument("--crash-twice", action="store_true", help="also once after a resume")
    args = parser.parse_args()
    config: dict[str, object] = {}
    for key, value in tomllib.loads(args.config_file.read_text()).items():
        config.update(value if isinstance(value, dict) else {key: value})
    if args.needs_no_compile and os.environ.get("TORCH_COMPILE_DISABLE") != "1":
        return fail(TRITON)
    batch, accumulation = int(str(config["train_batch_size"])), int(str(config["gradient_accumulation_steps"]))
    out = Path(str(config["output_dir"]))
    name = config.get("output_name", "last")
    out.mkdir(parents=True, exist_ok=True)
    with (out / "effective.txt").open("a") as file:
        file.write(f"{batch} {accumulation} {config['max_train_epochs']} {config.get('network_weights')}\n")
    if "network_weights" in config:
        print(f"load network weights from: {config['network_weights']}", flush=True)
    epochs = int(str(config["max_train_epochs"]))
    total = epochs * (ITEMS // (batch * accumulation))
    step, begun = 0, time.monotonic()
    for epoch in range(1, epochs + 1):
        print(f"\nepoch {epoch}/{epochs}", flush=True)
        for _ in range(ITEMS // (batch * accumulation)):
            time.sleep(0.02)
            step += 1
            if batch * 4 > 10:
                return fail(OOM)
            pace = (time.monotonic() - begun) / step
            print(
                f"\rsteps: {100 * step // total:3d}%|   | {step}/{total} "
                f"[00:00<00:00, {pace:5.2f}s/it, avr_loss={0.1 + 1 / step:.4f}]",
                end="",
                flush=True,
            )
        crashed = out / f".crashed-{'network_weights' in config}" if args.crash_twice else out / ".crashed"
        if args.crash_in_epoch == epoch and not crashed.exists():
            crashed.touch()
            return fail("RuntimeError: CUDA error: unknown error\n")
        save(out / f"{name}-{epoch:06d}.safetensors", step, epoch)
    save(out / f"{name}.safetensors", step, epochs)
    print("\nmodel saved.", flush=True)
    return 0


def fail(text: str) -> int:
    sys.stderr.write("\n" + text)
    sys.stderr.flush()
    return 1


def save(target: Path, step: int, epoch: int) -> None:
    header = json.dumps(
        {
            "__metadata__": {"ss_steps": str(step), "ss_epoch": str(epoch)},
            "lora.weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        }
    ).encode()
    header += b" " * (-len(header) % 8)
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<4f", *(0.5,) * 4))
    temporary.replace(target)


if __name__ == "__main__":
    sys.exit(main())
