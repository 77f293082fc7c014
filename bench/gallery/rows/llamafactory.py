"""LLaMA-Factory: its command line with a YAML file, as in its own examples (``overwrite_output_dir: true``)."""

import json

from msgspec.structs import replace

from .hf import BAR, SETTINGS

GIVEN = {
    "model_name_or_path": "model", "stage": "sft", "do_train": True, "finetuning_type": "full", "dataset": "tiny",
    "dataset_dir": "data", "template": "empty", "cutoff_len": 64, "overwrite_cache": True,
    "preprocessing_num_workers": 1, "overwrite_output_dir": True, "plot_loss": False,
    **{key: value for key, value in SETTINGS.items() if key != "eval_strategy"},
}  # fmt: skip

ROWS = (
    replace(
        BAR,
        name="llamafactory",
        title="LLaMA-Factory",
        environment="llamafactory",
        packages=("llamafactory",),
        version_of="",
        preset="llamafactory",
        files={
            "make.py": "@tiny_language_model.py",
            "train.yaml": "".join(f"{key}: {json.dumps(value)}\n" for key, value in GIVEN.items()),
        },
        prepare=("python", "make.py", "alpaca"),
        command=("llamafactory-cli", "train", "train.yaml"),
    ),
)
