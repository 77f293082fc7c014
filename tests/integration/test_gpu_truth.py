"""bench/gpu_truth.py without a GPU: it says so, and its comparisons work against a simulated driver."""

import json
import subprocess
import sys
from pathlib import Path

from tests.fakes.nvml.driver import FakeNvml

PROGRAM = Path(__file__).parents[2] / "bench" / "gpu_truth.py"
STATE = """driver = 570.133.07
gpus = 1
[gpu *]
name = NVIDIA GeForce RTX 4080
util_gpu = 90
mem_total = 16376
mem_used = 9000
temp = 61
power = 290
power_limit = 320
power_enforced = 320
clock_sm = 2500
"""
SMI = "0, NVIDIA GeForce RTX 4080, 570.133.07, 90, 9000, 16376, 61, {power}, 320.00, 2500"


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, str(PROGRAM), *words, "--out", str(folder / "out.json")]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def smi(folder: Path, power: str) -> str:
    program = folder / "smi"
    program.write_text(f"#!/bin/sh\necho '{SMI.format(power=power)}'\n")
    program.chmod(0o755)
    return str(program)


def test_without_a_gpu_it_is_skipped_with_a_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "--smi", "no-such-nvidia-smi")
    assert done.returncode == 0, done
    assert done.stdout.startswith("skipped: no nvidia-smi here")
    assert not (tmp_path / "out.json").exists()


def test_figures_that_agree_and_one_that_differs_are_told_apart(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    fake_nvml.show(STATE)
    alike = run(tmp_path, "--plumbing", "--faults", "--smi", smi(tmp_path, "288.40"))
    assert alike.returncode == 0, alike
    figures = json.loads((tmp_path / "out.json").read_text())["figures"]
    assert len(figures) == 7
    assert all(figure["agrees"] for figure in figures), figures

    differs = run(tmp_path, "--plumbing", "--faults", "--smi", smi(tmp_path, "120.00"))
    assert differs.returncode == 1
    assert [line.split()[4] for line in differs.stdout.splitlines() if line.startswith("DIFF")] == ["power.draw"]

    unknown = run(tmp_path, "--plumbing", "--faults", "--smi", smi(tmp_path, "[N/A]"))
    assert unknown.returncode == 1, "nvidia-smi does not know what trainwatch claims to know"
