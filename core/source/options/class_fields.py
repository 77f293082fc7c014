"""Options that are made of names and types: the fields of a class, the parameters of a function."""

import ast
import re
from collections.abc import Iterator

from ..project_modules import Module, Project
from ..syntax import constant, dotted, keyword, last, text_of, texts_in
from .option import Kind, Option, Takes

Classes = dict[str, tuple[Module, ast.ClassDef]]


def classes_of(project: Project) -> Classes:
    return {n.name: (m, n) for m in reversed(project.modules) for n in m.classes}


def class_in(annotation: ast.expr | None) -> str:
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
        return class_in(inner)
    return last(dotted(annotation))


def fields_of(
    classes: Classes, name: str, *, prefix: str, separator: str, nested: bool, depth: int = 0
) -> Iterator[Option]:
    if name not in classes or depth > 4:
        return
    module, node = classes[name]
    for base in node.bases:
        yield from fields_of(
            classes, last(dotted(base)), prefix=prefix, separator=separator, nested=nested, depth=depth + 1
        )
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        inner = class_in(field.annotation)
        if inner in classes and nested:
            inside = field.target.id.replace("_", "-") if separator == "-" else field.target.id
            yield from fields_of(
                classes, inner, prefix=f"{prefix}{inside}.", separator=separator, nested=True, depth=depth + 1
            )
            continue
        told = field.value if isinstance(field.value, ast.Call) else None
        option = of_name(
            module, field.target.id, field.annotation, field.value, told, separator, field.lineno, "", prefix=prefix
        )
        yield option


def of_name(  # noqa: PLR0917
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
    text = texts_in(keyword(told, "help")) if told is not None else ""
    if told is not None and not text and isinstance(metadata := keyword(told, "metadata"), ast.Dict):
        text = texts_in(metadata)
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


def further_parts(annotation: ast.expr | None) -> list[ast.expr]:
    """The further parts of ``Annotated[type, …]``."""
    if (
        isinstance(annotation, ast.Subscript)
        and last(dotted(annotation)) == "Annotated"
        and isinstance(annotation.slice, ast.Tuple)
    ):
        return list(annotation.slice.elts[1:])
    return []
