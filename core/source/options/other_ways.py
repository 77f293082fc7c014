"""Options of absl, docopt and LightningCLI, and those made of module variables or of a dictionary."""

import ast
import re
from collections.abc import Iterator

from ..project_modules import Module, Project, resolved
from ..syntax import constant, dotted, keyword, last, text_of, texts_in
from .class_fields import Classes
from .option import Option, Takes


def absl_options(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
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
            name=f"--{name}", dest=name, takes=kinds.get(found[1], "value"), default=default, help=texts_in(told),
            file=module.shown, line=node.lineno, negated=f"--no{name}" if "bool" in found[1] else "",
        )  # fmt: skip


def docopt_options(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
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


def variable_options(module: Module, project: Project, _classes: Classes) -> Iterator[Option]:
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


def dictionary_options(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
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


def lightning_options(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    for node in module.nodes:
        if isinstance(node, ast.Call) and last(resolved(module, node.func)) == "LightningCLI":
            if constant(keyword(node, "run")) is False:
                continue
            yield Option(
                name="--ckpt_path", dest="$lightning", help="Path of the checkpoint from which training is resumed.",
                file=module.shown, line=node.lineno, library="lightning", after="fit",
            )  # fmt: skip
