"""All options that a project declares, with those that a library adds by itself (``--ckpt_path`` of LightningCLI)."""

from collections.abc import Callable, Iterator
from functools import partial

from ..project_modules import Module, Project
from .argument_calls import argparse_options, click_options
from .class_fields import Classes, classes_of
from .environment import argv_options, environment_options
from .option import Option
from .other_ways import absl_options, dictionary_options, docopt_options, lightning_options, variable_options
from .subcommands import Subcommands
from .typed_calls import class_options, function_options

_READERS: tuple[Callable[[Module, Project, Classes], Iterator[Option]], ...] = (
    class_options, absl_options, lightning_options, docopt_options, variable_options, dictionary_options,
    environment_options, argv_options,
)  # fmt: skip


def options_of(project: Project, subcommands: Subcommands) -> list[Option]:
    """All options that the project declares, in the order of its files and lines; a name counts once."""
    by_command: list[Callable[[Module, Project, Classes], Iterator[Option]]] = [
        partial(read, subcommands) for read in (argparse_options, click_options, function_options)
    ]
    found: dict[tuple[str, str], Option] = {}
    classes = classes_of(project)
    for module in project.modules:
        for read in (*by_command, *_READERS):
            for option in read(module, project, classes):
                found.setdefault((option.name, option.after), option)
    return list(found.values())
