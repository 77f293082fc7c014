"""Settings that a trainer reads from configuration files: Hydra's, OmegaConf's, and the file that its command names."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .options.option import Option
from .project_modules import Module, Project
from .syntax import constant, dotted, keyword, last, text_of
from .words import CHECKPOINT, RESUME

MOST_CONFIGS = 200
LARGEST_BYTES = 1 << 18
_LINE = re.compile(r"^(\s*)([\w-]+)\s*:(.*)$")


def override_options(project: Project) -> list[Option]:
    """``key=value`` words: Hydra's and OmegaConf's. Keys of Hydra's own files, and keys that the code reads."""
    found: dict[str, Option] = {}
    for module in project.modules:
        decorators = [d for n in module.functions for d in n.decorator_list]
        hydra = [d for d in decorators if isinstance(d, ast.Call) and dotted(d.func).endswith("hydra.main")]
        hydra += [
            d for d in decorators if isinstance(d, ast.Call) and module.aliases.get(dotted(d.func)) == "hydra.main"
        ]
        for decorator in hydra:
            for option in _hydra_keys(module, decorator):
                found.setdefault(option.name, option)
        if hydra:
            for option in _read_keys(project, prefix="+"):
                if not any(o.dest == option.dest for o in found.values()):
                    found.setdefault(option.name, option)
        elif re.search(r"OmegaConf\.from_(cli|dotlist)|DEFINE_config_file|from_cli\(", module.text):
            absl = "DEFINE_config_file" in module.text
            for option in _read_keys(project, prefix="--config." if absl else ""):
                found.setdefault(option.name, option)
    return list(found.values())


def _hydra_keys(module: Module, decorator: ast.Call) -> Iterator[Option]:
    path = constant(keyword(decorator, "config_path"))
    folder = module.path.parent / (path if isinstance(path, str) else ".")
    if not isinstance(path, str) or not folder.is_dir():
        return
    name = text_of(keyword(decorator, "config_name")) or "config"
    files = sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")])[:MOST_CONFIGS]
    for file in sorted(files, key=lambda f: f.stem != name.removesuffix(".yaml")):
        group = file.parent.relative_to(folder).parts
        try:
            text = file.read_text("utf-8", "replace") if file.stat().st_size < LARGEST_BYTES else ""
        except OSError:
            continue
        package = re.search(r"@package\s+(\S+)", text[:400])
        if package:
            group = () if package[1] == "_global_" else tuple(package[1].split("."))
        for keys, value, line in yaml_keys(text):
            default = _plain(value)
            yield Option(
                name=".".join((*group, *keys)), dest=keys[-1], kind="override", default=default, file=file.name,
                takes="truth" if isinstance(default, bool) else "value", line=line,
                help=value.partition("#")[2].strip(),
            )  # fmt: skip


def yaml_keys(text: str) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """(keys, text of the value, line) of the plain keys of a YAML text, by their indentation. Lists are left out."""
    open_: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.match(line)
        if found is None or line.lstrip().startswith("#"):
            continue
        indent = len(found[1])
        while open_ and open_[-1][0] >= indent:
            open_.pop()
        open_.append((indent, found[2]))
        yield tuple(key for _, key in open_), found[3].strip(), number


def _plain(value: str) -> Any:
    bare = value.partition(" #")[0].strip().strip("\"'")
    if bare.lower() in {"", "null", "~", "none"} or bare.startswith(("#", "${", "???")):
        return None
    return {"true": True, "false": False}.get(bare.lower(), bare)


def _read_keys(project: Project, *, prefix: str) -> Iterator[Option]:
    """Keys that the code reads and that may be about a resume: ``cfg.trainer.resume``, ``cfg["resume"]``."""
    for module, keys, line in _accesses(project):
        flag = prefix.startswith("-")
        yield Option(
            name=f"{prefix}{'.'.join(keys)}", dest=keys[-1], kind="option" if flag else "override", file=module.shown,
            line=line, joined=flag,
        )  # fmt: skip


def file_options(project: Project, settings: Mapping[str, Any], path: str) -> list[Option]:
    """Keys of the config that the command names, and keys that the code reads and that may be about a resume.

    ``settings``: dotted key → value.
    """
    options = [
        Option(name=key, dest=key.rpartition(".")[2], kind="override", default=value, file=path, library="config")
        for key, value in settings.items()
    ]
    known = {option.dest for option in options}
    for module, keys, line in _accesses(project):
        if keys[-1] not in known:
            known.add(keys[-1])
            options.append(
                Option(name=keys[-1], dest=keys[-1], kind="override", file=module.shown, line=line, library="config")
            )
    return options


def _accesses(project: Project) -> Iterator[tuple[Module, tuple[str, ...], int]]:
    seen: set[tuple[str, ...]] = set()
    for module in project.modules:
        for node in module.nodes:
            keys = tuple(reversed(list(_chain(node))))
            if not keys or not (RESUME.search(keys[-1]) or CHECKPOINT.search(keys[-1])) or keys in seen:
                continue
            if _root(node) in module.aliases or _root(node) in {"self", "torch", "os"}:
                continue
            seen.add(keys)
            yield module, keys, node.lineno  # type: ignore[attr-defined]


def _chain(node: ast.AST) -> Iterable[str]:
    """The keys of an access, the last first; nothing if it is none."""
    while True:
        if isinstance(node, ast.Attribute):
            yield node.attr
            node = node.value
        elif isinstance(node, ast.Subscript) and (text := text_of(node.slice)) is not None and text.isidentifier():
            yield text
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and last(dotted(node.func)) == "get"
            and node.args
            and (text := text_of(node.args[0]))
        ):
            yield text
            assert isinstance(node.func, ast.Attribute | ast.Name)
            if isinstance(node.func, ast.Name):
                return
            node = node.func.value
        else:
            return


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
