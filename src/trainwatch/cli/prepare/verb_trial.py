"""``trainwatch trial``: train for some minutes under one profile, or each, and measure it."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from ..output import jsonable, print_json, printable, warn

if TYPE_CHECKING:
    from trainwatch.core.model.launch.trial import TrialResult

HELP = "measure a profile on this machine for some minutes"
DESCRIPTION = (
    "Runs this project's command under a profile for some minutes (from its first step on), with its output apart from "
    "yours, ends it gently, and shows what it needed here: seconds per step, GPU memory, RAM, GPU load, and whether it "
    "was stable: it started, showed no error, its memory did not grow, the loss fell, evaluations got no worse. Your "
    "checkpoints are not touched. Options after -- are added to the command and override those of the profile; a "
    "COMMAND after -- is tried as it is."
)
EXAMPLE = "--profile safe_mode --timeout 300 -- --epochs 5 --batch_size 16 --quiet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainwatch trial [options] [RUN] [-- OPTIONS … | -- COMMAND …]"
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--profile", metavar="P", action="append", help="which profile; may be given several times (default: the run's)"
    )
    which.add_argument("--all", action="store_true", help="each profile of the ladder, safest first")
    parser.add_argument("--minutes", type=float, default=5.0, metavar="M", help="length of each trial (default 5)")
    parser.add_argument("--timeout", type=float, metavar="S", help="longest time of each trial, start-up included")
    parser.add_argument("--steps", type=int, metavar="N", help="end a trial after so many steps, if that is sooner")
    parser.add_argument("--scratch", metavar="DIR", help="where trials write (default: below TRAINWATCH_HOME)")
    parser.add_argument("--keep", action="store_true", help="keep what the trainer wrote")
    parser.add_argument("--yes", "-y", action="store_true", help="even while a run trains on the same GPU")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "run", nargs="?", help="run whose command is used (default: this project's, else one started in this folder)"
    )


def act(args: argparse.Namespace) -> int:
    """One trial after the other; 1 if one of them was not stable."""
    from trainwatch.core.app.plan.unused_file import not_used_for_a_command
    from trainwatch.core.app.trial.trial_choice import run_to_try
    from trainwatch.core.app.trial.trial_here import try_here
    from trainwatch.core.app.trial.trial_outlook import trial_outlook
    from trainwatch.core.app.trial.trial_run import Trial, TrialLength

    _refuse_nonsense(args)
    words = tuple(args.command_after_dashes or ())
    extra = words if words and (words[0].startswith("-") or "=" in words[0]) else ()
    spec, names = run_to_try(
        args.run, None if args.all else args.profile or (), beside_others=args.yes, command=() if extra else words
    )
    if words and not extra and (unused := not_used_for_a_command("try that with `trainwatch trial`")) is not None:
        warn(unused)
    length = TrialLength(minutes=args.minutes, steps=args.steps, limit_s=args.timeout)
    scratch = Path(args.scratch) if args.scratch else None
    results: list[TrialResult] = []
    for number, name in enumerate(names, 1):
        trial = Trial(profile=name, length=length, extra=extra)
        takes, whole = trial_outlook(spec, trial)
        print(f"trial {number} of {len(names)}: {name}: {printable(takes)}", file=sys.stderr, flush=True)
        if whole:
            print(f"  the whole training: {printable(whole)}", file=sys.stderr, flush=True)
        results.append(try_here(spec, trial, scratch, keep=args.keep))
    if args.json:
        print_json({"run": spec.name, "trials": [trial_object(result) for result in results]})
    else:
        print("\n".join(table(results)))
    return ExitCode.FAILED if any(result.stable is False for result in results) else ExitCode.DONE


def trial_object(result: "TrialResult") -> dict[str, Any]:
    """A result for ``--json``: its fields, the verdict, and the doubts."""
    found: dict[str, Any] = jsonable(result)
    return {**found, "stable": result.stable, "doubts": list(result.doubts)}


def table(results: "list[TrialResult]") -> list[str]:
    """One line for each profile, then the doubts."""
    from trainwatch.core.views.columns import text_rows
    from trainwatch.core.views.printed_lists import TRIALS

    lines = text_rows(TRIALS, results, titles=True)
    wide = max(7, *(len(r.profile) for r in results))
    for r in results:
        lines += [f"{'':{wide}}  {r.profile}: {doubt}" for doubt in r.doubts]
    if any(r.simulated_gpu for r in results):
        lines.append("the GPU values are of a simulated GPU")
    return lines


def _refuse_nonsense(args: argparse.Namespace) -> None:
    if not (args.minutes > 0 and math.isfinite(args.minutes)):
        raise CliError(ExitCode.USAGE, f"--minutes: must be more than 0, got {args.minutes:g}")
    if args.timeout is not None and not (args.timeout > 0 and math.isfinite(args.timeout)):
        raise CliError(ExitCode.USAGE, f"--timeout: must be more than 0, got {args.timeout:g}")
    if args.steps is not None and args.steps < 1:
        raise CliError(ExitCode.USAGE, f"--steps: must be at least 1, got {args.steps}")
    if args.scratch and not Path(args.scratch).is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"--scratch: no folder {args.scratch}")
