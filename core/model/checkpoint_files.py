"""What the names of files and directories mean: checkpoint or not, file format, step, epoch, final.

Suffixes are in ``checkpoint_suffixes``. Sources of the patterns stand beside them.
"""

import functools
import re

import msgspec

from .checkpoint_suffixes import INDEX_SUFFIX, TENSOR_SUFFIXES, TensorFormat
from .patterns import LazyPattern

_SUFFIX = "(?:" + "|".join(map(re.escape, TENSOR_SUFFIXES)) + ")"
_UNCLEAR_SUFFIX = "(?:" + "|".join(re.escape(s) for s, what in TENSOR_SUFFIXES.items() if what == "maybe_torch") + ")"

_KNOWN_BIN = LazyPattern(
    r"^(pytorch_model|diffusion_pytorch_model|pytorch_lora_weights|adapter_model|model|optimizer|scheduler|sampler"
    r"|dl_state_dict|training_args|random_states|learned_embeds).*" + _UNCLEAR_SUFFIX + "$"
)
"""Members of transformers, diffusers, peft and accelerate checkpoints."""

_PART = LazyPattern(
    r"^(optimizer|optim|scheduler|lr_scheduler|scaler|grad_scaler|rng_state|random_states|training_args|sampler"
    r"|dl_state_dict|custom_checkpoint|ema_scheduler|recipe_state)([-_.]|\d|$)"
    r"|^cached?[-_](latent|embed|text|prompt|vae)"
    r"|_optim_states\.pt$|_model_states\.pt$"
)
"""Files that belong beside weights (torchtune's recipe state, too), or are made from the data before training."""

OPAQUE_BY_DESIGN = LazyPattern(
    r"^(training_args|rng_state|random_states|sampler|dl_state_dict|custom_checkpoint)[-_.\d]|\.pkl$"
)
"""Members whose objects a resume of weights, optimizer and step does not need."""

_TEMPORARY = LazyPattern(
    r"\.(tmp|temp|partial|part|incomplete|writing|lock|crdownload|swp)$|\.tmp[-_.]|~$|^tmp[-_.]|^\.|_tmp$|\.incomplete\.|\.orbax-checkpoint-tmp"
)
"""Names that writers use until the final rename: ``tmp-checkpoint-500``, ``*.tmp``, ``50.orbax-checkpoint-tmp``."""

_CHECKPOINT_DIRECTORY = LazyPattern(
    r"^(checkpoint|ckpt|global_step)[-_]?(\w+[-_])?\d+$|[-_]state$|\.ckpt$|^checkpoint-last$"
)
"""Directories that are checkpoints by their name, even if they are empty."""

_COUNTED_DIRECTORY = LazyPattern(r"^((step|steps|epoch|ep|iter|iteration)[-_]?)?\d{1,12}$", re.IGNORECASE)
"""Directories that are checkpoints if tensors lie in them; sample images are kept under such names too."""

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


def is_part(name: str) -> bool:
    """Whether a file is a member of something else and no checkpoint alone (optimizer, scheduler, RNG …)."""
    return bool(_PART.search(name.lower()))


def is_temporary(name: str) -> bool:
    """Whether the name is one that writers use until they are done (and hidden names)."""
    return bool(_TEMPORARY.search(name))


def is_counted_directory_name(name: str) -> bool:
    """Whether a directory is a checkpoint as soon as tensors lie in it."""
    return bool(_COUNTED_DIRECTORY.search(name))


def is_checkpoint_directory_name(name: str) -> bool:
    return bool(_CHECKPOINT_DIRECTORY.search(name))
