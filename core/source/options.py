"""What can be told to a trainer from outside: options, positional words, overrides, environment variables.

One reader for each way to declare them; what a library adds by itself (LightningCLI's ``--ckpt_path``) is a table.
"""

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from .project_modules import Module, Project
from .syntax import Function, constant, default_of, dotted, keyword, last, parameters, text_of

Kind = Literal["option", "positional", "override", "environment"]
Takes = Literal["value", "flag", "truth", "number"]
"""``flag``: no value; ``truth``: a value that says yes or no."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """``name``: as it is written on the command line (``--resume``, ``trainer.resume``, ``RESUME``).

    ``dest``: the name under which the code reads it. ``default``: None if there is none or it is not a literal.
    ``joined``: only ``--name=value`` is read. ``after``: a word (subcommand) that must stand before it. ``library``:
    it is declared by this library, not by the project. ``parameter``: it comes as a parameter of this function.
    """

    name: str
    dest: str
    kind: Kind = "option"
    takes: Takes = "value"
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    file: str = ""
    line: int = 0
    joined: bool = False
    after: str = ""
    library: str = ""
    parameter: str = ""
    negated: str = ""
    """The option that switches it off (``--no-resume``)."""


def options_of(project: Project) -> list[Option]:
    """All options that the project declares, in the order of its files and lines; a name counts once."""
    found: dict[tuple[str, str], Option] = {}
    classes = _classes(project)
    for module in project.modules:
        for read in _READERS:
            for option in read(module, project, classes):
                found.setdefault((option.name, option.after), option)
    return list(found.values())


# argparse and its like ---------------------------------------------------------------------------------------------

_ADD = re.compile(r"add_(argument|arg|option)|argument|add")
_BOOLS = frozenset(
    {"bool", "str2bool", "strtobool", "str_to_bool", "boolean", "parse_bool", "string_to_bool", "t_or_f"}
)


def _argparse(module: Module, _project: Project, _classes: "Classes") -> Iterator[Option]:
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if not _ADD.fullmatch(node.func.attr) or not node.args:
            continue
        names = [text for each in node.args if (text := text_of(each)) is not None]
        dashed = [name for name in names if name.startswith("-")]
        if not names or (not dashed and node.func.attr == "add") or any(" " in name for name in names):
            continue
        yield _declared(module, node, names, dashed)


def _declared(module: Module, node: ast.Call, names: list[str], dashed: list[str]) -> Option:
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
        help=_text(keyword(node, "help")),
        file=module.shown,
        line=node.lineno,
        negated=other if action != "store_false" else name,
    )


def _text(node: ast.expr | None) -> str:
    """The constant parts of a text."""
    if node is None:
        return ""
    parts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return " ".join(" ".join(parts).split())[:400]


# functions whose parameters are options -------------------------------------------------------------------------------

_CLICK = re.compile(r"(?:^|\.)(option|argument)$")


def _click(module: Module, _project: Project, _classes: "Classes") -> Iterator[Option]:
    for function in module.functions:
        for decorator in function.decorator_list:
            if not isinstance(decorator, ast.Call) or not (kind := _CLICK.search(dotted(decorator.func))):
                continue
            names = [text for each in decorator.args if (text := text_of(each)) is not None]
            dashed = [name for name in names if name.startswith("-")]
            if names and bool(dashed) == (kind[1] == "option"):
                option = _declared(module, decorator, names, dashed)
                yield msgspec.structs.replace(
                    option, parameter=function.name, dest=option.dest.replace("-", "_").lower()
                )


_TYPED_CALLS = {
    "typer.run": "-", "tyro.cli": "-", "fire.Fire": "_", "jsonargparse.CLI": "_", "jsonargparse.auto_cli": "_",
    "CLI": "_", "auto_cli": "_", "cli": "-", "Fire": "_", "run": "-", "plac.call": "_", "defopt.run": "-",
    "clize.run": "-", "chz.entrypoint": "=", "chz.nested_entrypoint": "=", "entrypoint": "=",
}  # fmt: skip
"""Calls that make options of a function's parameters or of a class's fields, with the character between words."""
_TYPED_LIBRARIES = ("typer", "tyro", "fire", "jsonargparse", "plac", "defopt", "clize", "chz")
_DECORATORS = re.compile(r"\.(command|callback)$|(?:^|\.)(wrap|auto_argparse|autocommand|argh\.arg)$")


def _typed_functions(module: Module, project: Project, classes: "Classes") -> Iterator[Option]:
    functions = {f.name: (m, f) for m in project.modules for f in m.functions}
    several = sum(_is_command(f) for f in module.functions) > 1
    for function in module.functions:
        if not _is_command(function) or any(_CLICK.search(dotted(d)) for d in function.decorator_list):
            continue
        decorator = next(d for d in function.decorator_list if _DECORATORS.search(dotted(d)))
        wraps = last(dotted(decorator)) == "wrap"
        if wraps:  # draccus, pyrallis: dotted fields of the one parameter's class
            for parameter in parameters(function):
                yield from _fields(classes, _class_in(parameter.annotation), prefix="", separator="_", nested=True)
        elif any(name in module.text for name in ("typer", "cyclopts", "argh")):
            after = function.name.replace("_", "-") if several else ""
            yield from _of_parameters(module, function, "-", after=after)
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        called = _resolved(module, node.func)
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
                yield from _fields(classes, name, prefix="", separator=separator, nested=True)


def _is_command(function: Function) -> bool:
    return any(_DECORATORS.search(dotted(each)) for each in function.decorator_list)


def _of_parameters(
    module: Module, function: Function, separator: str, classes: "Classes | None" = None, after: str = ""
) -> Iterator[Option]:
    for parameter in parameters(function):
        if parameter.arg in {"self", "cls", "ctx"}:
            continue
        default = default_of(function, parameter.arg)
        annotation = parameter.annotation
        inner = _class_in(annotation)
        if classes is not None and inner in classes and separator != "=":
            yield from _fields(classes, inner, prefix=f"{parameter.arg}.", separator=separator, nested=True)
            continue
        told = next((n for n in (default, *_annotated(annotation)) if isinstance(n, ast.Call)), None)
        yield _of_name(
            module, parameter.arg, annotation, default, told, separator, parameter.lineno, function.name, after
        )


def _of_name(  # noqa: PLR0917
    module: Module,
    name: str,
    annotation: ast.expr | None,
    default: ast.expr | None,
    told: ast.Call | None,
    separator: str,
    line: int,
    function: str,
    after: str = "",
    prefix: str = "",
) -> Option:
    """A parameter or a field. ``told``: the call that describes it (``typer.Option``, ``dataclasses.field``)."""
    names = (
        []
        if told is None
        else [text for each in told.args if (text := text_of(each)) is not None and text.startswith("-")]
    )
    value = constant(default) if default is not None and default is not told else None
    if told is not None:
        value = constant(keyword(told, "default")) if keyword(told, "default") is not None else value
        if value is None and told.args and not isinstance(told.args[0], ast.Starred):
            first = constant(told.args[0])
            value = None if (isinstance(first, str) and first.startswith("-")) or first is ... else first
    words = ast.unparse(annotation) if annotation is not None else ""
    takes: Takes = "value"
    if re.search(r"\bbool\b", words) or (not words and isinstance(value, bool)):
        takes = "flag" if separator == "-" else "truth"
    elif re.fullmatch(r"(typing\.)?(Optional\[)?(int|float)\]?( \| None)?", words):
        takes = "number"
    written = name.replace("_", "-") if separator == "-" else name
    kind: Kind = "override" if separator == "=" else "option"
    option = f"{prefix}{written}" if kind == "override" else f"--{prefix}{written}"
    if told is not None and last(dotted(told)) == "Argument":
        option, kind = name, "positional"
    elif names:
        option = names[0].partition("/")[0]
    text = _text(keyword(told, "help")) if told is not None else ""
    if told is not None and not text and isinstance(metadata := keyword(told, "metadata"), ast.Dict):
        text = _text(metadata)
    choices = re.findall(r"['\"]([\w.-]+)['\"]", words) if "Literal" in words else []
    return Option(
        name=option,
        dest=name,
        kind=kind,
        takes=takes,
        default=value,
        required=default is None and told is None,
        choices=tuple(choices),
        help=text,
        file=module.shown,
        line=line,
        parameter=function,
        after=after,
        negated=f"--{prefix}no-{written}" if takes == "flag" else "",
    )


def _annotated(annotation: ast.expr | None) -> list[ast.expr]:
    """The further parts of ``Annotated[type, …]``."""
    if (
        isinstance(annotation, ast.Subscript)
        and last(dotted(annotation)) == "Annotated"
        and isinstance(annotation.slice, ast.Tuple)
    ):
        return list(annotation.slice.elts[1:])
    return []


# classes whose fields are options -------------------------------------------------------------------------------------

Classes = dict[str, tuple[Module, ast.ClassDef]]
_PARSERS = re.compile(
    r"(HfArgumentParser|TrlParser|add_arguments|ArgumentParser|parse|parse_known_args|parse_args_into_dataclasses)$"
)
_LIBRARY_ARGUMENTS = re.compile(
    r"(TrainingArguments|Seq2SeqTrainingArguments|(SFT|DPO|GRPO|KTO|ORPO|Reward|PPO|RLOO|CPO|GKD|PRM)Config)$"
)


def _classes(project: Project) -> Classes:
    return {n.name: (m, n) for m in reversed(project.modules) for n in m.classes}


def _class_in(annotation: ast.expr | None) -> str:
    """The last name in an annotation (``Optional[Config]`` → ``Config``)."""
    if annotation is None:
        return ""
    if (text := text_of(annotation)) is not None:
        return last(text)
    if isinstance(annotation, ast.Subscript):
        inner = (
            annotation.slice.elts[0]
            if isinstance(annotation.slice, ast.Tuple) and annotation.slice.elts
            else annotation.slice
        )
        return _class_in(inner)
    return last(dotted(annotation))


def _fields(
    classes: Classes, name: str, *, prefix: str, separator: str, nested: bool, depth: int = 0
) -> Iterator[Option]:
    if name not in classes or depth > 4:
        return
    module, node = classes[name]
    for base in node.bases:
        yield from _fields(
            classes, last(dotted(base)), prefix=prefix, separator=separator, nested=nested, depth=depth + 1
        )
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        inner = _class_in(field.annotation)
        if inner in classes and nested:
            inside = field.target.id.replace("_", "-") if separator == "-" else field.target.id
            yield from _fields(
                classes, inner, prefix=f"{prefix}{inside}.", separator=separator, nested=True, depth=depth + 1
            )
            continue
        told = field.value if isinstance(field.value, ast.Call) else None
        option = _of_name(
            module, field.target.id, field.annotation, field.value, told, separator, field.lineno, "", prefix=prefix
        )
        yield option


def _dataclasses(module: Module, _project: Project, classes: Classes) -> Iterator[Option]:
    """HfArgumentParser, simple_parsing, Tap, pydantic-settings: classes that are given to a parser or are one."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and any(
            last(dotted(b)) in {"Tap", "BaseSettings", "Cli"} for b in node.bases
        ):
            yield from _fields(classes, node.name, prefix="", separator="_", nested=False)
        if not isinstance(node, ast.Call) or not _PARSERS.search(dotted(node.func)):
            continue
        given = [*node.args, *(k.value for k in node.keywords)]
        names = [
            last(dotted(e)) for each in given for e in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])
        ]
        for name in names:
            yield from _fields(classes, name, prefix="", separator="_", nested=False)
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


# other ways -----------------------------------------------------------------------------------------------------------


def _absl(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not (found := re.search(r"DEFINE_(\w+)$", dotted(node.func))):
            continue
        name = text_of(node.args[0]) if node.args else None
        if name is None or "config" in found[1]:
            continue
        kinds: dict[str, Takes] = {"bool": "flag", "boolean": "flag", "integer": "number", "float": "number"}
        default = constant(keyword(node, "default") or (node.args[1] if len(node.args) > 1 else None))
        told = keyword(node, "help") or (node.args[-1] if len(node.args) > 2 else None)
        yield Option(
            name=f"--{name}", dest=name, takes=kinds.get(found[1], "value"), default=default, help=_text(told),
            file=module.shown, line=node.lineno, negated=f"--no{name}" if "bool" in found[1] else "",
        )  # fmt: skip


def _environment(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    for node in module.nodes:
        name = environment_name(module, node)
        if name is not None:
            default = constant(node.args[1]) if isinstance(node, ast.Call) and len(node.args) > 1 else None
            yield Option(
                name=name,
                dest=f"${name}",
                kind="environment",
                default=default,
                file=module.shown,
                line=node.lineno,  # type: ignore[attr-defined]
            )


def environment_name(module: Module, node: ast.AST) -> str | None:
    """The variable that an expression reads from the environment; None if it is no such expression."""
    if isinstance(node, ast.Call) and node.args:
        called = _resolved(module, node.func)
        if called in {"os.environ.get", "os.getenv", "os.environ.pop", "environ.get", "getenv"} or called.endswith(
            (".os.getenv", "os.environ.get")
        ):
            return text_of(node.args[0])
    if isinstance(node, ast.Subscript) and _resolved(module, node.value) in {"os.environ", ".os.environ"}:
        return text_of(node.slice)
    return None


def argv_index(module: Module, node: ast.AST) -> int | None:
    """N for ``sys.argv[N]``, else None."""
    if not isinstance(node, ast.Subscript) or not _resolved(module, node.value).endswith("sys.argv"):
        return None
    number = constant(node.slice)
    return number if isinstance(number, int) and number > 0 else None


def _argv(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    for node in module.nodes:
        number = argv_index(module, node)
        if number is not None:
            yield Option(
                name=f"argument {number}",
                dest=f"$argv{number}",
                kind="positional",
                file=module.shown,
                line=node.lineno,  # type: ignore[attr-defined]
            )
        if isinstance(node, ast.Compare) and len(node.comparators) == 1 and isinstance(node.ops[0], ast.In):
            name = text_of(node.left)
            if name is not None and name.startswith("-") and "argv" in ast.unparse(node.comparators[0]):
                yield Option(
                    name=name, dest=f"$argv{name}", takes="flag", default=False, file=module.shown, line=node.lineno
                )


def _docopt(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    text = ast.get_docstring(module.tree, clean=False)
    if text is None or "docopt" not in module.text:
        return
    for line in re.finditer(
        r"^\s*(?:-\w,?\s+)?(--[\w-]+)(?:[= ](<\w+>|[A-Z_]{2,}))?(?:\s{2,}(.*))?$", text, re.MULTILINE
    ):
        number = module.text[: module.text.find(line[0].strip())].count("\n") + 1
        default = re.search(r"\[default:\s*([^\]]*)\]", line[3] or "")
        yield Option(
            name=line[1], dest=line[1], takes="value" if line[2] else "flag", help=line[3] or "",
            default=default[1] if default else (None if line[2] else False), file=module.shown, line=number,
        )  # fmt: skip


def _globals(module: Module, project: Project, _classes: Classes) -> Iterator[Option]:
    """Module variables that the command line replaces: ``exec(open('configurator.py').read())`` (nanoGPT)."""
    if module is not project.modules[0] or not re.search(r"exec\(open\([^)]*\)\.read\(\)\)", module.text):
        return
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = constant(node.value)
            if isinstance(value, str | bool | int | float):
                line = module.text.splitlines()[node.lineno - 1]
                name = node.targets[0].id
                yield Option(
                    name=f"--{name}", dest=name, default=value, help=line.partition("#")[2].strip(), file=module.shown,
                    line=node.lineno, joined=True, parameter="<module>",
                    takes=_takes(value),
                )  # fmt: skip


def _takes(value: str | bool | float) -> Takes:
    """What an option with such a default takes."""
    return "truth" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "value"


def _dictionaries(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    """Options made of a dictionary: ``for k, v in defaults.items(): parser.add_argument(f"--{k}", default=v)``."""
    if not any(_is_made_of_name(node) for node in module.nodes) and "add_dict_to_argparser" not in module.text:
        return
    for node in module.nodes:
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Call) and dotted(node.func) == "dict":
            pairs = [(k.arg, k.value) for k in node.keywords if k.arg]
        elif isinstance(node, ast.Dict):
            pairs = [(text, v) for k, v in zip(node.keys, node.values, strict=True) if (text := text_of(k)) is not None]
        for name, node_value in pairs:
            if name.isidentifier():
                value = constant(node_value)
                yield Option(
                    name=f"--{name}", dest=name, default=value, file=module.shown, line=node_value.lineno,
                    takes="truth" if isinstance(value, bool) else "value",
                )  # fmt: skip


def _is_made_of_name(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and last(dotted(node.func)) == "add_argument"
        and bool(node.args)
        and isinstance(node.args[0], ast.JoinedStr | ast.BinOp)
    )


def _lightning(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    for node in module.nodes:
        if isinstance(node, ast.Call) and last(_resolved(module, node.func)) == "LightningCLI":
            if constant(keyword(node, "run")) is False:
                continue
            yield Option(
                name="--ckpt_path", dest="$lightning", help="Path of the checkpoint from which training is resumed.",
                file=module.shown, line=node.lineno, library="lightning", after="fit",
            )  # fmt: skip


_READERS: tuple[Callable[[Module, Project, Classes], Iterator[Option]], ...] = (
    _argparse, _click, _typed_functions, _dataclasses, _absl, _lightning, _docopt, _globals, _dictionaries,
    _environment, _argv,
)  # fmt: skip


def _resolved(module: Module, node: ast.AST) -> str:
    """The dotted name of an expression with the import behind its first name (``CLI`` → ``jsonargparse.CLI``)."""
    name = dotted(node)
    first, dot, rest = name.partition(".")
    return f"{module.aliases.get(first, first)}{dot}{rest}"
