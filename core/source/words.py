"""What names and help texts of options and calls say. They only support what the flow of values shows."""

import re
from typing import NamedTuple

RESUME = re.compile(
    r"resum|restor|recover|reload|continu|restart|relaunch|pick_?up|go_?on|keep_?training|warm_?restart"
    # German, French, Spanish, Portuguese, Italian, Dutch, Polish, Turkish, Russian and Chinese in Latin letters
    r"|fortsetz|fortf[uü]hr|weiter|wiederauf|repren|repris|reanud|retom|riprend|ripres|hervat|verder|wznow|kontynu|devam"
    r"|prodolz|vozobnov|jixu|huifu|duandian|saikai"
    r"|fortsätt|återuppta|fortsæt|genoptag|jatka|продолж|возобнов|继续|恢复|断点|续训|接着|再開|続き|이어|재개",
    re.IGNORECASE,
)
"""To go on with a training."""
RESUME_OPTION = re.compile(
    r"(auto_?)?(resume|continue)(_training|_run|_from(_checkpoint|_ckpt|_path)?|_path|_ckpt|_checkpoint|_file|_dir)?"
)
"""Whole names that say nothing but that a training goes on."""
CHECKPOINT = re.compile(
    r"ckpt|checkpoint|snapshot|last_?state|train(ing|er)?_?state|load|start_?from|init_?from|from_?(path|file)|laden|charger"
    r"|cargar|carregar|carica|zagruz|检查点|チェックポイント|zustand|stand\b|sauvegarde|punto|spielstand",
    re.IGNORECASE,
)
"""Something that was saved, or loading it."""
OTHER_WEIGHTS = re.compile(
    r"pre_?train|fine_?tun|teacher|backbone|\bvae|lora|adapter|embedding|tokenizer|vocab|discriminator|\bclip|text_?encoder"
    r"|init(ial)?_?(weights|model|params)|weights_?only|student|reward_?model|ref_?model|transfer|base_?model"
    r"|\beval|\btest|infer|predict|sampl|generat|export|convert|compare|distill|resnet|vgg|inception|fid_",
    re.IGNORECASE,
)
"""Weights of another training, or a use that is no training."""
SAVING = re.compile(
    r"save|saving|write|output|out_?dir|every|interval|freq|keep|limit|num_|max_|total_|backup|upload|export|push|delete"
    r"|remove|format|prefix|suffix|compress|_steps$|_epochs$|async|ignore|optimi[sz]er_only|strict|skip",
    re.IGNORECASE,
)
"""How checkpoints are written, not from which one a training goes on."""
TRACKERS = re.compile(r"wandb|mlflow|neptune|comet|\baim\b|clearml|swanlab|trackio|init_trackers|logger", re.IGNORECASE)
"""Experiment trackers have a ``resume`` of their own."""
LOADS = re.compile(
    r"(^|_)(load|restore|resume|reload|unpickle|deserialize|from_pretrained|from_checkpoint|laden|lade|charger|cargar)($|_)"
    r"|^(load|restore|resume|reload|recover|continue)[A-Z_]?|loads?$|read_checkpoint|restore"
)
"""Last names of calls that read what was saved."""
WHOLE = re.compile(
    r"(load_state|restore|restore_checkpoint|restore_or_initialize|load_training_state|load_train_state|load_accelerator_state"
    r"|resume|resume_training|resume_from|resume_from_checkpoint|auto_resume|autoresume|resume_or_load)$"
)
"""Last names of calls that restore a whole training."""
GOES_ON = re.compile(
    r"restore_or_initialize|resume_or_load|recover_if_possible"
    r"|^(maybe|try|auto)_?(load|resume|restore)|(load|resume|restore)_(latest|last|newest|if)|_if_(exists|available|any)"
)
"""Last names of library calls that go on from what is there, if anything is."""
WHOLE_KEYWORDS = re.compile(
    r"(ckpt_path|resume_from_checkpoint|resume_from|resume_path|resume_checkpoint|resume|autoresume|auto_resume|load_path"
    r"|restore_from|restore_path|resume_training|resume_id|checkpoint_to_resume|resume_ckpt|initial_epoch)$"
)
"""Keywords of library calls that restore a whole training (``fit(ckpt_path=…)``)."""
SAVES = re.compile(
    r"(^|_)(save|dump|write|mkdir|makedirs|export|log|backup|savez|serialize)($|_|[A-Z])|^save|^dump"
    r"|speichern|enregistrer|guardar"
)
"""Last names of calls that write."""
SAVES_STATE = re.compile(r"save|^dump$|serialize|speichern|enregistrer|guardar", re.IGNORECASE)
"""Last names of calls of libraries that save what they are given."""
SAVERS = re.compile(r"^(ModelCheckpoint|(Seq2Seq)?TrainingArguments|(SFT|DPO|GRPO|KTO|ORPO|Reward|PPO)Config)$")
"""Classes of lightning, keras and transformers whose first value is the folder or the file to save to."""
FOLDERS = frozenset({"dirpath", "filepath", "output_dir", "checkpoint_dir", "ckpt_dir", "save_dir", "work_dir"})
"""Keywords of libraries for the same."""
SETTINGS_FILES = (".yaml", ".yml", ".toml", ".json")
FINDS = re.compile(
    r"^(glob|iglob|rglob|listdir|scandir|iterdir|walk|latest_checkpoint|get_last_checkpoint|latest_step|all_steps|latest)$"
    r"|(find|get|search|look|newest|latest|last|pick).*(ckpt|checkpoint|snapshot|state|latest|last|newest)"
    r"|(latest|newest|last)_?(ckpt|checkpoint|snapshot|state|step|save)"
)
"""Last names of calls that look for the newest of several saves."""
LOOKS = frozenset({"exists", "isfile", "is_file", "isdir", "is_dir", "lexists", "access"})
"""Last names of calls that ask whether there is something."""
NEWEST = frozenset(
    {"auto", "last", "latest", "newest", "true", "yes", "1", "on", "allow", "must", "must_resume", "hpc"}
)
"""Values that leave the choice of the checkpoint to the trainer."""
STEPS = re.compile(r"(step|epoch|iter|epoche|schritt|etape|époque|epoca|paso|tick|round|update)", re.IGNORECASE)
"""Counters of a training."""
OPTIMIZERS = re.compile(r"opt|sched|scaler|adam|sgd|lr_|ema|rng|engine|trainer|sampler", re.IGNORECASE)
"""Receivers and keys that only a whole training state has."""


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
CONFIG_LIBRARIES = (
    "yaml.", "json.", "toml.", "tomllib.", "tomli.", "OmegaConf.", "omegaconf.", "datasets.", "ruamel.", "dotenv.",
)  # fmt: skip
"""How calls of libraries that read settings or data begin."""
