"""Time and pace by name, anywhere in a lower-cased line: seconds for a step, steps per second, time to go."""

from ....model.text.patterns import LazyPattern
from ..numbers import NUMBER, parse_number, seconds_of

_PER_UNIT = LazyPattern(
    r"(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s?(?P<unit>ms|us|µs|μs|s|secs?|seconds?|min)\s?/\s?(?:it|iters?"
    r"|iterations?|steps?|batch|sample|update)\b(?!\s*[=:])"
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
    r"(?:\b(?:iter(?:ation)?|itr|it|step|batch|b|update|train_step)[ _\-]?(?:time|timing|cost|dur(?:ation)?)"
    r"|\bbatch_cost|\bavg_batch_cost|\bbch|per[- _](?:iteration|step)(?:[ _]time)?|\bs/b\b"
    r"|\bsec(?:onds)?[ _]?(?:/|per)[ _]?(?:step|it|iter|iteration|batch|update|tick)"
    r"|\b(?P<per_ms2>ms)_per_(?:step|iter|iteration|batch|update)|\btime_(?:this_|per_)?(?:step|iter|iteration)(?:_s)?"
    r"|\btime ?(?:/|per) ?(?:step|iter(?:ation)?|itr|it|batch)|\btiming_s/step"
    r"|\bms/(?P<per_ms>batch|step|iter|it|update)\b|\bstep_avg|\bbatch(?= \(t\))|\bdt)"
    r"(?:\s*(?:\(t\)|\((?P<in>ms|s|sec|seconds)\)|in (?P<in2>ms|s)|_(?P<in3>ms|s(?:ec(?:onds?)?)?)))?"
    r"['\"]?\s*[:=]?\s*['\"]?(?P<value>(?>\d[\d,]*\.?\d*(?:e[-+]?\d+)?))\s?(?P<unit>ms|us|µs|s|secs?|seconds?)?(?![a-z]|:\d)"
)
_OF_THE_STEP = LazyPattern(r"\b(?:train|total)_time['\"]?[=:] ?['\"]?(?P<value>\d[\d.]*(?:e[-+]?\d+)?)")
"""ESPnet, FunASR: the time of the whole step is printed beside its parts ("iter_time" is what the loader took)."""
_BARE_TIME = LazyPattern(
    r"(?<![a-z_])(?<!total )(?<!used )(?<!elapsed )time(?: \(data\))?\s*[:=]?\s*(?P<value>(?>\d+\.?\d*))"
    r"\s?(?P<unit>\(?(?:ms|s|secs?)\b\)?)?(?P<mean>\s*\(\s*\d+\.\d+\s*\))?(?![a-z\d:])"
)
_SECONDS_KEY = LazyPattern(r"\bseconds: (?P<value>\d+\.?\d*)")
_TOOK = LazyPattern(
    r"\b(?:step|iter(?:ation)?|batch|update)(?:\s#?\d[\d/,]*(?:\s?of\s\d+)?[\s,:\-]{1,3}|\s(?=took))"
    r"(?:(?:finished|done|completed|ran)\s)?(?:took|in|time)\s(?P<value>\d+\.?\d*)\s?(?P<unit>ms|s|secs?|seconds?)\b"
)
"""What one step took, in a sentence."""
_FIELD_MS = LazyPattern(r"\|\s*(?P<value>\d+\.?\d*)\s?ms\s*(?:\||$)")
_TRAILING = LazyPattern(r"\((?P<value>\d+\.?\d*)(?: (?P<ms>ms)(?:\)\s*$| \|)|s\)\s*$)")
_ETA = LazyPattern(r"(?<![a-z])eta['\"]?\s*[:=]?\s*['\"]?(?P<left>(?:\d+ days?, )?\d+:\d\d(?::\d\d)?)")


def find_seconds_per_step(low: str, *, of_step: bool = True) -> float | None:
    """Seconds for one step, None if the line names no duration of a single step.

    ``of_step`` False: the line is about an epoch, so a bare time at its end is that of the epoch.
    """
    found = _PER_UNIT.search(low)
    if found is not None:
        return seconds_of(found["value"], found["unit"])
    found = _RATE.search(low) or _RATE_KEY.search(low)
    if found is not None and not _ROUNDED.match(low, found.start()):
        rate = parse_number(found["value"])
        return None if not rate else 1.0 / rate
    if ("iter_time=" in low or "forward_time" in low) and (found := _OF_THE_STEP.search(low)) is not None:
        return seconds_of(found["value"], "s")
    found = _TIMED.search(low)
    if found is not None:
        in_ms = found["per_ms"] or found["per_ms2"]
        unit = found["unit"] or found["in"] or found["in2"] or found["in3"] or ("ms" if in_ms else "s")
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
    found = _TOOK.search(low) if "took" in low or " in " in low or "time " in low else None
    if found is not None:
        return seconds_of(found["value"], found["unit"])
    found = _RUN.search(low)
    if found is not None:
        return seconds_of(found["value"], found["unit"])
    found = _FIELD_MS.search(low)
    if found is not None:
        return seconds_of(found["value"], "ms")
    found = _TRAILING.search(low) if of_step else None
    return None if found is None else seconds_of(found["value"], found["ms"] or "s")


def find_eta(low: str) -> str | None:
    """Remaining time as the trainer prints it."""
    found = _ETA.search(low)
    return None if found is None else found["left"]
