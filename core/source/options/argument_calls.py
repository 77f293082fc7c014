"""Options that are declared one by one by a call: argparse, click and their like."""

import ast
import re
from collections.abc import Iterator

import msgspec

from ..project_modules import Module, Project
from ..syntax import constant, dotted, keyword, last, text_of, texts_in
from .class_fields import Classes
from .option import Option, Takes
from .subcommands import Subcommands

_ADD = re.compile(r"add_(argument|arg|option)|argument|add")
_BOOLS = frozenset(
    {"bool", "str2bool", "strtobool", "str_to_bool", "boolean", "parse_bool", "string_to_bool", "t_or_f"}
)
CLICK = re.compile(r"(?:^|\.)(option|argument)$")


def argparse_options(
    subcommands: Subcommands, module: Module, _project: Project, _classes: Classes
) -> Iterator[Option]:
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if not _ADD.fullmatch(node.func.attr) or not node.args:
            continue
        names = [text for each in node.args if (text := text_of(each)) is not None]
        dashed = [name for name in names if name.startswith("-")]
        if not names or (not dashed and node.func.attr == "add") or any(" " in name for name in names):
            continue
        declared = declared_by(module, node, names, dashed)
        for after in sorted(subcommands.of_call.get(id(node), {""})):
            yield msgspec.structs.replace(declared, after=after)


def declared_by(module: Module, node: ast.Call, names: list[str], dashed: list[str]) -> Option:
    """One ``add_argument`` or ``click.option``."""
    given = text_of(keyword(node, "dest"))
    long = [name for name in dashed if name.startswith("--")]
    name = (long or dashed or names)[0]
    other = ""
    if "/" in name:  # click: --resume/--no-resume
        name, _, other = (part.strip() for part in name.partition("/"))
    plain = [each for each in names if not each.startswith("-")]
    dest = given or (plain[0] if plain and dashed else name.lstrip("-").replace("-", "_"))
    action = text_of(keyword(node, "action")) or last(dotted(keyword(node, "action") or node))
    kind = last(dotted(keyword(node, "type") or ast.Constant(None)))
    default = constant(keyword(node, "default"))
    takes: Takes = "value"
    if (
        action in {"store_true", "BooleanOptionalAction", "store_const", "count"}
        or constant(keyword(node, "is_flag")) is True
        or other
    ) or action == "store_false":
        takes = "flag"
    elif kind in {x.lower() for x in _BOOLS} or kind in _BOOLS or (kind == "" and isinstance(default, bool)):
        takes = "truth"
    elif kind in {"int", "float"} or (
        kind == "" and isinstance(default, int | float) and not isinstance(default, bool)
    ):
        takes = "number"
    if action == "store_false":
        default = True
    elif takes == "flag" and default is None:
        default = False
    if action == "BooleanOptionalAction":
        other = f"--no-{name.lstrip('-')}"
    choices = constant(keyword(node, "choices"))
    if (
        choices is None
        and (chosen := keyword(node, "type")) is not None
        and isinstance(chosen, ast.Call)
        and chosen.args
    ):
        choices = constant(chosen.args[0])  # click.Choice([...])
    return Option(
        name=name,
        dest=dest,
        kind="option" if dashed else "positional",
        takes=takes,
        default=default,
        required=constant(keyword(node, "required")) is True
        or (
            not dashed
            and text_of(keyword(node, "nargs")) not in {"?", "*"}
            and constant(keyword(node, "default")) is None
            and constant(keyword(node, "required")) is not False
        ),
        choices=tuple(c for c in choices if isinstance(c, str)) if isinstance(choices, list | tuple | set) else (),
        help=texts_in(keyword(node, "help")),
        file=module.shown,
        line=node.lineno,
        negated=other if action != "store_false" else name,
        aliases=tuple(each.strip() for name_ in dashed for each in name_.split("/")),
    )


def click_options(subcommands: Subcommands, module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    for function in module.functions:
        for decorator in function.decorator_list:
            if not isinstance(decorator, ast.Call) or not (kind := CLICK.search(dotted(decorator.func))):
                continue
            names = [text for each in decorator.args if (text := text_of(each)) is not None]
            dashed = [name for name in names if name.startswith("-")]
            if names and bool(dashed) == (kind[1] == "option"):
                option = declared_by(module, decorator, names, dashed)
                yield msgspec.structs.replace(
                    option, parameter=function.name, dest=option.dest.replace("-", "_").lower(),
                    after=subcommands.after(function),
                )  # fmt: skip
