"""Loss and learning rate by name, anywhere in a lower-cased line, and whether they belong to an evaluation.

The first value named loss is the training loss, unless its name says
validation, test or one side of a GAN.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from ...model.checkpoint import better_of
from ...model.text import LazyPattern
from .counters import NUMBER, parse_number

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
    rf"(?<![\w/.\-])(?P<key>l|cost|nll|xent|cross[ _\-]?entropy)\s*[:=]\s*(?P<loss>{_VALUE})"
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
_LOSS_LIKE = LazyPattern(rf"(?<![a-z0-9_])l_[a-z][a-z0-9_]*{_GLUE}(?P<loss>{_VALUE})")
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


def find_loss(low: str) -> Loss | None:
    """The first training loss of the line."""
    if _DIGIT_BEFORE.search(low) is not None and (behind := _first_loss(low, _LOSS_BEHIND)) is not None:
        return behind
    if (named := _first_loss(low, _LOSS) or _first_loss(low, _LOSS_AT)) is not None:
        return named
    like = _LOSS_LIKE.search(low) if "l_" in low else None
    return None if like is None else Loss(parse_number(like["loss"]), like.start())


_DIGIT_BEFORE = LazyPattern(r"\d (?:[a-z]+[ _])?loss(?! ?[:=])")


def find_objective(low: str) -> Loss | None:
    """What a line without a loss minimises: "cost", "xent", "l=0.5"; None if it names nothing such."""
    found = _OBJECTIVE.search(low)
    return None if found is None else Loss(parse_number(found["loss"]), found.start())


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

LONGEST_NAME = 64
"""Characters of a name that are kept."""
LONGEST_PHRASE = 3
"""Words of a name that stands before its value without ":" or "="; more are a sentence."""
_WORD = r"[^\W\d](?:[\w.@#*%$^]|'s(?=\s)|[/\-](?=\w))*"
_METRIC_FIELDS_VALUE = rf"(?P<value>(?>{NUMBER})|[-+]?(?i:nan|inf(?:inity)?)\b)(?P<si>[kKM](?![\w/]))?"
_NAMED = LazyPattern(
    rf"(?P<name>(?<![\w.\-/]){_WORD}(?:\s{_WORD}){{0,4}}(?:\s?\((?!(?i:nan|inf))[^()\d=:]{{1,16}}\))?)['\"]?"
    rf"(?P<sep>\s*[:=]\s*|\s+is\s+|\s+)['\"\[(]*\s*{_METRIC_FIELDS_VALUE}"
)
"""A name of up to five words and its unit, what divides it from its value, the value."""
_UNIT = LazyPattern(
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
"""A name that stands behind its value and fills a field with it: "| 0.5 loss |"."""
_UNITS = words("s ms us sec secs second seconds min h b kb mb gb tb kib mib gib it its")
LEAST_BEHIND = 2
"""So many fields of a line have the name behind the value; one alone may be a sentence."""
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
_SI = {"k": 1e3, "K": 1e3, "M": 1e6}
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
        if match["si"] is None and (_PART.match(text, end) is not None or _UNIT.match(text, end) is None):
            continue
        ends.append((match.start(), end))
        name = _name(text, match)
        if name and not (match["sep"] == "=" and _is_assigned(match["name"], match["value"])):
            _add(found, name, match["value"], match["si"])
    behind = list(_BEHIND.finditer(text))
    if len(behind) >= LEAST_BEHIND:
        for match in behind:
            if match["name"].lower() not in _UNITS:
                _add(found, match["name"], match["value"], match["si"])
    if "/s" in text:
        for match in _RATED.finditer(text):
            if not any(start <= match.start() < end for start, end in ends):
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
    name = name[:LONGEST_NAME]
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
