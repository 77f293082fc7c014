"""What a training tells by ``trainwatch.heartbeat``, as lines of a log: the judge reads them as any other log of it."""

from collections.abc import Mapping
from typing import Any

from ....heartbeat import PHASES

Told = tuple[int | None, str]
"""Step and phase that were passed on last."""
AT_FIRST: Told = (None, "train")
LINES = {
    "load": "loading model",
    "preprocess": "caching latents",
    "compile": "compiling the model",
    "eval": "evaluating",
    "sample": "generating sample images",
    "save": "saving checkpoint",
}
"""Phase → a line that says it."""


def told_as_lines(told: Mapping[str, Any], before: Told) -> tuple[str, Told]:
    """The lines for what is new since ``before`` ("" if nothing is), and what is passed on with them."""
    step, phase = told.get("step"), told.get("phase", "train")
    phase = phase if phase in PHASES else "train"
    lines = []
    if step is not None and step != before[0]:
        total = f"/{told['total']}" if told.get("total") else ""
        loss = "" if told.get("loss") is None else f" loss={told['loss']:.6g}"
        lines.append(f"step {step}{total}{loss}")
    if phase != before[1] or lines:
        lines += [LINES[phase]] if phase in LINES else []
    return "".join(f"{line}\n" for line in lines), (step, phase)
