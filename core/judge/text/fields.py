"""The fields of a line, anywhere in it, by their names: numbers, counters and their ends, loss, learning rate, pace.

Most readers take the line in lower case. The first value named loss is the training loss, unless its name says
validation, test or one side of a GAN.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ...model.checkpoint import better_of
from ...model.text import LazyPattern
from ..scales import SHORT_CHARS, TWICE

NUMBER = r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
"""A real number, possibly grouped by commas. The same as ``NUMBER`` in ``configs/log_shapes.toml``."""

_OBJECTS = ("ensor(", "rray(", "loat(", "oat16(", "oat32(", "oat64(", "int32(", "int64(", "ecimal(", "calar(", "umpy=")
_OBJECT = LazyPattern(
    r"(?:\b(?:np|numpy|jnp|torch|tf|mx)\.)?(?<!\w)"
    r"(?:[tT]ensor|(?:Device|ND)?[aA]rray|b?float\d*|u?int\d+|Scalar|Decimal)\("
    rf"(?:(?:[^()]|\([^()]{{0,80}}\)){{0,80}}?\bvalue\s?=)?\s*['\"\[]*\s*(?P<value>{NUMBER}|[-+]?(?:nan|inf))['\"\]]*"
    r"(?:\s*,(?:[^()]|\([^()]{0,80}\)){0,200})?\)"
    rf"|<tf\.\w+[^>]{{0,200}}\bnumpy=(?P<eager>{NUMBER}|[-+]?(?:nan|inf))>"
)
"""A number as the object that holds it prints itself: ``tensor(0.5, device='cuda:0')``, ``np.float32(0.5)``."""


def unwrapped(line: str) -> str:
    """The line with plain numbers in place of the objects that hold them."""
    held = any(name in line for name in _OBJECTS)
    return _OBJECT.sub(lambda found: found["value"] or found["eager"], line) if held else line


_SI = {"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "G": 1e9, "T": 1e12}
_RATE_OF_A_BAR = LazyPattern(
    r"\s*(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?P<si>[kMGT]?)(?:(?P<per>s)\s?/\s?(?P<a>[^\s\],]+)|\s?"
    r"(?P<b>[^\d\s/\],]*)/s(?:ec)?)"
)
_UNIT = r"(?:days?|hours?|hrs?|min(?:ute)?s?|sec(?:ond)?s?|ms|[dhms])(?![a-z])"
_AMOUNT = LazyPattern(rf"(?P<value>\d+(?:\.\d+)?)\s?(?P<unit>{_UNIT})")
_HANDS = r"\d+:\d\d(?::\d\d)?(?:\.\d+)?"
DURATION = rf"(?:(?:\d+(?:\.\d+)?\s?{_UNIT}[,\s]{{0,2}}){{1,4}}(?:{_HANDS})?|{_HANDS})"
"""A time to go: amounts with their units ("6m 15s"), a clock, or both ("1 day, 2:00:00")."""
_CLOCK = LazyPattern(DURATION)
_TIME_UNITS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Seconds of a unit, by its whole name or its first letter."""


def parse_number(text: str | None) -> float | None:
    """``1,234.5e-3`` as a float; None for ``nan``, ``inf`` and everything else."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if value - value == 0.0 else None


def parse_count(text: str | None) -> int | None:
    """``12.9k`` as 12900; None if it is not a count (``?``)."""
    factor = _SI.get((text or "")[-1:])
    value = parse_number(text if factor is None else (text or "")[:-1])
    return None if value is None else round(value * (factor or 1.0))


def parse_clock(text: str | None) -> float | None:
    """``1:02:03``, ``2 days, 1:00:00``, ``1h 2m 3s`` or ``39s`` in seconds; None if it is no time (``?``)."""
    text = (text or "").strip()
    if _CLOCK.fullmatch(text) is None:
        return None
    hands = text.rpartition(" ")[2].split(":") if ":" in text else []
    amounts = (seconds_of(found["value"], found["unit"]) or 0.0 for found in _AMOUNT.finditer(text))
    return sum(amounts) + sum(float(hand) * 60.0**power for power, hand in enumerate(reversed(hands)))


@lru_cache(maxsize=256)
def parse_rate(text: str) -> tuple[float | None, str]:
    """Seconds per unit, and the unit: ``2.00s/it`` → (2.0, "it"); ``4.0it/s`` → (0.25, "it"); ``?it/s`` → (None, …)."""
    found = _RATE_OF_A_BAR.match(text)
    if found is None:
        return None, text.strip().removeprefix("?").removesuffix("/s").removeprefix("s/").strip()
    value, si, per, a, b = found.group("value", "si", "per", "a", "b")
    number = (parse_number(value) or 0.0) * _SI.get(si, 1.0)
    if per:
        return number, a
    return (1.0 / number if number > 0 else None), b


def seconds_of(value: str, unit: str) -> float | None:
    """A duration in seconds, e.g. ("51.10", "ms"); None if either is unknown."""
    number, factor = parse_number(value), _TIME_UNITS.get(unit) or _TIME_UNITS.get(unit[:1] or "s")
    return None if number is None or factor is None else number * factor


_COUNT = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d+(?:\.\d+)?[km]\b|\d+)"
"""A count in lower case: "12,000", "12.5k", "12000"."""
_STEP = LazyPattern(
    r"(?<![a-z0-9_])(?:(?:global|train(?:ing)?|current|cur|optim(?:izer)?|completed|local|num|learner"
    r"|grad(?:ient)?|(?P<micro>micro|accum[a-z]*(?= ))|[ng])[ _\-]?){0,4}"
    r"(?P<key>(?:time)?steps?(?:_in_[a-z]+)?|iters?|iterations?|it|updates?|batch(?:_?(?:id|idx|no|num))?|minibatch|step_i"
    r"|episodes?|rounds?)\b(?:\.\.\.)?"
    rf"['\"]?\s*+[:=#|]{{0,2}}\s*+['\"\[(<]*\s*+(?P<step>{_COUNT})(?:st|nd|rd|th)?"
    r"(?![\w%]|\.\d)(?:\s*+(?:/|of|out of|from)\s*+"
    rf"(?P<total>{_COUNT})(?![\w.]|/\d))?"
)
_BEST_FIRST = ("step step_i", "steps", "iteration iter it", "iters iterations", "update updates")
_STEP_RANK = {name: rank for rank, names in enumerate(_BEST_FIRST) for name in names.split()}
_STEP_AFTER = LazyPattern(
    r"(?P<head>^\W{0,16}|\b(?:trained|completed|finished|done|after)\s|[|,;\])(:][\s\[(]{0,8}|\s-\s|\s{2}|\s(?=\d{1,9}\s?/\s?\d)|\b\d+-)"
    rf"(?P<step>{_COUNT})(?:\s*(?:/|of|out of)\s*(?P<total>{_COUNT}))?"
    r"\s?-?(?:(?:optimi[sz]er|train(?:ing)?|gradient|global|model|update)\s)?"
    r"(?:steps?|iters?|iterations?|its?|updates?|(?:mini)?batch(?:es)?)\b"
    r"(?:\s(?:out )?of\s(?P<later>\d+))?(?!\s?/|[_\-]|\s?[:=]?\s*\[?\d+(?![\d.]*\.\d))"
)
"""A count with its name behind it, at the beginning of a field: "91300 iter", "683-1364batch", "12/90 steps"."""
_DONE = frozenset({"trained", "completed", "finished", "done", "after"})
_DONE_AFTER = LazyPattern(
    r"\W{0,8}(?:were |are |have been )?(?:trained|completed|finished|done|so far|elapsed|passed|taken)\b"
)
"""Words beside "420 steps" that make it a position; without one it may be how many there will be."""
_MAX_STEPS = LazyPattern(
    r"(?<![a-z])(?:max|num|total|n|target)_(?:train_)?(?P<unit>step|iter|iteration|update)s?['\"]?\s?[:=]\s?['\"]?(?P<total>\d+)"
    r"(?![\w.])|(?<![a-z_])(?:total|of|max)['\"]?[=:]\s?(?P<bare>\d+)(?![\w./])"
)
"""The total in a field of its own."""
PAIR = LazyPattern(
    r"(?<![\w./:\-+])(?<![/:] )[bis]?(?P<step>\d{1,3}(?:,\d{3}){1,5}|\d+)"
    r"(?:\s?/\s{0,8}|\s(?:of|out of|von|sur|de|из|->|→)\s{1,8})"
    r"(?P<total>\d{1,3}(?:,\d{3}){1,5}|\d+)(?![\w./\-+]|:(?!\s|$)|,\d|\s\d\d?:\d\d|\s?[:=]\s?(?!\d+(?:\.\d+)?%)\d|\s?/\s?\d)"
)
"""Two whole numbers as a position and its end: "12/90", "12 / 90", "12 of 90". No date, clock time or path."""
_EPOCH_BESIDE = LazyPattern(
    r"[\[(]\s*(?P<epoch>\d{1,5})\s*[\])]\s*[\[(]\s*$|(?:^|[\s\[(])e(?:p)?(?P<short>\d{1,4})(?:/(?P<epochs>\d{1,5}))?[\s\]),|:]+[\[(]?$"
)
"""An epoch before the pair of its steps: "[3][412/1200]", "E3 B412/1200"."""
_NOT_STEPS = LazyPattern(
    r"(?:epochs?|ep|eph|loss|acc|accuracy|score|correct|rank|worker|node|gpu|device|process|fold|seed|run|trial|attempt|try|retry|part|stage|phase|shard|file"
    r"|accum\w*|micro\w*|layer|task|level|fps|workers|nodes|gpus|ranks|mem|memory|vram|ram|image|images|img|worlds?|dp|tp|pp)['\"]?\s?[:=#]?\s?[\[(]?\s*$"
)
"""Words before a pair of numbers that are no steps."""
_EPOCH_AFTER = LazyPattern(
    r"(?<![\w./:\-])(?P<epoch>\d+(?:\.\d+(?= epochs))?)"
    r"(?: epochs(?<=\d epochs)(?=[\])])|\s?/\s?(?P<epochs>\d+)[\s*\])|:\-]{0,3}epochs?"
    r"|\s?epoch(?:s?\s?/\s?(?P<later>\d+) epochs?|(?=:|,|\s*$)))(?![\w])"
)
"""An epoch with its name behind it: "2/200epoch", "7 epoch / 20 epochs", "1epoch:train"."""
_STEP_NAME = LazyPattern(r"(?:steps?|iters?|iterations?|its?|updates?|batch(?:es)?)['\"]?\s*[:=]?\s*[\[(]?\s*$")
_EPOCH = LazyPattern(
    r"(?<![a-z0-9_])(?:(?:train(?:ing)?|current|cur)[ _\-]?){0,4}(?:epochs?|ep|eph)(?![a-z])(?:\.\.\.|\.)?"
    r"(?:_(?:num|idx|id))?['\"]?\s*+[:=#\-|_]{0,2}\s*+['\"\[(<]*\s*+"
    r"(?P<epoch>(?>\d+(?:\.\d+)?(?:e[-+]?\d+)?))"
    r"(?![\w]|\.[a-z])(?:\s*+(?:/|of|out of|from)\s*+(?P<epochs>\d+))?"
)
_NOT_EPOCH = LazyPattern(r"(?<![a-z])(?:num|max|total|n|save|every|each|per|warmup|after|best|last)[ _]?$")


_SHORT_STEP = LazyPattern(
    r"(?<![\w./\-])(?:s|st|i|it|b)[=:#]?(?P<count>\d{1,7})(?:/(?P<total>\d{1,9}))?(?=[\s,;|)\]]|$)(?!\s+\d\d?:\d\d)"
)
_SHORT_EPOCH = LazyPattern(r"(?<![\w./\-])ep?[=:#]?(?P<count>\d{1,5})(?:/(?P<total>\d{1,5}))?(?=[\s,;|)\]]|$)")


class Position(NamedTuple):
    """A printed count of steps or epochs, and its end.

    ``at``: where its name stands in the line. ``broken``: it is printed with a point ("0.52", "1.0"). ``amount``: it
    may say how many steps there are. ``micro``: it counts micro-batches, of which several make a step. ``of_run``: its
    end is named as that of the run.
    """

    value: float
    total: int | None = None
    at: int = 0
    broken: bool = False
    amount: bool = False
    micro: bool = False
    of_run: bool = False

    @property
    def step(self) -> int:
        return int(self.value)

    @property
    def is_whole(self) -> bool:
        """An epoch of which this is one of the numbers, and no share of the run."""
        return not self.broken and self.value == int(self.value)


def position_of(step: str | None, total: str | None = None, at: int = 0) -> Position | None:
    """A printed count of steps; None if it is none."""
    value = parse_count(step)
    return None if value is None else Position(value, parse_count(total), at)


def epoch_of(epoch: str | None, epochs: str | None = None, at: int = 0) -> Position | None:
    """A printed epoch; None if it is none."""
    value = parse_number(epoch)
    return None if value is None else Position(value, parse_count(epochs), at, broken="." in (epoch or ""))


def position_in(found: re.Match[str] | None, group: str | int = 0) -> Position | None:
    """The count that a pattern found, without a total; ``group``: where it begins."""
    return None if found is None else Position(int(found["step"]), None, found.start(group))


def find_step(low: str) -> Position | None:
    """The counter that most likely is the optimizer step: ``step`` rather than ``batch``."""
    best: tuple[int, re.Match[str]] | None = None
    measured = "loss" in low
    for found in _STEP.finditer(low):
        key, total = found["key"].partition("_in_")[0], found["total"]
        rank = 2 * _STEP_RANK.get(key, 5) - (5 if total and key in _STEP_RANK else 0)
        rank += 20 * (found["micro"] is not None)
        if total is None and found["key"] in ("steps", "iters", "iterations", "updates"):
            if not measured:
                continue  # "save_steps 500", "warmup steps: 100": settings
            rank += 2  # of an environment: "update 120/1000 | steps 245,760"
        if found["key"].startswith("round") and total is None:
            continue  # of a federation; its clients count epochs
        if _RATE_BEFORE.search(low, max(0, found.start() - 5), found.start()) is not None:
            continue  # "fps step: 81211"
        if not measured and _OF_THINGS.match(low, found.end()) is not None:
            continue  # "it 1200 of 50000 files copied"
        if best is None or rank < best[0]:
            best = (rank, found)
    if best is None:
        return _step_before_its_name(low)
    printed, total, micro = best[1].group("step", "total", "micro")
    step = Position(parse_count(printed) or 0, parse_count(total), best[1].start(), micro=micro is not None)
    if step.total is not None:
        return step
    # The same count once more: "progress: 2100/22000 … updates: 2100"; or a field of its own
    again, named = _SLASHED.search(low) if f"{printed}/" in low else None, _MAX_STEPS.search(low)
    if again is not None and again["step"] == printed:
        return step._replace(total=int(again["total"]))
    if named is None or (end := int(named["total"] or named["bare"])) < step.value:
        return step
    return step._replace(total=end, of_run=named[0].startswith(("max_", "total_")))


_SLASHED = LazyPattern(r"(?<![\d/.])(?P<step>\d+)/(?P<total>\d+)(?![\d/.])")
_RATE_BEFORE = LazyPattern(r"(?:fps|per)[ _]$")
THINGS = (
    "shard|chunk|image|sample|prompt|token|document|doc|file|frame|video|audio|clip|row|line|record|package|object|question"
    "|request|example|byte|[kmg]i?b|tensor|latent"
)
"""What a task goes through: a count of them is no step."""
_OF_THINGS = LazyPattern(rf":?\s+(?:{THINGS})s?(?![\w/-]|\s?[:=]|\s+[\d.])")


TOTAL_SO_FAR = LazyPattern(
    r"(?<![a-z])total[_ ](?:num[_ ])?(?:env[_ ]|train[_ ])?(?:(?:time)?steps|updates|iters|iterations)"
    r"['\"]?\s*[:=|]\s*(?P<step>\d{1,12})(?![\w.])"
)
"""A count named as a total ("total_timesteps=81120"): a setting, unless it rises."""


def _step_before_its_name(low: str) -> Position | None:
    """The first such count with an end; without one, the first."""
    first: Position | None = None
    for found in _STEP_AFTER.finditer(low):
        at = found.end("head") if found["head"][-1:] != "-" else found.start()
        step = position_of(found["step"], found["total"] or found["later"], at)
        if step is None or (step.total is not None and step.value > step.total):
            continue
        if step.total is not None:
            return step
        amount = found[0][-1:] == "s" and found["head"].strip() not in _DONE
        first = first or step._replace(amount=amount and _DONE_AFTER.match(low, found.end()) is None)
    return first


def find_pair(low: str) -> Position | None:
    """The position that the line shows as "12/90", without a name: the first pair that counts no epochs or ranks."""
    for found in PAIR.finditer(low):
        if _SHARE_BEFORE.search(low, max(0, found.start() - 80), found.start()) is not None:
            continue  # "acc 81% (52/64)"
        pair = position_of(found["step"], found["total"], found.start())
        if pair is None or pair.total is None or not pair.value <= pair.total >= TWICE:
            continue
        if _NOT_STEPS.search(low, 0, found.start()) is None and low[found.end() :].lstrip(" ")[:5] != "epoch":
            return pair
    return None


_SHARE_BEFORE = LazyPattern(
    r"(?:acc\w*|top-?\d|correct|precision|recall|f1|score|rate|mem\w*|gpu|cpu|v?ram|disk|usage|used|util\w*|free)"
    r"[^\d%|,;]{0,24}[\d.]+ ?%\s?[\[(]?$"
)
"""The percentage of which the pair is the fraction, and what it is the share of."""


def epoch_beside(low: str, pair: Position) -> Position | None:
    """The epoch in brackets right before the pair."""
    found = _EPOCH_BESIDE.search(low[: pair.at]) if pair.total is not None else None
    return None if found is None else epoch_of(found["epoch"] or found["short"], found["epochs"], found.start())


def find_leading(low: str) -> Position | None:
    """The count in brackets in front of the fields: "[12000] learning_rate=0.001, loss=2.2"."""
    return position_in(_LEADING.search(low))


_LEADING = LazyPattern(r"(?:^|[\]\-:|>]\s*)\[\s*(?P<step>\d{3,12})\s*\]\s*(?=[a-z][\w/]*\s?[=:]\s?[\d.\-])")


def find_epoch(low: str) -> Position | None:
    """Epoch as printed, and the number of epochs if it follows."""
    for found in _EPOCH.finditer(low):
        plural, broken = found[0].lstrip().startswith("epochs"), "." in found["epoch"]
        if plural and found["epochs"] is None and (not broken or "|" in found[0]):
            continue
        if _NOT_EPOCH.search(low, max(0, found.start() - 8), found.start()):
            continue
        named = _MAX_EPOCHS.search(low) if found["epochs"] is None and "epochs" in low else None
        return epoch_of(found["epoch"], (named or found)["epochs"], found.start())
    after = _EPOCH_AFTER.search(low)
    if after is None or _STEP_NAME.search(low, 0, after.start()) is not None:
        return None
    return Position(float(after["epoch"]), parse_count(after["epochs"] or after["later"]), after.start())


_MAX_EPOCHS = LazyPattern(
    r"(?:(?<![a-z])(?:max|num|total|n)_(?:train_)?|(?<![\w-])(?<![a-z] ))"
    r"epochs['\"]?\s?[:=]\s?['\"]?(?P<epochs>\d+)(?![\w.])"
)


def find_short(low: str) -> tuple[Position | None, Position | None]:
    """Step and epoch by one letter each, in a line known to be about training: "e3 i412", "s=412"."""
    step, epoch = (
        None if found is None else position_of(found["count"], found["total"], found.start())
        for found in (_SHORT_STEP.search(low), _SHORT_EPOCH.search(low))
    )
    return None if step is not None and epoch is None and low[step.at] == "b" else step, epoch


def find_global_step(low: str) -> int | None:
    """The step that the line itself calls global; None if it names none."""
    found = _GLOBAL.search(low) if "global" in low or "num_updates" in low else None
    return None if found is None else parse_count(found["step"])


_GLOBAL = LazyPattern(r"(?<![a-z_])(?:global[_ ]?steps?|num_updates)['\"]?\s*[=:]\s*(?P<step>\d+)(?![\d./])")


# Time and pace by name, anywhere in a lower-cased line: seconds for a step, steps per second, time to go.

_PER_UNIT = LazyPattern(
    r"(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s?(?P<unit>ms|us|µs|μs|s|secs?|seconds?|min)\s?/\s?"
    r"(?:(?:optimi[sz]er|global|train) )?(?:it|iters?|iterations?|steps?|batch|sample|update)\b(?!\s*[=:])"
)
_RUN = LazyPattern(
    r"(?P<value>\d+\.\d+)\s?(?P<unit>ms|s|secs?|seconds?) (?:per |a )?(?:run|step|iter(?:ation)?|batch|update)\b"
)
"""The name comes after the duration: "231.2 ms step"."""
_RATE = LazyPattern(
    r"(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s?(?:it|iters?|iterations?|steps?|batch(?:es)?|updates?)\s?/\s?(?:s"
    r"|secs?|seconds?)\b(?!\s*[=:](?!:)|\s+\d+(?:\.\d+)?(?![\d:<]))"
)
_RATE_KEY = LazyPattern(
    r"(?<![a-z_/])(?<!eval )(?<!val )(?<!test )(?:(?!val|eval|test)[a-z]+[_/]){0,5}"
    r"(?:\(?(?:it|its|iters?|iterations?|steps?|batch(?:es)?|updates?)[_ ]?(?:/|per)[_ ]?s(?:ec(?:ond)?s?)?\)?"
    r"|ups|train(?:ing)?[_ ]speed)['\"]?(?:\s*[:=]\s*|\s+)['\"]?"
    rf"(?P<value>(?>{NUMBER}))(?![\d:]|\s?(?:s/|sec|ms|samples|tok|img|images|ex))"
)
"""Steps per second: "iter/s", "steps_per_second", "ups" (fairseq), "training_speed"."""
_ROUNDED = LazyPattern(r"ups['\"]?\s*[=:]?\s*['\"]?\d(?![\d.])")
"""Old versions of fairseq print "ups 3" for anything from 2.5 to 3.5."""
_TIMED = LazyPattern(
    r"(?:\b(?:iter(?:ation)?|itr|it|step|batch|b|update|train_step)"
    r"(?:[ _\-]?(?:time|timing|cost|dur(?:ation)?)|(?=_(?:ms|s|sec(?:onds?)?)['\"]?\s*[:=]))"
    r"|\bbatch_cost|\bavg_batch_cost|\bbch|per[- _](?:iteration|step)(?:[ _]time)?|\bs/b\b"
    r"|\bsec(?:onds)?[ _]?(?:/|per)[ _]?(?:step|it|iter|iteration|batch|update|tick)"
    r"|\b(?P<per_ms>ms)_per_(?:step|iter|iteration|batch|update)|\btime_(?:this_|per_)?(?:step|iter|iteration|batch)(?:_s)?"
    r"|\btime ?(?:/|per) ?(?:step|iter(?:ation)?|itr|it|batch)|\btiming_s/step"
    r"|\b(?P<ms_per>ms)/(?:batch|step|iter|it|update)\b|\bstep_avg|\bbatch(?= \(t\))|\bdt)"
    r"(?:\s*(?:\(t\)|\((?P<in>ms|s|sec|seconds)\)|in (?P<in2>ms|s)|_(?P<in3>ms|s(?:ec(?:onds?)?)?)))?"
    r"['\"]?\s*[:=]?\s*['\"]?(?P<value>\d+:\d\d:\d\d(?:\.\d+)?|(?>\d[\d,]*\.?\d*(?:e[-+]?\d+)?))"
    r"\s?(?P<unit>ms|us|µs|s|secs?|seconds?)?(?![a-z]|:\d)"
)
_OF_THE_STEP = LazyPattern(r"\b(?:train|total)_time['\"]?[=:] ?['\"]?(?P<value>\d[\d.]*(?:e[-+]?\d+)?)")
"""ESPnet, FunASR: the time of the whole step is printed beside its parts ("iter_time" is what the loader took)."""
_BARE_TIME = LazyPattern(
    r"(?<![a-z_])(?<!total )(?<!used )(?<!elapsed )time(?: \(data\))?\s*[:=]?\s*(?P<value>(?>\d+\.?\d*))"
    r"\s?\(?(?P<unit>(?:ms|s|secs?)\b)?\)?(?P<mean>\s*\(\s*\d+\.\d+\s*\))?(?![a-z\d:])"
)
_SECONDS_KEY = LazyPattern(r"\bseconds: (?P<value>\d+\.?\d*)")
_TOOK = LazyPattern(
    r"\b(?:step|iter(?:ation)?|batch|update)(?:\s#?\d[\d/,]*(?:\s?of\s\d+)?[\s,:\-]{1,3}|\s(?=took))"
    r"(?:(?:finished|done|completed|ran)\s)?(?:took|in|time)\s(?P<value>\d+\.?\d*)\s?(?P<unit>ms|s|secs?|seconds?)\b"
)
"""What one step took, in a sentence."""
_FIELD_MS = LazyPattern(r"\|\s*(?P<value>\d+\.?\d*)\s?(?P<unit>ms)\s*(?:\||$)")
_TRAILING = LazyPattern(r"\((?P<value>\d+\.?\d*)(?: (?P<ms>ms)(?:\)\s*$| \|)|s\)\s*$)")
_ETA = LazyPattern(
    r"(?<![a-z])(?P<run>(?:total|overall)[ _])?"
    r"(?:eta|(?<![a-z][ _])remaining(?:[ _]time)?|time[ _](?:remaining|left|to[ _]go)|left[ _]time)"
    rf"(?:['\"]?\s*[:=]?\s*['\"]?(?P<left>{DURATION})"
    r"|(?:_|\s?[(\[]|_in_|\sin\s)(?P<unit>s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?)[)\]]?"
    rf"['\"]?\s*[:=]?\s*['\"]?(?P<value>{NUMBER})(?![\w:]))"
)
"""The time to go, as an amount with its units or as a number whose unit stands in its name: "eta_seconds=4900"."""


def find_seconds_per_step(low: str, *, of_step: bool = True) -> float | None:
    """Seconds for one step, None if the line names no duration of a single step.

    ``of_step`` False: the line is about an epoch, so a bare time at its end is that of the epoch.
    """
    found = None
    if any(word in low for word in _OF_A_RATE) and _PER_UNIT.search(low) is None:
        found = _RATE.search(low) or _RATE_KEY.search(low)
    if found is not None and not _ROUNDED.match(low, found.start()):
        rate = parse_number(found["value"])
        return 1.0 / rate if rate else None
    for pattern, *words in _DURATIONS if of_step else _DURATIONS[:-1]:
        if not any(word in low for word in words) or (found := pattern.search(low)) is None:
            continue
        if pattern is _BARE_TIME and not _is_of_a_step(found, low):
            continue
        units = (text for name, text in found.groupdict().items() if name not in ("value", "mean"))
        if ":" in found["value"]:
            return parse_clock(found["value"])
        return seconds_of(found["value"], next((unit for unit in units if unit), "s"))
    return None


_OF_A_RATE = ("/s", "/ s", "/_s", "per", "ups", "speed")


def _is_of_a_step(found: re.Match[str], low: str) -> bool:
    """Whether a bare time is that of a step: in ms, "(s)", or with its average behind it, as MetricLogger prints it."""
    bracket = found["unit"] is not None and low[found.start("unit") - 1] == "("
    return bracket or found["mean"] is not None or found["unit"] == "ms" or "data" in low or "eta" in low


_DURATIONS = (
    (_PER_UNIT, "/"),
    (_OF_THE_STEP, "iter_time=", "forward_time"),
    (_TIMED, ""),
    (_BARE_TIME, "time"),
    (_SECONDS_KEY, "step"),
    (_TOOK, "took", " in ", "time "),
    (_RUN, ""),
    (_FIELD_MS, "ms"),
    (_TRAILING, "("),
)
"""Durations of a step, the surest first, each with words of its line, of which one is there.

The last one is that of a step only in lines of steps.
"""
_TO_GO = ("eta", "remain", "left", "to go")


def find_eta(low: str) -> tuple[float | None, bool]:
    """Seconds to go as the trainer prints them, and whether their name says that they are those of the whole run."""
    found = _ETA.search(low) if any(word in low for word in _TO_GO) else None
    if found is None:
        return None, False
    left = parse_clock(found["left"]) if found["left"] else seconds_of(found["value"], found["unit"])
    return left, found["run"] is not None


# Loss and learning rate by name, and whether they belong to an evaluation.

GATES = (
    *("tep", "iter", "Iter", "poch", "oss", "atch ", "atch=", "atch:", "STEP", "ITER", "EPOCH", "LOSS", "pisode"),
    *('"it"', "earning rate", "earning_rate", "_lr", " lr", " LR", "lr=", "lr:", "LR=", "LR:", "_per_sec", "\\u"),
)
"""Fixed texts: lines that name a step, an epoch or a loss have one. In JSON, other letters may be written ``\\u``."""
_VALUE = rf"(?>{NUMBER})|[-+]?nan|[-+]?inf(?:inity)?"
_GLUE = r"['\"]?\s*(?:[:=]|is\b|was\b)?\s*['\"\[({<]*\s*"


def words(*lines: str) -> frozenset[str]:
    """A set of words, written as text."""
    return frozenset(" ".join(lines).split())


_LOSS = LazyPattern(
    r"(?<![a-z0-9])(?P<before>(?:[a-z0-9]+[_/ .\-]){0,3})(?P<key>(?:crossentropy|m?log)?loss)"
    r"(?:[/_](?:train|total|all|(?:avg|mean)(?:_[a-z]+)?|sum"
    r"|batch|step|epoch|ce|model))*(?!\d+(?![\d.]))"
    rf"(?:\s*\((?!nan|inf)[a-z /]+\))?(?: so far)?{_GLUE}"
    r"(?:['\"]?(?:total|train|avg|mean|cur|all|sum)(?:['\"]?\s*[:=]\s*|\s+))?"
    rf"(?P<loss>{_VALUE})(?![a-z]|/(?!\d+\.\d))"
)
_WORDS = r"(?P<before>(?:[a-z0-9]+[_/ .\-]){0,3})"
_LOSS_AT = LazyPattern(
    rf"(?<![a-z0-9]){_WORDS}(?P<key>loss)\s(?:at|after|over|for|in|of|on|@)\s(?:[a-z#]+[ _]){{0,3}}"
    r"\d+(?:\s?(?:/|of)\s?\d+)?(?:\s[a-z]+){0,2}\)?\s*(?:[:=]|is\b|was\b)\s*"
    rf"(?P<loss>{_VALUE})(?![a-z/])"
)
"""What it is the loss of stands between its name and its value: "loss after 400 steps = 0.5"."""
_LOSS_BEHIND = LazyPattern(
    rf"(?:^|[,|;:(\[\t]|\s-|\s\s)\s*(?P<loss>{_VALUE})\s(?P<before>(?:[a-z]+[_/ .\-]){{0,2}})(?P<key>loss)"
    rf"(?=\s*(?:$|[,|;)\]\t]|-\s)|\s+(?:{_VALUE})%?\s[a-z])"
)
"""The name stands behind its value: "412 | 0.5 loss | 0.8 acc"."""
_OBJECTIVE = LazyPattern(
    rf"(?<![\w/.\-])(?P<before>)(?P<key>l|cost|nll|xent|cross[ _\-]?entropy)\s*[:=]\s*(?P<loss>{_VALUE})"
    r"(?!\s?(?:m?s|sec|min|h|hours?)\b|[\w/%:])"
)
"""What is minimised, if the line names no loss."""
_LR_BEHIND = LazyPattern(
    rf"(?:^|[,|;:(\[\t]|\s-|\s\s)\s*(?P<lr>(?>{NUMBER}))\s(?:lr|learning[ _\-]rate)(?=\s*(?:$|[,|;)\]\t]|-\s))"
)
_OWN = words(
    "train training tr avg avr average mean total tot running",
    "step batch lm reduced smooth smoothed cur current final epoch",
    "iter iteration global overall moving ema sum sft the ce lr",
    "loss and of with curr mini minibatch per it causal policy",
)
"""Words before "loss" with which it still is the training loss."""
_FOREIGN = words(
    "val valid validation va test testing eval evaluation dev best",
    "d g disc discriminator gen generator adv dual min lowest",
    "early",
)
"""Words before "loss" that make it another loss."""
_AVERAGE = LazyPattern(
    r"(?<![a-z])(?:avr|avg|average|averaged|mean|running|smooth|smoothed|moving|ema|cumulative|so far|epoch)(?![a-z])"
)
"""Words in the name of a loss that is an average over several steps."""
_LOSS_LIKE = LazyPattern(rf"(?<![a-z0-9_])(?P<before>)(?P<key>l_[a-z][a-z0-9_]*){_GLUE}(?P<loss>{_VALUE})")
_LOSSES = (_LOSS_BEHIND, _LOSS, _LOSS_AT, _LOSS_LIKE)
OBJECTIVES = (_OBJECTIVE,)
_LR = LazyPattern(
    r"(?<![a-z])(?:(?P<asked>(?:base|initial|peak|max|min)[ _])|[a-z]+_)?(?:lr|learning[ _\-]?rate)"
    r"(?:[_\-]?\d+|\([^)\d]{0,40}\)|(?:[_\-/][a-z]+\d*)+)?"
    rf"{_GLUE}(?P<lr>(?>{NUMBER}))(?![a-z/])"
)
_OF_EVALUATION = (
    r"(?:val|valid|validation|validate|validating|eval|evaluation|evaluating|evaluate|test|testing|dev"
    r"|predict(?:ing|ion)?)"
)
_EVAL_WORD = LazyPattern(
    rf"(?P<word>(?<![\w./\\=-])(?<![:=]['\"])(?<![:=] ['\"]){_OF_EVALUATION}\d?(?![\w/\\-]|\.\w))"
    rf"|(?<![\w.\\-])(?<!\w/){_OF_EVALUATION}\d?[_/.\-][\w/.@\-]{{0,60}}(?:\([\w ]{{0,20}}\))?['\"]?\s{{0,8}}"
    r"(?:[:=|]\s{0,8}['\"\[(]{0,2}(?:tensor\()?[-+]?(?:\d|\.\d|nan|inf)|\s[-+]?(?:\d+\.\d|nan|inf))"
    rf"|(?<![\w./\\=-]){_OF_EVALUATION}[_-](?:batch(?:es)?|steps?|iter(?:ation)?s?|epochs?)(?![a-z])"
    rf"|(?<![a-z])(?:split|mode|phase|stage|(?:sub)?set|type)['\"]?\s?[:=]\s?['\"]?{_OF_EVALUATION}(?![\w/\\-])"
    r"|^\W*(?P<first>inference)(?![a-z])"
)
"""A word of evaluation, the name of a number that has one as a part, or what a line says that it is about. A part of
another name, a path or the value of another key ("run": "test_3") is a name that a person chose. ``word``: it stands
alone, as the name of a logger or a run does, too."""
_SCORE = LazyPattern(r"(?<![a-z])(?:\w+_)?map(?:_?50)?:\s")
"""Detection scores, which mmcv prints in the form of a training line."""
_TRAIN_WORD = LazyPattern(r"(?<![a-z])(?:train|training)(?![a-z])")


class Loss(NamedTuple):
    """A printed loss: ``value`` None if it is NaN or infinite. ``at``: its position in the line.

    ``own`` False: a word before it tells that it may be one part of several ("value function loss"). ``average``: its
    name says that it is a running average.
    """

    value: float | None
    at: int
    own: bool = True
    average: bool = False


def find_loss(low: str, forms: Iterable[LazyPattern] = _LOSSES) -> Loss | None:
    """The first training loss of the line. Of ``OBJECTIVES`` what a line without one minimises: "cost", "l=0.5"."""
    return next((found for form in forms if (found := _first_loss(low, form)) is not None), None)


def _first_loss(low: str, pattern: LazyPattern) -> Loss | None:
    spare: Loss | None = None
    for found in pattern.finditer(low):
        parts = re.split(r"[_/ .\-]", found["before"])[:-1]
        if not _FOREIGN.isdisjoint(parts):
            continue
        own = all(word in _OWN or word.isdigit() for word in parts)
        name = low[found.start("before") : max(found.start("loss"), found.end("key"))]
        loss = Loss(parse_number(found["loss"]), found.start("key"), own, _AVERAGE.search(name) is not None)
        joined = re.split(r"[_/.\-]", found["before"].rpartition(" ")[2])[:-1]
        if _OWN.issuperset(joined):
            return loss
        if spare is None and (joined[-1] in _LIKELY or found["before"].endswith("/")):
            spare = loss
    return spare


_LIKELY = words(
    "binary multi ce nll mse bce diffusion recon main pix model cross entropy celoss contrastive",
    "text lm mlm task actor pg",
)
"""Words joined to "loss" that count if the line has no better one."""


def find_lr(low: str) -> float | None:
    """Learning rate; the first one if there are several parameter groups. ``base_lr`` is read if it stands alone."""
    if "lr" not in low and "learning" not in low:
        return None
    named = list(_LR.finditer(low))
    found = next((each for each in named if not each["asked"]), None) or (named[0] if named else _LR_BEHIND.search(low))
    return None if found is None else parse_number(found["lr"])


def is_only_lr(low: str) -> bool:
    """True if the line ends with the learning rate: "Current learning rate: 0.01"."""
    found = _LR.search(low)
    return found is not None and not low[found.end() :].strip(" |)]}\"'")


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


def lone_word(low: str) -> str:
    """The word of evaluation that stands alone in the line, and may be a name; "" if it names a number or is none."""
    found = _EVAL_WORD.search(low)
    return "" if found is None else found["word"] or found["first"] or ""


@lru_cache(maxsize=16)
def _named(name: str) -> LazyPattern:
    return LazyPattern(
        rf"(?i)[\[(<]?(?<![\w./\\=-]){name}(?![\w/\\-]|\.\w|\W{{0,4}}\d{{1,3}}%)"
        r"(?:[\])>](?:\s?[:|-])?|\s?[:|]|\s-|(?=\s(?:global[_ ])?(?:epochs?|ep|steps?|iter\w*|it|updates?|batch)\b))\s?"
    )


def without_name(line: str, name: str) -> str:
    """The line without ``name``, where it stands apart or before a counter; the label of a bar, "test loss" stay."""
    return _named(name).sub("", line, count=1)


# All named numbers of a line: ``name: value``, ``name=value``, ``name value``, JSON, dicts and rows of a table.

LONGEST_PHRASE = 3
"""Words of a name that stands before its value without ":" or "="; more are a sentence."""
_WORD = r"[^\W\d](?:[\w.@#*%$^]|'s(?=\s)|[/\-](?=\w))*"
_METRIC_FIELDS_VALUE = rf"(?P<value>(?>{NUMBER})|[-+]?(?i:nan|inf(?:inity)?)\b)(?P<si>[kKM](?![\w/]))?"
_NAMED = LazyPattern(
    rf"(?P<name>(?<![\w.\-/]){_WORD}(?:\s{_WORD}){{0,4}}(?:\s?\((?!(?i:nan|inf))[^()\d=:]{{1,16}}\))?)['\"]?"
    rf"(?P<sep>\s*[:=]\s*|\s+is\s+|\s+)['\"\[(]*\s*{_METRIC_FIELDS_VALUE}"
)
"""A name of up to five words and its unit, what divides it from its value, the value."""
_UNIT_BEHIND = LazyPattern(
    r"(?:[smuµ]s|s|secs?|seconds?|minutes?|min|%|[kMGT]i?B?|B|W|C|x|[kMG]?Hz)?(?![\w%|])(?!%[|\s]*[|━█])"
)
"""What may follow a value: a unit or nothing. A percentage before a bar is the bar's."""
_PART = LazyPattern(r"[:\-.]\d|/\d+/\d|[hdm] \d")
"""What follows a number that is a part of a clock time, a date, a version or a duration."""
_RATED = LazyPattern(
    rf"(?<![\w.:\-/])(?P<value>(?>{NUMBER}))(?P<si>[kKM](?=\s))?\s?(?P<name>[A-Za-z]+/(?:s|sec|second))\b"
)
"""A rate after its value: "249512 tok/s"."""
_BEHIND = LazyPattern(
    rf"(?:^|[|,;])\s*(?P<value>(?>{NUMBER}))(?P<si>[kKM](?=\s))?\s+(?P<name>[A-Za-z][\w/]*(?: [A-Za-z][\w/]*){{0,2}})"
    r"(?=\s*(?:$|[|,;]))"
)
"""A name that stands behind its value and fills a field with it: "| 0.5 loss |". One alone may be a sentence."""
_UNITS = words("s ms us sec secs second seconds min h b kb mb gb tb kib mib gib it its")
_PREFIX = LazyPattern(r"\[[A-Z]+\|[^\]]*\]|[\w.]+\.(?:py|cc|cpp|cu|c):\d+|[(\[][\w.:]+:\d+(?:/\d+)?[)\]]|[\w.]+:\d+ >>")
"""The place in the source, the rank or the process that a logger writes before the message."""
_BEFORE_FIELD = ",|;{}[]()<>\t:•·–—#*\"'"
_INSIDE = ",|;{[("
_LEVELS = words("info debug warning warn error critical train trainer root main")
_NO_NAMES = words(
    "pid tid line port rank host node worker version ts timestamp asctime created process thread level",
    "at in on of to from is for and eta by with after took than over about ms s sec us m h info debug warning error",
)
"""Names of processes and times, and words before a number that name nothing."""
_STAMP = 1e9
"""A time above it is in seconds since the epoch."""
_ROW = LazyPattern(
    r"^[\s|>*\-│┃]*(?P<name>[^\W\d][\w./@%#\-]*(?: [\w./@%#()\-]+){0,5}?)(?:\s*[:=|│┃]\s*|\s{2,})"
    rf"{_METRIC_FIELDS_VALUE}\s?(?:[mu]?s|sec|%|[kMGT]?i?B|[A-Za-z]+/s)?\s*(?:\([^()]*\))?[\s|│┃,;.]*$"
)

_ASSIGNMENT = LazyPattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""The name of a variable of the environment, which is set to a whole number: CUDA_LAUNCH_BLOCKING=1."""

Metrics = dict[str, float | None]
"""Name as printed → value, None = NaN or infinite."""


def metrics_of(line: str) -> Metrics:
    """Each named number of a plain line, in its order. The first value of a name counts: its average stands behind."""
    text = _PREFIX.sub(lambda found: " " * len(found[0]), line) if ":" in line or "|" in line else line
    found: Metrics = {}
    ends: list[tuple[int, int]] = []
    for match in _NAMED.finditer(text):
        end = match.end()
        if match["si"] is None and (_PART.match(text, end) is not None or _UNIT_BEHIND.match(text, end) is None):
            continue
        ends.append((match.start(), end))
        name = _name(text, match)
        if name and not (match["sep"] == "=" and _is_assigned(match["name"], match["value"])):
            _add(found, name, match["value"], match["si"])
    behind = list(_BEHIND.finditer(text))
    behind = [] if len(behind) < TWICE else [each for each in behind if each["name"].lower() not in _UNITS]
    rated = _RATED.finditer(text) if "/s" in text else ()
    rest = [match for match in rated if not any(start <= match.start() < end for start, end in ends)]
    for match in (*behind, *rest):
        _add(found, match["name"], match["value"], match["si"])
    return found


def measure_of(line: str, name: str) -> tuple[str, float] | None:
    """The measure of quality of this name in a line of steps; of any name whose better values are known, if ""."""
    for each, value in metrics_of(line).items():
        if value is not None and (each == name if name else better_of(each, "auto") is not None):
            return each, value
    return None


def row_of(line: str) -> tuple[str, float | None] | None:
    """Name and value of a line that holds nothing else ("| loss | 0.5 |", "grad_norm=0.3"), None if it is another."""
    match = _ROW.match(line)
    if match is None or (f"{match['name']}=" in line and _is_assigned(match["name"], match["value"])):
        return None
    found: Metrics = {}
    _add(found, match["name"].rstrip(" ("), match["value"], match["si"])
    return next(iter(found.items()), None)


def _is_assigned(name: str, value: str) -> bool:
    """Whether ``NAME=value`` sets a variable of the environment."""
    return value.isdecimal() and _ASSIGNMENT.fullmatch(name.rsplit(maxsplit=1)[-1]) is not None


def _name(text: str, match: re.Match[str]) -> str:
    """The name before the value: all its words if a field begins with them, else the last one; "" if it is none."""
    name = match["name"].removesuffix(" is").split()
    before = text[: match.start()]
    last = before.rstrip(" ")[-1:]
    equals = match["sep"].strip() == "="
    begins = not last or last in _BEFORE_FIELD or before.endswith((" - ", "  "))
    if len(name) > 2 and name[-2] == "in":  # "train_step_timing in s=2.4"
        name = name[-3:]
    elif not begins or (equals and last not in _INSIDE) or (not match["sep"].strip() and len(name) > LONGEST_PHRASE):
        name = name[-2:] if name[-1][:1] == "(" else name[-1:]
    while len(name) > 1 and name[0].lower() in _LEVELS:
        name = name[1:]
    return "" if name[-1].lower() in _NO_NAMES and len(name) < 2 else " ".join(name)


def _add(found: Metrics, name: str, text: str, si: str | None) -> None:
    name = name[:SHORT_CHARS]
    low = name.lower()
    if name in found or low in _NO_NAMES:
        return
    value = parse_number(text)
    if value is not None:
        if "time" in low and value > _STAMP:
            return
        if si is not None and "mem" not in low:
            value *= _SI[si]
    found[name] = value
