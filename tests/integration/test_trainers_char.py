"""The numpy demo trainer, really run: it learns, saves, resumes exactly, and breaks when told to."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from tests.fakes.e2e_world import until
from tests.tiers import second

TRAINER = str(files("trainwatch.configs") / "examples" / "char_trainer.py")
DEADLINE_S = 100.0


def command(out: Path, *options: str, steps: int = 60) -> list[str]:
    return [sys.executable, TRAINER, "--output-dir", str(out), "--steps", str(steps), "--save-every", "20", *options]


def train(out: Path, *options: str, steps: int = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(out, *options, steps=steps), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that the test starts; what is left of them is ended."""
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()


def start(started: list[subprocess.Popen[bytes]], out: Path, log: Path, *options: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        process = subprocess.Popen(command(out, *options), stdout=file, stderr=file)
    started.append(process)
    return process


def wait_for(text: str, path: Path) -> None:
    until(lambda: path.exists() and text in path.read_text("utf-8", errors="replace"), repr(text))


def cpu_seconds(tree: list[psutil.Process], wait_s: float) -> float:
    """CPU time that the processes use within a stretch of time."""
    before = sum(sum(process.cpu_times()[:2]) for process in tree)
    time.sleep(wait_s)
    return sum(sum(process.cpu_times()[:2]) for process in tree) - before


def step_of(path: Path) -> int:
    with safe_open(path, framework="numpy") as file:
        return int(file.metadata()["ss_steps"])


def test_char_trainer_loss_falls_and_output_is_tqdm(tmp_path: Path) -> None:
    done = train(tmp_path, "--epoch-steps", "200", "--save-every-n-epochs", "1", "--save-every", "200", steps=400)
    assert done.returncode == 0
    bars = [line for line in done.stderr.replace("\r", "\n").split("\n") if line]
    assert bars[0] == "steps:   0%|          | 0/400 [00:00<?, ?it/s]"
    assert bars[-1].startswith("steps: 100%|██████████| 400/400 [")
    assert float(bars[-1].rpartition("avr_loss=")[2].rstrip("]")) < 2.5
    assert "epoch 2/2" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "demo-step00000200.safetensors",
        "demo-000001.safetensors",
        "demo.safetensors",
    }


@pytest.mark.parametrize("workers", [second("0"), "2"])
def test_char_trainer_resume_is_bit_identical(tmp_path: Path, workers: str) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train(whole).returncode == 0
    crashed = train(broken, "--crash-at", "33", "--loader-workers", workers)
    assert crashed.returncode == 1
    assert "RuntimeError: CUDA error: unknown error" in crashed.stderr
    again = train(broken, "--crash-at", "33", "--resume", str(broken / "demo-step00000020.safetensors"))
    assert again.returncode == 0
    assert "at step 20" in again.stdout
    assert (whole / "demo.safetensors").read_bytes() == (broken / "demo.safetensors").read_bytes()
    assert step_of(broken / "demo.safetensors") == 60


def test_char_trainer_nan_stays_in_loss_and_checkpoints(tmp_path: Path) -> None:
    done = train(tmp_path, "--nan-at", "30")
    assert done.returncode == 0
    assert "avr_loss=nan" in done.stderr
    good, bad = (load_file(tmp_path / f"demo-step000000{step}.safetensors") for step in (20, 40))
    assert all(np.isfinite(value).all() for value in good.values())
    assert not np.isfinite(bad["model.hidden.weight"]).all()
    assert "nan" not in train(tmp_path, "--nan-at", "30").stderr


def test_char_trainer_ends_if_a_loader_worker_is_killed(tmp_path: Path) -> None:
    done = train(tmp_path, "--kill-loader-at", "30")
    assert done.returncode == 1
    assert "exited unexpectedly" in done.stderr
    assert train(tmp_path, "--kill-loader-at", "30").returncode == 0


def test_char_trainer_leaves_a_torn_newest_checkpoint(tmp_path: Path) -> None:
    assert train(tmp_path, "--torn-save-at", "30").returncode == 1
    torn = tmp_path / "demo-step00000030.safetensors"
    refused = train(tmp_path, "--resume", str(torn))
    assert refused.returncode == 1
    assert refused.stderr == f"error: --resume {torn}: cannot be loaded: the file is cut off\n"


@pytest.mark.parametrize("number", [signal.SIGINT, second(signal.SIGTERM)])
def test_char_trainer_saves_and_ends_at_a_signal(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], number: int
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    process = start(started, out, log, "--step-time", "0.05", "--loader-workers", "1", "--steps", "5000")
    wait_for("avr_loss=", log)
    process.send_signal(number)
    assert process.wait(DEADLINE_S) == 130
    saved = list(out.glob("demo-step*.safetensors"))
    assert f"interrupted at step {step_of(saved[0])}, state saved" in log.read_text("utf-8")


@pytest.mark.parametrize(
    ("fault", "busy"), [("--hang-at", False), second("--spin-at", True), second("--hang-loader-at", False)]
)
def test_char_trainer_hang_is_a_real_deadlock(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], fault: str, busy: bool
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    process = start(started, out, log, fault, "30")
    marker = out / f".fault-{fault.removeprefix('--').removesuffix('-at')}-fired"
    until(marker.exists, "the fault")
    tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
    if busy:
        until(lambda: cpu_seconds(tree, wait_s=0.5) > 0.05, "a busy core")
    else:
        until(lambda: cpu_seconds(tree, wait_s=0.5) < 0.05, "an idle tree")
    process.send_signal(signal.SIGINT)  # it does not listen: it never reaches its next step
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(tree[1:], timeout=DEADLINE_S)  # workers follow their parent
    assert not alive, gone
    assert train(out, fault, "30").returncode == 0


def test_char_trainer_slow_save_grows_under_a_temporary_name(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    process = start(started, out, log, "--slow-save", "60")
    wait_for("saving checkpoint", log)
    temporary = out / ".demo-step00000020.safetensors.tmp"
    until(temporary.exists, "the growing file")
    assert not (out / "demo-step00000020.safetensors").exists()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "demo-step00000020.safetensors").exists()


def test_char_trainer_reports_bad_options_in_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone.safetensors"
    assert train(tmp_path, "--resume", str(gone)).stderr == f"error: --resume {gone}: no such file\n"
