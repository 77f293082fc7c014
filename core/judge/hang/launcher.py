"""What the launcher of several ranks (torchrun) does by itself: it starts its workers again, or waits without workers.

One restart authority at a time: while an agent of torchrun has restarts left, it starts its workers again inside the
attempt, and that is no restart of ours. Ours comes when torchrun has ended, or when the run hangs. An agent whose peer
was ended waits in its rendezvous without a worker and without a word, for its time-out of 10 to 15 minutes (seen with
torch 2.13): nothing trains meanwhile, and the silence is a hang of its own kind. As long as no agent has ended, the
others may come: nodes start at different times. torchrun gives that up itself, with an error that names the rendezvous;
only if it does not, it is a hang.
"""

import msgspec

from ...model.observation import Agent, ProcessSample, Rank
from .ranks import Ranks

LAST_CALL_S = 60.0
"""Added to the time-out of torchrun's rendezvous: its last call and its end take up to 30 s each (torch 2.13)."""


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
    return max(agent.join_s or 0.0 for agent in known.agents) + LAST_CALL_S


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
