"""What other programs take in the same run. Used by bench/footprint.py.

supervisord starts a trainer that prints a line a second and keeps its output, and knows nothing of training. gpustat
reads the GPUs once a second and draws them.
"""

import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_S = 8.0
TRAINER = """
import time
i = 0
while True:
    print(f"steps: {i}/100000000 [2.0it/s, avr_loss=0.0912]", flush=True)
    i += 1
    time.sleep(1.0)
"""


def peers(folder: Path, env: Mapping[str, str], seconds: float) -> dict[str, dict[str, float]]:
    """By the name of each program that is found: CPU seconds a minute, MB of PSS."""
    found = {}
    for name, started in (("supervisord", _supervisord), ("gpustat", _gpustat)):
        path = shutil.which(name)
        if path is not None:
            with started(path, folder, env) as pid:
                time.sleep(SETTLE_S)
                before = _cpu_s(pid)
                time.sleep(seconds)
                found[name] = {"cpu": (_cpu_s(pid) - before) * 60 / seconds, "pss": _pss_mb(pid)}
    return found


@contextmanager
def _supervisord(path: str, folder: Path, env: Mapping[str, str]) -> Iterator[int]:
    trainer, config = folder / "supervised.py", folder / "supervisord.conf"
    trainer.write_text(TRAINER)
    config.write_text(
        f"[supervisord]\nnodaemon=true\nlogfile={folder}/supervisord.log\npidfile={folder}/supervisord.pid\n"
        f"[program:train]\ncommand={sys.executable} {trainer}\nstdout_logfile={folder}/train.log\n"
        f"autorestart=unexpected\n"
    )
    argv = [path, "-n", "-c", str(config)]
    process = subprocess.Popen(argv, cwd=folder, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)  # it ends its trainer
        process.wait(30)


@contextmanager
def _gpustat(path: str, folder: Path, env: Mapping[str, str]) -> Iterator[int]:
    primary, secondary = pty.openpty()
    argv = [path, "-i", "1"]
    process = subprocess.Popen(
        argv, cwd=folder, env={**env, "TERM": "xterm-256color"}, stdin=secondary, stdout=secondary, stderr=secondary
    )
    os.close(secondary)

    def read() -> None:
        with suppress(OSError):
            while os.read(primary, 1 << 16):
                pass

    threading.Thread(target=read, daemon=True).start()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
        os.close(primary)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def _pss_mb(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
