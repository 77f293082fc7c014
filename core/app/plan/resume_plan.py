"""How the trainer of a run is resumed: the one place that decides it.

In this order: the preset, ``{resume}`` in the command, a word of the command that leaves it to the trainer (``--resume
auto``), an option in the trainer's own source, a load there that needs no option. The source is read, never run. What
is found there is a conclusion: the newest state is copied aside before the first such resume, whose steps prove it.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...act.config.derive import RESUME, DeriveError, preview
from ...act.config.nested_keys import leaves
from ...act.config.trainer_config import config_in_command, load_config
from ...model.launch.change import Change
from ...model.launch.resume_support import PLACEHOLDER
from ...model.launch.resume_way import ResumeWay, SecondStart, with_way
from ...model.run import RunSpec
from ...model.shipped.preset import Preset, ResumeStyle
from ...source.launch_target import Target
from ...source.options.option import Option
from ...source.resume_finding import Candidate
from ...source.start_deletes import WEAK, Deletion, Setting, StartDeletes, known_option, shell_deletes
from ...source.trainer_source import read_source
from .rehearsed import rehearsed

_RESUMES = re.compile(r"(auto_?)?(resume|continue)(_training|_run|_from(_checkpoint|_ckpt)?|_path|_ckpt)?")
_BY_ITSELF = frozenset(
    {"", "true", "1", "yes", "on", "auto", "latest", "last", "newest", "allow", "must", "must_resume"}
)
"""Values of such an option that leave the choice to the trainer; "" = the option alone."""
KNOWN = frozenset({"yes", "self"})
"""``ResumeWay.will`` of a way that a launch can use."""
ADD = (
    f"add an option that takes the path of a checkpoint to the training script, or write {PLACEHOLDER} into the command"
)


def decided(spec: RunSpec, preset: Preset) -> RunSpec:
    """The run with its way to resume. ``preset``: the run's own, without a way.

    A rehearsal of the same command and source that resumed by it proves it.
    """
    way = way_of(spec, preset)
    rehearsal = rehearsed(spec) if way.is_unproven else None
    if rehearsal is not None and rehearsal.safe:
        way = way.proven("a rehearsal resumed by it")
    spec = msgspec.structs.replace(spec, resume_way=way)
    return msgspec.structs.replace(spec, second_start=second_start_of(spec, preset, way))


def second_start_of(spec: RunSpec, preset: Preset, way: ResumeWay) -> SecondStart:
    """What a restart of the command deletes, and what a launch that resumes leaves out because of it."""
    spec = msgspec.structs.replace(spec, second_start=SecondStart())
    argv = second_argv(spec, with_way(preset, way))
    source = read_source(argv, spec.cwd, spec.env)
    settings, config = ({}, "") if isinstance(source, str) else _settings(spec, preset, json=True)
    args = argv if isinstance(source, str) else source.target.args
    found, known = StartDeletes(), frozenset[str]()
    if not isinstance(source, str):
        found = source.deletes(args, {**os.environ, **spec.env}, settings, spec.output_dir)
        known = frozenset() if source.resume(settings, config).unread else frozenset(o.name for o in source.options)
        in_shell = shell_deletes(source.target.shells, args, spec.output_dir, spec.cwd)
        found = msgspec.structs.replace(found, as_given=(*found.as_given, *in_shell), left=(*found.left, *in_shell))
    destroys = [_deleted(each, found.words) for each in found.as_given]
    drops = [_drop(each, found) for each in found.dropped] if way.will in KNOWN else []
    left = found.left if drops or way.will not in KNOWN else found.as_given
    may = next((_deleted(each, found.words) for each in left if not each.sure), "")
    for name, value in _weak(args, known):
        option = known_option(spec.command, name)
        if option is None:
            may = may or f"what {name} does is not known"
            destroys.append(f"may be: by its name {name} may delete or write over what was saved; {NOT_SEEN}")
        elif option.deletes:
            destroys.append(f"{name} deletes what was saved ({option.source})")
            drops.append(
                Change(where="flag", key=name, before=value, why=f"a start with {name} deletes what was saved")
            )
    return SecondStart(
        destroys=tuple(destroys), drops=tuple(drops), may=may, config=config or None if drops else None,
        left=next((_deleted(each, found.words) for each in left if each.sure), ""),
    )  # fmt: skip


def second_argv(spec: RunSpec, preset: Preset) -> tuple[str, ...]:
    """The command of a restart, with ``{resume}`` for the checkpoint; as it was given if none can be named."""
    folder = Path(spec.cwd)
    try:
        return preview(spec, preset, None, Path(RESUME), (), folder, base_env=os.environ).argv
    except DeriveError:
        return spec.command


NOT_SEEN = "its source is not read"


def _deleted(found: Deletion, words: Mapping[str, str]) -> str:
    """What is deleted, where and because of what, as a clause."""
    options = [words[name] for name in found.options if name in words]
    because = f" because of {' and '.join(options)}" if options else ""
    return f"{'' if found.sure else 'may be: '}{found.place} deletes {found.what} at the start{because}"


def _drop(setting: Setting, found: StartDeletes) -> Change:
    place = next((each.place for each in found.as_given if setting.option in each.options), "")
    why = f"with it {place} deletes what was saved"
    if setting.in_config:
        return Change(where="config", key=setting.name, before=True, after=False, why=why)
    return Change(where="flag", key=setting.name, before=setting.before, after=setting.after, why=why)


def _weak(args: Sequence[str], known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """(name, value) of given options that may delete by their names alone, and whose source is not read."""
    for at, word in enumerate(args):
        name, _, value = word.partition("=")
        following = args[at + 1].lower() if at + 1 < len(args) else ""
        given = name not in known and WEAK.fullmatch(name) and word.startswith("-") | ("=" in word)
        if given and (value or following).lower() not in {"false", "0", "no", "off"}:
            yield name, value


def with_way_now(spec: RunSpec, preset: Preset) -> RunSpec:
    """The run with the way to resume that its command and script have now, if none was known. ``preset``: as above."""
    if spec.resume_way is not None and spec.resume_way.will in KNOWN:
        return spec
    return decided(spec, preset)


def way_of(spec: RunSpec, preset: Preset) -> ResumeWay:
    """How the trainer resumes, by the first of the sources above that says it."""
    if preset.resume == "none":
        return ResumeWay(will="no", source="preset", how=f'the preset {preset.name} never resumes (resume = "none")')
    known = preset.resume_directory or preset.resume_file
    if known is not None:
        return ResumeWay(will="yes", source="preset", how=_shown(known), place=f"preset {preset.name}")
    option = _placeholder(spec.command)
    if option is not None:
        return ResumeWay(will="yes", source="command", how=option, place="the command")
    said = word_by_itself(spec.command)
    if said is not None:
        style = ResumeStyle(by_itself=True, found="the command")
        return ResumeWay(
            will="self",
            source="command",
            how=f"`{said}` in the command",
            place="the command",
            file=style,
            directory=style,
        )
    way = _from_source(spec, preset)
    if way.is_found or not preset.finds_checkpoint:
        return way
    return msgspec.structs.replace(way, how=f"{way.how}; {preset.finds_checkpoint}")


def _shown(style: ResumeStyle) -> str:
    if style.key is not None:
        return f"{style.key} = …"
    words = [f"{name}={value}" for name, value in style.env.items()] + list(style.args)
    return re.sub(r"\{((path|name)(-[^{}]*)?|folder|step)\}", "…", " ".join(words))


def _placeholder(command: Sequence[str]) -> str | None:
    """The option with ``{resume}`` as it is written; None if the command has none."""
    for at, word in enumerate(command):
        if PLACEHOLDER in word:
            if any(c.isspace() for c in word):
                found = re.search(rf"(--?[\w.-]+[ =])?\S*{re.escape(PLACEHOLDER)}\S*", word)
                return found[0] if found else PLACEHOLDER
            before = command[at - 1] if at and command[at - 1].startswith("-") and word == PLACEHOLDER else ""
            return f"{before} {word}".strip()
    return None


def word_by_itself(command: Sequence[str]) -> str | None:
    """The option of a command that leaves the choice of the checkpoint to the trainer (``--resume auto``)."""
    for number, word in enumerate(command):
        name, equals, value = word.partition("=")
        if not equals:
            following = command[number + 1] if number + 1 < len(command) else ""
            value = "" if following.startswith("-") else following
        bare = name.lstrip("-+").replace("-", "_").rpartition(".")[2].lower()
        if _RESUMES.fullmatch(bare) and (name != bare or equals) and value.lower() in _BY_ITSELF:
            return word if equals or not value else f"{word} {value}"
    return None


def _from_source(spec: RunSpec, preset: Preset) -> ResumeWay:
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str):
        return ResumeWay(will="unknown", how=f"{source}; {ADD}")
    target = source.target
    finding = source.resume(*_settings(spec, preset))
    if finding.option is not None:
        way = _by_option(finding.option, target)
        if way is not None:
            return way
    if finding.by_itself:
        style = ResumeStyle(by_itself=True, found=finding.by_itself)
        return ResumeWay(
            will="self", source="self", how=finding.by_itself, place=finding.by_itself, why=finding.why, file=style,
            directory=style,
        )  # fmt: skip
    if finding.option is not None:
        option = finding.option.option
        how = f"{option.name} ({option.file}:{option.line}) cannot be given: {target.why_not}; {_pass_on(target)}"
        return ResumeWay(will="no", source="none", how=how, place=f"{option.file}:{option.line}")
    name = os.path.relpath(target.file, spec.cwd) if target.file.is_relative_to(spec.cwd) else str(target.file)
    if _is_installed(target.file):  # the file of a library says nothing to who wrote neither it nor the command
        name = f"`{target.word}`, an installed command,"
    if finding.unread:
        return ResumeWay(will="unknown", how=f"{name} shows no way, and {finding.unread[0]}; {ADD}", place=name)
    return ResumeWay(will="no", how=f"a crash ends this run: {name} has no option for it; {ADD}", place=name)


def _is_installed(file: Path) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def _pass_on(target: Target) -> str:
    return f'write "$@" behind {target.word} to pass the arguments on, or {PLACEHOLDER} into the command'


def _settings(spec: RunSpec, preset: Preset, *, json: bool = False) -> tuple[Mapping[str, Any], str]:
    """The settings of the config that the run or its command names, by dotted key. ``json``: also of a JSON file."""
    found = config_in_command(spec, json=json)
    if found.config is None:
        return {}, ""
    try:
        config = load_config(found, preset)
    except DeriveError:  # the launch reports what is wrong with it
        return {}, ""
    plain = {key: value for key, value in leaves(config.tree) if isinstance(value, str | bool | int | float | None)}
    return plain, os.path.relpath(config.path, spec.cwd)


def _by_option(found: Candidate, target: Target) -> ResumeWay | None:
    """The way by an option; None if it cannot be given to this command."""
    option = found.option
    place = f"{option.file}:{option.line}"
    styles = {form: _style(found, form, place) for form in ("file", "directory")}
    if found.wants == "step" and option.library == "config":
        return None
    if target.place == "nowhere" and option.kind != "environment" and option.library != "config":
        return None
    if target.place in {"line", "script"} and option.kind != "environment" and option.library != "config":
        styles = {form: msgspec.structs.replace(style, word=target.word) for form, style in styles.items()}
    if option.kind == "positional" and _is_given(option, target):
        return None
    return ResumeWay(
        will="yes", source="script", how=_shown(styles["file"]), place=place, why=found.why, file=styles["file"],
        directory=styles["directory"],
    )  # fmt: skip


def _is_given(option: Option, target: Target) -> bool:
    """Whether the command has positional words already: which of them it is cannot be told."""
    number = option.dest.removeprefix("$argv")
    words = [word for word in target.args if not word.startswith("-")]
    return len(words) >= int(number) if number.isdigit() else bool(words)


def _style(found: Candidate, form: str, place: str) -> ResumeStyle:
    option = found.option
    value = f"{{{found.form or 'path'}}}"
    if found.wants == "word":
        value = found.word
    elif found.wants == "step":
        value = "{step}"
    elif found.wants == "folder" or (found.wants == "inside" and form == "file"):
        value = "{folder}"
    words: list[str] = []
    for flag in found.with_flags:
        words += [flag.name] if flag.takes == "flag" else [flag.name, "true"]
    if option.kind == "environment":
        return ResumeStyle(env={option.name: "1" if found.wants == "flag" else value}, args=tuple(words), found=place)
    if option.library == "config":
        return ResumeStyle(key=option.name, args=tuple(words), found=place)
    if option.kind == "override":
        quoted = f"'{value}'" if value.startswith(("{path", "{name", "{folder}")) and not option.library else value
        words.append(f"{option.name}={'true' if found.wants == 'flag' else quoted}")
    elif option.kind == "positional":
        words.append(value)
    elif found.wants == "flag" and option.takes == "flag":
        words.append(option.name)
    elif option.joined:
        words.append(f"{option.name}={'True' if found.wants == 'flag' else value}")
    else:
        words += [option.name, "true" if found.wants == "flag" else value]
    return ResumeStyle(args=tuple(words), found=place)
