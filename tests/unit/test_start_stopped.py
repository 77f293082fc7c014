"""What ``check`` fails on stops a start, unless it is forced: missing checkpoints, scripts and data, a changed model."""

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.fakes.e2e_world import stand_in_python
from trainwatch.cli import main
from trainwatch.core.app.gpu_survey import GpuSeen, GpuSurvey
from trainwatch.core.app.plan.launch_plan import plan_command
from trainwatch.core.app.preflight import checklist
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.checklist import before_launch, told_at_launch, why_not_start
from trainwatch.core.config.project import Overrides

MODEL = "model:\n  channels: {}\ndata:\n  dataset_path: ./data\n"
STRICT = """import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--resume")
parser.add_argument("--config")
parser.add_argument("--data_dir")
parser.add_argument("--output_dir")
args = parser.parse_args()
"""
LOADS = "import torch\nstate = torch.load(args.resume)\n"


@pytest.fixture(autouse=True)
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (python := Path(stand_in_python(folder))).rename(python.with_name("python3"))
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    (folder / "train.py").write_text(STRICT + LOADS)
    (folder / "torch.py").touch()
    (folder / "data").mkdir()
    (folder / "data" / "1.png").touch()
    return folder


def sentence(*words: str, command: tuple[str, ...] = ("python3", "train.py"), forced: bool = False) -> str | None:
    obstacle = why_not_start(plan_command((*command, *words), Overrides()), forced=forced)
    return None if obstacle is None else f"{int(obstacle.exit_code)} {obstacle.sentence}"


def refused(*words: str, **more: Any) -> str:
    found = sentence(*words, **more)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("--resume", "./outputs/checkpoint-epoch-118"),
        ("--resume=outputs/last.pt",),
        ("--resume_from_checkpoint", "checkpoint-500"),
        ("--ckpt_path", "/gone/epoch=3.ckpt"),
    ],
)
def test_a_checkpoint_that_the_person_named_and_that_is_missing_stops_the_start(words: tuple[str, ...]) -> None:
    found = refused(*words, "--output_dir", "out")
    assert found.startswith("3 checkpoint: ")
    assert "there is no such checkpoint" in found
    assert "`--force` starts it all the same" in found
    assert sentence(*words, "--output_dir", "out", forced=True) is None


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("python3 train.py --resume ./outputs/checkpoint-epoch-118", "./outputs/checkpoint-epoch-118"),
        ("cd data && python3 ../train.py --resume ../outputs/x.pt", "../outputs/x.pt"),
        ("python3 train.py --config cfg.yaml", "./old/last.pt"),
        ("cd data && python3 ../train.py --resume 1.png", None),
        ("CKPT=a; python3 train.py --resume $CKPT", None),
    ],
)
def test_a_missing_checkpoint_is_seen_in_a_shell_line_too(folder: Path, line: str, missing: str | None) -> None:
    (folder / "cfg.yaml").write_text("resume: ./old/last.pt\n")
    (folder / "go.sh").write_text(f"#!/bin/sh\nset -e\n{line}\n")
    for command in (("bash", "-c", line), ("sh", "go.sh")):
        found = sentence(command=command)
        assert (found is None) == (missing is None), found
        assert missing is None or f"= {missing}: there is no such checkpoint" in (found or "")


@pytest.mark.parametrize("word", ["auto", "latest", "true", "https://host/x.pt", "none", "500", "3k2j5h"])
def test_a_word_that_leaves_the_choice_to_the_trainer_is_no_missing_checkpoint(word: str) -> None:
    assert sentence("--resume", word) is None


def test_a_checkpoint_named_as_the_output_folder_has_it_is_found(folder: Path) -> None:
    (folder / "out" / "checkpoint-500").mkdir(parents=True)
    (folder / "out" / "checkpoint-500" / "x").touch()
    assert sentence("--resume_from_checkpoint", "checkpoint-500", "--output_dir", "out") is None


def test_a_path_from_the_folder_of_the_config_or_of_the_script_is_found(folder: Path) -> None:
    (folder / "jobs").mkdir()
    (folder / "jobs" / "cfg.yaml").write_text("resume: ../old/last.pt\ndata:\n  dataset_path: ../data\n")
    (folder / "old").mkdir()
    (folder / "old" / "last.pt").touch()
    assert sentence("--config", "jobs/cfg.yaml") is None
    (folder / "old" / "last.pt").unlink()
    assert "resume = ../old/last.pt: there is no such checkpoint" in refused("--config", "jobs/cfg.yaml")


def test_a_script_that_asks_first_may_begin_without_its_own_last_save(folder: Path) -> None:
    (folder / "train.py").write_text(STRICT + "if os.path.exists(args.resume):\n    " + LOADS.replace("\n", "\n    "))
    assert sentence("--resume", "out/last.pt", "--output_dir", "out") is None, "its first start"
    assert sentence("--resume", "elsewhere/last.pt", "--output_dir", "out") is not None, "no save of its own"
    (folder / "train.py").write_text(STRICT + "if not os.path.exists(args.resume):\n    raise SystemExit(1)\n" + LOADS)
    assert sentence("--resume", "out/last.pt", "--output_dir", "out") is not None, "it ends"
    below = "import torch\nif os.path.exists(args.resume + '/opt.pt'):\n    o = torch.load(args.resume + '/opt.pt')\n"
    (folder / "train.py").write_text(STRICT + below)
    assert sentence("--resume", "out/last", "--output_dir", "out") is None, "all that it loads is asked for"
    (folder / "train.py").write_text(STRICT + below + LOADS)
    assert sentence("--resume", "out/last", "--output_dir", "out") is not None, "what it loads is not asked for"


def test_the_option_that_the_script_takes_a_checkpoint_by_is_known_by_its_use(folder: Path) -> None:
    own = STRICT.replace('"--resume"', '"--weiter_von"') + LOADS.replace("args.resume", "args.weiter_von")
    (folder / "train.py").write_text(
        own + "optimizer.load_state_dict(state['optimizer'])\nmodel.load_state_dict(state['m'])\n"
    )
    assert "weiter_von = ./gone.pt" in refused("--weiter_von", "./gone.pt")


def test_a_missing_script_stops_the_start_but_not_one_inside_a_container(folder: Path) -> None:
    assert refused(command=("python3", "-u", "gone.py")).startswith("3 script: gone.py is not in")
    (folder / "docker").write_text("#!/bin/sh\n")
    (folder / "docker").chmod(0o755)
    assert sentence(command=("./docker", "run", "image", "python", "/app/gone.py")) is None


def test_missing_data_stops_the_start_unless_the_script_fetches_it(folder: Path) -> None:
    assert refused("--data_dir", "gone").startswith("3 data: not there: data_dir = gone")
    (folder / "train.py").write_text(STRICT + "datasets.MNIST(args.data_dir, download=True)\n")
    assert sentence("--data_dir", "gone") is None


def test_data_that_the_config_of_a_bare_command_names_is_looked_for(folder: Path) -> None:
    (folder / "cfg.yaml").write_text("data:\n  dataset_path: ./gone\n")
    assert "dataset_path = ./gone" in refused("--config", "cfg.yaml")


@pytest.mark.parametrize(("channels", "held"), [(24, (16,)), (80, (64, 128)), (16, (32,))])
def test_a_model_that_the_named_checkpoint_contradicts_stops_the_start(
    folder: Path, channels: int, held: tuple[int, ...]
) -> None:
    point = folder / "old" / "checkpoint-40"
    point.mkdir(parents=True)
    layers = {f"l{n}.weight": np.ones((held[n % len(held)], held[-1]), dtype=np.float32) for n in range(6)}
    save_file(layers, point / "model.safetensors")
    save_file(layers, point / "optimizer.safetensors")
    (point / "training_state.json").write_text(json.dumps({"global_step": 40, "current_epoch": 1}))
    (folder / "cfg.yaml").write_text(MODEL.format(channels))
    words = ("--config", "cfg.yaml", "--resume", "old/checkpoint-40", "--output_dir", "out")
    assert refused(*words).startswith("1 model: config changed since checkpoint-40: model.channels is")
    assert sentence(*words, forced=True) is None
    (folder / "cfg.yaml").write_text(MODEL.format(held[0]))
    assert sentence(*words) is None


@pytest.mark.parametrize("option", ["--init_channels", "--model_channels"])
def test_channels_outside_a_model_section_are_compared_too(folder: Path, option: str) -> None:
    point = folder / "old" / "checkpoint-40"
    layers = {f"l{n}.weight": np.ones((16 * (n % 2 + 1), 32), dtype=np.float32) for n in range(6)}
    point.mkdir(parents=True)
    save_file(layers, point / "model.safetensors")
    (point / "training_state.json").write_text(json.dumps({"global_step": 40, "current_epoch": 1}))
    assert f"{option[2:]} is 12 in the config and probably 16 in the checkpoint" in refused(
        "--resume", "old/checkpoint-40", option, "12"
    )
    assert sentence("--resume", "old/checkpoint-40", option, "16") is None


def test_run_and_dry_run_say_the_same_and_force_is_an_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--", sys.executable, "train.py", "--resume", "./outputs/checkpoint-epoch-118"]
    assert main(["run", "--dry-run", "--json", *words]) == 0
    problem = json.loads(capsys.readouterr().out)["problem"]
    assert "resume = ./outputs/checkpoint-epoch-118: there is no such checkpoint" in problem
    assert main(["run", "--headless", *words]) == 3
    assert problem in capsys.readouterr().err
    assert not (folder / "home" / "runs").exists()
    assert main(["run", "--dry-run", "--force", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["problem"] is None


def test_sdxl_on_a_card_of_8_gb_is_not_started_unless_it_is_forced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = GpuSurvey(gpus=(GpuSeen(index=0, name="RTX 4060", mem_total_bytes=8.2e9, mem_used_bytes=0.3e9),))
    small = Machine(gpus=card, home=folder / "home")
    monkeypatch.setattr(checklist, "look_at_machine", lambda *_, **__: small)
    (folder / "sdxl_train_network.py").touch()
    words = ("--output_dir", "out")
    command = ("python3", "sdxl_train_network.py")
    assert "SDXL cannot be trained with less than 12 GB; train an SD 1.5 model on this card instead" in refused(
        *words, command=command
    )
    assert sentence(*words, command=command, forced=True) is None
    assert sentence(*words) is None, "any other training asks no driver"


def test_a_package_that_is_not_installed_stops_the_start_unless_it_is_forced(folder: Path) -> None:
    (folder / "train.py").write_text("import no_such_package\n")
    assert refused(command=(sys.executable, "train.py")).startswith(
        f"1 imports: not installed for {sys.executable}: no_such_package (train.py:1); install"
    )
    assert sentence(command=(sys.executable, "train.py"), forced=True) is None
    (folder / "no_such_package.py").touch()
    assert sentence(command=(sys.executable, "train.py")) is None


def test_an_unattended_launch_is_not_refused_for_a_package(folder: Path) -> None:
    (folder / "train.py").write_text("import no_such_package\n")
    readiness, _ = before_launch(plan_command((sys.executable, "train.py", "--output_dir", "out"), Overrides()))
    assert readiness.refusal is None


@pytest.mark.parametrize(
    ("free_gb", "said"),
    [(500, "check    disk: 500 GB free"), (5, "check    disk: warn: 5.00 GB free"), (0.5, "problem  disk: ")],
)
def test_a_dry_run_shows_the_room_on_the_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], free_gb: float, said: str
) -> None:
    """Before: a start noted the check in its events, and a dry run did not show it."""
    usage = SimpleNamespace(total=1e12, used=1e12 - free_gb * 1e9, free=free_gb * 1e9)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    words = ["run", "--dry-run", "--output-dir", "out", "--", "python3", "train.py"]
    assert main([*words]) == 0
    shown = capsys.readouterr().out
    assert said in shown
    assert main(["run", "--json", *words[1:]]) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert "free in" in checks["disk"]["found"]


@pytest.mark.parametrize(
    ("built", "words", "said"),
    [
        ("None", (), "built without CUDA"),
        ("None", ("--device", "cpu"), ""),
        ("'12.8'", (), ""),
    ],
)
def test_a_torch_without_cuda_beside_a_gpu_stops_a_start_unless_the_cpu_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, built: str, words: tuple[str, ...], said: str
) -> None:
    card = GpuSurvey(gpus=(GpuSeen(index=0, name="RTX 4060", mem_total_bytes=16e9, mem_used_bytes=0.3e9),))
    here = Machine(gpus=card, home=folder / "home")
    monkeypatch.setattr(checklist, "look_at_machine", lambda *_, **__: here)
    (folder / "train.py").write_text("import argparse, torch\nargparse.ArgumentParser().parse_known_args()\n")
    python, torch = folder / "venv/bin/python", folder / "venv/lib/python3.12/site-packages/torch"
    for place in (python, torch / "version.py"):
        place.parent.mkdir(parents=True)
    (torch / "__init__.py").touch()
    (torch / "version.py").write_text(f"__version__ = '2.9.0'\ncuda: Optional[str] = {built}\nhip = None\n")
    python.symlink_to(sys.executable)
    found = why_not_start(plan_command((str(python), "train.py", *words), Overrides(output_dir="out")))
    assert (said in found.sentence) if said and found is not None else found is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--save_steps", "500", "--max_steps", "400"), "the first checkpoint comes after the end (step 400)"),
        (("--save_steps", "500", "--max_steps", "501"), ""),
        (("--save_only_model",), "leaves the optimizer out"),
        (("--save_strategy", "no"), "no checkpoint is written"),
        (("--save_every", "50", "--epochs", "20"), "the first checkpoint comes after the end (epoch 20)"),
        (("--save_every", "50", "--save_steps", "9", "--epochs", "20", "--max_steps", "20"), ""),
        (("--save_freq", "50", "--epochs", "20"), "the first checkpoint comes after the end (epoch 20)"),
        (("--ckpt_every", "50", "--epochs", "20"), ""),
        (("--save_interval", "50", "--epochs", "20"), ""),
    ],
)
def test_what_cannot_be_resumed_is_told_at_a_start(folder: Path, words: tuple[str, ...], said: str) -> None:
    declared = 'p.add_argument("--save_every", type=int, help="epochs between two")\nepoch % p.save_freq\n'
    (folder / "train.py").write_text(f"{declared}(epoch * 9 + step) % p.ckpt_every\nepoch * p.save_interval\n")
    told = [
        c.found for c in told_at_launch(plan_command(("python3", "train.py", *words), Overrides())) if c.name == "saves"
    ]
    assert [said in each for each in told] == ([True] if said else [])
