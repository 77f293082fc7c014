"""What the names of files and directories mean: checkpoint or not, file format, step, epoch; logs, samples, caches.

Suffixes are in ``checkpoint_suffixes``. Sources of the patterns stand beside them.
"""

import functools
import re
from collections.abc import Callable, Iterable

import msgspec

from .checkpoint_suffixes import INDEX_SUFFIX, TENSOR_SUFFIXES, TensorFormat
from .text import LazyPattern

_SUFFIX = "(?:" + "|".join(map(re.escape, TENSOR_SUFFIXES)) + ")"
_UNCLEAR_SUFFIX = "(?:" + "|".join(re.escape(s) for s, what in TENSOR_SUFFIXES.items() if what == "maybe_torch") + ")"


def _suffix(name: str) -> str:
    return "." + name.rpartition(".")[2].lower() if "." in name.lstrip(".") else ""


def _stem(name: str) -> str:
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name


def _says(pattern: str, flags: int = 0, *, of: Callable[[str], str] = str) -> Callable[[str], bool]:
    """The test whether a name, or what ``of`` makes of it, has this pattern."""
    lazy = LazyPattern(pattern, flags)
    return lambda name: lazy.search(of(name)) is not None


_KNOWN_BIN = LazyPattern(
    r"^(pytorch_model|diffusion_pytorch_model|pytorch_lora_weights|adapter_model|model|optimizer|scheduler|sampler"
    r"|dl_state_dict|training_args|random_states|learned_embeds).*" + _UNCLEAR_SUFFIX + "$"
)
"""Members of transformers, diffusers, peft and accelerate checkpoints."""

is_part = _says(
    r"^(optimizer|optim|scheduler|lr_scheduler|scaler|grad_scaler|rng_state|random_states|training_args|sampler"
    r"|dl_state_dict|custom_checkpoint|ema_scheduler|recipe_state)"
    r"(([-_.]|\d|$)(?!.*\.safetensors$)|([-_.]?(states?|dict|model|\d+))*\.safetensors$)"
    r"|^cached?[-_](latent|embed|text|prompt|vae)|_optim_states\.pt$|_model_states\.pt$",
    of=str.lower,
)
"""Whether a file is a member of something else and no checkpoint alone (optimizer, scheduler, RNG …).

It belongs beside weights (torchtune's recipe state, too), or is made from the data before training. People give names
to weights in safetensors: ``optim_style-000004.safetensors`` is none.
"""

OPAQUE_BY_DESIGN = LazyPattern(
    r"^(training_args|rng_state|random_states|sampler|dl_state_dict|custom_checkpoint)[-_.\d]|\.pkl$"
)
"""Members whose objects a resume of weights, optimizer and step does not need."""

is_temporary = _says(
    r"\.(tmp|temp|partial|part|incomplete|writing|lock|crdownload|swp|torn)$|\.tmp[-_.]|~$|^tmp[-_.]|^\.|_tmp$|\.incomplete\.|\.orbax-checkpoint-tmp"
)
"""Whether writers use the name until the final rename: ``tmp-checkpoint-500``, ``*.tmp``; or it is hidden.

``.torn``: what a person is told to rename a bad checkpoint to, so that the trainer does not take it.
"""

is_checkpoint_directory_name = _says(
    r"^(checkpoint|ckpt|global_step)[-_]?(\w+[-_])?\d+$|[-_]state$|\.ckpt$|^checkpoint-last$"
)
"""Whether a directory is a checkpoint by its name, even if it is empty."""

is_counted_directory_name = _says(r"^((step|steps|epoch|ep|iter|iteration)[-_]?)?\d{1,12}$", re.IGNORECASE)
"""Whether a directory is a checkpoint as soon as tensors lie in it; sample images are kept under such names too."""

SHARD = LazyPattern(rf"^(?P<stem>.+)-(?P<number>\d{{5}})-of-(?P<total>\d{{5}})(?P<suffix>{_SUFFIX})$")
KNOWN_WEIGHTS = LazyPattern(
    r"^(model|pytorch_model|diffusion_pytorch_model|adapter_model|pytorch_lora_weights|consolidated)"
    rf"(-\d{{5}}-of-\d{{5}}|\.\d+)?(\.fp16)?{_SUFFIX}({re.escape(INDEX_SUFFIX)})?$"
)
"""Names of weights that a directory is known by; any other ``.safetensors`` in a folder may be a collection."""

_KOHYA = r"(?:-state)?(?:\.[a-z]+)?$"
_COUNTERS: tuple[tuple[LazyPattern, str], ...] = tuple(
    (LazyPattern(pattern, re.IGNORECASE), what)
    for pattern, what in (
        # Lightning: epoch=3-step=1000.ckpt, also epoch=3_step=1000
        (r"epoch=(\d+)", "epoch"),
        (r"(?<![a-z])(?:global_)?step=(\d+)", "step"),
        # OneTrainer: NAME…-save-STEP-EPOCH-EPOCHSTEP.safetensors
        (r"-save-(\d+)-\d+-\d+" + _KOHYA, "step"),
        (r"-save-\d+-(\d+)-\d+" + _KOHYA, "epoch"),
        # checkpoint-epoch-118, model_epoch_3, ep3
        (r"(?:^|[-_.])(?:epoch|ep|e)[-_]?(\d+)(?![a-z0-9])", "epoch"),
        # NAME-step00000500 (kohya), global_step500 (DeepSpeed), step_500, iter_1000, 500_steps
        (r"(?:^|[-_.])(?:global[-_]?)?(?:steps?|iter|iteration|it|s)[-_]?(\d+)(?![a-z0-9])", "step"),
        (r"(?:^|[-_.])(\d+)[-_]?(?:steps?|iters?|it)(?![a-z0-9])", "step"),
        # transformers and diffusers: checkpoint-500; others: checkpoint_500, ckpt500
        (r"^(?:checkpoint|ckpt|chkpt)[-_]?(\d+)(?![a-z0-9])", "step"),
        # guided-diffusion writes model010000.pt
        (r"(?<=^model)(\d{6,7})\.pt$", "step"),
        # NAME-000004.safetensors: kohya counts epochs with six digits
        (r"-(\d{6})" + _KOHYA, "epoch"),
        # NAME_000000500.safetensors: ai-toolkit counts steps with nine
        (r"_(\d{9})" + _KOHYA, "step"),
        # NAME-1500.pt: three digits or more; fewer may be a version
        (r"[-_](?!(?:19|20)\d{6}(?:\D|$))(\d{3,})" + _KOHYA, "step"),
        # 0050000.pt (facebookresearch/DiT)
        (r"^(?!(?:19|20)\d{6}(?:\D|$))(\d{3,})(?:\.[a-z]+)?$", "step"),
    )
)


_DATE = re.compile(r"(19|20)\d{6}")
_TRY = LazyPattern(r"-try\d+$")
"""What a restart appends to the name if each launch would write the same names again (act/derive_names.py)."""
_CHECKPOINT_WORD = LazyPattern(r"^(?:checkpoint|ckpt|chkpt)", re.IGNORECASE)
_STEP_WORD = LazyPattern(r"[a-z]", re.IGNORECASE)
_NO_DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.="


class NameCounts(msgspec.Struct, frozen=True):
    step: int | None = None
    epoch: int | None = None

    @property
    def is_final(self) -> bool:
        """Whether it has no number: the one that trainers write at the end (``NAME.safetensors``)."""
        return self.step is None and self.epoch is None

    def or_of(self, other: "NameCounts") -> "NameCounts":
        """These, with those of another for what has none."""
        return NameCounts(
            other.step if self.step is None else self.step, other.epoch if self.epoch is None else self.epoch
        )


@functools.lru_cache(maxsize=1 << 12)
def read_name(name: str) -> NameCounts:
    """Step and epoch in a name, by the shapes of known trainers; ``-00001-of-00003`` is no count, ``20`` alone is."""
    if name.isdecimal() and len(name) < 16 and not _DATE.fullmatch(name):
        return NameCounts(int(name))
    found = _counters_in(_without_shard(name))
    step, epoch = found.get("step"), found.get("epoch")
    return NameCounts(step and int(step[1]), epoch and int(epoch[1]))


def counts_something(name: str) -> bool:
    """Whether the number that is taken for a step has no word for steps: ``checkpoint-3``, ``model_300.pt``."""
    step = _counters_in(_without_shard(name)).get("step")
    return step is not None and not _STEP_WORD.search(_CHECKPOINT_WORD.sub("", step[0].partition(".")[0]))


def series_of(name: str) -> str:
    """The name that checkpoints of one training share: ``luca-000004.safetensors`` and the final ``luca``.

    ``luca-try2-000001.safetensors``, which a second attempt wrote, belongs to it.
    ``checkpoint-500`` and ``checkpoint-epoch-1`` are of one series, the export ``model.safetensors`` is another.
    """
    text = _without_shard(name.removesuffix(INDEX_SUFFIX))
    for match in sorted(_counters_in(text).values(), key=re.Match.start, reverse=True):
        counted = match[0].rstrip(_NO_DIGITS)
        text = text[: match.start()] + text[match.start() + len(counted) :]
    stem = text.rpartition(".")[0] if tensor_format(text) is not None else text
    return _TRY.sub("", stem.strip("-_.=")) or "checkpoint"


def _without_shard(name: str) -> str:
    shard = SHARD.match(name)
    return shard["stem"] + shard["suffix"] if shard else name


def _counters_in(text: str) -> dict[str, "re.Match[str]"]:
    found: dict[str, re.Match[str]] = {}
    for pattern, what in _COUNTERS:
        if what in found or (pattern.text.startswith(("-(", "_(", "[-_](?!")) and found):
            continue  # numbers without a word count only if no number has one
        match = pattern.search(text)
        if match and len(match[1]) <= 15:
            found[what] = match
    return found


def tensor_format(name: str) -> TensorFormat | None:
    suffix = "." + name.rpartition(".")[2].lower() if "." in name else ""
    promised = TENSOR_SUFFIXES.get(suffix)
    if promised == "maybe_torch" and _KNOWN_BIN.match(name):
        return "torch"
    return promised


# What an output folder holds beside checkpoints: logs, metrics, configs, samples, events and caches.
#
# Whatever is not in these tables may be the state of a training, of a make that is not known. Names decide here;
# nothing is opened.


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


def _words(words: str, *, of: Callable[[str], str] = str) -> Callable[[str], bool]:
    """The test for one of the words, whole: ``samples`` in ``val_samples_3``, but no ``log`` in ``catalog``."""
    return _says(rf"(?:^|[^a-z])(?:{words})(?:[^a-z]|$)", re.IGNORECASE, of=of)


_says_other = _words(
    "samples?|previews?|images?|img|grids?|generated|cached?|caches|tokenizers?|vocab|spiece|sentencepiece|mlflow"
    "|mlruns|optuna|wandb|aim|profiler?|profiles|plots?|figures?|code|src|datasets?|latents?|embeds?|hub|pretrained"
    "|readme|license|predictions?|preds|data|labels?|embeddings?|attention|confusion|stats|statistics"
)
"""Samples, caches, data, code and trackers, which keep copies of their own."""
_says_log = _words(
    "logs?|logging|metrics?|history|events?|configs?|cfg|args|hparams|settings|tensorboard|tb|runs|traces?|results?"
    "|validation|reports?|hydra"
)
"""Logs, metrics and configs. Many trainers put their checkpoints below such a folder, too."""
_says_copy = _words(
    "wandb|mlflow|mlruns|aim|optuna|cached?|caches|tokenizers?|hub|pretrained|profiler?|node_modules|site-packages|venv"
)
"""Trackers, caches and installed code: what lies anywhere below such a folder is a copy or comes from elsewhere."""
KEPT_SUFFIX = ".kept"
"""Of the folder beside an output folder to which state is copied before anything may write over it."""
_says_state = _words("checkpoints?|ckpts?|chkpts?|snapshots?|weights?|models?|states?|params?|optim|optimizer|ema")
says_checkpoint = _words("checkpoints?|ckpts?|chkpts?|snapshots?", of=_stem)
_says_place = _words("last|latest|best|final|newest|current|resume|epochs?|steps?|iters?")
is_companion = _words(
    "replay|buffers?|vec_?normalize|normali[sz]er|optim|optimizers?|sched|schedulers?|scalers?|rng|random|samplers?|ema"
    "|meta|stats",
    of=_stem,
)
"""Whether a name calls it a part of a save beside its main file.

So stable-baselines3's replay buffer, an optimizer in a file of its own.
"""
_NUMBER = re.compile(r"\d+")


@functools.lru_cache(maxsize=1 << 16)
def is_other_file(name: str) -> bool:
    suffix, stem = _suffix(name), _stem(name)
    if suffix in _PICTURE_SUFFIXES or suffix in _RECORD_SUFFIXES:  # first, because there may be many
        return True
    if is_temporary(name) or is_part(name) or _EVENTS.search(name):
        return True
    by_words = _says_other(name) or _says_log(name)
    if suffix in TEXT_SUFFIXES:
        return by_words or (not says_checkpoint(name) and not is_numbered_text(name))
    return by_words and not _says_state(stem)


def is_text(name: str) -> bool:
    return _suffix(name) in TEXT_SUFFIXES


def is_numbered_text(name: str) -> bool:
    """Whether it may be one of a series of saves that are text: ``round_20.json``."""
    return _suffix(name) in MODEL_TEXT_SUFFIXES and _NUMBER.search(_stem(name)) is not None


def is_text_of_unknown_use(name: str) -> bool:
    """Whether it is text by its suffix, and its name does not call it a log, a config, data or samples."""
    known = _says_other(name) or _says_log(name) or _EVENTS.search(name)
    return _suffix(name) in TEXT_SUFFIXES and not known


@functools.lru_cache(maxsize=1 << 12)
def is_other_folder(name: str) -> bool:
    """Whether a folder of that name is known to hold samples, caches, data or code, and no state of this training."""
    if is_temporary(name) or name.startswith("__"):
        return True
    return _says_other(name) and not _says_state(name)


def is_log_folder(name: str) -> bool:
    """Whether a folder of that name holds logs or results first of all."""
    return _says_log(name) and not _says_state(name)


def is_copy_folder(name: str) -> bool:
    """Whether nothing below a folder of that name is written as the output of a training."""
    return name.startswith((".", "__")) or name.endswith(KEPT_SUFFIX) or _says_copy(name)


def says_state(name: str) -> bool:
    """Whether a name speaks of the state of a training: a word for it, a place in a series, a step or an epoch."""
    stem = _stem(name)
    worded = _says_state(stem) or _says_place(stem)
    return worded or name.isdecimal() or not read_name(name).is_final


def kind_of_name(name: str) -> str:
    """A name without its numbers: what the saves of one training have in common."""
    return _NUMBER.sub("#", name)


def numbers_in(name: str) -> tuple[int, ...]:
    """The numbers that ``kind_of_name`` leaves out: what the files of one save have in common."""
    return tuple(map(int, _NUMBER.findall(name)))


def parts_among(names: Iterable[str]) -> frozenset[str]:
    """Those that are called a part of a save (an EMA) and end with the number of one that is not."""
    last = {name: numbers_in(_stem(name))[-1:] for name in names}  # ``model010000.pt``, ``ema_0.9999_010000.pt``
    main = {number for name, number in last.items() if number and not is_companion(name)}
    return frozenset(name for name, number in last.items() if number in main and is_companion(name))
