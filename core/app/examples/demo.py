"""``trainwatch demo``: a short real training with one crash and one hang."""

import sys
from typing import Any

from ...model.story import RunStory
from ...store.journal import load_story
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from .example_run import example_run


def demo_run(*, torch: bool, simulated_gpu: bool) -> RunDirectory:
    """A new run of the demo's trainer. Raises CliError if ``torch`` is requested and not installed."""
    if torch:
        require_torch()
    return example_run("demo", "demo_torch.toml" if torch else "demo.toml", simulated_gpu=simulated_gpu)


def demo_result(run: RunDirectory) -> dict[str, Any]:
    """What happened, from the journal."""
    return result_of(load_story(run.journal))


def result_of(story: RunStory) -> dict[str, Any]:
    """The object that ends ``demo --headless --json``. ``detect_s``: seconds from death, or from the last step."""
    troubles = [i for i in story.incidents if i.kind in {"crash", "hang"}]
    return {
        "finished": story.state == "finished",
        "attempts": len(story.attempts),
        "incidents": [
            {"kind": i.kind, "class": i.class_, "reason": i.reason, "step": i.step, "ending": i.ending}
            for i in troubles
        ],
        "resumed_steps": [a.resume_step for a in story.attempts if a.resume_from is not None],
        "lost_steps": sum(i.lost_steps or 0 for i in troubles),
        "detect_s": {kind: next((i.detect_s for i in troubles if i.kind == kind), None) for kind in ("crash", "hang")},
        "checkpoints": len(story.checkpoints),
        "state": story.state,
    }


def require_torch() -> None:
    """Raise CliError if PyTorch is not installed beside trainwatch."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise CliError(
            ExitCode.FAILED,
            f"demo --torch needs PyTorch in {sys.prefix}: install it there (./trainwatch.sh demo --torch does)",
        )
