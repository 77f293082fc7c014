"""How good a checkpoint is, as the user's own command measures it (``[evaluate]``). Unknown is not bad."""

from collections.abc import Iterable
from typing import Literal

import msgspec

Better = Literal["lower", "higher"]

LOWER = frozenset(
    [
        "fid",
        "kid",
        "loss",
        "nll",
        "mse",
        "mae",
        "rmse",
        "lpips",
        "ppl",
        "perplexity",
        "wer",
        "cer",
        "error",
        "err",
        "bpc",
        "bpb",
    ]
)
HIGHER = frozenset(
    [
        "acc",
        "accuracy",
        "clip",
        "psnr",
        "ssim",
        "map",
        "f1",
        "auc",
        "auroc",
        "bleu",
        "rouge",
        "iou",
        "miou",
        "dice",
        "recall",
        "precision",
        "reward",
        "r2",
    ]
)
"""Words in names of metrics that tell which values are better, by the usual definition of each."""

SERIES = "evaluate/"
"""Before the names of what evaluations measured in a run's history, so that none is mixed with one of the trainer."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an evaluation of one checkpoint found.

    ``mtime``: of the checkpoint that was evaluated, seconds since the epoch; another one of that path has no score yet.
    ``score`` None = unknown, ``why``: the reason. ``values``: all numbers that it printed by name, ``metric`` the one
    that is the score. ``better``: which scores are better, None = not known. ``place``: "GPU 1" or "CPU".
    ``folder``: its output.
    """

    path: str
    mtime: float
    step: int | None = None
    metric: str = ""
    score: float | None = None
    values: dict[str, float] = {}
    better: Better | None = None
    why: str = ""
    took_s: float = 0.0
    place: str = ""
    folder: str = ""


def better_of(metric: str, said: Literal["auto", "lower", "higher"]) -> Better | None:
    """Which values of a metric are better: as the settings say, else by the words of its name; None = not known."""
    if said != "auto":
        return said
    words = set("".join(c if c.isalnum() else " " for c in metric.lower()).split())
    lower, higher = bool(words & LOWER), bool(words & HIGHER)
    return None if lower == higher else "lower" if lower else "higher"


def best_of(found: Iterable[Evaluation]) -> Evaluation | None:
    """The best by the metric of the newest that has a score; of equal ones the newest; None if it cannot be told.

    ``found``: oldest first.
    """
    scored = [each for each in found if each.score is not None]
    if not scored or scored[-1].better is None:
        return None
    newest = scored[-1]
    best = newest
    for each in reversed(scored):
        if (each.metric, each.better) == (newest.metric, newest.better) and _is_better(each, best):
            best = each
    return best


def _is_better(a: Evaluation, b: Evaluation) -> bool:
    assert a.score is not None
    assert b.score is not None
    return a.score < b.score if a.better == "lower" else a.score > b.score


def score_words(found: Evaluation) -> str:
    """``fid 12.3``; ``unknown (reason)`` if there is no score."""
    if found.score is None:
        return f"unknown ({found.why})" if found.why else "unknown"
    return f"{found.metric or 'score'} {found.score:.4g}"
