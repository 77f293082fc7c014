"""TRL: the SFT script of the package, by its command line."""

from msgspec.structs import replace

from .hf import BAR, SETTINGS, flags

GIVEN = {**SETTINGS, "model_name_or_path": "model", "dataset_name": "data", "eval_strategy": "no", "bf16": False}

ROWS = (
    replace(
        BAR,
        name="trl",
        title="TRL SFT",
        preset="trl",
        version_of="trl",
        files={"make.py": "@tiny_language_model.py"},
        prepare=("python", "make.py", "text"),
        command=("trl", "sft", *flags(GIVEN)),
        launcher=True,
    ),
)
