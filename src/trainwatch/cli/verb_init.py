"""``trainwatch init``: write a commented trainwatch.toml. Never overwrites one."""

import argparse
from pathlib import Path

import msgspec

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import here

SECTION = "start"
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
    """Write it; 2 when it exists or something does not fit."""
    from trainwatch.core.act.adopt.adoption import config_of
    from trainwatch.core.app.start.trainer_folders import logging_folder, output_folder
    from trainwatch.core.config.init import config_text, survey_folder, write_config
    from trainwatch.core.config.project import FILE_NAME
    from trainwatch.core.config.shipped import load_presets
    from trainwatch.core.model.run import RunSpec

    folder = here()
    presets = load_presets(folder / FILE_NAME)
    if args.preset is not None and args.preset not in presets:
        raise CliError(ExitCode.USAGE, f'no preset "{args.preset}"; there are: {", ".join(presets)}')
    command = tuple(args.command_after_dashes or args.words)
    found = args.config or config_of(command, str(folder))
    config = Path(found) if found else None
    if config is not None and not config.is_file():
        raise CliError(ExitCode.NOT_FOUND, f"{args.config}: no such config; give the trainer's own TOML or YAML")
    survey = survey_folder(folder, presets, command, config)
    if args.preset is not None:
        survey = msgspec.structs.replace(survey, preset=args.preset)
    name = args.name or folder.name
    seen = RunSpec(
        id="", name=name, command=survey.command, cwd=str(folder), created_wall=0.0, preset=survey.preset,
        config=survey.config,
    )  # fmt: skip
    output_dir = args.output_dir or output_folder(seen, presets)
    text = config_text(survey, name=name, output_dir=output_dir, logging_dir=logging_folder(seen, presets))
    try:
        path = write_config(folder, text)
    except FileExistsError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{folder / FILE_NAME}: {error.strerror or error}") from None
    saves = f", output_dir {output_dir}" if output_dir else ""
    print(f"{path}: written (preset {survey.preset}{saves}); look through it, then: trainwatch check, trainwatch")
    return ExitCode.DONE
