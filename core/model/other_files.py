"""What an output folder holds beside checkpoints: logs, metrics, configs, samples, events and caches.

Whatever is not in these tables may be the state of a training, of a make that is not known. Names decide here; nothing
is opened.
"""

import functools
import re

from .checkpoint_files import is_part, is_temporary, read_name


def _suffixes(words: str) -> frozenset[str]:
    return frozenset(words.split())


TEXT_SUFFIXES = _suffixes(
    ".log .txt .out .err .json .jsonl .ndjson .yaml .yml .toml .ini .cfg .conf .properties .env .gin .csv .tsv .md .rst"
    " .tex .html .htm .xml .css .js .py .pyi .sh .bash .bat .ps1 .ipynb .c .h .cc .cpp .cu .cuh .diff .patch .jinja"
    " .jinja2 .j2 .prototxt .pbtxt .sha256 .md5 .lock .pid .done .flag .stamp .sbatch .slurm"
)
"""Logs, metrics, configs, code and marks: text by convention."""
_PICTURE_SUFFIXES = _suffixes(
    ".png .jpg .jpeg .webp .gif .bmp .tif .tiff .svg .pdf .eps .ps .ico .exr .hdr .mp4 .webm .avi .mov .mkv .wav .mp3"
    " .flac .ogg .opus .m4a .obj .ply .glb .gltf"
)
"""Samples, plots, audio and models to look at."""
MODEL_TEXT_SUFFIXES = frozenset({".json", ".txt", ".xml", ".dump"})
"""Text to which boosted trees and small models are saved, too: XGBoost's JSON, LightGBM's ``.txt``, PMML."""
_RECORD_SUFFIXES = _suffixes(
    ".wandb .prof .pstats .nsys-rep .qdrep .ncu-rep .perfetto-trace .pyc .pyo .so .o .whl .arrow .parquet .feather"
    " .lmdb .mdb .tfrecord .tfrecords .webdataset .idx .vocab .bpe .tiktoken .ttf .db-wal .db-shm .db-journal"
    " .sqlite-wal .sqlite-shm .sqlite-journal .sqlite3-wal .sqlite3-shm .sqlite3-journal"
)
"""Profiles, compiled code, data sets, vocabularies, journals of databases."""
_EVENTS = re.compile(
    r"tfevents|\.log(\.|$)|^(stdout|stderr|nohup|slurm)([-_.\d]|$)|^core(\.\d+)?$|mem(ory)?[-_](snapshot|history|timeline)",
    re.IGNORECASE,
)


def _words(words: str) -> re.Pattern[str]:
    """Finds one of the words, whole: ``samples`` in ``val_samples_3``, but no ``log`` in ``catalog``."""
    return re.compile(rf"(?:^|[^a-z])(?:{words})(?:[^a-z]|$)", re.IGNORECASE)


_CLOSED_WORDS = _words(
    "samples?|previews?|images?|img|grids?|generated|cached?|caches|tokenizers?|vocab|spiece|sentencepiece|mlflow"
    "|mlruns|optuna|wandb|aim|profiler?|profiles|plots?|figures?|code|src|datasets?|latents?|embeds?|hub|pretrained"
    "|readme|license|predictions?|preds|data|labels?|embeddings?|attention|confusion|stats|statistics"
)
"""Samples, caches, data, code and trackers, which keep copies of their own."""
_LOG_WORDS = _words(
    "logs?|logging|metrics?|history|events?|configs?|cfg|args|hparams|settings|tensorboard|tb|runs|traces?|results?"
    "|validation|reports?|hydra"
)
"""Logs, metrics and configs. Many trainers put their checkpoints below such a folder, too."""
_COPY_WORDS = _words(
    "wandb|mlflow|mlruns|aim|optuna|cached?|caches|tokenizers?|hub|pretrained|profiler?|node_modules|site-packages|venv"
)
"""Trackers, caches and installed code: what lies anywhere below such a folder is a copy or comes from elsewhere."""
KEPT_SUFFIX = ".kept"
"""Of the folder beside an output folder to which state is copied before anything may write over it."""
_STATE_WORDS = _words("checkpoints?|ckpts?|chkpts?|snapshots?|weights?|models?|states?|params?|optim|optimizer|ema")
_CHECKPOINT_WORDS = _words("checkpoints?|ckpts?|chkpts?|snapshots?")
_PLACE_WORDS = _words("last|latest|best|final|newest|current|resume|epochs?|steps?|iters?")
_COMPANION_WORDS = _words(
    "replay|buffers?|vec_?normalize|normali[sz]er|optim|optimizers?|sched|schedulers?|scalers?|rng|random|samplers?|ema"
    "|meta|stats"
)
"""Parts of a save beside its main file: stable-baselines3's replay buffer, an optimizer in a file of its own."""
_NUMBER = re.compile(r"\d+")


@functools.lru_cache(maxsize=1 << 16)
def is_other_file(name: str) -> bool:
    suffix, stem = _suffix(name), _stem(name)
    if suffix in _PICTURE_SUFFIXES or suffix in _RECORD_SUFFIXES:  # first, because there may be many
        return True
    if is_temporary(name) or is_part(name) or _EVENTS.search(name):
        return True
    by_words = _CLOSED_WORDS.search(name) is not None or _LOG_WORDS.search(name) is not None
    if suffix in TEXT_SUFFIXES:
        return by_words or (_CHECKPOINT_WORDS.search(stem) is None and not is_numbered_text(name))
    return by_words and _STATE_WORDS.search(stem) is None


def is_text(name: str) -> bool:
    return _suffix(name) in TEXT_SUFFIXES


def is_numbered_text(name: str) -> bool:
    """Whether it may be one of a series of saves that are text: ``round_20.json``."""
    return _suffix(name) in MODEL_TEXT_SUFFIXES and _NUMBER.search(_stem(name)) is not None


def is_companion(name: str) -> bool:
    """Whether a name calls it a part of a save beside its main file."""
    return _COMPANION_WORDS.search(_stem(name)) is not None


def is_text_of_unknown_use(name: str) -> bool:
    """Whether it is text by its suffix, and its name does not call it a log, a config, data or samples."""
    known = _CLOSED_WORDS.search(name) or _LOG_WORDS.search(name) or _EVENTS.search(name)
    return _suffix(name) in TEXT_SUFFIXES and not known


@functools.lru_cache(maxsize=1 << 12)
def is_other_folder(name: str) -> bool:
    """Whether a folder of that name is known to hold samples, caches, data or code, and no state of this training."""
    if is_temporary(name) or name.startswith("__"):
        return True
    return _CLOSED_WORDS.search(name) is not None and _STATE_WORDS.search(name) is None


def is_log_folder(name: str) -> bool:
    """Whether a folder of that name holds logs or results first of all."""
    return _LOG_WORDS.search(name) is not None and _STATE_WORDS.search(name) is None


def is_copy_folder(name: str) -> bool:
    """Whether nothing below a folder of that name is written as the output of a training."""
    return name.startswith((".", "__")) or name.endswith(KEPT_SUFFIX) or _COPY_WORDS.search(name) is not None


def says_state(name: str) -> bool:
    """Whether a name speaks of the state of a training: a word for it, a place in a series, a step or an epoch."""
    stem = _stem(name)
    worded = _STATE_WORDS.search(stem) is not None or _PLACE_WORDS.search(stem) is not None
    return worded or name.isdecimal() or not read_name(name).is_final


def says_checkpoint(name: str) -> bool:
    return _CHECKPOINT_WORDS.search(_stem(name)) is not None


def kind_of_name(name: str) -> str:
    """A name without its numbers: what the saves of one training have in common."""
    return _NUMBER.sub("#", name)


def _suffix(name: str) -> str:
    return "." + name.rpartition(".")[2].lower() if "." in name.lstrip(".") else ""


def _stem(name: str) -> str:
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name
