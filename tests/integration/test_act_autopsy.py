"""All evidence of real processes: a deadlocked data loader, a native call that never returns, and without rights."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes.tmux_place import socket_folder
from tests.integration.act_world import World, python, wait_for
from tests.tiers import SECOND_TIER
from trainwatch.core import spool
from trainwatch.core.act import gpu_clearing
from trainwatch.core.act.evidence.capture import StackReport, examine, gpu_text
from trainwatch.core.act.evidence.loop_looks import find_py_spy
from trainwatch.core.act.gpu_clearing import gpu_holders
from trainwatch.core.judge.hang.rules import Sign, signs_of
from trainwatch.core.model.observation import GpuReading, Outcome
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Hang, Settings
from trainwatch.core.processes import is_alive

LOADER = """
import threading
import torch
from torch.utils.data import DataLoader, Dataset

class Pictures(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, number):
        if number == 8:
            print("stuck", flush=True)
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        return torch.zeros(2)

for batch in DataLoader(Pictures(), batch_size=4, num_workers=2):
    pass
"""
STREAM = "#include <unistd.h>\nint cudaStreamSynchronize(void *stream) { for (;;) pause(); return 0; }\n"
KERNEL = """
import ctypes, sys
def synchronize():
    print("up", flush=True)
    ctypes.PyDLL(sys.argv[1]).cudaStreamSynchronize(None)
synchronize()
"""
SHY = """
import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: from now on only CAP_SYS_PTRACE may look
print("up", flush=True)
time.sleep(600)
"""


def spec(run: World, **more: Any) -> RunSpec:
    settings = Settings(hang=Hang(min_s=1.0))
    values: dict[str, Any] = {"id": "x", "name": "x", "command": ("true",), "cwd": str(run.root), "created_wall": 0.0}
    return RunSpec(**(values | {"settings": settings} | more))


def examined(run: World, target: AttemptTarget, **more: Any) -> StackReport:
    return examine(target, run.root / "incident", spec(run, **more), gpus=None)


def signs(report: StackReport) -> tuple[Sign, ...]:
    """What the judge reads from it, by the way of the journal."""
    data = json.loads(msgspec.json.encode(msgspec.to_builtins(report, str_keys=True)))
    return signs_of(Outcome(t=0.0, decision=1, action="capture_stacks", ok=True, data=data))


@pytest.fixture
def short_folder() -> Iterator[str]:
    """For sockets of a trainer's workers, which stay if it is killed."""
    with socket_folder() as folder:
        yield folder


@SECOND_TIER
def test_a_deadlocked_loader_worker_is_found_and_named_in_the_stacks(run: World, short_folder: str) -> None:
    pytest.importorskip("torch")
    target = run.launch(*python(LOADER), env=dict(os.environ) | {"TMPDIR": short_folder})
    wait_for(lambda: "stuck" in run.log(target), "the worker is stuck", 90.0)
    report = examined(run, target)
    (sign,) = signs(report)
    assert sign.kind == "starved"
    assert "_try_get_data" in sign.what
    assert "_try_get_data (" in report.sentence
    assert "Pictures.__getitem__ (" in report.sentence
    names = {Path(path).name for path in report.files}
    assert f"stacks-{target.trainer.pid}-2.txt" in names
    assert "== children: pid, state, name\n" in (run.root / "incident" / f"proc-{target.trainer.pid}.txt").read_text()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="builds a native library")
def test_a_native_call_that_never_returns_shows_in_the_stacks(run: World) -> None:
    source, library = run.root / "stand_in.c", run.root / "libcudart_stand_in.so"
    source.write_text(STREAM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-g", "-o", library, source], check=True)
    target = run.launch(*python(KERNEL), str(library))
    run.log_has(target, "up")
    report = examined(run, target)
    pid = target.trainer.pid
    assert any("cudaStreamSynchronize" in frame for frame in report.native[pid])
    assert [sign.kind for sign in signs(report)] == ["spin"]
    assert "cudaStreamSynchronize (" in report.sentence
    assert ", called by synchronize (" in report.sentence
    assert is_alive(target.trainer)


def test_launch_record_of_an_incident_holds_no_secrets(run: World) -> None:
    token = "hf_" + "a" * 30
    env = {"PATH": os.environ["PATH"], "HF_TOKEN": token, "CUDA_VISIBLE_DEVICES": "1"}
    argv = ("sh", "-c", "echo up; sleep 600", "sh", "--api-key", "very-secret-word")
    target = run.launch(*argv, env=env)
    run.log_has(target, "up")
    (run.root / "user.toml").write_text(f'lr = 1e-4 # mine\nwandb_api_key = "{token[3:]}"\n')
    report = examined(run, target, config="user.toml", env={"HF_TOKEN": token})
    folder = run.root / "incident"
    text = {Path(path).name: Path(path).read_text() for path in report.files}
    assert "CUDA_VISIBLE_DEVICES=1\n" in text["environment.txt"]
    assert "HF_TOKEN=[redacted]\n" in text["environment.txt"]
    assert "echo up; sleep 600" in text["launch.txt"]
    assert "lr = 1e-4 # mine" in text["config-user.toml"]
    assert text["gpu.txt"].startswith("no GPU telemetry\n")
    assert "no access to the kernel log" in text["notes.txt"]
    assert not any(token[3:] in content or "very-secret-word" in content for content in text.values())
    assert all(Path(path).stat().st_mode & 0o777 == 0o600 for path in report.files)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_crash_leaves_a_launch_record_in_the_incident_folder(run: World) -> None:
    target = run.launch("sh", "-c", "echo last words; exit 3")
    run.exit(target)
    wait_for(lambda: not is_alive(target.runner), "all gone")
    report = examine(
        target, run.root / "incident", spec(run), gpus=(GpuReading(index=0, name="RTX", mem_used_bytes=2e9),),
        kernel_tail=lambda _lines: ["NVRM: Xid 79"],
    )  # fmt: skip
    text = {Path(path).name: Path(path).read_text() for path in report.files}
    assert text["log-tail.txt"] == "last words\n"
    assert text["kernel-log.txt"] == "NVRM: Xid 79\n"
    assert "memory used 1.86 GiB, of –" in text["gpu.txt"]
    assert "echo last words" in text["launch.txt"]


def test_without_ptrace_permission_other_evidence_is_kept_and_the_reason_reported(run: World) -> None:
    """The probe as a program of its own, without the capability that lets root look into everything."""
    words: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv to give up a capability")
        words = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]
    target = run.launch(*python(SHY))
    run.log_has(target, "up")
    pid, desk_folder = target.trainer.pid, run.root / "desk"
    desk_folder.mkdir()
    request = {
        "request": "1", "folder": str(run.root / "incident"), "keys": [[pid, target.trainer.start_ticks]],
        "log": target.log, "log_lines": 200, "rounds": 2, "pause_s": 0.1, "timeout_s": 5.0, "budget_s": 20.0,
        "py_spy": find_py_spy(),
    }  # fmt: skip
    spool.write(str(desk_folder), spool.STACKS, request)
    program = [sys.executable, "-P", "-m", "trainwatch.core.act.evidence.stack_probe", str(desk_folder / spool.STACKS)]
    assert subprocess.run([*words, *program], check=False, cwd="/").returncode == 0
    answer = spool.read(str(desk_folder), spool.STACKS_DONE)
    assert answer is not None
    assert answer["frames"] == {}
    assert any(f"py-spy may not trace process {pid}" in note and "/proc" in note for note in answer["notes"])
    assert any(note.startswith(f"process {pid}") and "not permitted to read" in note for note in answer["notes"])
    kept = (run.root / "incident" / f"proc-{pid}.txt").read_text()
    assert "State:\tS (sleeping)" in kept
    assert "== threads" in kept


def test_gpu_holders_are_found_by_their_open_device_files(run: World, monkeypatch: pytest.MonkeyPatch) -> None:
    device = run.root / "dev" / "nvidia-uvm"
    device.parent.mkdir()
    device.touch()
    monkeypatch.setattr(gpu_clearing, "DEVICES", (str(device.parent / "nvidia"),))
    monkeypatch.setattr(gpu_clearing, "COMPUTE", (str(device),))
    target = run.launch(*python(f"file = open({str(device)!r}); print('up', flush=True)\nimport time\ntime.sleep(600)"))
    run.log_has(target, "up")
    (holder,) = gpu_holders()
    assert (holder.process.pid, holder.compute) == (target.trainer.pid, True)
    stuck = holder._replace(process=holder.process._replace(state="D"))
    assert f"(pid {target.trainer.pid}, state D, stuck in the kernel: only a reboot" in gpu_text(None, (stuck,))
