"""The profiles screen: the ladder and the place of the run on it, each setting, and what a switch changes."""

from collections.abc import Mapping, Sequence

import msgspec

from ...model.change import Change
from ...model.preset import Profile
from ...model.run import TERMINAL_STATES
from ...model.situation import Situation
from ...model.trial import TrialResult
from .. import quantity
from ..timeline import checkpoint_t
from ..words import shown

NOT_SET = "–"
"""Shown for settings that a profile does not set."""


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One profile. ``now``: the run's last launch used it; ``next``: it is used from the next checkpoint on."""

    name: str
    title: str
    now: bool
    next: bool
    on_ladder: bool
    expect: tuple[tuple[str, str], ...]
    description: str
    source: str
    died: str = ""
    """``after 6.2 h (cuda_oom)`` if it failed on the ramp and is not used again."""
    measured: tuple[tuple[str, str], ...] = ()
    """Results of its trial on this machine as (name, value); empty without one."""


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: your own value, what runs now, and each profile's. ``differs``: not the same everywhere."""

    key: str
    own: str
    running: str
    values: tuple[str, ...]
    differs: bool


class ProfilesView(msgspec.Struct, frozen=True, kw_only=True):
    """``why``: which profile is used and why. ``rows``: one per key, in the order of the profiles.

    ``over``: nothing of the run runs any more, so that the profile of its last launch is not that of now.
    """

    over: bool
    rungs: tuple[Rung, ...]
    why: tuple[str, ...]
    rows: tuple[KeyRow, ...]


def profiles_view(
    now: Situation,
    profiles: Sequence[Profile],
    ladder: Sequence[str],
    own: Mapping[str, object],
    trials: Mapping[str, TrialResult] | None = None,
) -> ProfilesView:
    """Project the ladder. ``own``: value by key without any profile (missing = not known).

    ``trials``: newest result by profile.
    """
    attempt = now.story.attempt
    current = attempt.profile if attempt is not None else now.story.profile
    waiting = now.story.profile if now.story.profile_pending else None
    rungs = tuple(
        Rung(
            name=p.name,
            title=p.title or p.description,
            now=attempt is not None and p.name == current,
            next=p.name == waiting and waiting != current,
            on_ladder=p.name in ladder,
            expect=tuple(p.expect.items()),
            description=p.description,
            source=p.source,
            died=next((d.end.removeprefix("died ") for d in now.story.failed_rungs if d.profile == p.name), ""),
            measured=measured_words((trials or {}).get(p.name), now.now_wall),
        )
        for p in profiles
    )
    keys = dict.fromkeys(key for p in profiles for key in leaves(p))
    return ProfilesView(
        over=now.story.state in {*TERMINAL_STATES, "interrupted"},
        rungs=rungs,
        why=tuple(_why(now, current, waiting, ladder)),
        rows=tuple(_row(key, now, profiles, own) for key in keys),
    )


def measured_words(trial: TrialResult | None, now_wall: float) -> tuple[tuple[str, str], ...]:
    """The result of a trial as (name, value)."""
    if trial is None:
        return ()
    stable = {True: "yes", False: f"no: {'; '.join(trial.doubts)}", None: "unknown: too short"}[trial.stable]
    said = (
        ("speed", "" if trial.s_per_step is None else quantity.pace(trial.s_per_step)),
        ("VRAM", "" if trial.vram_peak_bytes is None else quantity.memory(trial.vram_peak_bytes)),
        ("RAM", "" if trial.ram_peak_bytes is None else quantity.memory(trial.ram_peak_bytes)),
        ("GPU", "" if trial.gpu_util_pct is None else f"{trial.gpu_util_pct:.0f} %"),
        ("stable", stable),
        ("tried", quantity.clock(trial.wall, now_wall)),
    )
    return tuple((what, how) for what, how in said if how)


def leaves(profile: Profile) -> dict[str, object]:
    """Every setting, flag and variable of a profile by its dotted name."""
    found: dict[str, object] = {}

    def walk(prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            found[prefix] = value

    walk("", profile.settings)
    found |= {f"${name}": value for name, value in profile.env.items()}
    return found | _flags(profile.flags)


def is_setting(key: str) -> bool:
    """Whether a name of ``leaves`` is of the trainer's config, not a flag or a variable."""
    return not key.startswith(("-", "$"))


def _flags(flags: Sequence[str]) -> dict[str, object]:
    """``--mode separated --safe_mode`` → ``{"--mode": "separated", "--safe_mode": True}``."""
    found: dict[str, object] = {}
    name = ""
    for part in flags:
        if part.startswith("-") and not part[1:2].isdigit():
            name, _, value = part.partition("=")
            found[name] = value or True
        elif name:
            found[name] = part if found[name] is True else f"{found[name]} {part}"
    return found


def _row(key: str, now: Situation, profiles: Sequence[Profile], own: Mapping[str, object]) -> KeyRow:
    mine = own.get(key)
    base = shown(mine) if key in own else NOT_SET
    values = []
    for p in profiles:
        settings = leaves(p)
        values.append(shown(settings[key]) if key in settings else "")
    running = base
    attempt = now.story.attempt
    if attempt is not None:
        used = next((p for p in profiles if p.name == attempt.profile), None)
        if used is not None and key in leaves(used):
            running = shown(leaves(used)[key])
        for change in attempt.changes:
            if _names(change.key, key):
                running = shown(change.after)
    said = {v or base for v in values}
    return KeyRow(key=key, own=base, running=running, values=tuple(values), differs=len(said) > 1)


def _names(changed: str, key: str) -> bool:
    """A change names a flag (``--key``) or a place in the config (``section.key``)."""
    bare, wanted = changed.lstrip("-"), key.lstrip("-")
    return bare == wanted or bare.endswith(f".{wanted}") or bare == wanted.removeprefix("$")


def _why(now: Situation, current: str | None, waiting: str | None, ladder: Sequence[str]) -> list[str]:
    story = now.story
    if story.attempt is None:
        first = "Not launched yet"
        return [first + (f"; the first attempt uses {story.profile}." if story.profile else ".")]
    said = []
    if current is None:
        said.append("No profile: your own config, unchanged.")
    else:
        place = f", rung {list(ladder).index(current) + 1} of {len(ladder)}" if current in ladder else ""
        switch = next((s for s in reversed(story.profile_switches) if s.profile == current and not s.pending), None)
        asked = next((s for s in reversed(story.profile_switches) if s.profile == current and s.pending), None)
        if switch is not None:
            at = quantity.clock(story.wall0 + switch.t, now.now_wall)
            reason = asked.why if asked is not None else switch.why
            said.append(f"{current}{place}, since {at}: {reason or 'no reason is known'}.")
        else:
            said.append(f"{current}{place}, since the run began: it is the profile of its settings.")
    if waiting is not None and waiting != current:
        asked = next((s for s in reversed(story.profile_switches) if s.profile == waiting), None)
        said.append(f"{waiting} is next: {asked.why if asked else 'asked for'}.")
    said += [f"{d.words}: it is not used again automatically." for d in story.failed_rungs]
    remedies = [c for c in story.attempt.changes if c.why and not c.of]
    said += [f"beyond it: {c.key} {shown(c.before)} → {shown(c.after)} ({c.why})." for c in remedies[:4]]
    return said


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that a switch would change. ``where``: config, flag or env."""

    where: str
    key: str
    before: str
    after: str


def switch_differences(running: Sequence[Change], wanted: Sequence[Change]) -> tuple[Difference, ...]:
    """Differences from the current launch; ``wanted``: changes of a launch with the other profile.

    Both are changes of the user's own config, so a key that only one of them has changes to or from the value there.
    The path to resume from changes with every launch and is left out.
    """
    old = {(c.where, c.key): c for c in running if c.of != "resume"}
    new = {(c.where, c.key): c for c in wanted if c.of != "resume"}
    found = []
    for place in dict.fromkeys([*old, *new]):
        before = old[place].after if place in old else new[place].before
        after = new[place].after if place in new else old[place].before
        if before != after:
            found.append(Difference(where=place[0], key=place[1], before=shown(before), after=shown(after)))
    return tuple(found)


def next_checkpoint_words(now: Situation) -> str:
    """When a switch at the next checkpoint is expected, by the past checkpoints."""
    times = sorted(t for t in (checkpoint_t(now, c) for c in now.story.checkpoints) if t > 0)
    if len(times) < 2:
        return "at the next checkpoint"
    left_s = times[-1] + (times[-1] - times[-2]) - now.now_t
    return f"at the next checkpoint, in about {quantity.duration(left_s)}" if left_s > 0 else "at the next checkpoint"
