"""Where the command lets the training run: a container, another user, another host. What works there, and what not.

Sources: the manual pages of the programs; ``conda run --help`` (``--no-capture-output``); moby's documentation of
``docker exec``, which passes no signals on.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...model.launch.elsewhere.wrappers import Layer
from ...model.run import RunSpec
from ...views.place_words import deciding_layer, words_of
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, passed, warned
from .handover_check import hand_over, simple_commands

NEVER_TWICE = "nothing is started again then, so that it does not run twice"
THERE = "start trainwatch there"


class Told(NamedTuple):
    """``works``: what is done there. ``problems``: (what does not work, what to do)."""

    works: str
    problems: tuple[tuple[str, str], ...]


def check_place(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """Whether the training can be measured and stopped where the command lets it run."""
    told = place_told(plan.spec)
    if told is None:
        return None
    if not told.problems:
        return passed("place", told.works)
    found = "; ".join(filter(None, (told.works, *(problem for problem, _ in told.problems))))
    return warned("place", found, "; ".join(dict.fromkeys(remedy for _, remedy in told.problems)))


def place_told(spec: RunSpec) -> Told | None:
    """None if the training runs as any process of this user, or if the command only hands it on."""
    cwd = Path(spec.cwd)
    if hand_over(spec.command, cwd) is not None:
        return None
    found = deciding_layer(spec.command)
    if found is not None:
        return _told(found, spec)
    for simple in simple_commands(spec.command, cwd):
        inner = deciding_layer(simple.words)
        if inner is not None:
            return _told_of_script(inner, spec)
    return None


def _told(layer: Layer, spec: RunSpec) -> Told:
    works, name = words_of(layer), layer.names[0] if layer.names else ""
    match layer.kind:
        case "container" | "service":
            return Told(works, tuple(_of_container(layer, spec)))
        case "in_container":
            return Told("", ((f"{works}; {NEVER_TWICE}", f"use `{layer.program} run`, or start trainwatch inside"),))
        case "services":
            compose = layer.verb.rpartition(" ")[0]
            use = " ".join(filter(None, (layer.program, compose, "run --rm SERVICE")))
            return Told("", ((f"{works}; {NEVER_TWICE}", f"use `{use}`"),))
        case "host":
            return Told("", ((f"{works}; {NEVER_TWICE}", f"{THERE}: `ssh {name} -t trainwatch run --detach -- …`"),))
        case "pod":
            return Told("", ((f"{works}; {NEVER_TWICE}", THERE),))
        case "step":
            return Told("", ((works, 'set engine = "slurm" under [run], or start trainwatch in the job'),))
        case "environment":
            return _of_environment(layer, works)
        case "user" | "plain":
            return _of_user(layer, works)


def _of_environment(layer: Layer, works: str) -> Told:
    if layer.program != "conda" or layer.has("--no-capture-output", "--live-stream"):
        return Told(works, ())
    why = "conda run keeps all output until the end: no step, loss or error is seen before"
    return Told("", ((why, "write `conda run --no-capture-output …`"),))


def _of_user(layer: Layer, works: str) -> Told:
    problems = []
    if os.geteuid() != 0:
        tool = layer.program
        why = f"a stop, a pause and a restart work only if `{tool} -n` asks for no password"
        problems.append((why, f"let {tool} ask for none, or leave {tool} out"))
    if not layer.has("-E", "--preserve-env") and not any("PYTHONUNBUFFERED" in word for word in layer.names):
        why = f"{layer.program} drops variables: the output comes in blocks, and CUDA_VISIBLE_DEVICES does not reach it"
        problems.append((why, f"give {layer.program} the option -E"))
    return Told(works, tuple(problems))


def _of_container(layer: Layer, spec: RunSpec) -> Iterator[tuple[str, str]]:
    tool = layer.program
    if tool == "docker" and layer.has("-t", "--tty") and layer.has("-i", "--interactive") and spec.terminal == "file":
        yield "docker refuses -it here, because there is no terminal", "leave out -t"
    again = [value for value in layer.values("--restart") if value != "no"]
    if again:
        yield f"{tool} starts it again by itself (--restart {again[0]})", "leave out --restart"
    names = layer.values("--name")
    if names and not layer.has("--rm", "--replace"):
        yield f"a further attempt cannot have the name {names[0]} while this container exists", "give it --rm"
    if layer.values("--cidfile"):
        yield "a further attempt is refused while the file of --cidfile exists", "leave out --cidfile"
    if layer.kind == "container" and spec.output_dir and not _mounted(layer, spec.output_dir):
        yield (
            f"{spec.output_dir} is not mounted under its own path: checkpoints are not seen, or not found inside",
            f"mount it with -v {spec.output_dir}:{spec.output_dir}",
        )


def _mounted(layer: Layer, folder: str) -> bool:
    """Whether the container sees the folder under the same path."""
    for value in layer.values("-v", "--volume"):
        source, _, rest = value.partition(":")
        if _holds(source, rest.partition(":")[0], folder):
            return True
    for value in layer.values("--mount"):
        fields = dict(part.partition("=")[::2] for part in value.split(","))
        source = fields.get("source") or fields.get("src", "")
        target = fields.get("target") or fields.get("dst") or fields.get("destination", "")
        if _holds(source, target, folder):
            return True
    return False


def _holds(source: str, target: str, folder: str) -> bool:
    if "$" in source or "$" in target:  # a shell fills it in later
        return True
    return os.path.normpath(source) == os.path.normpath(target) and Path(folder).is_relative_to(source)


def _told_of_script(layer: Layer, spec: RunSpec) -> Told | None:
    """Of a command in a shell script or line. A container that a script starts gets no label, and is not found."""
    if layer.kind in {"container", "service"}:
        how = re.sub(r"\s+", " ", f"{layer.program} {layer.verb}")
        why = f"`{how}` stands in a shell script: its container is not known, and SIGKILL would leave it running"
        return Told("", ((why, f"give `{how} …` itself to trainwatch"), *_of_container(layer, spec)))
    return _told(layer, spec)
