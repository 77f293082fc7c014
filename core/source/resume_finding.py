"""How a trainer is resumed, as its own source shows it: by an option, by itself, or not at all.

Decided by what the option says about itself (name, help) and above all by where its value goes: into a call that
restores a training, or into a load whose content sets an optimizer, several parts, or a counter. A load that no
option feeds, of something that the trainer itself saved or looks for, means that it finds its checkpoint by itself.
Both are probabilities: the first resume is watched (judge/resume) and the newest state is copied aside before it.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from . import words
from .flow import Event, ValueFlow, is_own_load, says_resume
from .options import Option
from .project import Project, Site, resolved
from .values import KnownValues, name_of, value_given

ENOUGH = 4
"""Points from which an option is taken: a name that says so, or a flow into a load that restores a training."""

_TAKES_WORDS = re.compile(
    r"sys\.argv(?!\[\d)(?!\.index\()(?<!in sys\.argv)(?<!len\(sys\.argv)"
    r"|argparse|\bclick\b|typer|\bfire\b|tyro|hydra|absl|docopt|jsonargparse|(?<!HfArgument)Parser\b|LightningCLI"
)
"""Sources that take words of the command line, other than by their number or by a name that they look for."""
OWN_LOOP = re.compile(r"\.backward\(|apply_gradients|value_and_grad|\.minimize\(|train_on_batch|GradientTape|jax\.grad")
"""Sources that train by a loop of their own."""
Wants = Literal["path", "inside", "folder", "flag", "word", "step"]
"""What the option takes: the checkpoint; a folder with files in it; the folder of the checkpoints; nothing; a word; the
number in the name of the checkpoint."""


_SWITCHED = frozenset({"flag", "truth"})
_PLACES = ("path", "inside", "found")
"""Ways in which a value says what is loaded."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An option by which the trainer is resumed. ``with_flags``: options that must be on beside it.

    ``form``: what of the checkpoint's path it takes (``flow.Label``).
    """

    option: Option
    wants: Wants
    word: str = ""
    form: str = ""
    with_flags: tuple[Option, ...] = ()
    points: int = 0
    why: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    """The places of the loads that it leads to."""
    weights_only: bool = False
    """One part takes what is loaded, and no counter."""


class WeightsOnly(msgspec.Struct, frozen=True):
    """A ``torch.load`` by which it resumes that takes weights only. ``explicit``: as its source says, not as a default.

    The default is that of torch since 2.6.
    """

    place: str
    explicit: bool


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``option``: the best candidate. ``by_itself``: where the trainer goes on by itself (``train.py:30``).

    ``only_if``: it would do so if something were set that is not (``RESUME is set (train.py:2)``). ``why``: evidence, a
    clause each. ``unsure``: why nothing found is not "none", a clause each. ``reads``: the settings that it reads.
    ``write``: the line of a script by which a training with its library goes on.
    """

    option: Candidate | None = None
    by_itself: str = ""
    only_if: str = ""
    why: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    weights_only: WeightsOnly | None = None
    write: str = ""


def find_resume(
    values: KnownValues,
    options: Sequence[Option],
    args: Sequence[str],
    known: Mapping[str, Any],
    others: Collection[int],
    *,
    closed: bool,
) -> Finding:
    """``args``: the trainer's words. ``known``: what else is set, by dest. ``others``: functions of other subcommands.

    ``closed``: its parser takes no option that is not seen.
    """
    project = values.project
    flow = ValueFlow(values, options, others)
    told = ((number, value_given(option, args, {})) for number, option in enumerate(options))
    given = {number: value for number, value in told if value is not None and "{" not in str(value)}
    candidates = [c for number in range(len(options)) if (c := _candidate(number, flow, given)) is not None]
    best = max(candidates, key=lambda c: (c.points - len(c.with_flags), -candidates.index(c)), default=None)
    # one that may have a default in a file that is not read is not known
    seen = {o.dest: o.default for o in reversed(options) if o.default or o.kind != "override" or o.library == "config"}
    seen |= {options[number].dest: value for number, value in given.items()}
    alone = _by_itself(flow, given, values.given(options, seen | dict(known)))
    if best is not None and alone.by_itself and not words.RESUME.search(best.option.name):
        best = None  # a folder in which the trainer finds it, or a switch against it
    return msgspec.structs.replace(
        alone,
        option=best,
        why=best.why if best is not None else alone.why,
        unsure=(*project.unread, *alone.unsure, *_unsure(project, flow, closed=closed)),
        reads=frozenset(flow.read),
        weights_only=_weights_only(project, (alone.by_itself,) if best is None else best.loads),
        write=next((line for library, line in words.TO_WRITE.items() if library in _imported(project)), ""),
    )


_TRUSTS = re.compile(r"safe_globals|TORCH_FORCE_|torch\.load\s*=[^=]|setattr\(torch\b")
"""Sources that change what ``torch.load`` takes."""


def _weights_only(project: Project, places: Collection[str]) -> WeightsOnly | None:
    """The load at these places, if each is a ``torch.load`` that is known to take weights only."""
    if any(_TRUSTS.search(module.text) for module in project.modules):
        return None
    found = {
        place: None if explicit is None else WeightsOnly(place, explicit)
        for module in project.modules
        for call in module.calls
        if resolved(module, call.func) in {"torch.load", "torch.serialization.load"}
        and (place := f"{module.shown}:{call.lineno}") in places
        for explicit in [_takes_weights_only(call)]
    }
    loads = [found.get(place) for place in places]
    return loads[0] if loads and all(loads) else None


def _takes_weights_only(call: ast.Call) -> bool | None:
    """True: it is written there; False: by torch's default; None: it is not known to."""
    given = {each.arg or "**": each.value for each in call.keywords}
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    if starred or len(call.args) > 2 or {"**", "pickle_module"} & given.keys():
        return None
    return {"True": True, "None": False}.get(ast.unparse(given["weights_only"])) if "weights_only" in given else False


def _imported(project: Project) -> set[str]:
    return {name.partition(".")[0] for module in project.modules for name in module.aliases.values()}


def _unsure(project: Project, flow: ValueFlow, *, closed: bool) -> Iterator[str]:
    for option in flow.options:
        if option.says_resume and option.kind in {"option", "positional"}:
            yield f"{option.name} ({option.place}) is there, but what it does cannot be told"
    if not closed and any(_TAKES_WORDS.search(module.text) for module in project.modules):
        yield "it may take options that are not seen in its source"
    own = {module.path.stem for module in project.modules} | {module.path.parent.name for module in project.modules}
    unread = sorted(_imported(project) - own - sys.stdlib_module_names - words.KNOWN_LIBRARIES - {""})
    if unread and not any(OWN_LOOP.search(module.text) for module in project.modules):
        yield f"{unread[0]}, which may train and resume, is not read"


def _candidate(number: int, flow: ValueFlow, given: Mapping[int, Any]) -> Candidate | None:
    option = flow.options[number]
    name = f"{option.name} {option.dest}"
    says, named = f"{name} {option.help}", bool(words.RESUME.search(name))
    if (
        (option.library == "config" and option.default is False)
        or (number in given and option.kind == "positional")
        or words.TRACKERS.search(name)
        or (isinstance(given.get(number), str) and not named and not words.CHECKPOINT.search(option.name))
    ):
        return None  # the last: a name or a folder, by which the trainer finds it itself
    events = list(flow.events.values())
    loading = [e for e in events if e.kind in {"load", "whole"}]
    fed = [e for e in loading if number in e.of(*_PLACES)]
    if option.takes == "number" and not (fed and (words.RESUME.search(says) or words.STEPS.search(name))):
        return None
    guarded = [e for e in loading if e not in fed and _on(e, number)]
    restores = _restores(events, {number}) if fed else 0
    if guarded and restores < 2 and not any(e.kind == "whole" for e in fed):
        by_guard = _restores(events, {of for e in guarded for of in e.of()})
        if not fed or by_guard >= 2 or any(e.kind == "whole" for e in guarded):
            fed, restores = [], by_guard
    loads = fed or guarded
    whole = [e for e in loads if e.kind == "whole"]
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
        points, why = points + 4, [*why, "its name says so"]
    elif words.RESUME.search(option.help):
        points, why = points + 3, [*why, "its help text says so"]
    elif words.CHECKPOINT.search(name) and loads:
        points += 1
    restored = bool(whole) or restores >= 2
    if words.OTHER_WEIGHTS.search(says) and not named:
        points -= 3 if restored else 5
    if words.SAVING.search(name) and not named and not restored:
        points -= 3
    wanted = option.library == "lightning" or option.says_resume
    switched_off = any(g.of == number and not g.on for e in loading for g in e.guards) and not guarded
    on_already = option.default is True or given.get(number) is True
    if (
        points < ENOUGH
        or (number in _saved(flow) and not named)
        or not (
            wanted
            or option.dest.startswith("$")
            or option.dest in flow.read
            or option.parameter
            or any(number in e.of() or any(g.of == number for g in e.guards) for e in events)
        )
        or (option.takes in _SWITCHED and (on_already or switched_off or not (loads or option.says_resume)))
        or (option.takes not in _SWITCHED and not (loads or named or option.library == "lightning"))
    ):
        return None  # the second: an output folder, in which the trainer finds it itself
    places = tuple(dict.fromkeys(f"{e.module}:{e.line}" for e in loads))
    found = Candidate(
        option=option, wants="flag", points=points, why=tuple(why), loads=places,
        weights_only=restores == 1 and not whole,
    )  # fmt: skip
    return _with_form(found, number, flow, fed, guarded)


def _with_form(
    found: Candidate, number: int, flow: ValueFlow, fed: Sequence[Event], guarded: Sequence[Event]
) -> Candidate | None:
    """The candidate with what it takes; None if that is one of several words, none of which resumes."""
    option, change = found.option, msgspec.structs.replace
    if option.takes == "number":
        return change(found, wants="step")
    if option.takes in _SWITCHED:
        partner = _partner(number, flow, guarded)
        if partner is not None:
            base = _with_form(change(found, option=flow.options[partner]), partner, flow, guarded, [])
            if base is not None and base.wants != "flag":
                return change(base, with_flags=(option,))
        return change(found, wants="flag")
    own = [each for e in fed for each in e.labels if each.of == number]
    how = {each.how for each in own}
    values = [g.value for e in guarded for g in e.guards if g.of == number and g.on and g.value]
    chosen = [each for e in (*fed, *guarded) for each in e.labels if each.of == number and each.how == "when"]
    values += [each.value for each in chosen if each.value not in {"", "-"}]
    if option.choices:
        values += [c for c in option.choices if words.RESUME.search(c) or c.lower() in words.NEWEST]
        word = next((v for v in values if v in option.choices), "")
        return change(found, wants="word", word=word) if word else None
    needed = [flow.options[g.of] for e in fed for g in e.guards if g.on and g.of != number]
    flags = dict.fromkeys(
        each.name for each in needed if each.takes in _SWITCHED and each.default is not True and says_resume(each)
    )
    with_flags = tuple(next(each for each in needed if each.name == name) for name in flags)
    if "path" in how or not how & {"inside", "found"}:
        if not fed and values:
            return change(found, wants="word", word=values[0])
        forms = {each.form for each in own if each.how == "path"}
        form = forms.pop() if len(forms) == 1 else ""
        return change(found, wants="path", form=form, with_flags=with_flags)
    wants: Wants = "inside" if "inside" in how and "found" not in how else "folder"
    return change(found, wants=wants, with_flags=with_flags)


def _partner(number: int, flow: ValueFlow, guarded: Sequence[Event]) -> int | None:
    """The option whose path is loaded if a flag is on, and that has no default which the trainer writes itself."""
    saved = _saved(flow)
    for event in guarded:
        for label in sorted(event.labels):
            if label.of < 0 or label.of == number or label.how not in {"path", "inside"} or label.of in saved:
                continue
            other = flow.options[label.of]
            if other.takes == "value" and not other.default and words.CHECKPOINT.search(f"{other.name} {other.help}"):
                return label.of
    return None


def _saved(flow: ValueFlow) -> set[int]:
    return {of for e in flow.events.values() if e.kind == "save" for of in e.of("path", "inside")}


def _on(event: Event, number: int) -> bool:
    return any(g.of == number and g.on for g in event.guards) or any(
        each.of == number and each.how == "when" and each.value != "-" for each in event.labels
    )


def _restores(events: Sequence[Event], of: set[int]) -> int:
    """How much of a training what was loaded restores: 0 nothing seen, 1 one part, 2 several parts or a counter."""
    parts: set[str] = set()
    points = 0
    for event in events:
        tells = ("state", "found") if event.kind == "count" else ("state",)  # the name of what was found has a number
        if event.of(*tells).isdisjoint(of):
            continue
        steps = any(words.STEPS.search(text) for text in event.text)
        if event.kind == "part":
            parts.add(event.receiver)
            steps |= any(words.OPTIMIZERS.search(text) for text in (event.receiver, *event.text))
        if event.kind == "count" or (event.kind in {"part", "hand"} and steps):
            points = 2
    return max(points, min(2, len(parts)))


def _by_itself(flow: ValueFlow, given: Mapping[int, Any], values: KnownValues) -> Finding:
    """``values``: with the options as the command gives them."""
    events = list(flow.events.values())
    written = {t for e in events if e.kind == "save" for t in e.text if len(t) > 2}
    saved = _saved(flow)
    looks = {of for e in events if e.kind in {"look", "find"} for of in e.of()}
    best: dict[bool | None, tuple[int, Finding]] = {}
    for event in events:
        if event.kind not in {"load", "whole", "known"}:
            continue
        site = event.site
        holds, decides = (True, None) if site is None else values.reach(site, partial(_doubtful, flow=flow))
        own = event.of(*_PLACES)
        fed = {n for n in own if n >= 0}
        if not all(flow.options[n].default or flow.options[n].required or n in saved or given.get(n) for n in fed):
            continue
        no_place = bool(own) and all(is_own_load(each.of) and each.how == "path" for each in event.labels)
        if no_place and event.called.endswith(".restore") and event.receiver not in flow.savers:
            continue  # of what it holds in memory: averaged weights are put back after each evaluation
        place = f"{event.module}:{event.line}"
        if event.kind == "known":
            points, why = 3, [f"{event.called} in {place} ({event.receiver})"]
        elif event.kind == "whole" or _restores(events, own) >= 2:
            points, why = 2, [f"{event.called}() in {place} restores a training"]
        else:
            continue
        by_same = no_place and event.kind == "whole" and event.receiver in flow.savers
        keyword = event.kind == "whole" and words.WHOLE_KEYWORDS.search(event.receiver)
        if own & saved or written & set(event.text):
            points, why = points + 2, [*why, "from what the trainer itself writes"]
        if own & looks or event.of("found"):
            points, why = points + 1, [*why, "if it is there"]
        elif by_same:
            points, why = points + 1, [*why, "from what the same object saves"]
        if words.RESUME.search(event.receiver) or keyword:
            points += 2
        elif words.RESUME.search(event.called):
            points += 1
        if points >= 3 and points > best.get(holds, (0,))[0]:
            set_ = "" if decides is None else _switch(decides, flow.options, values)
            unsure = (f"whether {set_} cannot be told",) if holds is None else ()
            evidence = tuple(why) if holds else ()
            alone = Finding(
                by_itself=place if holds else "", only_if="" if holds else set_, why=evidence, unsure=unsure
            )
            best[holds] = (points, alone)
    return next((best[holds][1] for holds in (True, None, False) if holds in best), Finding())


def _doubtful(at: Site, flow: ValueFlow) -> bool:
    """Whether a value that cannot be seen is named after a resume, and nothing is known to go into it."""
    if not isinstance(at.node, ast.expr):
        return False
    node = flow.values.asked_for(at.node, at.scope)
    name = name_of(node)
    named = (words.RESUME.search(name) or words.CHECKPOINT.search(name)) and not words.FINDS.search(name)
    return bool(named) and not flow.carries(node, at.scope)


def _switch(decides: Site, options: Sequence[Option], values: KnownValues) -> str:
    """``RESUME is set (train.py:2)``."""
    assert isinstance(decides.node, ast.expr)
    name = name_of(values.asked_for(decides.node, decides.scope))
    option = next((each for each in options if name and name == each.dest), None)
    place = ":".join(map(str, values.set_at(decides.node, decides.scope))) if option is None else option.place
    return f"{(name or 'the test') if option is None else option.name} is set ({place})"
