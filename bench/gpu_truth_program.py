"""A small training that meets a real fault of a GPU once: ``python gpu_truth_program.py --fault oom --output-dir D``.

Needs PyTorch. With ``--device cpu`` the same steps, saves and resumes, and stand-ins that print what CUDA prints; that
tests the way of the faults through trainwatch, not the GPU. Kernels are PTX, loaded through the driver's own library.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch

FAULTS = ("none", "load", "oom", "illegal", "assert", "endless", "deadlock", "orphan")
AT = 25
HEAD = ".version 6.0\n.target sm_50\n.address_size 64\n"
ILLEGAL = HEAD + ".visible .entry fault() { .reg .b64 a; mov.u64 a, 16; st.global.u32 [a], 7; ret; }\n"
ENDLESS = (
    HEAD + ".visible .entry fault(.param .u64 p) { .reg .b64 a; .reg .b32 v; .reg .pred q; ld.param.u64 a, [p]; "
    "again: ld.volatile.global.u32 v, [a]; setp.eq.u32 q, v, 0; @q bra again; ret; }\n"
)
HELD_BYTES = 2 << 30


def main() -> int:
    """Train 60 steps, save every tenth, meet the fault once at step 25."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--output-dir", type=Path, default=Path("out"))
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--step-time", type=float, default=0.2)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--hold", type=float, help="hold memory of the device for so many seconds, and end")
    args = parser.parse_args()
    device = torch.device(args.device)
    if args.hold is not None:
        held = torch.zeros(HELD_BYTES if device.type == "cuda" else 1 << 20, dtype=torch.uint8, device=device)
        time.sleep(args.hold)
        return 0 if held.sum().item() == 0 else 1
    args.output_dir.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = torch.nn.Linear(256, 256).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step = 0
    if args.resume is not None:
        state = torch.load(args.resume, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    x = torch.randn(args.batch_size, 256, device=device)
    while step < args.steps:
        time.sleep(args.step_time)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        print(f"step {step}/{args.steps} loss: {loss.item():.5f} batch_size={args.batch_size}", flush=True)
        if step % 10 == 0:
            path = args.output_dir / f"step_{step:06d}.pt"
            whole = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(whole, path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
        if args.fault != "none" and step >= AT and first_time(args.output_dir):
            (cuda_fault if device.type == "cuda" else stand_in)(args.fault, args)
    print("training done", flush=True)
    return 0


def first_time(folder: Path) -> bool:
    """Whether the fault was not made yet."""
    try:
        (folder / ".fault").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def cuda_fault(fault: str, args: argparse.Namespace) -> None:
    """Make the fault on the GPU through CUDA."""
    match fault:
        case "load":
            a = torch.randn(8192, 8192, device="cuda")
            end = time.monotonic() + 60
            while time.monotonic() < end:
                a = torch.mm(a, a).clamp(-1, 1)
                torch.cuda.synchronize()
        case "oom":
            held = []
            while True:
                held.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
        case "illegal":
            launch(ILLEGAL)
            torch.cuda.synchronize()
        case "assert":
            torch.zeros(4, device="cuda")[torch.tensor([9], device="cuda")] += 1
            torch.cuda.synchronize()
        case "endless":
            launch(ENDLESS, torch.zeros(1, dtype=torch.int32, device="cuda").data_ptr())
            torch.cuda.synchronize()
        case "deadlock":
            block_stream()
            torch.cuda.synchronize()
        case _:
            orphan(args)


def launch(ptx: str, pointer: int | None = None) -> None:
    """Launch the kernel ``fault`` of a PTX text with one thread."""
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(ptx.encode())))
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, b"fault"))
    value = ctypes.c_uint64(pointer or 0)
    given = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(value), ctypes.c_void_p))
    check(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, given if pointer is not None else None, None))


def block_stream() -> None:
    """A function of the host on the stream that waits for what comes only after the stream."""
    driver = ctypes.CDLL("libcuda.so.1")
    never = threading.Event()
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: never.wait() and None)
    globals()["_kept"] = callback
    check(driver.cuLaunchHostFunc(None, callback, None))


def check(code: int) -> None:
    """Raise RuntimeError if a call of the driver failed."""
    if code != 0:
        raise RuntimeError(f"the CUDA driver returned {code}")


def orphan(args: argparse.Namespace) -> None:
    """A child in a session of its own holds memory; this process dies without a word."""
    words = [sys.executable, __file__, "--hold", "120", "--device", args.device, "--output-dir", str(args.output_dir)]
    subprocess.Popen(words, start_new_session=True)
    time.sleep(15 if args.device == "cuda" else 1)
    os.kill(os.getpid(), signal.SIGKILL)


def stand_in(fault: str, args: argparse.Namespace) -> None:
    """What the log shows of it, without a GPU."""
    match fault:
        case "load":
            return
        case "oom":
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 15.70 GiB of which "
                "512.00 MiB is free."
            )
        case "illegal":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        case "assert":
            raise RuntimeError("CUDA error: device-side assert triggered")
        case "endless" | "deadlock":
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        case _:
            orphan(args)


if __name__ == "__main__":
    sys.exit(main())
