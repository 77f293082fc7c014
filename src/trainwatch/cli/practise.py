"""The verbs that show trainwatch at work: demo and drill."""

import argparse
from typing import Any

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.model.suggestion import typed

from .output import print_json
from .verb import JSON, Verbs, arg, flag

VERBS = Verbs()


@VERBS(
    "demo",
    "a short real training with scripted failures, in about a minute",
    "Launches a short real training that crashes once and hangs once, and shows how it is restarted. Everything "
    "is real: processes, checkpoints, evidence, restarts. State goes to TRAINWATCH_HOME/demo.",
    "--headless --json",
    flag("--torch", "the PyTorch trainer (needs torch) instead of the numpy one"),
    arg("--headless", dest="demo_headless", action="store_true", help="no screen; print line by line"),
    flag("--json", "with --headless: JSON lines, the result object last"),
    flag("--fake-gpu", "show a simulated GPU, labelled as such"),
)
def demo_verb(args: argparse.Namespace) -> int:
    """0 if the training finished after the crash and the hang."""
    from trainwatch.core.app.examples import demo_result, demo_run
    from trainwatch.tui.ui.terminal import can_show_screen

    run = demo_run(torch=args.torch, simulated_gpu=args.fake_gpu)
    if not args.demo_headless and not args.json and can_show_screen():
        from trainwatch.core.app.start.detached import start_detached

        from .bare_command import open_screen

        start_detached(run)
        code = open_screen(run)
        print(f"The demo's events: {typed('events', run.id)}")
        return code
    from .event_printer import supervise_and_print

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


@VERBS(
    "drill",
    "real faults in an example trainer: is each detected and survived?",
    "Runs a short real training once per fault and shows what was detected, after how long, and how it ended. "
    "Takes about a minute. State goes to TRAINWATCH_HOME/drill.",
    "",
    JSON,
)
def drill_verb(args: argparse.Namespace) -> int:
    """1 if a fault was not detected or not survived."""
    from trainwatch.core.app.examples import drill

    rows = []
    for row in drill():
        rows.append(row)
        if not args.json:
            _print(row)
    passed = all(row["passed"] for row in rows)
    if args.json:
        print_json({"passed": passed, "exercises": rows})
    else:
        print("all were detected and survived" if passed else "not all were detected and survived: see the lines above")
    return ExitCode.DONE if passed else ExitCode.FAILED


def _print(row: dict[str, Any]) -> None:
    mark = "ok  " if row["passed"] else "FAIL"
    after = f"after {row['detect_s']:.1f} s" if row["detect_s"] is not None else ""
    print(
        f"{mark}  {row['fault']:24} {', '.join(row['seen']) or 'nothing seen':32} {after:14} "
        f"attempts {row['attempts']}, steps lost {row['lost_steps']}, {row['state']}",
        flush=True,
    )
