"""The shapes in which trainers print where they are: one row per shape, tried from the top.

Named groups a pattern may have: ``step`` and ``total`` (counts, SI suffixes and thousands separators allowed),
``unit`` (what the bar counts), ``epoch``, ``epochs``, ``loss``, ``lr``, ``sec_per_step``, ``ms_per_step``,
``steps_per_sec``, ``rate`` (tqdm's ``7.00s/it`` or ``2.7it/s``), ``left`` (time remaining as a clock). What a row
leaves out is looked for in the whole line by ``line_fields``. Kinds: *bar* = redraws itself, may be of any phase, its
label decides; *step* = a line that is only printed for a training step; *eval* = same form, but never training.
"""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from .lines import Gates, gates_of
from .phase_words import WORD_GATES
from .quantities import COUNT, NUMBER

ShapeKind = Literal["bar", "step", "eval"]


class LineShape(msgspec.Struct, frozen=True, kw_only=True):
    """One shape. ``gates``: fixed strings of which each matching line has at least one; none = tried on every line."""

    name: str
    framework: str
    pattern: re.Pattern[str]
    kind: ShapeKind = "step"
    gates: tuple[str, ...] = ()
    source: str = ""


def _row(
    name: str, framework: str, pattern: str, gates: tuple[str, ...], *, kind: ShapeKind = "step", source: str = ""
) -> LineShape:
    return LineShape(name=name, framework=framework, pattern=re.compile(pattern), kind=kind, gates=gates, source=source)


_CLOCK = r"(?:\d+:)?\d+:\d+(?:\.\d+)?"
_S = r"[\s:=]*"

ROWS: tuple[LineShape, ...] = (
    # -- bars -------------------------------------------------------------------------------------------------------
    _row(
        "tqdm",
        "tqdm, HF Trainer, kohya, Lightning, torchtune, Ultralytics ≤ 8.2, diffusers",
        rf"(?P<step>{COUNT})[A-Za-z]{{0,12}}/(?P<total>{COUNT}|\?)\s?(?P<unit>[A-Za-z]{{0,12}}) ?"
        r"\[(?:\d[\d:.]*|\?)<(?P<left>[^,\]]*)(?:, *(?P<rate>[^,\]]*))?",
        ("<",),
        kind="bar",
        source="tqdm.std.tqdm.format_meter",
    ),
    _row(
        "tqdm-without-total",
        "tqdm",
        rf"(?P<step>{COUNT}) ?(?P<unit>[A-Za-z]+) \[\d[\d:]*, +(?P<rate>[^,\]]*)",
        ("it/s", "s/it"),
        kind="bar",
        source="tqdm.std.tqdm.format_meter",
    ),
    _row(
        "tqdm-logged",
        "openpi",
        rf"(?P<step>{COUNT})(?P<unit>[A-Za-z]*)/(?P<total>{COUNT})[A-Za-z]* rate:(?P<rate>\S+) remaining:(?P<left>\S+)",
        ("it/s", "s/it"),
        kind="bar",
        source="openpi tqdm_loggable",
    ),
    _row(
        "hf-notebook",
        "HF Trainer in a notebook",
        rf"\[\s*(?P<step>\d+)/(?P<total>\d+) {_CLOCK} < (?P<left>{_CLOCK}), (?P<rate>[\d.]+ ?it/s)(?:, Epoch "
        r"(?P<epoch>[\d.]+)/(?P<epochs>\d+))?",
        ("<",),
        kind="bar",
        source="transformers.utils.notebook.NotebookProgressBar",
    ),
    _row(
        "ultralytics-bar",
        "Ultralytics ≥ 8.3",
        r"\d% [━─╸╺╴ ]*\s?(?P<step>\d+)/(?P<total>\d+)\s+(?P<rate>[\d.]+(?:it/s|s/it|\w*/s))\s+[\d:.]+s?(?:<"
        r"(?P<left>[\d:.]+))?",
        ("it/s", "s/it"),
        kind="bar",
        source="ultralytics.utils.tqdm.TQDM",
    ),
    _row(
        "rich-lightning",
        "Lightning RichProgressBar",
        r"[━╸╺─]\s+(?P<step>\d+)/(?P<total>\d+)\s+[\d:]+ • (?P<left>[-\d:]+)\s+(?P<rate>[\d.]+ ?\w+/s)",
        ("•",),
        kind="bar",
        source="lightning.pytorch.callbacks.progress.rich_progress",
    ),
    _row(
        "rich-bytes",
        "pip, rich",
        rf"[━╸╺─]\s+(?P<step>{COUNT})/(?P<total>{COUNT}) (?P<unit>[kMGT]?i?B)\b",
        ("━", "─"),
        kind="bar",
        source="rich.progress",
    ),
    _row(
        "pytorch-cifar-bar",
        "kuangliu/pytorch-cifar",
        r"\[[=>.]+\]\s+Step: (?:(?P<s>\d+)s)?(?:(?P<ms_per_step>\d+)ms)?.*?\s(?P<step>\d+)/(?P<total>\d+)\s*$",
        ("tep",),
        source="pytorch-cifar utils.progress_bar",
    ),
    _row(
        "keras-bar",
        "Keras, tf.keras",
        r"(?:^|[\s\r])(?P<step>\d+)/(?P<total>\d+|Unknown) (?:\[[=>.]+\]|[━─╸╺ ]+)[ -]+(?:ETA: (?P<left>[\d:]+s?)"
        r"|\d[\d:]*m?s\b)?",
        ("oss", "tep"),
        kind="bar",
        source="keras.utils.Progbar",
    ),
    _row(
        "mmcv-bar",
        "mmcv ProgressBar",
        r"\[[> ]+\]\s+(?P<step>\d+)/(?P<total>\d+), [\d.]+ (?P<unit>task)s?/s",
        ("task/s",),
        kind="bar",
        source="mmcv.utils.progressbar (used in testing)",
    ),
    # -- evaluation lines that look like training -------------------------------------------------------------------
    _row(
        "mmengine-val",
        "mmengine",
        r"(?:Epoch|Iter)\((?:val|test)\)",
        ("poch(", "Iter("),
        kind="eval",
        source="mmengine LogProcessor",
    ),
    # -- lines with two bracketed counters --------------------------------------------------------------------------
    _row(
        "bracket-epoch-iter",
        "mmcv, mmengine, DINO, torchvision, timm, Swin, DCGAN",
        rf"(?i:epoch|iter|train)(?:\(train\))?{_S}\[\s*(?P<epoch>\d+)(?:\s*/\s*(?P<epochs>\d+))?\s*\][,\s]*(?:"
        rf"(?i:step|iter|iteration|batch)s?)?{_S}"
        r"\[\s*(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*(?:\(\s*\d+%\))?\s*\]",
        ("poch", "Iter", "iter", "rain"),
        source="mmcv.TextLoggerHook; dino utils.MetricLogger; pytorch/examples imagenet",
    ),
    _row(
        "mmseg-iter",
        "mmcv/mmengine iteration based",
        r"Iter(?:\(train\))?\s*\[\s*(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*\]",
        ("Iter",),
        source="mmcv.TextLoggerHook by_epoch=False",
    ),
    _row(
        "timm",
        "timm, OpenCLIP, PyTorch MNIST",
        r"Train(?:ing)?(?: Epoch)?:?\s+(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\s+\[\s*(?P<step>\d+)/"
        r"(?P<total>\d+)\s+\(\s*[\d.]+%\)\]",
        ("rain",),
        source="timm train.py; open_clip train.py; pytorch/examples mnist",
    ),
    _row(
        "gan-brackets",
        "PyTorch-GAN, DCGAN",
        r"^\W{0,4}(?:Epoch:?\s*)?(?P<epoch>\d+)/(?P<epochs>\d+)\s*\]\s*\[\s*(?:Batch:?\s*)?(?P<step>\d+)/"
        r"(?P<total>\d+)\]",
        ("oss", "poch"),
        source="pytorch/examples dcgan; eriklindernoren/PyTorch-GAN",
    ),
    _row(
        "iteration-comma-total",
        "CenterNet, MMTracking-like scripts",
        r"(?i:epoch):? \[?(?P<epoch>\d+)\]?,? (?i:iter) \[(?P<step>\d+), (?P<total>\d+)\]",
        ("iter [", "Iter ["),
        source="scripts that print epoch, iter [step, steps]",
    ),
    _row(
        "epoch-pipe-counter",
        "Demucs and other Dora programs",
        r"(?i:epoch):? (?P<epoch>\d+)(?:/(?P<epochs>\d+))? \| "
        r"(?:(?i:batch|iter|step) )?(?P<step>\d+)/(?P<total>\d+) \|",
        ("poch ", "poch: "),
        source="dora.log.LogProgress",
    ),
    _row(
        "lerobot",
        "LeRobot",
        rf"\bstep:(?P<step>{COUNT}) smpl:\S+ ep:\S+ epch:(?P<epoch>[\d.]+) loss:(?P<loss>{NUMBER}|nan)"
        rf"(?:.*? lr:(?P<lr>{NUMBER}))?(?: updt_s:(?P<sec_per_step>[\d.]+))?",
        (" epch:",),
        source="lerobot.utils.logging_utils.MetricsTracker",
    ),
    _row(
        "counter-pair-in-brackets",
        "scripts",
        r"\[\s*(?P<epoch>\d+)\s*/\s*(?P<epochs>\d+)\s*\]\s*\[\s*(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*\](?=.*(?i:loss))",
        ("oss",),
        source="scripts that print [epoch/epochs][step/steps]",
    ),
    _row(
        "batches-of-epoch",
        "PyTorch word language model",
        r"\|\s*epoch\s+(?P<epoch>\d+)\s*\|\s*(?P<step>\d+)/\s*(?P<total>\d+) batches \|",
        (" batches",),
        source="pytorch/examples word_language_model main.py",
    ),
    _row(
        "leading-counter",
        "scripts",
        r"^\W{0,3}\[\s*(?P<step>\d{3,})\s*/\s*(?P<total>\d{3,})\s*\](?=.*(?i:loss))",
        ("oss",),
        source="scripts that print [step/steps] before the losses; two digits may be epochs",
    ),
    _row(
        "epoch-iteration-pair",
        "I-JEPA, PyTorch CIFAR tutorial",
        r"(?:^|[\s:])\[\s*(?P<epoch>\d+),\s*(?P<step>\d+)(?:\s*/\s*(?P<total>\d+))?\s*\]\s*(?:-\s*)?(?=.*(?i:loss))",
        ("oss",),
        source="ijepa train.py; PyTorch cifar10 tutorial",
    ),
    _row(
        "fairseq-inner",
        "fairseq",
        r"epoch (?P<epoch>\d+):\s+(?P<step>\d+)(?: / (?P<total>\d+))? loss=",
        ("poch",),
        source="fairseq.logging.progress_bar.SimpleProgressBar",
    ),
    _row(
        "espnet",
        "ESPnet",
        r"(?P<epoch>\d+)epoch:train:\d+-(?P<step>\d+)batch:.*?\bloss=(?P<loss>[^,]+),.*?optim0_lr0="
        r"(?P<lr>[^,]+).*?train_time=(?P<sec_per_step>[\d.e+-]+)",
        ("poch",),
        source="espnet2.train.reporter",
    ),
    _row(
        "espnet-valid",
        "ESPnet",
        r"\d+epoch:(?:valid|plot_att)",
        ("poch",),
        kind="eval",
        source="espnet2.train.reporter",
    ),
    _row(
        "composer",
        "Composer, LLM Foundry",
        r"\[(?:epoch=(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\]\[)?batch=(?P<step>\d+)(?:/(?P<total>\d+))?\]",
        ("batch=",),
        source="composer.loggers.ConsoleLogger",
    ),
    _row(
        "glue-factory",
        "glue-factory",
        rf"\[E (?P<epoch>\d+) \| it (?P<step>\d+)\] loss \{{total (?P<loss>{NUMBER}|nan)",
        ("oss",),
        source="gluefactory.train",
    ),
    _row(
        "marian",
        "Marian NMT",
        rf"Ep\. (?P<epoch>\d+) : Up\. (?P<step>\d+) : Sen\. [\d,]+ : Cost (?P<loss>{NUMBER}|nan)",
        (": Up. ",),
        source="marian scheduler",
    ),
    _row(
        "coqui",
        "Coqui TTS",
        r"--?>? STEP: (?P<step>\d+)/(?P<total>\d+) -- GLOBAL_STEP",
        (" STEP: ",),
        source="coqui trainer ConsoleLogger",
    ),
    _row(
        "tacotron2",
        "NVIDIA tacotron2",
        rf"Train loss (?P<step>\d+) (?P<loss>{NUMBER}|nan) Grad Norm {NUMBER} (?P<sec_per_step>[\d.]+)s/it",
        ("oss",),
        source="tacotron2 train.py",
    ),
    # -- frameworks with their own words ----------------------------------------------------------------------------
    _row(
        "pix2pix",
        "pytorch-CycleGAN-and-pix2pix",
        r"\(epoch: (?P<epoch>\d+), iters: (?P<step>\d+), time: (?P<sec_per_step>[\d.]+), data: [\d.]+\)",
        ("iter",),
        source="pytorch-CycleGAN-and-pix2pix util/visualizer.py",
    ),
    _row(
        "deepspeed-timer",
        "DeepSpeed",
        r"epoch=(?P<epoch>\d+)/micro_step=\d+/global_step=(?P<step>\d+)",
        ("tep",),
        source="deepspeed.utils.timer.ThroughputTimer",
    ),
    _row(
        "coqui-fields",
        "Coqui TTS",
        rf"\| > step_time: (?P<sec_per_step>{NUMBER})",
        ("tep",),
        source="coqui trainer ConsoleLogger",
    ),
    _row(
        "darknet",
        "darknet",
        rf"^\s*(?:\([^)]*\)\s*)?(?P<step>\d+): (?P<loss>{NUMBER}|-?nan), {NUMBER} avg(?: loss)?, "
        rf"(?P<lr>{NUMBER}) rate, (?P<sec_per_step>[\d.]+) seconds, \d+ images",
        (" images",),
        source="darknet detector.c train_detector",
    ),
    _row(
        "flax-examples",
        "HF Flax examples",
        rf"Step\.\.\. ?\((?P<step>\d+)(?:/(?P<total>\d+))? \| (?:Training )?Loss: (?P<loss>{NUMBER}|nan)",
        ("tep",),
        source="transformers/examples/flax",
    ),
    _row(
        "estimator",
        "TF Estimator",
        rf"loss = (?P<loss>{NUMBER}|nan), step = (?P<step>\d+)",
        ("oss",),
        source="tensorflow_estimator LoggingTensorHook",
    ),
    _row(
        "estimator-rate",
        "TF Estimator",
        r"global_step/sec: (?P<steps_per_sec>[\d.]+)",
        ("tep",),
        source="tensorflow StepCounterHook",
    ),
    _row(
        "caffe",
        "Caffe",
        rf"Iteration (?P<step>\d+) \((?P<steps_per_sec>[\d.e+-]+) iter/s.*?\), loss = (?P<loss>{NUMBER}|nan)",
        ("oss",),
        source="caffe solver.cpp",
    ),
    _row(
        "nerfstudio",
        "nerfstudio",
        r"^\s*(?P<step>\d+) \([\d.]+%\)\s+(?:(?P<ms_per_step>[\d.]+) ms|(?P<sec_per_step>[\d.]+) s)\b",
        ("%)",),
        source="nerfstudio.utils.writer.LocalWriter",
    ),
    _row(
        "xgboost",
        "XGBoost, LightGBM",
        r"^(?:\[[^\]]*\] )?\[(?P<step>\d+)\]\t\S*(?:train|valid|eval|test)",
        ("rain", "alid"),
        source="xgboost.callback.EvaluationMonitor",
    ),
    _row("stylegan", "StyleGAN", r"^tick (?P<step>\d+)\s+kimg [\d.]+", ("kimg",), source="stylegan3 training_loop"),
    _row(
        "fastai",
        "fastai",
        r"^\s*(?P<epoch>\d+)\s+(?P<loss>\d+\.\d+|nan)\s+(?:\d+\.\d+|nan|None)(?:\s+[\d.]+|\s+nan)*\s+\d\d:\d\d\s*$",
        ("  0.",),
        source="fastai ProgressCallback",
    ),
    _row(
        "llama-factory-json",
        "LLaMA-Factory",
        r"\"current_steps\": (?P<step>\d+), \"total_steps\": (?P<total>\d+)",
        ("tep",),
        source="llamafactory.train.callbacks",
    ),
    _row(
        "swift-dict",
        "ms-swift",
        r"'global_step/max_steps': '(?P<step>\d+)/(?P<total>\d+)'",
        ("tep",),
        source="swift trainers ProgressCallback",
    ),
    _row(
        "sb3-table",
        "Stable-Baselines3",
        r"^\|\s+total_timesteps\s+\|\s+(?P<step>\d+)\s+\|",
        ("tep",),
        source="stable_baselines3.common.logger.HumanOutputFormat",
    ),
    _row(
        "kohya-epoch",
        "kohya sd-scripts, musubi-tuner",
        r"epoch is incremented\. current_epoch: \d+, epoch: (?P<epoch>\d+)",
        ("poch",),
        source="sd-scripts library/train_util.py",
    ),
)


class ShapeTable(msgspec.Struct, frozen=True):
    """Rows in the order they are tried, and the gates that a line with news must pass."""

    rows: tuple[LineShape, ...]
    gates: Gates


def user_shapes(patterns: Iterable[str]) -> ShapeTable:
    """A user's regular expressions (named groups as above) before the shipped rows.

    Raises ``ValueError`` (one line, naming the pattern and what to do) where one does not compile or names nothing.
    Each is searched over the whole text, so a slow pattern slows the reading of a fast log.
    """
    return _table((*(_user_row(pattern) for pattern in patterns), *ROWS))


def _user_row(pattern: str) -> LineShape:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"progress shape {pattern!r}: {error}; fix the regular expression") from error
    unknown = set(compiled.groupindex) - _GROUPS
    if unknown or not compiled.groupindex:
        named = ", ".join(sorted(unknown)) or "none"
        raise ValueError(f"progress shape {pattern!r}: named groups {named}; use some of {', '.join(sorted(_GROUPS))}")
    return LineShape(name="user", framework="user", pattern=compiled, source="trainwatch.toml")


def _table(rows: tuple[LineShape, ...]) -> ShapeTable:
    literals = [gate for row in rows for gate in row.gates]
    patterns = [row.pattern.pattern for row in rows if not row.gates]
    return ShapeTable(rows, gates_of((*literals, *_FIELD_GATES, *WORD_GATES), patterns))


_FIELD_GATES = ("tep", "iter", "Iter", "poch", "oss", "atch ", "earning rate", "_lr", "pisode")
"""What lines of no listed shape have that name a step, an epoch or a loss."""
_GROUPS = frozenset(
    {
        "step",
        "total",
        "unit",
        "epoch",
        "epochs",
        "loss",
        "lr",
        "sec_per_step",
        "ms_per_step",
        "steps_per_sec",
        "rate",
        "left",
    }
)
SHAPES = _table(ROWS)
