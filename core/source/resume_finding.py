"""How a trainer is resumed, as its own source shows it: by an option, by itself, or not at all.

Decided by what the option says about itself (name, help) and above all by where its value goes: into a call that
restores a training, or into a load whose content sets an optimizer, several parts, or a counter. A load that no
option feeds, of something that the trainer itself saved or looks for, means that it finds its checkpoint by itself.
Both are probabilities: the first resume is watched (judge/resume) and the newest state is copied aside before it.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from . import words
from .flow.labels import Event, Guard, Label, is_own_load
from .flow.value_flow import ValueFlow
from .launch_target import Target
from .options.option import Option
from .project_modules import Project

ENOUGH = 4
"""Points from which an option is taken: a name that says so, or a flow into a load that restores a training."""

Wants = Literal["path", "inside", "folder", "flag", "word", "step"]
"""What the option takes: the checkpoint; a folder with files in it; the folder of the checkpoints; nothing; a word; the
number in the name of the checkpoint."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An option by which the trainer is resumed. ``with_flags``: options that must be on beside it.

    ``form``: what of the checkpoint's path it takes (flow/labels.py).
    """

    option: Option
    wants: Wants
    word: str = ""
    form: str = ""
    with_flags: tuple[Option, ...] = ()
    points: int = 0
    why: tuple[str, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``option``: the best candidate. ``by_itself``: where the trainer goes on by itself (``train.py:30``).

    ``why``: evidence, a clause each. ``unread``: what could not be read: then nothing found is not "none".
    ``target``: what was read.
    """

    option: Candidate | None = None
    by_itself: str = ""
    why: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    target: Target | None = None


def find_resume(project: Project, options: Sequence[Option], target: Target | None = None) -> Finding:
    flow = ValueFlow(project, options)
    candidates = [c for number in range(len(options)) if (c := _candidate(number, flow)) is not None]
    best = max(candidates, key=lambda c: (c.points - len(c.with_flags), -candidates.index(c)), default=None)
    alone, why = _by_itself(flow)
    return Finding(
        option=best,
        by_itself=alone,
        why=best.why if best is not None else why,
        unread=project.unread,
        target=target,
    )


def _candidate(number: int, flow: ValueFlow) -> Candidate | None:
    option = flow.options[number]
    says = f"{option.name} {option.dest} {option.help}"
    name = f"{option.name} {option.dest}"
    if words.TRACKERS.search(name):
        return None
    events = list(flow.events.values())
    fed = [e for e in events if e.kind in {"load", "whole"} and _feeds(e, number)]
    if option.takes == "number" and not (fed and (words.RESUME.search(says) or words.STEPS.search(name))):
        return None
    guarded = [e for e in events if e.kind in {"load", "whole"} and not _feeds(e, number) and _on(e, number)]
    restores = _restores(events, {number}) if fed else 0
    if guarded and restores < 2 and not any(e.kind == "whole" for e in fed):
        by_guard = _restores(events, {each.of for e in guarded for each in e.labels})
        if not fed or by_guard >= 2 or any(e.kind == "whole" for e in guarded):
            fed, restores = [], by_guard
    loads = fed or guarded
    whole = [e for e in loads if e.kind == "whole"]
    named = bool(words.RESUME.search(name))
    points, why = 0, []
    if whole:
        points, why = 5, [f"it reaches {whole[0].called}() in {whole[0].module}:{whole[0].line}"]
    elif loads and restores >= 2:
        points, why = 5, [f"what is loaded by it in {loads[0].module}:{loads[0].line} restores a training"]
    elif loads:
        points, why = 2, [f"it is loaded in {loads[0].module}:{loads[0].line}"]
    if option.library == "lightning":
        points, why = 6, ["LightningCLI resumes from it"]
    if named:
        points += 4
        why.append("its name says so")
    elif words.RESUME.search(option.help):
        points += 3
        why.append("its help text says so")
    elif words.CHECKPOINT.search(name) and loads:
        points += 1
    if words.OTHER_WEIGHTS.search(says) and not named:
        points -= 3 if whole or restores >= 2 else 5
    used = _is_used(option, flow, events, number)
    saved = any(
        e.kind == "save" and any(each.of == number and each.how in {"path", "inside"} for each in e.labels)
        for e in events
    )
    if saved and not named:
        return None  # an output folder: what is loaded from it the trainer finds by itself
    if not used and option.library != "lightning":
        return None
    if words.SAVING.search(name) and not named and not (whole or restores >= 2):
        points -= 3
    if option.takes in {"flag", "truth"}:
        if option.default is True or not loads:
            return None
        if _off(events, number) and not guarded:
            return None
    elif not loads and not named and option.library != "lightning":
        return None
    if points < ENOUGH:
        return None
    return _with_form(option, number, flow, fed, guarded, points, tuple(why))


def _with_form(  # noqa: PLR0917
    option: Option,
    number: int,
    flow: ValueFlow,
    fed: list[Event],
    guarded: list[Event],
    points: int,
    why: tuple[str, ...],
) -> Candidate | None:
    """What the option takes."""
    if option.takes == "number":
        return Candidate(option=option, wants="step", points=points, why=why)
    flags: list[Option] = []
    if option.takes in {"flag", "truth"}:
        partner = _partner(number, flow, guarded)
        if partner is not None:
            base = _with_form(flow.options[partner], partner, flow, guarded, [], points, why)
            if base is not None and base.wants != "flag":
                return msgspec.structs.replace(base, with_flags=(option,))
        return Candidate(option=option, wants="flag", points=points, why=why)
    how = {each.how for e in fed for each in e.labels if each.of == number}
    values = [g.value for e in guarded for g in e.guards if g.of == number and g.on and g.value]
    values += [
        each.value
        for e in [*fed, *guarded]
        for each in e.labels
        if each.of == number and each.how == "when" and each.value not in {"", "-"}
    ]
    values += [c for c in option.choices if words.RESUME.search(c) or c.lower() in words.NEWEST]
    if option.choices:
        word = next((v for v in values if v in option.choices), "")
        return Candidate(option=option, wants="word", word=word, points=points, why=why) if word else None
    if fed:
        for event in fed:
            for guard in event.guards:
                other = flow.options[guard.of]
                needs = (
                    guard.on and guard.of != number and other.takes in {"flag", "truth"} and other.default is not True
                )
                if needs and _says_resume(other) and other not in flags:
                    flags.append(other)
    if "path" in how or not how & {"inside", "found"}:
        if not fed and values:
            return Candidate(option=option, wants="word", word=values[0], points=points, why=why)
        forms = {each.form for e in fed for each in e.labels if each.of == number and each.how == "path"}
        form = forms.pop() if len(forms) == 1 else ""
        return Candidate(option=option, wants="path", form=form, with_flags=tuple(flags), points=points, why=why)
    wants: Wants = "inside" if "inside" in how and "found" not in how else "folder"
    return Candidate(option=option, wants=wants, with_flags=tuple(flags), points=points, why=why)


def _says_resume(option: Option) -> bool:
    return bool(words.RESUME.search(f"{option.name} {option.help}") or words.CHECKPOINT.search(option.name))


def _partner(number: int, flow: ValueFlow, guarded: Sequence[Event]) -> int | None:
    """The option whose path is loaded if a flag is on, and that has no default which the trainer writes itself."""
    saved = {
        each.of for e in flow.events.values() if e.kind == "save" for each in e.labels if each.how in {"path", "inside"}
    }
    for event in guarded:
        for label in sorted(event.labels):
            if label.of < 0 or label.of == number or label.how not in {"path", "inside"} or label.of in saved:
                continue
            other = flow.options[label.of]
            if other.takes == "value" and not other.default and words.CHECKPOINT.search(f"{other.name} {other.help}"):
                return label.of
    return None


def _feeds(event: Event, number: int) -> bool:
    return any(each.of == number and each.how in {"path", "inside", "found"} for each in event.labels)


def _on(event: Event, number: int) -> bool:
    """Whether the call happens if the option is on."""
    return any(g.of == number and g.on for g in event.guards) or any(
        each.of == number and each.how == "when" and each.value != "-" for each in event.labels
    )


def _off(events: Sequence[Event], number: int) -> bool:
    return any(g.of == number and not g.on for e in events if e.kind in {"load", "whole"} for g in e.guards)


def _restores(events: Sequence[Event], of: set[int]) -> int:
    """How much of a training what was loaded restores: 0 nothing seen, 1 one part, 2 several parts or a counter."""
    parts: set[str] = set()
    points = 0
    for event in events:
        tells = {"state", "found"} if event.kind == "count" else {"state"}  # the name of what was found has a number
        if not any(each.of in of and each.how in tells for each in event.labels):
            continue
        if event.kind == "count":
            points = max(points, 2)
        elif event.kind == "part":
            parts.add(event.receiver)
            if words.OPTIMIZERS.search(event.receiver) or any(
                words.OPTIMIZERS.search(t) or words.STEPS.search(t) for t in event.text
            ):
                points = max(points, 2)
        elif event.kind == "hand" and any(words.STEPS.search(t) for t in event.text):
            points = max(points, 2)
    return max(points, min(2, len(parts)))


def _is_used(option: Option, flow: ValueFlow, events: Sequence[Event], number: int) -> bool:
    """Whether anything reads the option."""
    if option.dest.startswith("$") or option.dest in flow.read or option.parameter:
        return True
    return any(each.of == number for e in events for each in e.labels) or any(
        g.of == number for e in events for g in e.guards
    )


def _by_itself(flow: ValueFlow) -> tuple[str, tuple[str, ...]]:
    """Where the trainer goes on by itself, and why it looks so; "" if nothing shows it."""
    events = list(flow.events.values())
    written = {t for e in events if e.kind == "save" for t in e.text if len(t) > 2}
    saved = {each.of for e in events if e.kind == "save" for each in e.labels if each.how in {"path", "inside"}}
    looks = {each.of for e in events if e.kind in {"look", "find"} for each in e.labels}
    best: tuple[int, str, tuple[str, ...]] = (0, "", ())
    for event in events:
        if event.kind not in {"load", "whole"} or not all(_holds_by_default(g, flow) for g in event.guards):
            continue
        whens = [each for each in event.labels if each.how == "when"]
        if whens and not any(
            _holds_by_default(Guard(each.of, on=each.value != "-", value=each.value if each.value != "-" else ""), flow)
            for each in whens
        ):
            continue
        own = {each.of for each in event.labels if each.how in {"path", "inside", "found"}}
        given = {n for n in own if n >= 0}
        if given and not all(_has_default(flow.options[n]) or n in saved for n in given):
            continue
        no_place = bool(own) and all(is_own_load(each.of) and each.how == "path" for each in event.labels)
        if no_place and event.called.endswith(".restore") and event.receiver not in flow.savers:
            continue  # of what it holds in memory: averaged weights are put back after each evaluation
        points, why = 0, []
        restores = _restores(events, own)
        if event.kind == "whole" or restores >= 2:
            points += 2
            why.append(f"{event.called}() in {event.module}:{event.line} restores a training")
        if own & saved or written & set(event.text):
            points += 2
            why.append("from what the trainer itself writes")
        if own & looks or any(each.how == "found" for each in event.labels):
            points += 1
            why.append("if it is there")
        elif no_place and event.kind == "whole" and event.receiver in flow.savers:
            points += 1
            why.append("from what the same object saves")
        if words.RESUME.search(event.receiver) or (
            event.kind == "whole" and words.WHOLE_KEYWORDS.search(event.receiver)
        ):
            points += 2
        elif words.RESUME.search(event.called):
            points += 1
        if (event.kind == "whole" or restores >= 2) and points > best[0]:
            best = (points, f"{event.module}:{event.line}", tuple(why))
    return (best[1], best[2]) if best[0] >= 3 else ("", ())


def _holds_by_default(guard: Guard, flow: ValueFlow) -> bool:
    """Whether a test passes if nothing is given on the command line."""
    option = flow.options[guard.of]
    default = option.default
    if guard.value:
        return (str(default) == guard.value) is guard.on
    if default is None and option.takes in {"value", "number"} and not _looks_like_resume(option):
        return True  # an option that has nothing to do with it
    given = bool(default) and str(default).lower() not in {"none", "false", "0", "no", "off"}
    return given is guard.on


def _looks_like_resume(option: Option) -> bool:
    return bool(words.RESUME.search(option.name) or words.CHECKPOINT.search(option.name))


def _has_default(option: Option) -> bool:
    return bool(option.default) or option.required


__all__ = ["Candidate", "Finding", "Label", "find_resume"]
