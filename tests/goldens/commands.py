"""A typical command of each preset, with the files that it needs: what is recognised in it, and what is planned."""

from pathlib import Path

from trainwatch.core.config.shipped import load_presets, load_profiles

SETTINGS = {
    "toml": 'output_dir = "out"\noutput_name = "luca"\nmax_train_epochs = 12\nmax_train_steps = 900\ntrain_batch_size = 4\n',
    "yaml": "output_dir: out\nnum_train_epochs: 3\nmax_steps: 900\nper_device_train_batch_size: 4\n",
    "json": '{"output_dir": "out", "num_train_epochs": 3, "max_steps": 900, "per_device_train_batch_size": 4}\n',
}
HF = "import transformers\ntransformers.Trainer(None).train(resume_from_checkpoint=None)\n"
TYPICAL: dict[str, tuple[str, dict[str, str]]] = {
    "kohya": ("train_network.py --config_file c.toml", {"c.toml": SETTINGS["toml"]}),
    "kohya-flags": (
        "sdxl_train_network.py --pretrained_model_name_or_path m --max_train_epochs 8 --output_dir out",
        {},
    ),
    "hf": (
        "run_clm.py --output_dir out --max_steps 900 --per_device_train_batch_size 4 --resume_from_checkpoint True",
        {},
    ),
    "hf-script": ("train.py --output_dir out --num_train_epochs 3", {"train.py": HF}),
    "hf-json": ("train.py c.json", {"train.py": HF, "c.json": SETTINGS["json"]}),
    "trl": ("train.py --output_dir out", {"train.py": "from trl import SFTTrainer\nSFTTrainer(None).train()\n"}),
    "diffusers": ("train_text_to_image_lora.py --output_dir=out --max_train_steps=900 --checkpointing_steps=100", {}),
    "accelerate": (
        "train.py --out out",
        {"train.py": "from accelerate import Accelerator\nAccelerator().load_state('a')\n"},
    ),
    "lightning": (
        "train.py",
        {"train.py": "import lightning as L\nL.Trainer(max_epochs=4).fit(None, ckpt_path='last')\n"},
    ),
    "lightning-cli": ("train.py fit --config c.yaml --trainer.max_epochs 5", {"c.yaml": "trainer:\n  max_steps: 70\n"}),
    "keras": ("train.py", {"train.py": "import keras\nkeras.Model().fit(None, epochs=3)\n"}),
    "timm": ("train.py data --model resnet18 --output out", {"train.py": "import timm\n", "timm/version.py": ""}),
    "ultralytics": ("train.py", {"train.py": "from ultralytics import YOLO\nYOLO('a.pt').train(epochs=9)\n"}),
    "nanogpt": (
        "train.py config/tiny.py --max_iters=50",
        {"train.py": "out_dir = 'out'\n", "configurator.py": "", "model.py": "", "config/tiny.py": "max_iters = 40\n"},
    ),
    "dit": ("src/scripts/train.py --config c.yaml", {"c.yaml": "training:\n  num_epochs: 4\n  output_dir: out\n"}),
    "dit-facebook": ("train.py --model DiT-S/8 --results-dir results --epochs 4", {"models.py": ""}),
    "llamafactory": ("src/train.py c.yaml", {"c.yaml": "finetuning_type: lora\ntemplate: a\n" + SETTINGS["yaml"]}),
    "musubi-tuner": ("wan_train_network.py --config_file c.toml", {"c.toml": SETTINGS["toml"]}),
    "onetrainer": ("scripts/train.py --config-path c.json", {"c.json": '{"workspace_dir": "w", "epochs": 9}\n'}),
    "simpletuner": (
        "simpletuner/train.py",
        {"config/config.json": '{"--output_dir": "out", "--max_train_steps": 900}\n'},
    ),
    "axolotl": ("-m axolotl.cli.train c.yaml", {"c.yaml": "base_model: m\nmicro_batch_size: 2\noutput_dir: out\n"}),
    "plain": ("train.py --resume {resume} --epochs 3", {}),
    "deletes": ("train.py --output_dir out --overwrite_output_dir", {"train.py": HF}),
}
"""By what it is: the words behind the Python, and files beside it. A script that is not named is empty."""


def plans() -> dict[str, tuple[list[str], str, dict[str, str]]]:
    """By name: the options of ``run``, the words of the command, and its files."""
    found = {name: (list[str](), words, files) for name, (words, files) in TYPICAL.items()}
    for preset in sorted(load_presets()):
        found[f"told {preset}"] = (["--preset", preset], "train.py --output_dir out --max_steps 900", {})
    for name, profile in sorted(load_profiles().items()):
        preset = next((each for each in ("kohya", "dit", "hf") if profile.family.startswith(each)), "generic")
        words = "train.py --config_file c.toml" if preset == "kohya" else "train.py --output_dir out"
        options = ["--preset", preset, "--profile", name]
        found[f"profile {name}"] = (options, words, {"c.toml": SETTINGS["toml"]})
    return found


def lay_out(folder: Path, words: str, files: dict[str, str]) -> None:
    """Write the files of a command."""
    script = next((word for word in words.split() if word.endswith(".py")), None)
    for name, text in {**({script: ""} if script else {}), **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
