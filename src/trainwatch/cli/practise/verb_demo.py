"""``trainwatch demo``: run a short real training with scripted failures."""

import argparse

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.model.text.suggestion import typed

from ..output import print_json

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
    """0 if the training finished after the crash and the hang."""
    from trainwatch.core.app.examples.demo import demo_result, demo_run
    from trainwatch.tui.ui.terminal import can_show_screen

    run = demo_run(torch=args.torch, simulated_gpu=args.fake_gpu)
    if not args.demo_headless and not args.json and can_show_screen():
        from trainwatch.core.app.start.detached import start_detached

        from ..bare_command import open_screen

        start_detached(run)
        code = open_screen(run)
        print(f"The demo's events: {typed('events', run.id)}")
        return code
    from ..event_printer import supervise_and_print

    code = supervise_and_print(run, as_json=args.json, stop_trainer=True)  # an interrupted demo leaves no trainer
    outcome = demo_result(run)
    if args.json:
        print_json(outcome)
    else:
        seen = ", ".join(f"{kind} {s:.1f} s" for kind, s in outcome["detect_s"].items() if s is not None)
        print(
            f"\nfinished: {outcome['finished']} · attempts: {outcome['attempts']} "
            f"· steps done again: {outcome['lost_steps']} · detected after: {seen}"
        )
    return code or (ExitCode.DONE if outcome["finished"] else ExitCode.FAILED)
