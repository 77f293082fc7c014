"""Why a restart may help, or would fail again, as a clause for people."""

from functools import cache

from ...model.shipped.failure import FailureClass
from ...model.text.patterns import LazyPattern

_WAITS = {
    "network": "a restart helps once the network is back",
    "disk": "a restart helps once there is room",
    "gpu": "a restart helps once a GPU of the run is usable",
    "person": "nothing failed: it goes on when a person wants it",
}


def is_lasting(known: FailureClass, cause: str) -> bool:
    """Whether the cause line shows that such a failure would return, although the class may go away."""
    return bool(known.lasting) and _pattern(known.lasting).search(cause.lower()) is not None


@cache
def _pattern(text: str) -> LazyPattern:
    return LazyPattern(text)


def retry_reason(known: FailureClass, *, lasting: bool = False) -> str:
    """What speaks for or against another attempt with the same command; "" after success."""
    if lasting:
        return "a restart would fail again at the same place until what the cause line names is mended"
    if known.name == "success":
        return ""
    if known.waits_for is not None:
        return _WAITS[known.waits_for]
    if known.name == "unknown":
        return "a restart may help: nothing shows that it would fail again"
    if known.retryable:
        return "a restart may help: such a failure often does not return"
    if known.older_checkpoint_helps:
        return "a restart would fail again from the same checkpoint; an older one may help"
    if known.settings == "likely":
        return "a restart would fail again with the same settings"
    return "a restart would fail again until what it names is corrected"
