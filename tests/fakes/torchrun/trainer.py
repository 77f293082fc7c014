"""A distributed training on CPUs (gloo): a linear model, a step and a line per rank, a checkpoint from rank 0.

``--out DIR --steps N --step-time S --save-every N [--fault KIND@STEP:RANK]``. A fault happens once: it leaves a file in
DIR. Kinds: ``raise`` (an exception), ``kill`` (SIGKILL to itself), ``stop`` (SIGSTOP to itself), ``drain`` (SIGTERM to
its agent).
It resumes from its newest checkpoint by itself, as trainers under torchrun do; ``--resume`` names one to begin with.
"""

import argparse
import os
import re
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


def newest(folder: Path) -> Path | None:
    """The checkpoint with the highest step."""
    found = {int(name[1]): path for path in folder.glob("step-*.pt") if (name := re.match(r"step-(\d+)", path.name))}
    return found[max(found)] if found else None


def trouble(kind: str) -> None:
    """Let the fault happen in this rank."""
    match kind:
        case "raise":
            raise ValueError("bad sample on this rank")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "drain":
            os.kill(os.getppid(), signal.SIGTERM)
        case _:
            raise AssertionError(kind)


@record
def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--steps", type=int, required=True)
    options.add_argument("--step-time", type=float, default=0.1)
    options.add_argument("--save-every", type=int, default=10)
    options.add_argument("--timeout-s", type=float, default=600.0)
    options.add_argument("--fault", default="")
    options.add_argument("--resume", default="")
    told = options.parse_args()
    fault = re.fullmatch(r"(\w+)@(\d+):(\d+)", told.fault)

    dist.init_process_group("gloo", timeout=timedelta(seconds=told.timeout_s))
    rank, folder = dist.get_rank(), told.out
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    first = 0
    if (path := newest(folder) or (Path(told.resume) if told.resume else None)) is not None:
        held = torch.load(path, weights_only=True)
        model.load_state_dict(held["model"])
        first = held["step"]
        sys.stdout.write(f"resumed from {path} at step {first}\n")
        sys.stdout.flush()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(first + 1, told.steps + 1):
        mark = folder / f"fault-{told.fault.replace(':', '-')}"
        if fault is not None and (step, rank) == (int(fault[2]), int(fault[3])) and not mark.exists():
            mark.touch()
            trouble(fault[1])
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).pow(2).mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        time.sleep(told.step_time)
        sys.stdout.write(f"step {step}/{told.steps} loss {loss.item():.4f}\n")
        sys.stdout.flush()
        if rank == 0 and step % told.save_every == 0:
            half = folder / f"step-{step}.pt.tmp"
            torch.save({"model": model.state_dict(), "step": step}, half)
            half.rename(folder / f"step-{step}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.exit(0)
