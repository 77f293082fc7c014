"""What an earlier rehearsal of the same command and source proved, for its next start."""

import time

import msgspec

from ...model.launch.rehearsal import Rehearsal
from ...model.launch.resume_way import ResumeWay
from ...model.run import RunSpec
from ...model.shipped.preset import ResumeStyle
from ...store.learned.rehearsals import known_rehearsal
from ..runs.known_runs import home


def rehearsed(spec: RunSpec) -> Rehearsal | None:
    """The newest rehearsal of this command, while its source is unchanged."""
    return known_rehearsal(home(), spec.command, spec.cwd, spec.config)


def with_rehearsed(spec: RunSpec) -> RunSpec:
    """The run as its rehearsal proved it: a trainer that finds its newest checkpoint by itself need not be told."""
    found = rehearsed(spec)
    if found is None or not found.safe or found.will != "self":
        return spec
    return resuming_by_itself(spec, f" on {_on(found)}")


def rehearsed_words(spec: RunSpec) -> str | None:
    """``rehearsed on 2026-11-22 21:04: resume proven``; None if it was not rehearsed, or its source has changed."""
    found = rehearsed(spec)
    if found is None:
        return None
    how = " (by itself)" if found.will == "self" else ""
    said = {"safe": f"resume proven{how}", "unsafe": f"NOT SAFE: {found.reason}", "unknown": f"unknown: {found.reason}"}
    return f"rehearsed on {_on(found)}: {said[found.verdict]}"


def _on(found: Rehearsal) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(found.wall))


def resuming_by_itself(spec: RunSpec, when: str = "") -> RunSpec:
    """The run whose trainer is known to find its newest checkpoint by itself: it need not be told which one."""
    if spec.resume_way is not None and spec.resume_way.will in {"yes", "self"}:
        return spec
    style = ResumeStyle(by_itself=True)
    how = f"the trainer goes on from its newest checkpoint by itself, as its rehearsal{when} showed"
    way = ResumeWay(will="self", source="self", how=how, file=style, directory=style)
    return msgspec.structs.replace(spec, resume_way=way)
