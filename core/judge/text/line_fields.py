"""Fields that any trainer may print by name, anywhere in the line: step, epoch, loss, learning rate, time.

All patterns run on the lower-cased line. The first value named loss is the training loss, unless its name says
validation, test or one side of a GAN.
"""

import re
from typing import NamedTuple

from .numbers import NUMBER, parse_count, parse_number, seconds_of
from .patterns import LazyPattern

GATES = ("tep", "iter", "Iter", "poch", "oss", "atch ", "earning rate", "_lr", "pisode")
"""Fixed texts: lines that name a step, an epoch or a loss have at least one."""
_VALUE = rf"(?>{NUMBER})|[-+]?nan|[-+]?inf(?:inity)?"
_GLUE = r"['\"]?\s*(?:[:=]|is\b)?\s*['\"\[({<]*\s*"


def words(*lines: str) -> frozenset[str]:
    """A set of words, written as text."""
    return frozenset(" ".join(lines).split())


_STEP = LazyPattern(
    r"(?<![a-z0-9_])(?:(?:global|train(?:ing)?|current|cur|optim(?:izer)?|completed|local|num|micro)[ _\-]?)*"
    r"(?P<key>(?:time)?steps?|iters?|iterations?|it|updates?|batch(?:_?(?:id|idx|no|num))?|minibatch|step_i"
    r"|episodes?)\b(?:\.\.\.)?"
    r"['\"]?\s*[:=#|]{0,2}\s*['\"\[(<]*\s*(?P<step>\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)?"
    r"(?![\w%]|\.\d)(?:\s*(?:/|of|out of)\s*"
    r"(?P<total>\d{1,3}(?:,\d{3})+|\d+)(?![\w.]))?"
)
_STEP_RANK = {
    "step": 0,
    "step_i": 0,
    "steps": 1,
    "iteration": 2,
    "iter": 2,
    "iters": 3,
    "iterations": 3,
    "it": 2,
    "update": 4,
    "updates": 4,
}
_EPOCH = LazyPattern(
    r"(?<![a-z0-9_])(?:(?:train(?:ing)?|current|cur)[ _\-]?)*(?:epochs?|ep|eph)(?![a-z])\.?(?:_(?:num|idx"
    r"|id))?['\"]?\s*[:=#\-|_]{0,2}\s*['\"\[(<]*\s*"
    r"(?P<epoch>(?>\d+(?:\.\d+)?(?:e[-+]?\d+)?))"
    r"(?![\w]|\.[a-z])(?:\s*(?:/|of|out of)\s*(?P<epochs>\d+))?"
)
_NOT_EPOCH = LazyPattern(r"(?<![a-z])(?:num|max|total|n|save|every|each|per|warmup|after|best|last)[ _]?$")
_LOSS = LazyPattern(
    r"(?<![a-z0-9])(?P<before>(?:[a-z0-9]+[_/ .\-]){0,3})(?P<key>(?:crossentropy)?loss)"
    r"(?:[/_](?:train|total|all|avg|mean|sum"
    r"|batch|step|epoch|ce))*"
    rf"(?:\s*\((?!nan|inf)[a-z ]+\))?(?: so far)?{_GLUE}"
    rf"(?:(?:total|train|avg|mean|cur)\s*[:=]?\s+)?(?P<loss>{_VALUE})(?![a-z]|/(?!\d+\.\d))"
)
_OWN = words(
    "train training avg avr average mean total tot running",
    "step batch lm reduced smooth smoothed cur current final epoch",
    "iter iteration global overall moving ema sum sft the ce lr",
    "loss and of with curr mini minibatch per it causal policy",
)
"""Words before "loss" with which it still is the training loss."""
_FOREIGN = words(
    "val valid validation test testing eval evaluation dev best",
    "d g disc discriminator gen generator adv dual min lowest",
    "early",
)
"""Words before "loss" that make it another loss."""
_AVERAGE = LazyPattern(
    r"(?<![a-z])(?:avr|avg|average|averaged|mean|running|smooth|smoothed|moving|ema|cumulative|so far|epoch)(?![a-z])"
)
"""Words in the name of a loss that is an average over several steps."""
_LOSS_LIKE = LazyPattern(rf"(?<![a-z0-9_])l_[a-z][a-z0-9_]*{_GLUE}(?P<loss>{_VALUE})")
_LR = LazyPattern(
    r"(?<![a-z])(?:[a-z]+_)?(?:lr|learning[ _\-]?rate)(?:[_\-]?\d+|\([^)\d]*\)|[_\-][a-z]+)?"
    rf"{_GLUE}(?P<lr>(?>{NUMBER}))(?![a-z/])"
)
_PER_UNIT = LazyPattern(
    r"(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s?(?P<unit>ms|us|µs|μs|s|secs?|seconds?)\s?/\s?(?:it|iters?"
    r"|iterations?|steps?|batch|sample|update)\b(?!\s*[=:])"
)
_RATE = LazyPattern(
    r"(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s?(?:it|iters?|iterations?|steps?|batch(?:es)?|updates?)\s?/\s?(?:s"
    r"|secs?|seconds?)\b(?!\s*[=:](?!:))"
)
_RATE_KEY = LazyPattern(
    rf"(?:\((?:iter|steps?|it)/s\)|\b(?:it|iter|steps?)/s(?:ec)?)['\"]?(?:\s*[:=]\s*|\s+)['\"]?(?P<value>{NUMBER})"
)
_TIMED = LazyPattern(
    r"(?:\b(?:iter(?:ation)?|step|batch|train_step)[ _](?:time|timing|cost|duration)|\bbatch_cost"
    r"|\bavg_batch_cost|per[- _](?:iteration|step)(?: time)?|\bsec(?:onds)?/(?:step|it|iter)"
    r"|\btime ?(?:/|per) ?(?:step|iter(?:ation)?|itr|it|batch)|\btiming_s/step"
    r"|\bms/(?P<per_ms>batch|step|iter)|\bstep_avg|\bbatch(?= \(t\))|\bdt)"
    r"(?:\s*(?:\(t\)|\((?P<in>ms|s|sec|seconds)\)|in (?P<in2>ms|s)|_(?P<in3>ms|s)))?['\"]?\s*[:=]?\s*['\"]?"
    r"(?P<value>\d[\d,]*\.?\d*(?:e[-+]?\d+)?)\s?(?P<unit>ms|us|µs|s|secs?|seconds?)?(?![a-z])"
)
_BARE_TIME = LazyPattern(
    r"(?<![a-z_])(?<!total )(?<!used )(?<!elapsed )time(?: \(data\))?\s*[:=]?\s*(?P<value>(?>\d+\.?\d*))"
    r"\s?(?P<unit>\(?(?:ms|s|secs?)\b\)?)?(?P<mean>\s*\(\s*\d+\.\d+\s*\))?(?![a-z\d:])"
)
_SECONDS_KEY = LazyPattern(r"\bseconds: (?P<value>\d+\.?\d*)")
_FIELD_MS = LazyPattern(r"\|\s*(?P<value>\d+\.?\d*)\s?ms\s*(?:\||$)")
_TRAILING = LazyPattern(r"\((?P<value>\d+\.?\d*)(?: (?P<ms>ms)(?:\)\s*$| \|)|s\)\s*$)")
_EVAL_WORD = LazyPattern(
    r"(?<![a-z])(?:val|valid|validation|validate|validating|eval|evaluation|evaluating|evaluate|test|testing|dev"
    r"|inference)(?![a-z])"
)
_SCORE = LazyPattern(r"(?<![a-z])(?:\w+_)?map(?:_?50)?:\s")
"""Detection scores, which mmcv prints in the form of a training line."""
_TRAIN_WORD = LazyPattern(r"(?<![a-z])(?:train|training)(?![a-z])")
_ETA = LazyPattern(r"(?<![a-z])eta['\"]?\s*[:=]?\s*['\"]?(?P<left>(?:\d+ days?, )?\d+:\d\d(?::\d\d)?)")


class Loss(NamedTuple):
    """A printed loss: ``value`` None if it is NaN or infinite. ``at``: its position in the line.

    ``own`` False: a word before it tells that it may be one part of several ("value function loss"). ``average``: its
    name says that it is a running average.
    """

    value: float | None
    at: int
    own: bool = True
    average: bool = False


class Epoch(NamedTuple):
    """A printed epoch. ``at``: the position of its name in the line; ``broken``: it has a point ("0.52", "1.0")."""

    value: float
    total: int | None
    at: int
    broken: bool = False


class Step(NamedTuple):
    """A printed step counter. ``at``: the position of its name in the line."""

    value: int
    total: int | None
    at: int


def find_step(low: str) -> Step | None:
    """The counter that most likely is the optimizer step: ``step`` rather than ``batch``."""
    best: tuple[int, re.Match[str]] | None = None
    for found in _STEP.finditer(low):
        rank = 2 * _STEP_RANK.get(found["key"], 5) - (5 if found["total"] and found["key"] in _STEP_RANK else 0)
        if found["key"] in ("steps", "iters", "iterations", "updates") and found["total"] is None and "loss" not in low:
            continue  # "save_steps 500", "warmup steps: 100": settings
        if best is None or rank < best[0]:
            best = (rank, found)
    if best is None:
        return None
    step, total = parse_count(best[1]["step"]), parse_count(best[1]["total"] or "?")
    total = total if total is not None else _total_elsewhere(low, best[1]["step"])
    return None if step is None else Step(step, total, best[1].start())


def _total_elsewhere(low: str, step: str) -> int | None:
    """The total, if the same count stands in the line once more: "progress: 2100/22000 … updates: 2100"."""
    found = _SLASHED.search(low) if f"{step}/" in low else None
    return parse_count(found["total"]) if found is not None and found["step"] == step else None


_SLASHED = LazyPattern(r"(?<![\d/.])(?P<step>\d+)/(?P<total>\d+)(?![\d/.])")


def find_epoch(low: str) -> Epoch | None:
    """Epoch as printed, and the number of epochs if it follows."""
    for found in _EPOCH.finditer(low):
        plural = found[0].lstrip().startswith("epochs")
        if (plural and found["epochs"] is None) or _NOT_EPOCH.search(low, max(0, found.start() - 8), found.start()):
            continue
        epoch = parse_number(found["epoch"])
        broken = "." in found["epoch"]
        return None if epoch is None else Epoch(epoch, parse_count(found["epochs"] or "?"), found.start(), broken)
    return None


def find_loss(low: str) -> Loss | None:
    """The first training loss of the line."""
    spare: Loss | None = None
    for found in _LOSS.finditer(low):
        parts = re.split(r"[_/ .\-]", found["before"])[:-1]
        if not _FOREIGN.isdisjoint(parts):
            continue
        own = all(word in _OWN or word.isdigit() for word in parts)
        name = low[found.start("before") : found.start("loss")]
        loss = Loss(parse_number(found["loss"]), found.start("key"), own, _AVERAGE.search(name) is not None)
        joined = re.split(r"[_/.\-]", found["before"].rpartition(" ")[2])[:-1]
        if _OWN.issuperset(joined):
            return loss
        if spare is None and joined[-1] in _LIKELY:
            spare = loss
    if spare is None and "l_" in low:
        like = _LOSS_LIKE.search(low)
        if like is not None:
            return Loss(parse_number(like["loss"]), like.start())
    return spare


_LIKELY = words(
    "ce nll mse bce diffusion recon main pix model cross entropy celoss contrastive text lm mlm task actor pg"
)
"""Words joined to "loss" that count if the line has no better one."""


def find_global_step(low: str) -> int | None:
    """The step that the line itself calls global; None if it names none."""
    found = _GLOBAL.search(low) if "global" in low or "num_updates" in low else None
    return None if found is None else parse_count(found["step"])


_GLOBAL = LazyPattern(r"(?<![a-z_])(?:global[_ ]?steps?|num_updates)['\"]?\s*[=:]\s*(?P<step>\d+)(?![\d./])")


def find_lr(low: str) -> float | None:
    """Learning rate; the first one if there are several parameter groups."""
    found = _LR.search(low)
    return None if found is None else parse_number(found["lr"])


def is_only_lr(low: str) -> bool:
    """True if the line ends with the learning rate: "Current learning rate: 0.01"."""
    found = _LR.search(low)
    return found is not None and not low[found.end() :].strip(" |)]}\"'")


def find_seconds_per_step(low: str, *, of_step: bool = True) -> float | None:
    """Seconds for one step, None if the line names no duration of a single step.

    ``of_step`` False: the line is about an epoch, so a bare time at its end is that of the epoch.
    """
    found = _PER_UNIT.search(low)
    if found is not None:
        return seconds_of(found["value"], found["unit"])
    found = _RATE.search(low) or _RATE_KEY.search(low)
    if found is not None:
        rate = parse_number(found["value"])
        return None if not rate else 1.0 / rate
    found = _TIMED.search(low)
    if found is not None:
        unit = found["unit"] or found["in"] or found["in2"] or found["in3"] or ("ms" if found["per_ms"] else "s")
        return seconds_of(found["value"], unit)
    found = _BARE_TIME.search(low)
    if found is not None:
        unit = (found["unit"] or "").strip("()")
        paired = found["mean"] is not None  # value and average of the steps, as MetricLogger prints them
        if unit == "ms" or paired or (found["unit"] or "").startswith("(") or "data" in low or "eta" in low:
            return seconds_of(found["value"], unit or "s")
    found = _SECONDS_KEY.search(low) if "step" in low else None
    if found is not None:
        return seconds_of(found["value"], "s")
    found = _FIELD_MS.search(low)
    if found is not None:
        return seconds_of(found["value"], "ms")
    found = _TRAILING.search(low) if of_step else None
    return None if found is None else seconds_of(found["value"], found["ms"] or "s")


def find_eta(low: str) -> str | None:
    """Remaining time as the trainer prints it."""
    found = _ETA.search(low)
    return None if found is None else found["left"]


def is_evaluation(low: str, loss: Loss | None) -> bool:
    """True if the numbers of the line belong to a validation or test pass, not to training."""
    word = _EVAL_WORD.search(low)
    if word is None:
        return loss is None and _SCORE.search(low) is not None
    if loss is not None and loss.at < word.start():
        return False
    train = _TRAIN_WORD.search(low)
    return train is None or (
        train.start() > word.start() and (loss is None or "train" not in low[max(0, loss.at - 20) : loss.at + 14])
    )
