"""The profiles screen: the ladder and the place of the run on it, and what a switch changes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from ...model.launch import TrialResult
from ...model.preset import Change, Profile
from ...model.run import TERMINAL_STATES
from ...model.story import Situation
from .. import quantity
from ..columns import Column
from ..timeline import checkpoint_t
from ..words import shown, switched


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One profile. ``use``: the run's last launch used it, or it is used from the next checkpoint on."""

    name: str
    title: str
    use: Literal["", "now", "last", "next"]
    expect: tuple[tuple[str, str], ...]
    description: str
    died: str = ""
    """``died after 6.2 h (cuda_oom)`` if it failed on the ramp and is not used again."""
    measured: tuple[tuple[str, str], ...] = ()
    """Results of its trial on this machine as (name, value); empty without one."""

    @property
    def now(self) -> bool:
        return self.use in {"now", "last"}


IN_ROW = frozenset({"speed", "VRAM", "stable"})
"""The measurements of a trial that the ladder shows; the difference pane shows all."""
LADDER_COLUMNS: tuple[Column[Rung], ...] = (
    Column(title="", text=lambda r: r.name, fit=True, after=2, style=lambda r: "strong" if r.now else "text"),
    Column(title="", text=lambda r: r.use, width=6, style="accent"),
    Column(title="", text=lambda r: r.title, style="label"),
    # Measurements on this machine come before the values of the guide.
    Column(title="", text=lambda r: pairs(" · here: ", [p for p in r.measured if p[0] in IN_ROW]), from_width=90),
    Column(title="", text=lambda r: "" if r.measured else pairs(" · ", r.expect), style="label", from_width=90),
    Column(title="", text=lambda r: f" · {r.died}" if r.died else "", style="warning"),
)


def pairs(before: str, found: Sequence[tuple[str, str]]) -> str:
    """``speed 2.50 s/step · VRAM 15.2 GiB``; empty if there are none."""
    return before + " · ".join(f"{name} {value}" for name, value in found) if found else ""


class ProfilesView(msgspec.Struct, frozen=True, kw_only=True):
    """``why``: which profile is used and why.

    ``over``: nothing of the run runs any more, so that the profile of its last launch is not that of now.
    """

    over: bool
    rungs: tuple[Rung, ...]
    why: tuple[str, ...]


def profiles_view(
    now: Situation, profiles: Sequence[Profile], ladder: Sequence[str], trials: Mapping[str, TrialResult] | None = None
) -> ProfilesView:
    """Project the ladder. ``trials``: newest result by profile."""
    attempt = now.story.attempt
    current = attempt.profile if attempt is not None else now.story.profile
    waiting = now.story.profile if now.story.profile_pending else None
    over = now.story.state in {*TERMINAL_STATES, "interrupted"}
    used: Literal["last", "now"] = "last" if over else "now"
    rungs = tuple(
        Rung(
            name=p.name,
            title=p.title or p.description,
            use=used if attempt is not None and p.name == current
            else "next" if p.name == waiting and waiting != current else "",
            expect=tuple(p.expect.items()),
            description=p.description,
            died=next((d.end for d in now.story.failed_rungs if d.profile == p.name), ""),
            measured=measured_words((trials or {}).get(p.name), now.now_wall),
        )
        for p in profiles
    )  # fmt: skip
    return ProfilesView(over=over, rungs=rungs, why=tuple(_why(now, current, waiting, ladder)))


def measured_words(trial: TrialResult | None, now_wall: float) -> tuple[tuple[str, str], ...]:
    """The result of a trial as (name, value); what was not measured is left out."""
    if trial is None:
        return ()
    stable = {True: "yes", False: f"no: {'; '.join(trial.doubts)}", None: "unknown: too short"}[trial.stable]
    speed = quantity.UNKNOWN if trial.s_per_step is None else quantity.pace(trial.s_per_step)
    said = (
        ("speed", speed),
        ("VRAM", quantity.memory(trial.vram_peak_bytes)),
        ("RAM", quantity.memory(trial.ram_peak_bytes)),
        ("GPU", quantity.percent(trial.gpu_util_pct)),
        ("stable", stable),
        ("tried", quantity.clock(trial.wall, now_wall)),
    )
    return tuple((what, how) for what, how in said if how != quantity.UNKNOWN)


def _why(now: Situation, current: str | None, waiting: str | None, ladder: Sequence[str]) -> Iterator[str]:
    story = now.story
    if story.attempt is None:
        yield "Not launched yet" + (f"; the first attempt uses {story.profile}." if story.profile else ".")
        return
    if current is None:
        yield "No profile: your own config, unchanged."
    else:
        place = f", rung {list(ladder).index(current) + 1} of {len(ladder)}" if current in ladder else ""
        of_it = [s for s in reversed(story.profile_switches) if s.fact.profile == current]
        switch, asked = (next((s for s in of_it if s.fact.pending is pending), None) for pending in (False, True))
        since = "since the run began: it is the profile of its settings"
        if switch is not None:
            at = quantity.clock(story.wall0 + switch.t, now.now_wall)
            since = f"since {at}: {(asked or switch).fact.why or 'no reason is known'}"
        yield f"{current}{place}, {since}."
    if waiting is not None and waiting != current:
        asked = next((s for s in reversed(story.profile_switches) if s.fact.profile == waiting), None)
        yield f"{waiting} is next: {asked.fact.why if asked else 'asked for'}."
    yield from (f"{d.words}: it is not used again automatically." for d in story.failed_rungs)
    remedies = [c for c in story.attempt.changes if c.why and not c.of]
    yield from (f"beyond it: {c.key} {shown(c.before)} → {shown(c.after)} ({c.why})." for c in remedies[:4])


def switch_differences(running: Sequence[Change], wanted: Sequence[Change]) -> tuple[Change, ...]:
    """What a switch changes, values as text. The path to resume from is another one in each launch."""
    return tuple(
        msgspec.structs.replace(c, before=shown(c.before), after=shown(c.after))
        for c in switched(running, wanted)
        if c.of != "resume"
    )


def next_checkpoint_words(now: Situation) -> str:
    """When a switch at the next checkpoint is expected, by the past checkpoints."""
    times = sorted(t for t in (checkpoint_t(now, c) for c in now.story.checkpoints) if t > 0)
    left_s = 2 * times[-1] - times[-2] - now.now_t if len(times) > 1 else 0.0
    return "at the next checkpoint" + (f", in about {quantity.duration(left_s)}" if left_s > 0 else "")
