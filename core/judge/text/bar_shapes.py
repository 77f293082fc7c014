"""Progress bars: one row per program that draws them, tried from the top before all other shapes."""

from .line_shape import LineShape, shape
from .quantities import COUNT

_CLOCK = r"(?:\d+:)?\d+:\d+(?:\.\d+)?"

BARS: tuple[LineShape, ...] = (
    shape(
        "tqdm",
        "tqdm, HF Trainer, kohya, Lightning, torchtune, Ultralytics ≤ 8.2, diffusers",
        rf"(?P<step>{COUNT})[A-Za-z]{{0,12}}/(?P<total>{COUNT}|\?)\s?(?P<unit>[A-Za-z]{{0,12}}) ?"
        r"\[(?:\d[\d:.]*|\?)<(?P<left>[^,\]]*)(?:, *(?P<rate>[^,\]]*))?",
        ("<",),
        kind="bar",
        source="tqdm.std.tqdm.format_meter",
    ),
    shape(
        "tqdm-without-total",
        "tqdm",
        rf"(?P<step>{COUNT}) ?(?P<unit>[A-Za-z]+) \[\d[\d:]*, +(?P<rate>[^,\]]*)",
        ("it/s", "s/it"),
        kind="bar",
        source="tqdm.std.tqdm.format_meter",
    ),
    shape(
        "tqdm-logged",
        "openpi",
        rf"(?P<step>{COUNT})(?P<unit>[A-Za-z]*)/(?P<total>{COUNT})[A-Za-z]* rate:(?P<rate>\S+) remaining:(?P<left>\S+)",
        ("it/s", "s/it"),
        kind="bar",
        source="openpi tqdm_loggable",
    ),
    shape(
        "hf-notebook",
        "HF Trainer in a notebook",
        rf"\[\s*(?P<step>\d+)/(?P<total>\d+) {_CLOCK} < (?P<left>{_CLOCK}), (?P<rate>[\d.]+ ?it/s)(?:, Epoch "
        r"(?P<epoch>[\d.]+)/(?P<epochs>\d+))?",
        ("<",),
        kind="bar",
        source="transformers.utils.notebook.NotebookProgressBar",
    ),
    shape(
        "ultralytics-bar",
        "Ultralytics ≥ 8.3",
        r"\d% [━─╸╺╴ ]*\s?(?P<step>\d+)/(?P<total>\d+)\s+(?P<rate>[\d.]+(?:it/s|s/it|\w*/s))\s+[\d:.]+s?(?:<"
        r"(?P<left>[\d:.]+))?",
        ("it/s", "s/it"),
        kind="bar",
        source="ultralytics.utils.tqdm.TQDM",
    ),
    shape(
        "rich-lightning",
        "Lightning RichProgressBar",
        r"[━╸╺─]\s+(?P<step>\d+)/(?P<total>\d+)\s+[\d:]+ • (?P<left>[-\d:]+)\s+(?P<rate>[\d.]+ ?\w+/s)",
        ("•",),
        kind="bar",
        source="lightning.pytorch.callbacks.progress.rich_progress",
    ),
    shape(
        "rich-bytes",
        "pip, rich",
        rf"[━╸╺─]\s+(?P<step>{COUNT})/(?P<total>{COUNT}) (?P<unit>[kMGT]?i?B)\b",
        ("━", "─"),
        kind="bar",
        source="rich.progress",
    ),
    shape(
        "pytorch-cifar-bar",
        "kuangliu/pytorch-cifar",
        r"\[[=>.]+\]\s+Step: (?:(?P<s>\d+)s)?(?:(?P<ms_per_step>\d+)ms)?.*?\s(?P<step>\d+)/(?P<total>\d+)\s*$",
        ("tep",),
        source="pytorch-cifar utils.progress_bar",
    ),
    shape(
        "keras-bar",
        "Keras, tf.keras",
        r"(?:^|[\s\r])(?P<step>\d+)/(?P<total>\d+|Unknown) (?:\[[=>.]+\]|[━─╸╺ ]+)[ -]+(?:ETA: (?P<left>[\d:]+s?)"
        r"|\d[\d:]*m?s\b)?",
        ("oss", "tep"),
        kind="bar",
        source="keras.utils.Progbar",
    ),
    shape(
        "mmcv-bar",
        "mmcv ProgressBar",
        r"\[[> ]+\]\s+(?P<step>\d+)/(?P<total>\d+), [\d.]+ (?P<unit>task)s?/s",
        ("task/s",),
        kind="bar",
        source="mmcv.utils.progressbar (used in testing)",
    ),
)
