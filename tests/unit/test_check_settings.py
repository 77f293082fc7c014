"""Checks of settings and hardware, with descriptions of other machines."""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes import checkpoint_layouts as layouts
from trainwatch.core.app.gpu_survey import GpuSeen, GpuSurvey, GpuUser
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.preflight.check import Check, Machine
from trainwatch.core.app.preflight.gpu_checks import check_advice, check_gpus, check_need, check_torch, interpreter
from trainwatch.core.app.preflight.host_checks import check_resume_point
from trainwatch.core.app.preflight.launch_checks import check_notify, check_paths, check_profile
from trainwatch.core.config.shipped import load_presets
from trainwatch.core.model.preset import Profile
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Notify, Profiles, Settings

GB = 1e9
WSL = "5.15.167.4-microsoft-standard-WSL2"


def machine(tmp_path: Path, **more: Any) -> Machine:
    values: dict[str, Any] = {"home": tmp_path / "home", "environ": dict(os.environ), "kernel": "6.1.0-18-amd64"}
    return Machine(**(values | more))


def plan(tmp_path: Path, settings: dict[str, Any] | None = None, **more: Any) -> LaunchPlan:
    values: dict[str, Any] = {
        "id": "luca-1", "name": "luca", "command": (sys.executable, "train_network.py"), "cwd": str(tmp_path),
        "created_wall": 0.0, "preset": "kohya",
    }  # fmt: skip
    spec = RunSpec(**(values | more))
    return LaunchPlan(spec=spec, preset=load_presets()[spec.preset], settings=settings or {})


def gpus(*sizes_gb: float, used_gb: float = 0.3, users: tuple[GpuUser, ...] = ()) -> GpuSurvey:
    seen = tuple(
        GpuSeen(index=i, name=f"card {i}", mem_total_bytes=size * GB, mem_used_bytes=used_gb * GB, users=users)
        for i, size in enumerate(sizes_gb)
    )
    return GpuSurvey(gpus=seen, driver="570.86", cuda="12.8")


def result(check: Check | None) -> str:
    return "none" if check is None else check.result


@pytest.mark.parametrize(
    ("facts", "settings", "expected", "names"),
    [
        (
            {"ram_total_bytes": 16 * GB},
            {},
            "warn",
            ["lowram = true", "max_data_loader_n_workers = 1", "latents_to_disk"],
        ),
        (
            {"ram_total_bytes": 16 * GB},
            {"lowram": True, "max_data_loader_n_workers": "1", "cache_latents_to_disk": ""},
            "pass",
            ["the settings fit"],
        ),
        ({"ram_total_bytes": 32 * GB, "ram_available_bytes": 7 * GB}, {}, "warn", ["lowram = true", "8 GB"]),
        ({"ram_total_bytes": 32 * GB, "swap_used_bytes": 0.6 * GB}, {}, "warn", ["swap", "lowram"]),
        ({"ram_total_bytes": 64 * GB}, {}, "pass", ["max_data_loader_n_workers = 4", "vae_batch_size = 4"]),
        (
            {"gpus": gpus(24)},
            {"train_batch_size": 1},
            "pass",
            ["train_batch_size = 2", "gradient_checkpointing = true"],
        ),
        ({"ram_total_bytes": 32 * GB, "gpus": gpus(16)}, {}, "pass", ["the settings fit"]),
    ],
)
def test_advised_settings_depend_on_the_size_of_the_machine(
    tmp_path: Path, facts: dict[str, Any], settings: dict[str, Any], expected: str, names: list[str]
) -> None:
    found = check_advice(plan(tmp_path, settings), machine(tmp_path, **facts))
    assert found is not None
    assert found.result == expected
    assert all(name in f"{found.found} {found.remedy}" for name in names)


def test_processes_on_a_gpu_are_listed_by_name(tmp_path: Path) -> None:
    me = GpuUser(pid=os.getpid(), mem_bytes=9.1 * GB)
    found = check_gpus(machine(tmp_path, gpus=gpus(16, users=(me,))))
    assert found.result == "warn"
    assert f"(pid {os.getpid()}) 8.48 GiB" in found.found
    assert check_gpus(machine(tmp_path, gpus=gpus(16, users=(me,))), frozenset({os.getpid()})).result == "pass"
    assert check_gpus(machine(tmp_path, gpus=gpus(16, used_gb=4.0))).result == "warn"
    assert check_gpus(machine(tmp_path, gpus=gpus(16))).result == "pass"


@pytest.mark.parametrize(
    ("kernel", "profile", "checkpointing", "expected"),
    [
        (WSL, "stable", False, "pass"),
        (WSL, "balanced", False, "warn"),
        (WSL, None, True, "warn"),
        ("6.1.0", None, True, "pass"),
    ],
)
def test_profile_check_depends_on_wsl_and_gradient_checkpointing(
    tmp_path: Path, kernel: str, profile: str | None, checkpointing: bool, expected: str
) -> None:
    spec = RunSpec(
        id="a", name="a", command=("x",), cwd="/", created_wall=0, preset="kohya",
        settings=Settings(profiles=Profiles(use=profile)),
    )  # fmt: skip
    made = LaunchPlan(spec=spec, settings={"gradient_checkpointing": checkpointing})
    assert result(check_profile(made, machine(tmp_path, kernel=kernel))) == expected
    assert check_profile(plan(tmp_path, preset="hf"), machine(tmp_path, kernel=kernel)) is None


def test_paths_of_the_config_must_exist(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    here = machine(tmp_path)
    assert result(check_paths(plan(tmp_path, {"train_data_dir": "data"}), here)) == "warn"  # empty
    (tmp_path / "data" / "1.png").touch()
    assert result(check_paths(plan(tmp_path, {"train_data_dir": "data"}), here)) == "pass"
    missing = check_paths(
        plan(tmp_path, {"train_data_dir": "data", "dataset_path": "./gone", "vae": "v.safetensors"}), here
    )
    assert missing is not None
    assert missing.result == "fail"
    assert "dataset_path = ./gone; vae = v.safetensors" in missing.found
    assert check_paths(plan(tmp_path, {"pretrained_model_name_or_path": "stabilityai/sdxl-base"}), here) is None
    assert check_paths(plan(tmp_path, {"train_data_dir": "https://host/x", "resume": "{resume}"}), here) is None
    subsets = {"datasets": [{"subsets": [{"image_dir": "gone"}]}]}
    assert result(check_paths(plan(tmp_path, subsets), here)) == "fail"
    (tmp_path / "data.toml").write_text("[[datasets]]\n[[datasets.subsets]]\nimage_dir = 'gone'\n")
    assert result(check_paths(plan(tmp_path, {"dataset_config": "data.toml"}), here)) == "fail"


def test_a_notification_command_that_is_not_executable_fails(tmp_path: Path) -> None:
    def of(*command: str) -> LaunchPlan:
        settings = Settings(notify=Notify(command=command))
        return LaunchPlan(
            spec=RunSpec(id="a", name="a", command=("x",), cwd=str(tmp_path), created_wall=0, settings=settings)
        )

    assert check_notify(of(), machine(tmp_path)) is None
    assert result(check_notify(of("true"), machine(tmp_path))) == "pass"
    (tmp_path / "tell.sh").touch()
    assert result(check_notify(of("./tell.sh"), machine(tmp_path))) == "fail"
    (tmp_path / "tell.sh").chmod(0o755)
    assert result(check_notify(of("./tell.sh"), machine(tmp_path))) == "pass"


def test_a_first_start_does_not_resume_from_an_older_checkpoint(tmp_path: Path) -> None:
    here, made = machine(tmp_path), plan(tmp_path, output_dir=str(tmp_path / "out"))
    layouts.safetensors_file(tmp_path / "out")
    before = check_resume_point(made, here)
    assert before is not None
    assert (before.result, "a first start trains from the beginning" in before.found) == ("warn", True)
    assert "may be overwritten" in before.remedy
    journal = here.home / "runs" / made.spec.id / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.touch()
    assert result(check_resume_point(made, here)) == "pass", "the run was started before"


@pytest.mark.parametrize(
    ("body", "gpu_there", "expected", "said"),
    [
        ("available, cuda_version, names = True, '12.8', ['RTX 4080']", True, "pass", "sees RTX 4080"),
        ("available, cuda_version, names = False, None, []", True, "fail", "without CUDA"),
        ("available, cuda_version, names = False, '11.8', []", True, "fail", "sees no GPU"),
        ("available, cuda_version, names = False, '12.8', []", False, "warn", "sees no GPU"),
        ("raise ImportError('libcudart.so.12 missing')", True, "fail", "libcudart.so.12 missing"),
    ],
)
def test_torch_is_checked_in_the_trainers_interpreter(
    tmp_path: Path, body: str, gpu_there: bool, expected: str, said: str
) -> None:
    stand_in = tmp_path / "site" / "torch"
    stand_in.mkdir(parents=True)
    (stand_in / "__init__.py").write_text(
        f"{body}\n__version__ = '2.9'\n"
        "class version: cuda = cuda_version\n"
        "class cuda:\n"
        "    is_available = staticmethod(lambda: available)\n"
        "    device_count = staticmethod(lambda: len(names))\n"
        "    get_device_name = staticmethod(lambda i: names[i])\n"
    )
    made = plan(tmp_path, env={"PYTHONPATH": str(tmp_path / "site")})
    found = check_torch(made, machine(tmp_path, gpus=gpus(16) if gpu_there else GpuSurvey()))
    assert found is not None
    assert found.result == expected, found
    assert said in found.found


@pytest.mark.parametrize(("imported", "expected"), [("torch", "fail"), ("numpy", "warn")])
def test_a_torch_for_the_cpu_ends_only_a_trainer_that_imports_it(tmp_path: Path, imported: str, expected: str) -> None:
    stand_in = tmp_path / "site" / "torch"
    stand_in.mkdir(parents=True)
    (stand_in / "__init__.py").write_text(
        "__version__ = '2.9'\n"
        "class version: cuda = None\n"
        "class cuda: is_available = staticmethod(lambda: False); device_count = staticmethod(lambda: 0)\n"
    )
    (tmp_path / "own.py").write_text(f"import {imported}\n")
    command = [sys.executable, str(tmp_path / "own.py")]
    made = plan(tmp_path, preset="generic", command=command, env={"PYTHONPATH": str(tmp_path / "site")})
    found = check_torch(made, machine(tmp_path, gpus=gpus(16)))
    assert found is not None
    assert found.result == expected
    assert ("nothing to do if" in found.remedy) == (expected == "warn")


def test_python_interpreter_is_found_behind_launchers(tmp_path: Path) -> None:
    launcher = tmp_path / "accelerate"
    launcher.write_text(f"#!{sys.executable}\nimport x\n")
    launcher.chmod(0o755)
    (tmp_path / "run.sh").write_text("#!/bin/bash\n")
    (tmp_path / "run.sh").chmod(0o755)

    def of(*words: str) -> list[str] | None:
        return interpreter(RunSpec(id="a", name="a", command=words, cwd=str(tmp_path), created_wall=0))

    assert of(sys.executable, "t.py") == [sys.executable]
    assert of("./accelerate", "launch", "t.py") == [sys.executable]
    assert of("env", "A=1", "nice", sys.executable, "t.py") == [sys.executable]
    assert of("uv", "run", "t.py") == ["uv", "run", "python"]
    assert of("./run.sh") is None
    assert of("no-such-program") is None


@pytest.mark.parametrize(
    ("needs", "card_gib", "said"),
    [
        ("over 16 GB (OOM)", 15.99, "warn"),
        ("over 16 GB (OOM)", 24.0, "pass"),
        ("15–16 GB", 15.2, "pass"),
        ("15–16 GB", 12.0, "warn"),
        ("12–13 GB", 12.0, "pass"),
        ("~12–14 GB", 8.0, "warn"),
        ("little", 8.0, "none"),
    ],
)
def test_gpu_memory_of_a_profile_is_compared_with_the_gpu(
    tmp_path: Path, needs: str, card_gib: float, said: str
) -> None:
    made = plan(tmp_path)
    spec = msgspec.structs.replace(made.spec, settings=Settings(profiles=Profiles(use="big")))
    wanted = msgspec.structs.replace(made, spec=spec, profiles={"big": Profile(name="big", expect={"vram": needs})})
    assert result(check_need(wanted, machine(tmp_path, gpus=gpus(card_gib * 2**30 / GB)))) == said
