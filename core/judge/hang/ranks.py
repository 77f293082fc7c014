"""The ranks of a distributed training: which one fell silent, and which one ended first by itself.

All ranks stop when one does, so the log and the exit status show the victims: the watchdog of a healthy rank ends it
before the silent one, and a launcher ends what is left. Known from the processes (the environment names the rank) and
from the lines that carry a rank. If neither tells the ranks apart, nothing is said.
"""

import msgspec

from ...model.observation import Agent, ProcessSample, Rank
from ...model.text import LazyPattern
from ..scales import AT_MOST, LASTS_S, MINUTE_S, SHORT_CHARS
from ..text.fields import find_step
from ..text.lines import own_text


class SeenRank(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rank. Times in run seconds. ``state``: of its process, None = not known; ``gone_t``: when it was missing.

    ``line``, ``line_t``, ``step``: its newest line and step; None = no line of it was told apart.
    """

    rank: int
    pid: int | None = None
    state: str | None = None
    gone_t: float | None = None
    stopped_t: float | None = None
    """When it was last seen stopped (state T): while it is killed it has other states for a moment."""
    node: str = ""
    line: str | None = None
    line_t: float | None = None
    step: int | None = None
    own: bool = False
    """``line`` is of its own log file, which no other rank writes."""


Ranks = tuple[SeenRank, ...]


def with_processes(ranks: Ranks, found: tuple[Rank, ...], t: float) -> Ranks:
    now = {each.rank: each for each in found}
    kept = [_with_process(before, now.pop(before.rank, None), t) for before in ranks]
    kept += [_with_process(SeenRank(rank=p.rank, node=p.node), p, t) for p in now.values() if p.state not in "ZX"]
    return tuple(sorted(kept, key=lambda each: each.rank)[:AT_MOST])


def _with_process(each: SeenRank, process: Rank | None, t: float) -> SeenRank:
    """Take its process, and the newest line of its own log file."""
    if process is not None and process.line and (process.line != each.line or not each.own):
        at = t - process.seen_s - (process.line_age_s or 0.0)
        step = step_of(process.line)
        each = msgspec.structs.replace(
            each, line=process.line, line_t=at, step=each.step if step is None else step, own=True
        )
    if process is None or process.state in "ZX":
        gone = each.gone_t is not None or each.pid is None
        return each if gone else msgspec.structs.replace(each, gone_t=t)
    return msgspec.structs.replace(
        each, pid=process.pid, state=process.state, gone_t=None, stopped_t=t if process.state == "T" else each.stopped_t
    )


def step_of(line: str) -> int | None:
    text = own_text(line).text
    found = find_step(text.lower())
    if found is not None:
        return found.step
    bar = _BAR.search(text)
    return None if bar is None else int(bar["step"])


_BAR = LazyPattern(r"\b(?P<step>\d+)/\d+ \[\d*:?\d\d:\d\d")
"""tqdm: ``| 300/10000 [12:30<6:44:10, 2.5s/it]``."""


def with_text(ranks: Ranks, text: str, t: float) -> Ranks:
    """Take text of the log: the newest line of each rank that it names. Numbers alone count for known ranks only."""
    if not ranks and _NAMED.search(text) is None:
        return ranks
    known = {each.rank: each for each in ranks}
    for line in text.splitlines():
        rest, name, _ = own_text(line.strip())
        if not name.isdecimal() or not rest.strip():
            continue
        rank = int(name)
        if rank in known and known[rank].own:
            continue
        if rank not in known and (_NAMED.search(line) is None or len(known) >= AT_MOST):
            continue
        step = find_step(rest.lower())
        known[rank] = msgspec.structs.replace(
            known.get(rank, SeenRank(rank=rank)),
            line=rest.strip()[:SHORT_CHARS],
            line_t=t,
            step=step.value if step is not None else known[rank].step if rank in known else None,
        )
    return tuple(known[rank] for rank in sorted(known))


_NAMED = LazyPattern(r"\[(?i:default|rank)[ :]{0,2}\d+\]|(?i:rank) ?\d+ ?[:|]")


def silent(ranks: Ranks, now_t: float) -> str:
    """A sentence that names the rank for which the others wait; "" if it cannot be told.

    A stopped one is named by its pause (pauses.py). If the processes of all have ended, none waits.
    """
    processes = [each for each in ranks if each.pid is not None]
    if processes and all(each.gone_t is not None for each in processes):
        return ""
    gone = [each for each in ranks if each.gone_t is not None]
    blocked = [each for each in ranks if each.pid is not None and each.gone_t is None and each.state == "D"]
    return (
        _all_but_some(ranks, gone, "has ended, and the others wait for it")
        or _all_but_some(ranks, blocked, "is blocked in the kernel (state D)")
        or _behind(ranks, now_t)
    )


def _behind(ranks: Ranks, now_t: float) -> str:
    """The rank that is at a lower step than all others, or whose newest line is older than theirs."""
    told = [each for each in ranks if each.line_t is not None]
    if len(told) != len(ranks) or not told:
        return ""
    steps = [each.step for each in told if each.step is not None]
    if len(steps) == len(told) and min(steps) < max(steps):
        found = [each for each in told if each.step == min(steps)]
        return _all_but_some(ranks, found, f"is behind at step {min(steps)}, the others are at {max(steps)}")
    newest = max(each.line_t or 0.0 for each in told)
    found = [each for each in told if newest - (each.line_t or 0.0) > LASTS_S]
    if not found:
        return ""
    last = f"{now_t - max(each.line_t or 0.0 for each in found):.0f} s"
    return _all_but_some(ranks, found, f'printed nothing for {last}; its last line: "{found[0].line}"')


def stopped(ranks: Ranks) -> str:
    """A sentence about the ranks that were stopped until they ended; "" = none was."""
    found = [
        each
        for each in ranks
        if each.state == "T"
        or (each.stopped_t is not None and each.gone_t is not None and each.gone_t - each.stopped_t <= LASTS_S)
    ]
    return _all_but_some(ranks, found, "was stopped (state T), and the others waited for it")


def _all_but_some(ranks: Ranks, found: list[SeenRank], what: str) -> str:
    if not found or len(found) == len(ranks):
        return ""
    names = ", ".join(f"{each.rank}{'' if each.pid is None else f' (pid {each.pid})'}" for each in found)
    if len(found) == 1:
        return f"rank {names} {what}"
    return f"ranks {names}: each {what}"


# What the launcher of several ranks (torchrun) does by itself: it starts its workers again, or waits without workers.
#
# One restart authority at a time: while an agent of torchrun has restarts left, it starts its workers again inside the
# attempt, and that is no restart of ours. Ours comes when torchrun has ended, or when the run hangs. An agent whose
# peer was ended waits in its rendezvous without a worker and without a word, for its time-out of 10 to 15 minutes (seen
# with torch 2.13): nothing trains meanwhile, and the silence is a hang of its own kind. As long as no agent has ended,
# the others may come: nodes start at different times. torchrun gives that up itself, with an error that names the
# rendezvous; only if it does not, it is a hang.


class Launcher(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``begun``: ranks that were begun anew in the newest restart of the workers. ``restarts``: those that were seen.

    ``told``: it was said that the launcher restarts. ``agents``: the newest ones.
    ``from_step``: step at which the workers ended that are begun anew, until the first step after that.
    """

    begun: tuple[int, ...] = ()
    restarts: int = 0
    told: bool = False
    agents: tuple[Agent, ...] = ()
    peers: int = 0
    """The most agents that were seen at a time."""
    from_step: int | None = None


def with_sample(known: Launcher, ranks: Ranks, sample: ProcessSample) -> tuple[Launcher, tuple[Rank, ...]]:
    """Take a sample. Also the ranks that begin a restart of the workers with it; () = none begins.

    ``ranks``: as they were before it.
    """
    if not sample.agents and not known.agents:
        return known, ()
    before = {each.rank: each.pid for each in ranks if each.pid is not None}
    anew = [each for each in sample.ranks if each.state not in "ZX" and before.get(each.rank, each.pid) != each.pid]
    begun = known.begun
    again: tuple[Rank, ...] = ()
    if anew and (known.restarts == 0 or any(each.rank in begun for each in anew)):
        again, begun = tuple(anew), ()
    return (
        msgspec.structs.replace(
            known,
            begun=tuple(sorted({*begun, *(each.rank for each in anew)})),
            restarts=known.restarts + bool(again),
            agents=sample.agents,
            peers=max(known.peers, len(sample.agents)),
        ),
        again,
    )


def joining_s(known: Launcher) -> float | None:
    """How long the agents still may wait for each other, none of them with a worker; None if they do not.

    An agent that ended does not come back. Of the others the one counts that gives up last.
    """
    waits = bool(known.agents) and not any(agent.workers for agent in known.agents)
    if not waits or len(known.agents) < known.peers or any(agent.join_s is None for agent in known.agents):
        return None
    # The last call of torchrun's rendezvous and its end take up to 30 s each (torch 2.13).
    return max(agent.join_s or 0.0 for agent in known.agents) + MINUTE_S


def waiting(known: Launcher) -> str:
    """A sentence about the agents that live without a worker while none has one; "" if that is not so."""
    if not known.agents or any(agent.workers for agent in known.agents):
        return ""
    names = ", ".join(f"pid {agent.pid}{f' on {agent.node}' if agent.node else ''}" for agent in known.agents)
    one = len(known.agents) == 1
    lives = "an agent of torchrun lives" if one else f"{len(known.agents)} agents of torchrun live"
    ended = known.peers - len(known.agents)
    after = f"; {ended} of {known.peers} agents ended" if ended else ""
    return f"{lives} without a worker and wait{'s' * one} for others ({names}){after}"
