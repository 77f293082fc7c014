"""Which preset a command belongs to, and why: its words, its script's imports, files beside it, its config."""

from pathlib import Path

import pytest

from trainwatch.core.config.detection import recognise
from trainwatch.core.config.shipped import load_presets
from trainwatch.core.model.preset import Recognition
from trainwatch.core.source.trainer_source import source_facts

PRESETS = load_presets()


def known(folder: Path, *command: str, config: str | None = None) -> Recognition:
    path = None if config is None else folder / config
    return recognise(command, path, PRESETS, source_facts(command, str(folder)))


@pytest.mark.parametrize(
    ("text", "preset", "why"),
    [
        ("import os\n\nimport lightning as L\n", "lightning", "train.py:3 imports lightning"),
        ("from pytorch_lightning import Trainer\n", "lightning", "train.py:1 imports pytorch_lightning.Trainer"),
        ("def main():\n    import keras\n", "keras", "train.py:2 imports keras"),
        ("from tensorflow import keras\n", "keras", "train.py:1 imports tensorflow.keras"),
        ("import transformers\nt = transformers.Trainer(m)\n", "hf", "train.py:2 imports transformers.Trainer"),
        ("from transformers import Trainer\nfrom trl import SFTTrainer\n", "trl", "train.py:2 imports trl.SFTTrainer"),
        ("from accelerate import Accelerator\n", "accelerate", "train.py:1 imports accelerate.Accelerator"),
        (
            "from accelerate import Accelerator\nfrom diffusers.optimization import get_scheduler\n",
            "diffusers",
            "train.py:2 imports diffusers.optimization.get_scheduler",
        ),
        ("import timm\nimport lightning\n", "lightning", "train.py:2 imports lightning"),
        ("from ultralytics import YOLO\n", "ultralytics", "train.py:1 imports ultralytics.YOLO"),
    ],
)
def test_a_script_is_recognised_by_its_imports(tmp_path: Path, text: str, preset: str, why: str) -> None:
    (tmp_path / "train.py").write_text(text)
    found = known(tmp_path, "torchrun", "--nproc_per_node=2", "train.py", "--lr", "1")
    assert (found.preset, found.why) == (preset, why)


@pytest.mark.parametrize(
    "text",
    [
        "from transformers import AutoTokenizer\nimport torch\n",
        "import timm\nmodel = timm.create_model('x')\n",
        "# import lightning\ntext = 'import keras'\n",
        "import lightning_lite_like\nfrom .trl import x\n",
        "def broken(:\n",
    ],
)
def test_what_only_looks_like_a_framework_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert known(tmp_path, "python", "train.py").preset == "generic"


@pytest.mark.parametrize(
    ("files", "preset"),
    [
        (("configurator.py", "model.py", "train.py"), "nanogpt"),
        (("models.py", "diffusion/gaussian_diffusion.py", "train.py"), "dit-facebook"),
        (("timm/version.py", "train.py"), "timm"),
        (("model.py", "train.py"), "generic"),
    ],
)
def test_a_checkout_is_recognised_by_the_files_beside_its_script(
    tmp_path: Path, files: tuple[str, ...], preset: str
) -> None:
    for name in files:
        (tmp_path / "repo" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repo" / name).write_text("")
    assert known(tmp_path, "python", "repo/train.py").preset == preset


@pytest.mark.parametrize(
    ("command", "preset"),
    [
        (("yolo", "detect", "train", "model=a.yaml"), "ultralytics"),
        (("yolo", "predict", "model=a.yaml"), "generic"),
        (("tune", "run", "lora_finetune_single_device", "--config", "x"), "torchtune"),
        (("llamafactory-cli", "train", "x.yaml"), "llamafactory"),
        (("axolotl", "train", "x.yml"), "axolotl"),
        (("accelerate", "launch", "-m", "axolotl.cli.train", "x.yml"), "axolotl"),
        (("trl", "sft", "--config", "x.yaml"), "trl"),
        (("python", "sft.py", "--per_device_train_batch_size", "2"), "trl"),
        (("simpletuner", "train"), "simpletuner"),
        (("accelerate", "launch", "src/musubi_tuner/wan_train_network.py", "--task", "t2v"), "musubi-tuner"),
        (("python", "scripts/train.py", "--config-path", "x.json"), "onetrainer"),
        (("accelerate", "launch", "train_text_to_image_lora.py", "--output_dir", "o"), "diffusers"),
        (("accelerate", "launch", "train_network.py", "--config_file", "x.toml"), "kohya"),
    ],
)
def test_a_command_is_recognised_by_its_words(tmp_path: Path, command: tuple[str, ...], preset: str) -> None:
    found = known(tmp_path, *command)
    assert found.preset == preset
    assert preset == "generic" or found.why.startswith('the command has "')


def test_a_trainer_without_a_parser_has_no_option_to_resume(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from transformers import Trainer\n")
    command = ("python", "train.py")
    found = known(tmp_path, *command)
    assert (found.preset, found.resumes) == ("hf", False)
    assert PRESETS["hf"].of_command(command, resumes=found.resumes).resume_directory is None
    (tmp_path / "train.py").write_text("from transformers import HfArgumentParser, Trainer\n")
    assert known(tmp_path, *command).resumes


def test_a_way_to_resume_is_used_only_if_the_command_has_it() -> None:
    lightning = PRESETS["lightning"]
    assert lightning.of_command(("python", "main.py", "fit", "--config", "c.yaml")).resume_file is not None
    assert lightning.of_command(("python", "train.py")).resume_file is None


def test_a_way_to_resume_that_was_never_run_counts_as_found_and_not_as_known() -> None:
    way = PRESETS["torchtune"].of_command(("tune", "run", "lora", "--config", "x")).resume_directory
    assert way is not None
    assert way.found == "preset torchtune, never run by us"


@pytest.mark.parametrize(
    "command", [("bash", "train.sh"), ("bash", "-c", "python src/fit.py | tee log"), ("./train.sh",)]
)
def test_a_shell_script_leads_to_the_trainer(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "fit.py").write_text("import lightning\n")
    (tmp_path / "train.sh").write_text('#!/bin/bash\npython -u src/fit.py "$@" 2>&1 | tee -a log\n')
    (tmp_path / "train.sh").chmod(0o755)
    assert known(tmp_path, *command).why == "fit.py:1 imports lightning"
