"""``trainwatch init``: write a commented trainwatch.toml. Never overwrites one."""

import argparse

from trainwatch.core.app.errors import ExitCode

from ..launch_options import overrides_of
from ..output import printable

HELP = "write a commented trainwatch.toml"
DESCRIPTION = (
    "Writes trainwatch.toml into this folder, with every key and what it means. The framework is detected from "
    "the command and the config. An existing file is never overwritten."
)
EXAMPLE = "--output-dir outputs -- python train.py --config cfg.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", help="the run's name (default: the folder's)")
    parser.add_argument("--preset", help="framework preset (default: detected)")
    parser.add_argument("--config", metavar="F", help="the trainer's own TOML or YAML")
    parser.add_argument(
        "--output-dir", metavar="D", help="where the trainer saves (default: as its own flags or config say)"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the trainer's command line")


def act(args: argparse.Namespace) -> int:
    """2 if it exists or an option is wrong."""
    from trainwatch.core.app.plan.new_project import write_project
    from trainwatch.core.views.resume_words import resume_line

    path, preset, output_dir, resume = write_project(tuple(args.command_after_dashes or args.words), overrides_of(args))
    saves = f", output_dir {output_dir}" if output_dir else ""
    print(f"{path}: written (preset {preset}{saves}); check its values, then: trainwatch check, trainwatch")
    print(printable(resume_line(resume)))
    return ExitCode.DONE
