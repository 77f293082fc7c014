"""``trainwatch demo``: run a short real training with scripted failures."""

import argparse
import sys
from typing import Any

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.start.stand_in import stand_in_run
from trainwatch.core.model.story import RunStory

from .output import print_json

SECTION = "practise"
HELP = "a short real training with scripted failures, in about a minute"
DESCRIPTION = (
    "Launches a short real training that crashes once and hangs once, and shows how it is restarted. Everything "
    "is real: processes, checkpoints, evidence, restarts. State goes to TRAINWATCH_HOME/demo."
)
EXAMPLE = "--headless --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--torch", action="store_true", help="the PyTorch trainer (needs torch) instead of the numpy one"
    )
    parser.add_argument("--headless", dest="demo_headless", action="store_true", help="no screen; print line by line")
    parser.add_argument("--json", action="store_true", help="with --headless: JSON lines, the result object last")
    parser.add_argument("--fake-gpu", action="store_true", help="show a simulated GPU, labelled as such")


def act(args: argparse.Namespace) -> int:
    """Run the demo; 0 when it reached its last step after the crash and the hang."""
    from trainwatch.tui.ui.terminal import can_show_screen

    if args.torch:
        _need_torch()
    template = "demo_torch.toml" if args.torch else "demo.toml"
    run = stand_in_run("demo", template, simulated_gpu=args.fake_gpu)
    if not args.demo_headless and not args.json and can_show_screen():
        from trainwatch.core.app.start.detached import start_detached

        from .bare_command import open_screen

        try:
            start_detached(run)
        except RuntimeError as error:
            raise CliError(ExitCode.FAILED, str(error)) from None
        code = open_screen(run)
        print(f"The demo's story: trainwatch events {run.id}")
        return code
    from .event_printer import supervise_and_print

    code = supervise_and_print(run, as_json=args.json, stop_trainer=True)  # who interrupts a demo wants no trainer left
    from trainwatch.core.store.journal import load_story

    outcome = result(load_story(run.journal))
    if args.json:
        print_json(outcome)
    else:
        seen = ", ".join(f"{kind} {s:.1f} s" for kind, s in outcome["detect_s"].items() if s is not None)
        print(
            f"\nfinished: {outcome['finished']} · attempts: {outcome['attempts']} "
            f"· steps done again: {outcome['lost_steps']} · seen after: {seen}"
        )
    return code or (ExitCode.DONE if outcome["finished"] else ExitCode.FAILED)


def result(story: RunStory) -> dict[str, Any]:
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


def _need_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise CliError(
            ExitCode.FAILED,
            f"demo --torch needs PyTorch in {sys.prefix}: install it there (./trainwatch.sh demo --torch does)",
        )
