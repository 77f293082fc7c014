"""Names of calls that are known for what they do with files and with loaded values."""

from typing import NamedTuple


class KnownWay(NamedTuple):
    """What makes a trainer of this library go on by itself from its newest checkpoint.

    A call of this name, or a keyword of any call (or key of a dictionary) that is on. ``source``: where its own code
    shows it.
    """

    library: str
    call: str
    keyword: str
    source: str


KNOWN_WAYS = (
    KnownWay("skorch", "LoadInitState", "", "skorch.callbacks.training.LoadInitState.on_train_begin"),
    KnownWay("speechbrain", "", "checkpointer", "speechbrain.core.Brain.on_fit_start: recover_if_possible"),
    KnownWay("catboost", "", "save_snapshot", "catboost.CatBoost.fit: save_snapshot, snapshot_file"),
    KnownWay("keras", "BackupAndRestore", "", "keras.callbacks.BackupAndRestore.on_train_begin"),
    KnownWay("tensorflow", "BackupAndRestore", "", "keras.callbacks.BackupAndRestore.on_train_begin"),
    KnownWay("tensorflow", "MonitoredTrainingSession", "", "tf.compat.v1.train.MonitoredTrainingSession"),
    KnownWay("composer", "", "autoresume", "composer.Trainer: autoresume"),
    KnownWay("llmfoundry", "", "autoresume", "composer.Trainer: autoresume"),
)
TO_WRITE = {
    "transformers": "trainer.train(resume_from_checkpoint=get_last_checkpoint(output_dir))",
    "lightning": 'trainer.fit(…, ckpt_path="last")',
    "pytorch_lightning": 'trainer.fit(…, ckpt_path="last")',
    "skorch": "callbacks=[checkpoint, LoadInitState(checkpoint)]",
    "catboost": "fit(…, save_snapshot=True)",
    "speechbrain": "Brain(…, checkpointer=checkpointer)",
    "keras": "fit(…, callbacks=[keras.callbacks.BackupAndRestore(folder)])",
    "composer": "Trainer(…, autoresume=True)",
}
"""Library → the line of a script by which a training goes on by itself."""
KNOWN_LIBRARIES = frozenset({
    *(way.library for way in KNOWN_WAYS),
    # they train, and go on from nothing unless they are told to
    "accelerate", "diffusers", "fastai", "ignite", "lightgbm", "lightning", "peft", "pytorch_lightning",
    "sentence_transformers", "sklearn", "spacy", "stable_baselines3", "sb3_contrib", "timm", "torch", "transformers",
    "trl", "xgboost", "jax", "flax", "optax", "orbax",
    # they do not train
    "PIL", "absl", "bitsandbytes", "click", "cv2", "datasets", "einops", "evaluate", "fire", "gym", "gymnasium", "h5py",
    "hydra", "imageio", "joblib", "jsonargparse", "loguru", "matplotlib", "numpy", "omegaconf", "pandas", "pydantic",
    "psutil", "requests", "rich", "safetensors", "scipy", "tensorboard", "tensorboardX", "tokenizers", "torchaudio",
    "torchmetrics", "torchvision", "tqdm", "typer", "typing_extensions", "tyro", "wandb", "yaml", "huggingface_hub",
})  # fmt: skip
"""Packages of which it is known how a training with them goes on."""
WRITES_SELF = frozenset({"mkdir", "write_bytes", "write_text"})
"""Methods of a path that write to it."""
READS = frozenset({"read", "readline", "readlines", "read_bytes", "read_text"})
MOVES = frozenset({"replace", "rename", "renames", "move", "copyfile", "copy", "copy2"})
"""Calls whose last argument is written to."""
TAKES_STATE = frozenset({
    "load_state_dict", "set_state_dict", "load_from_state_dict", "set_weights", "set_state", "setstate",
    "set_rng_state", "from_bytes", "from_state_dict", "__setstate__",
})  # fmt: skip
"""Last names of calls that give what was loaded to a part of the training."""
NO_PLACES = frozenset({"map_location", "device", "weights_only", "strict", "dtype", "mode", "encoding", "key", "rank"})
"""Keywords of loads that name no file."""
LIBRARIES = frozenset(
    {"torch", "numpy", "np", "os", "json", "pickle", "yaml", "transformers", "datasets", "safetensors", "joblib"}
)
DATA_LOADS = frozenset({
    "load_dataset", "load_from_disk", "imread", "read_csv", "read_json", "read_parquet", "safe_load", "loads",
    "load_yaml", "load_json", "load_toml", "load_config", "load_dotenv", "load_metric", "load_image", "load_data",
    "load_ext", "load_module", "load_library", "load_tokenizer", "load_vocab", "loadtxt", "load_img", "load_array",
    "preload", "upload", "download", "reload_ext", "payload", "fullload", "full_load", "load_all", "workload",
    "load_extension", "load_template", "hub_load",
})  # fmt: skip
"""Reads of data, settings and code, no states of a training."""


def is_config(called: str) -> bool:
    return called.startswith(
        ("yaml.", "json.", "toml.", "tomllib.", "tomli.", "OmegaConf.", "omegaconf.", "datasets.", "ruamel.", "dotenv.")
    )
