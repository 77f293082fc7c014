"""How the trainer of a run is resumed: the one place that decides it. Everything that is said of it is this value.

In this order: ``{resume}`` in the command, the preset, a word of the command that leaves it to the trainer (``--resume
auto``), such a switch in its config, an option in the trainer's own source, a load there that needs no option. The
source is read, never run. *No* is said only of a source that was read whole; what cannot be told is *unknown*. What is
found in the source is a conclusion: the newest state is copied aside before the first such resume; its steps prove it.
"""

import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ...act.config.derive import RESUME, DeriveError, preview
from ...act.config.flags import option_groups
from ...act.config.trainer_config import TrainerSettings, config_in_command, load_config
from ...model.launch import Rehearsal
from ...model.preset import (
    PLACEHOLDER,
    Change,
    Preset,
    Profile,
    ResumeStyle,
    ResumeWay,
    SecondStart,
    Source,
    Written,
    leaves,
    with_way,
    written_in,
)
from ...model.run import RunSpec
from ...model.shipped import Remedy
from ...processes import file_text
from ...source.launch_target import Target
from ...source.options import Option
from ...source.parsers import BEFORE
from ...source.resume_finding import Candidate, Finding, WeightsOnly
from ...source.starting import EMPTY, KEEP, WEAK, Deletion, shell_deletes
from ...source.trainer_source import TrainerSource, read_source, source_of
from ...source.values import UNKNOWN
from ...source.words import NEWEST, RESUME_OPTION, TRACKERS
from ...store.learned import known_rehearsal, source_digests
from ..runs.known_runs import home

_BY_ITSELF = NEWEST | {""}
"""Values of such an option that leave the choice to the trainer; "" = the option alone."""
ADD = (
    "give the training script an option that takes the path of a checkpoint, and load model, optimizer and step from "
    "it (docs/how-to/resume.md has the lines)"
)


def decided(spec: RunSpec, preset: Preset, profile: Profile | None = None) -> RunSpec:
    """The run with its way to resume. ``preset``: the run's own, without a way. ``profile``: that in use.

    A rehearsal of the same command and source that resumed by it proves it.
    """
    way = way_of(spec, preset, profile)
    told = next(written_in(spec.command), None) if way.will == "unknown" else None
    rehearsal = rehearsed(spec) if way.is_unproven or not way.is_usable else None
    if rehearsal is not None and rehearsal.safe:
        way = way.proven("a rehearsal resumed by it")
        if told is not None and rehearsal.will == "yes":
            way = msgspec.structs.replace(way, will="yes", how=told.shown)
        elif rehearsal.will == "self" and not way.is_usable:
            way = by_itself(f" on {_on(rehearsal)}")
    source = source_of(spec)
    ends = () if _is_installed(source.target.file) else source.own_ends
    spec = msgspec.structs.replace(spec, resume_way=way, own_ends=ends)
    return msgspec.structs.replace(spec, second_start=second_start_of(spec, preset, way))


def second_start_of(spec: RunSpec, preset: Preset, way: ResumeWay) -> SecondStart:
    """What a restart of the command deletes, and what a launch that resumes leaves out because of it."""
    spec = msgspec.structs.replace(spec, second_start=SecondStart())
    argv = second_argv(spec, with_way(preset, way)) or spec.command
    source = read_source(argv, spec.cwd, spec.env)
    settings, config = ({}, "") if source.unread else config_settings(spec, preset)
    args, env = source.target.args, {**os.environ, **spec.env}
    found = source.deletes(args, env, settings, spec.output_dir)
    known = frozenset() if source.cut else frozenset(o.name for o in source.options)
    places = dict(source.saves(env))
    known_part = (path.partition(UNKNOWN)[0].rpartition("/")[0] for path in places)
    outputs = [spec.output_dir, *(os.path.join(spec.cwd, path) for path in known_part if path)]  # noqa: PTH118  no path
    in_shell = shell_deletes(source.target, argv, list(filter(None, outputs)), [*places], cwd=spec.cwd, env=env)
    as_given, left = (*found.as_given, *in_shell), (*found.left, *in_shell)
    proof = None if all(each.sure for each in as_given) else rehearsed(spec)
    if proof is not None and proof.safe and proof.will == "self":  # it went on from what may be deleted: it was not
        as_given, left = (tuple(each for each in of if each.sure) for of in (as_given, left))
    destroys = [_deleted(each, found.words) for each in as_given]
    copied = config_in_command(spec, json=True).config is not None  # else the script opens its own file
    drops = list(found.dropped) if way.is_usable and (copied or all(c.where != "config" for c in found.dropped)) else []
    without = msgspec.structs.replace(spec, second_start=SecondStart(drops=found.dropped, config=config or None))
    if drops and second_argv(without, with_way(preset, way)) is None:
        drops = []
    left, weak = left if drops or not way.is_usable else as_given, list(_weak(spec.command, args, known))
    destroys += [f"may be: by its name {name} may delete or write over what was saved; {NOT_SEEN}" for name in weak]
    if way.will == "no":
        destroys += [f"{place} writes over {path}" for path, place in places.items() if UNKNOWN not in path]
    sure = [name for name in weak if name in EMPTY and re.search(EMPTY[name], " ".join(spec.command))]
    drops += [Change(where="flag", key=name, before="", why=f"{name} deletes what was saved") for name in sure]
    may = f"what {weak[0]} does is not known" if weak else ""
    return SecondStart(
        destroys=tuple(destroys), drops=tuple(drops), may=may, config=config or None if drops else None,
        left=next((_deleted(each, found.words) for each in sorted(left, key=lambda each: not each.sure)), ""),
        empties=tuple(dict.fromkeys("" if "$" in each.folder else each.folder for each in as_given)),
        setting=setting_of(spec), lists=found.lists, refuses="" if in_shell else found.refuses, unread=source.unread,
    )  # fmt: skip


def in_this_environment(spec: RunSpec, preset: Preset) -> RunSpec:
    """The run with what its restarts delete in the environment of this process: another one than it was started in."""
    way = spec.resume_way
    if way is None or setting_of(spec) == spec.second_start.setting:
        return spec
    return msgspec.structs.replace(spec, second_start=second_start_of(spec, preset, way))


def second_argv(spec: RunSpec, preset: Preset) -> tuple[str, ...] | None:
    """The command of a restart, with ``{resume}`` for the checkpoint; None if it cannot be derived."""
    try:
        return preview(spec, preset, None, Path(RESUME), (), Path(spec.cwd), base_env=os.environ).argv
    except DeriveError:
        return None


NOT_SEEN = "its source is not read"


def _deleted(found: Deletion, words: Mapping[str, str]) -> str:
    options = [words[name] for name in found.options if name in words]
    because = f" because of {' and '.join(options)}" if options else ""
    does = f"{found.place} {found.does} {found.what} at the start"
    return f"{'' if found.sure else 'may be: '}{does}{because}{found.because}"


def _weak(command: Sequence[str], args: Sequence[str], known: frozenset[str]) -> Iterator[str]:
    """The given options that may delete by their names alone, and whose source is not read."""
    for at, word in enumerate(args):
        name, _, value = word.partition("=")
        following = args[at + 1].lower() if at + 1 < len(args) else ""
        given = name not in known and WEAK.fullmatch(name) and word.startswith("-") | ("=" in word)
        keeps = name in KEEP and re.search(KEEP[name], " ".join(command))
        if given and not keeps and (value or following).lower() not in {"false", "0", "no", "off"}:
            yield name


def weights_only_load(spec: RunSpec, preset: Preset) -> WeightsOnly | None:
    """The load of torch by which the person's own source resumes now, if it takes weights only."""
    source = source_of(spec)
    if _is_installed(source.target.file):
        return None
    return source.resume(*config_settings(spec, preset)).weights_only


def with_way_now(spec: RunSpec, preset: Preset) -> RunSpec:
    """The run with the way to resume that its command and script have now, if none was known. ``preset``: as above."""
    return spec if spec.resumes else decided(spec, preset)


def way_of(spec: RunSpec, preset: Preset, profile: Profile | None = None) -> ResumeWay:
    """How the trainer resumes, by the first of the sources above that says it."""
    source = source_of(spec)
    written = next(written_in(spec.command), None)
    by_command = None if written is None else _by_command(written, source)
    if by_command is not None and by_command.will == "no":
        return by_command
    if preset.resume == "none":
        return ResumeWay(will="no", source="preset", how=f'the preset {preset.name} never resumes (resume = "none")')
    styles = (preset.resume_file, preset.resume_directory)
    file, directory = (None if style is None or _contradicts(source, style) else style for style in styles)
    if known := [style for style in (file, directory) if style is not None]:
        lacks = _without_state(spec, preset, profile)
        how = " or ".join(dict.fromkeys(_shown(style) for style in (known[:1] if lacks else known)))
        way = ResumeWay(will="yes", source="preset", how=how, place=f"preset {preset.name}", lacks=lacks)
        return way if (file, directory) == styles else msgspec.structs.replace(way, file=file, directory=directory)
    if by_command is not None:
        return by_command
    settings, config = config_settings(spec, preset)
    finding = source.resume(settings, config)
    if (said := word_by_itself(spec.command)) is not None:
        return _alone("command", f"`{said}` in the command", "the command", "")
    for key, value in settings.items():
        bare = key.rpartition(".")[2].replace("-", "_").lower()
        of_preset = bare == preset.finds_with
        told = of_preset or (RESUME_OPTION.fullmatch(bare) and not TRACKERS.search(key))
        used = bool(finding.unsure) or key.rpartition(".")[2] in finding.reads
        if told and (used or of_preset) and value not in {None, ""} and str(value).lower() in _BY_ITSELF:
            return _alone("config", f"`{key} = {str(value).lower()}` in {config}", config, config)
    way = _from_source(spec, source, finding)
    if not way.is_usable and preset.finds_with == "always":
        return _alone("preset", preset.finds_checkpoint, f"preset {preset.name}", f"preset {preset.name}")
    if way.is_usable or not preset.finds_checkpoint:
        return way
    return msgspec.structs.replace(way, how=f"{way.how}; {preset.finds_checkpoint}")


def _without_state(spec: RunSpec, preset: Preset, profile: Profile | None) -> str:
    """Why its checkpoints hold weights only, as a clause; "" if that is not known."""
    settings = TrainerSettings(spec, preset)
    try:
        value = settings.value(profile, preset.state_key) if preset.state_key and not settings.hidden else True
    except DeriveError:  # the launch reports what is wrong with the config
        return ""
    return f"weights only: {preset.state_key} is not on" if value in {None, False, "false"} else ""


def _alone(source: Source, how: str, place: str, found: str, why: tuple[str, ...] = ()) -> ResumeWay:
    """A trainer that goes on by itself. ``found``: as of a ``ResumeStyle``."""
    style = ResumeStyle(by_itself=True, found=found or place)
    return ResumeWay(will="self", source=source, how=how, place=place, why=why, file=style, directory=style)


def _contradicts(source: TrainerSource, style: ResumeStyle) -> bool:
    """Whether the trainer's source, read whole, lacks the option of a preset, or never uses the library's."""
    first = style.args[0] if style.args else ""
    if not first.startswith("-"):
        return False
    option = source.option(first.partition("=")[0])
    if option is None:  # one that reads words by their places takes no option
        by_place = bool(source.options) and all(each.kind == "positional" for each in source.options)
        return source.declares_all or (by_place and not source.cut and not source.unread)
    finding = source.resume({})
    return option.library == "transformers" and option.dest not in finding.reads and not source.cut


def _by_command(written: Written, source: TrainerSource) -> ResumeWay:
    """``{resume}`` that the user wrote: sure if the trainer's own parser has what stands before it, *no* if not."""
    way = ResumeWay(will="yes", source="command", how=written.shown, place="the command")
    option = source.option(written.option)
    alone = option is not None and option.takes == "flag" and not written.joined
    takes_words = any(each.kind == "positional" for each in source.options)
    in_reach = source.target.place == "command"  # else a shell script takes the word, and decides what it becomes
    if source.declares_all and in_reach and (not written.option or written.option.startswith("-")):
        lacks = f"has no option {written.option}" if written.option and option is None else ""
        lacks = lacks or ("takes no value there" if not takes_words and (option is None or alone) else "")
        if lacks:
            said = f"{source.target.word or source.target.file.name} {lacks} (`{written.shown}` in the command)"
            return msgspec.structs.replace(way, will="no", how=f"{said}: its parser ends at it")
    if option is not None and not alone:
        return msgspec.structs.replace(way, why=(f"{option.name} in {option.place}",))
    if takes_words and (alone or not written.option):
        return msgspec.structs.replace(way, stands_alone=True)
    why = source.unread or "its source does not show whether it takes that"
    return msgspec.structs.replace(way, will="unknown", how=f"`{written.shown}` in the command: {why}")


def _shown(style: ResumeStyle) -> str:
    if style.key is not None:
        return f"{style.key} = …"
    words = [f"{name}={value}" for name, value in style.env.items()] + list(style.args)
    return re.sub(r"\{((path|name)(-[^{}]*)?|folder|step)\}", "…", " ".join(words))


def word_by_itself(command: Sequence[str]) -> str | None:
    """The option of a command that leaves the choice of the checkpoint to the trainer (``--resume auto``)."""
    for number, word in enumerate(command):
        name, equals, value = word.partition("=")
        if not equals:
            following = command[number + 1] if number + 1 < len(command) else ""
            value = "" if following.startswith("-") else following
        bare = name.lstrip("-+").replace("-", "_").rpartition(".")[2].lower()
        if RESUME_OPTION.fullmatch(bare) and (name != bare or equals) and value.lower() in _BY_ITSELF:
            return word if equals or not value else f"{word} {value}"
    return None


def _from_source(spec: RunSpec, source: TrainerSource, finding: Finding) -> ResumeWay:
    if source.unread:
        return ResumeWay(will="unknown", how=source.unread)
    target = source.target
    option = finding.option
    by_file = option is not None and option.option.library == "config"
    opens = by_file and config_in_command(spec, json=True).config is None
    way = None if option is None or opens else _by_option(option, target)
    if way is not None:
        return way
    if finding.by_itself:
        return _alone("self", finding.by_itself, finding.by_itself, finding.by_itself, finding.why)
    if option is not None and opens:
        how = f"only if {option.option.name} is set in {option.option.place}, which the script opens by itself"
        add = f"let its path be an option of the script (--config), and the command name it; {_follows(spec)}"
        return ResumeWay(will="no", how=f"{how}: {add}", place=option.option.place)
    if option is not None:
        pass_on = f'write "$@" behind {target.word} to pass the arguments on'
        why = f"{target.why_not}; {pass_on}, or {PLACEHOLDER} into the command"
        if option.option.after == BEFORE:
            why = f"it must stand before the subcommand; write `{option.option.name} {PLACEHOLDER}` there"
        how = f"{option.option.name} ({option.option.place}) cannot be given: {why}"
        return ResumeWay(will="no", source="none", how=how, place=option.option.place)
    name = os.path.relpath(target.file, spec.cwd) if target.file.is_relative_to(spec.cwd) else str(target.file)
    if _is_installed(target.file):  # the file of a library says nothing to who wrote neither it nor the command
        name = f"`{target.word}`, an installed command,"
    if finding.only_if and not finding.unsure:
        how = f"only if {finding.only_if}; {_follows(spec)}"
        return ResumeWay(will="no", how=how, place=finding.only_if.rpartition("(")[2].rstrip(")"))
    if finding.unsure:
        return ResumeWay(will="unknown", how=f"{name} shows no way, and {finding.unsure[0]}", place=name)
    add = f"write `{finding.write}` in the script" if finding.write else ADD
    return ResumeWay(will="no", how=f"{name} has no option for it; {_follows(spec)}; {add}", place=name)


def _follows(spec: RunSpec) -> str:
    """What a crash leads to without a way to resume."""
    if spec.settings.restart.if_not_told == "go_on":
        return "a crash begins it anew"
    return "a crash before the first save begins it anew; after one it is not restarted, which would write over it"


def _is_installed(file: Path) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def config_settings(spec: RunSpec, preset: Preset) -> tuple[Mapping[str, Any], str]:
    """The settings of the config that the run or its command names, or that its source opens, by dotted key."""
    found = config_in_command(spec, json=True)
    if found.config is None:
        found = msgspec.structs.replace(spec, config=source_of(spec).opened({**os.environ, **spec.env}))
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
    option, in_config = found.option, found.option.library == "config"
    place, on_line = option.place, option.kind != "environment" and not in_config
    if option.after == BEFORE or (found.wants == "step" and in_config) or (target.place == "nowhere" and on_line):
        return None
    file, directory = (_style(found, form, place) for form in ("file", "directory"))
    if target.place in {"line", "script"} and on_line:
        file, directory = (msgspec.structs.replace(style, word=target.word) for style in (file, directory))
    return ResumeWay(
        will="yes", source="config" if in_config else "script", how=_shown(file), place=place, why=found.why, file=file,
        directory=directory, lacks="weights only, as far as its source shows" if found.weights_only else "",
    )  # fmt: skip


def _style(found: Candidate, form: str, place: str) -> ResumeStyle:
    option, alone = found.option, found.wants == "flag"
    value = f"{{{found.form or 'path'}}}"
    if found.wants == "word":
        value = found.word
    elif found.wants == "step":
        value = "{step}"
    elif found.wants == "folder" or (found.wants == "inside" and form == "file"):
        value = "{folder}"
    words = [word for f in found.with_flags for word in ((f.name,) if f.takes == "flag" else (f.name, "true"))]
    if option.kind == "environment":
        return ResumeStyle(env={option.name: "1" if alone else value}, args=tuple(words), found=place)
    if option.library == "config":
        return ResumeStyle(key=option.name, args=tuple(words), found=place)
    if option.kind == "override":
        quoted = f"'{value}'" if value.startswith(("{path", "{name", "{folder}")) and not option.library else value
        words.append(f"{option.name}={'true' if alone else quoted}")
    elif option.kind == "positional":
        words.append(value)
    elif alone and option.takes == "flag":
        words.append(option.name)
    elif option.joined:
        words.append(f"{option.name}={'True' if alone else value}")
    else:
        words += [option.name, "true" if alone else value]
    return ResumeStyle(args=tuple(words), found=place)


# Options that remedies may change because the trainer's own source declares them.


def undeclared(spec: RunSpec, profile: Profile) -> tuple[str, ...] | None:
    """Those options of a profile that the trainer's source does not declare; None if that cannot be told.

    ``--safe-mode`` is another option than ``--safe_mode``, unless the command has it: then the launch changes that one.
    It cannot be told if not all of the source could be read, or if it takes options that it does not know.
    """
    source = source_of(spec)
    if not source.declares_all:
        return None
    known = {option.name.lstrip("-") for option in source.options}
    given = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in spec.command if word.startswith("-")}
    keys = [group.key for group in option_groups(profile.flags)]
    return tuple(f"--{key}" for key in keys if key not in known and key.replace("-", "_") not in given)


def as_declared(spec: RunSpec, profiles: Mapping[str, Profile]) -> Mapping[str, Profile]:
    """The profiles with the options as the script declares them: ``--safe-mode`` where it has no ``--safe_mode``."""
    keys = {group.key for profile in profiles.values() for group in option_groups(profile.flags)}
    found = _declared(source_of(spec), [key for key in keys if "_" in key])
    as_written = {name for name, option in found if option.name == f"--{name}"}
    spelled = {f"--{name}": option.name for name, option in found if name not in as_written}

    def word(flag: str) -> str:
        name, equals, value = flag.partition("=")
        return f"{spelled.get(name, name)}{equals}{value}"

    return {
        name: msgspec.structs.replace(profile, flags=tuple(word(flag) for flag in profile.flags))
        if spelled
        else profile
        for name, profile in profiles.items()
    }


def declared_options(spec: RunSpec, table: Iterable[Remedy]) -> frozenset[str]:
    """Those of the options in the table that can be added to the command, with their dashes."""
    wanted = {change.key for row in table for change in row.changes if change.where == "flag"}
    source = source_of(spec)
    found = [] if source.target.place == "nowhere" else _declared(source, wanted)
    return frozenset(option.name for _, option in found if option.kind == "option" and not option.after)


def defaults_of_options(spec: RunSpec, names: Collection[str]) -> dict[str, Any]:
    """The script's own value for each of these options that it declares with one; None is no value."""
    found = _declared(source_of(spec), names)
    return {name: option.default for name, option in found if option.default is not None}


def _declared(source: TrainerSource, names: Collection[str]) -> list[tuple[str, Option]]:
    """(name, option) of those that the script declares, with ``_`` or with ``-`` between the words.

    The source is parsed only if one of them is in the script's text.
    """
    wanted = {spelled: name for name in names for spelled in (name.replace("_", "-"), name)}
    text = file_text(source.target.file)
    options = source.options if any(name in text for name in wanted) else ()
    return [(wanted[o.name[2:]], o) for o in options if o.name.startswith("--") and o.name[2:] in wanted]


# What an earlier rehearsal of the same command and source proved, for its next start.


def rehearsed(spec: RunSpec) -> Rehearsal | None:
    """Its newest rehearsal, if it was one of this source and in this setting."""
    found = _known(spec)
    return None if found is None or found[1] or _differs(spec, found[0]) else found[0]


def _known(spec: RunSpec) -> tuple[Rehearsal, tuple[str, ...]] | None:
    return known_rehearsal(home(), spec.command, spec.cwd, lambda: sources_of(spec))


def sources_of(spec: RunSpec) -> dict[str, str]:
    """The files that decide what its trainer does, with digests of what they hold; nothing of an installed program."""
    source = source_of(spec)
    own = [str(source.target.file)] if source.is_own else []
    return source_digests((*spec.command, spec.config or "", *own), spec.cwd)


_OF_A_TERMINAL = frozenset({"PATH", "PWD", "OLDPWD", "PS1", "SHLVL", "HOSTNAME", "SLURM_JOB_ID"})
"""Variables that differ from one start to the next and decide nothing."""


def setting_of(spec: RunSpec) -> dict[str, str]:
    """The variables of the environment that its shell scripts and its source read: name and digest of the value."""
    source, env = source_of(spec), {**os.environ, **spec.env}
    names = {name for _, text in source.target.shells for name in re.findall(r"\$\{?([A-Za-z_]\w*)", text)}
    names |= {option.dest.removeprefix("$") for option in source.options if option.kind == "environment"}
    return {name: sha256(env[name].encode()).hexdigest()[:12] for name in names - _OF_A_TERMINAL if name in env}


def _differs(spec: RunSpec, rehearsal: Rehearsal) -> list[str]:
    now, then = setting_of(spec), rehearsal.setting
    return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def rehearsed_words(spec: RunSpec) -> str | None:
    """``rehearsed on 2026-11-22 21:04: resume proven``, or what has changed since; None if it was not rehearsed."""
    known = _known(spec)
    if known is None:
        return None
    found, changed = known
    if changed:
        names = [os.path.relpath(path, spec.cwd) for path in changed]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"rehearsed on {_on(found)} with another {names[0]}{more}, which proves nothing here"
    if other := _differs(spec, found):
        return f"rehearsed on {_on(found)} in another setting, which proves nothing here: {', '.join(other)} differs"
    how = " (by itself)" if found.will == "self" else ""
    said = {"safe": f"resume proven{how}", "unsafe": f"NOT SAFE: {found.reason}", "unknown": f"unknown: {found.reason}"}
    return f"rehearsed on {_on(found)}: {said[found.verdict]}"


def _on(found: Rehearsal) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(found.wall))


def resuming_by_itself(spec: RunSpec) -> RunSpec:
    """The run whose trainer is known to find its newest checkpoint by itself: it need not be told which one."""
    return spec if spec.resumes else msgspec.structs.replace(spec, resume_way=by_itself())


def by_itself(when: str = "") -> ResumeWay:
    """The way of a trainer that was seen to go on by itself."""
    style = ResumeStyle(by_itself=True)
    how = f"the trainer goes on from its newest checkpoint by itself, as its rehearsal{when} showed"
    return ResumeWay(will="self", source="self", how=how, file=style, directory=style)
