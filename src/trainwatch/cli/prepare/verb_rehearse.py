"""``trainwatch rehearse … -- COMMAND``: train to the first checkpoint, kill, resume, prove it, before the night."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from ..output import jsonable, print_json, printable, warn

if TYPE_CHECKING:
    from trainwatch.core.model.launch.rehearsal import Rehearsal

HELP = "train to the first checkpoint, kill it, prove that it resumes"
DESCRIPTION = (
    "Runs COMMAND (without one: the run of this folder's trainwatch.toml) in a scratch folder to its first checkpoint, "
    "kills it, resumes it as a real run would be, and checks whether the step and the loss go on and a hang would be "
    "seen. No file of yours is written. Exit code 0: tonight is safe; 1: it is not, or it cannot be told."
)
EXAMPLE = "-- python train.py --output_dir outputs --resume '{resume}'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainwatch rehearse [options] -- COMMAND …"
    parser.add_argument(
        "--timeout", type=float, default=1800.0, metavar="S", help="longest time, seconds (default 1800)"
    )
    parser.add_argument("--name", help="which run of trainwatch.toml, or the name of the command's run")
    parser.add_argument("--preset", help="framework preset (default: recognised from the command)")
    parser.add_argument("--profile", help="profile of training settings")
    parser.add_argument("--config", metavar="F", help="the trainer's own TOML or YAML")
    parser.add_argument("--output-dir", metavar="D", help="where the trainer saves checkpoints")
    parser.add_argument(
        "--scratch", metavar="DIR", help="where the scratch folder is made (default: where there is room)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder")
    parser.add_argument(
        "--write", action="store_true", help="write the trainwatch.toml that was proven, if there is none"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the trainer's command line")


def act(args: argparse.Namespace) -> int:
    """0 if the rehearsal found nothing that would stop the real run."""
    from trainwatch.core.app.plan.project_plan import plan_command, plan_project
    from trainwatch.core.app.plan.specs import Overrides
    from trainwatch.core.app.plan.unused_file import not_used_for_a_command
    from trainwatch.core.app.rehearse.proven_config import write_proven
    from trainwatch.core.app.rehearse.rehearse import Limits, rehearse
    from trainwatch.core.views.rehearsal_text import rehearsal_lines

    if not (args.timeout > 0 and math.isfinite(args.timeout)):
        raise CliError(ExitCode.USAGE, f"--timeout: must be more than 0, got {args.timeout:g}")
    if args.scratch and not Path(args.scratch).is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"--scratch: no folder {args.scratch}")
    words = tuple(args.command_after_dashes or args.words)
    options = Overrides(
        name=args.name if words else None,
        preset=args.preset,
        profile=args.profile,
        config=args.config,
        output_dir=args.output_dir,
    )
    plan = plan_command(words, options) if words else plan_project(args.name, options)
    if plan is None:
        raise CliError(
            ExitCode.USAGE, "no command to rehearse: trainwatch rehearse -- COMMAND, or write a trainwatch.toml"
        )
    if words and (unused := not_used_for_a_command("rehearse that with `trainwatch rehearse`")) is not None:
        warn(unused)
    limits = Limits(limit_s=args.timeout, scratch=Path(args.scratch) if args.scratch else None, keep=args.keep)
    result = rehearse(plan, limits, lambda line: print(f"rehearsal: {printable(line)}", file=sys.stderr, flush=True))
    written = None
    if args.write and result.safe:
        written = write_proven(Path(plan.spec.cwd), result.config)
    if args.json:
        print_json(rehearsal_object(result) | {"written": None if written is None else str(written)})
    else:
        print("\n".join(printable(line) for line in rehearsal_lines(result)))
        if written is not None:
            print(f"written: {written}")
    if args.write and not result.safe:
        warn("nothing was written: this is not proven")
    return ExitCode.DONE if result.safe else ExitCode.FAILED


def rehearsal_object(result: "Rehearsal") -> dict[str, Any]:
    """The object of ``--json``; docs/how-to/rehearse.md explains its fields."""
    found: dict[str, Any] = jsonable(result)
    hang = next((fault.after_s for fault in result.faults if fault.fault.startswith("hang")), None)
    resume = {"will": found.pop("will"), "how": found.pop("how"), "source": found.pop("source")}
    return {"safe": result.safe, **found, "resume": resume, "hang_after_s": hang}
