"""Pictures of the GPU page and the host page from a real run; only the NVIDIA driver is a fake.

``python docs/make_screens.py`` draws them with all others; ``python docs/real_machine.py`` these alone.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SIZES = ((80, 24), (120, 40), (200, 50), (45, 30))
TRAINED_S = 45.0
"""The run is this old in the pictures: its charts have something to show."""
GPUS = """gpus = 8
driver = 570.133.07
[gpu *]
name = NVIDIA H100 80GB HBM3
mem_total = 81559
util_gpu = 88~99/31
util_mem = 40~60/29
mem_used = 70000~74000/60
power = 520~690/23
power_limit = 700
temp = 58~66/45
fan = n/a
clock_sm = 1900~1980/20
pcie_rx = 100000~9000000/20
pcie_tx = 100000~2000000/20
pcie_gen = 5
pcie_maxgen = 5
ecc_mode = 1
ecc_corrected = 0
ecc_uncorrected = 0
"""
TROUBLE = """[gpu 2]
throttle = 0x4
[gpu 3]
temp = 88
throttle = 0x48
[gpu 5]
fault = lost
"""


@contextmanager
def real_run() -> Iterator[str]:
    """The id of a run on eight GPUs that goes on, in a state folder of its own (TRAINWATCH_HOME)."""
    with tempfile.TemporaryDirectory(prefix="tw-docs-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        source = ROOT / "tests" / "fakes" / "nvml" / "fake_nvml.c"
        flags = ["-O1", "-std=gnu11", "-fvisibility=hidden", "-shared", "-fPIC", "-w", "-Wl,-soname,libnvidia-ml.so.1"]
        compiler = shutil.which("cc") or "/usr/bin/cc"
        subprocess.run([compiler, *flags, "-o", str(place / "libnvidia-ml.so.1"), str(source), "-lpthread"], check=True)
        state = place / "gpus"
        state.write_text(GPUS)
        os.environ |= {"TRAINWATCH_HOME": str(place / "home"), "XDG_RUNTIME_DIR": folder}
        env = {**os.environ, "LD_LIBRARY_PATH": folder, "FAKE_NVML_STATE": str(state)}
        trainer = [sys.executable, "-m", "trainwatch.configs.examples.char_trainer", "--output-dir", "outputs"]

        def do(*words: str) -> str:
            command = [sys.executable, "-m", "trainwatch", *words]
            done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=True)
            return done.stdout

        do("run", "--detach", "--name", "luca", "--output-dir", "outputs", "--", *trainer, "--steps", "100000",
           "--step-time", "0.2")  # fmt: skip
        try:
            end = time.monotonic() + 30
            while not (pid := json.loads(do("status", "--json"))["pid"]):
                assert time.monotonic() < end, "the trainer was not started"
            users = "".join(f"[gpu {n}]\nproc = {pid} {68000 + 100 * n} C {80 + n} 40\n" for n in range(8) if n != 5)
            fresh = state.with_suffix(".new")
            fresh.write_text(GPUS + users + f"[gpu 6]\nproc = {os.getpid()} 3000 C 12 5\n" + TROUBLE)
            fresh.rename(state)
            time.sleep(TRAINED_S)
            yield next(path.name for path in (place / "home" / "runs").iterdir())
        finally:
            do("kill", "--yes")
            end = time.monotonic() + 20
            while json.loads(do("status", "--json"))["supervisor"]["alive"] and time.monotonic() < end:
                time.sleep(0.2)


async def draw_machine(out: Path, section: Callable[[str, str, tuple[tuple[int, int], ...]], list[str]]) -> list[str]:
    """Draw both pages at all sizes; returns their part of the gallery."""
    from trainwatch.core.app.screen.run_picker import MachineRuns
    from trainwatch.tui.app import TrainwatchApp

    page: list[str] = []
    with real_run() as run_id:
        for name, key, title in (("gpus", "8", "GPUs (key 8)"), ("host", "9", "The machine (key 9)")):
            for size in SIZES:
                app: Any = TrainwatchApp(MachineRuns().open(run_id), picker=MachineRuns())
                async with app.run_test(size=size) as pilot:
                    await pilot.pause(2)
                    await pilot.press(key)
                    for _ in range(100):
                        await asyncio.sleep(0.1)
                        if app.screen.state.details.gpus is not None and app.screen.state.details.host is not None:
                            break
                    await pilot.pause(6)
                    path = out / f"{name}-{size[0]}x{size[1]}.svg"
                    path.write_text(app.export_screenshot(title=f"trainwatch · {size[0]}×{size[1]}"))
                sys.stdout.write(f"{path}\n")
            page += section(f"{title}: a real run; the driver is a fake with eight GPUs", name, SIZES)
    return page


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    asyncio.run(draw_machine(ROOT / "docs" / "screens", lambda *_: []))
