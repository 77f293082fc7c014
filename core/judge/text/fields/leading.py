"""Whether a line without a loss is about its counter: "epoch 9/40", "… INFO: [step 4]", "step: 4, reward: 2.5"."""

from ....model.text.patterns import LazyPattern
from ..carriers import peel
from .counters import Epoch, Step
from .durations import find_seconds_per_step
from .skeletons import is_measured


def leads(line: str, low: str, step: Step | None, epoch: Epoch | None) -> bool:
    """True if the line is about its counter, although it has no loss: "epoch 9/40", "[step 4]", "… INFO: Epoch 3"."""
    at = min(counter.at for counter in (step, epoch) if counter is not None) if step or epoch else -1
    if at < 0 or (step is not None and low[step.at - 1 : step.at] == "/"):
        return False
    timed = step is not None and epoch is not None and find_seconds_per_step(low) is not None
    listed = sum(1 for _ in _FIELD.finditer(low)) >= LEAST_FIELDS and _SETTINGS.search(low) is None
    if _PREPARES.search(low) is not None:
        return False
    if step is not None and epoch is not None and None not in (step.total, epoch.total):
        return True
    if listed and any(counter is not None and counter.total is not None for counter in (step, epoch)):
        return True
    if listed and epoch is not None and epoch.broken:
        return True
    if listed and step is not None and is_measured(low):
        return True
    if len(low) - at > LONGEST_COUNTER_LINE and not timed and not listed and _SHARE.search(low, at) is None:
        return False
    head = len(low) - len(peel(line).text) if len(low) == len(line) else 0
    return _HEAD_OF_COUNTER.search(low[:at]) is not None or _HEAD_OF_COUNTER.search(low[head:at]) is not None


_PREPARES = LazyPattern(r"\b(?:cach(?:ed|ing)|latents?|tokeni[sz]\w+|download\w*|preprocess\w*)\b")
_SHARE = LazyPattern(r"\bprogress\b|(?<![\w.])\d{1,3}(?:\.\d+)?%")
"""How far something is."""
LONGEST_COUNTER_LINE = 60
"""A longer line that begins with a counter is a sentence about something else. In characters."""
LEAST_FIELDS = 3
"""A longer line is about its counter if it is made of so many named numbers."""
_FIELD = LazyPattern(r"[a-z)_\]'\"]\s?[=:]\s?['\"]?[-+]?\d")
_SETTINGS = LazyPattern(r"namespace\(|config|arguments?\b|args\b|settings?\b|hyper")
_HEAD_OF_COUNTER = LazyPattern(
    r"(?:^|[:\]] ?| - |\| |> |\t(?:info\t)?)[\W_]*"
    r"(?:(?:at|done|end of|learning|training|train|finished|starting|start|begin|completed|now at|beginning) )?"
    r"(?:(?:train |training )?\w+/)?$"
)
