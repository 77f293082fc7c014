"""Options of calls that read a function's signature or a class: typer, tyro, fire, HfArgumentParser and their like."""

import ast
import re
from collections.abc import Iterator

from ..project_modules import Module, Project, resolved
from ..syntax import Function, default_of, dotted, last, parameters
from .argument_calls import CLICK
from .class_fields import Classes, class_in, fields_of, further_parts, of_name
from .option import Option
from .subcommands import Subcommands

_TYPED_CALLS = {
    "typer.run": "-", "tyro.cli": "-", "fire.Fire": "_", "jsonargparse.CLI": "_", "jsonargparse.auto_cli": "_",
    "CLI": "_", "auto_cli": "_", "cli": "-", "Fire": "_", "run": "-", "plac.call": "_", "defopt.run": "-",
    "clize.run": "-", "chz.entrypoint": "=", "chz.nested_entrypoint": "=", "entrypoint": "=",
}  # fmt: skip
"""Calls that make options of a function's parameters or of a class's fields, with the character between words."""
_TYPED_LIBRARIES = ("typer", "tyro", "fire", "jsonargparse", "plac", "defopt", "clize", "chz")
_DECORATORS = re.compile(r"\.(command|callback)$|(?:^|\.)(wrap|auto_argparse|autocommand|argh\.arg)$")
_PARSERS = re.compile(
    r"(HfArgumentParser|TrlParser|add_arguments|ArgumentParser|parse|parse_known_args|parse_args_into_dataclasses)$"
)
_LIBRARY_ARGUMENTS = re.compile(
    r"(TrainingArguments|Seq2SeqTrainingArguments|(SFT|DPO|GRPO|KTO|ORPO|Reward|PPO|RLOO|CPO|GKD|PRM)Config)$"
)


def function_options(subcommands: Subcommands, module: Module, project: Project, classes: Classes) -> Iterator[Option]:
    functions = {f.name: (m, f) for m in project.modules for f in m.functions}
    for function in module.functions:
        if not _is_command(function) or any(CLICK.search(dotted(d)) for d in function.decorator_list):
            continue
        decorator = next(d for d in function.decorator_list if _DECORATORS.search(dotted(d)))
        wraps = last(dotted(decorator)) == "wrap"
        if wraps:  # draccus, pyrallis: dotted fields of the one parameter's class
            for parameter in parameters(function):
                yield from fields_of(classes, class_in(parameter.annotation), prefix="", separator="_", nested=True)
        elif any(name in module.text for name in ("typer", "cyclopts", "argh")):
            yield from _of_parameters(module, function, "-", after=subcommands.after(function))
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        called = resolved(module, node.func)
        separator = _TYPED_CALLS.get(called) or _TYPED_CALLS.get(last(called), "")
        if not separator or not any(name in called for name in _TYPED_LIBRARIES):
            continue
        for each in [
            *node.args[:1],
            *(k.value for k in node.keywords if k.arg in {"component", "components", "f", "args_type"}),
        ]:
            name = last(dotted(each))
            if name in functions:
                yield from _of_parameters(*functions[name], separator, classes)
            elif name in classes:
                yield from fields_of(classes, name, prefix="", separator=separator, nested=True)


def _is_command(function: Function) -> bool:
    return any(_DECORATORS.search(dotted(each)) for each in function.decorator_list)


def _of_parameters(
    module: Module, function: Function, separator: str, classes: Classes | None = None, after: str = ""
) -> Iterator[Option]:
    for parameter in parameters(function):
        if parameter.arg in {"self", "cls", "ctx"}:
            continue
        default = default_of(function, parameter.arg)
        annotation = parameter.annotation
        inner = class_in(annotation)
        if classes is not None and inner in classes and separator != "=":
            yield from fields_of(classes, inner, prefix=f"{parameter.arg}.", separator=separator, nested=True)
            continue
        told = next((n for n in (default, *further_parts(annotation)) if isinstance(n, ast.Call)), None)
        yield of_name(
            module, parameter.arg, annotation, default, told, separator, parameter.lineno, function.name, after
        )


def class_options(module: Module, _project: Project, classes: Classes) -> Iterator[Option]:
    """HfArgumentParser, simple_parsing, Tap, pydantic-settings: classes that are given to a parser or are one."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and any(
            last(dotted(b)) in {"Tap", "BaseSettings", "Cli"} for b in node.bases
        ):
            yield from fields_of(classes, node.name, prefix="", separator="_", nested=False)
        if not isinstance(node, ast.Call) or not _PARSERS.search(dotted(node.func)):
            continue
        given = [*node.args, *(k.value for k in node.keywords)]
        names = [
            last(dotted(e)) for each in given for e in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])
        ]
        for name in names:
            yield from fields_of(classes, name, prefix="", separator="_", nested=False)
            bases = [last(dotted(b)) for b in classes[name][1].bases] if name in classes else []
            if any(_LIBRARY_ARGUMENTS.search(each) for each in (name, *bases)):
                yield Option(
                    name="--resume_from_checkpoint",
                    dest="resume_from_checkpoint",
                    help="The path to a folder with a valid checkpoint for your model.",
                    file=module.shown,
                    line=node.lineno,
                    library="transformers",
                )
