"""The names under which trainers store how far they have trained.

The usual ones come first. Any other name counts if it is a word for steps or epochs with words beside it that do not
change what is counted (``iter_num`` of nanoGPT, ``EPOCHS_RUN`` of PyTorch's tutorial, ``currentEpoch``): ``max_iters``,
``num_epochs``, ``steps_per_epoch`` and ``best_epoch`` are other numbers. A plural alone is a total as often as a count.
"""

import re
from collections.abc import Iterable

STEP_KEYS = ("global_step", "step", "current_step", "steps", "iteration", "iter", "num_updates", "global_steps")
EPOCH_KEYS = ("epoch", "current_epoch")
_BEFORE = r"(?:(?:global|current|cur|train|training|trainer|trained|optimizer|opt|last|completed|finished|i)_)*"
_AFTER = r"_(?:num|number|no|idx|index|count|counter|run|done|completed|trained|finished|so_far)"
_STEP = re.compile(rf"{_BEFORE}(?:(?:step|iter|iteration|update)(?:{_AFTER})*|(?:step|iter|iteration|update)s{_AFTER})")
_EPOCH = re.compile(rf"{_BEFORE}(?:epoch(?:{_AFTER})*|epochs{_AFTER})")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def step_keys(names: Iterable[object]) -> tuple[str, ...]:
    """The keys to look up for a step, in their order."""
    return (*STEP_KEYS, *_matching(_STEP, names))


def epoch_keys(names: Iterable[object]) -> tuple[str, ...]:
    """The keys to look up for an epoch, in their order."""
    return (*EPOCH_KEYS, *_matching(_EPOCH, names))


def _matching(pattern: re.Pattern[str], names: Iterable[object]) -> list[str]:
    words = [name for name in names if isinstance(name, str) and len(name) < 64]
    return [name for name in words if pattern.fullmatch(_HUMP.sub("_", name).lower().replace("-", "_"))]
