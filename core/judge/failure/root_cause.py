"""Which finding is the root cause.

What a program raised at its end outranks what was mentioned before it: a warning, and anything after which training
went on. Of what is left the strongest counts, and among equals one with a message over one with a type alone, then
the first: launchers and other ranks report later.
"""

from collections.abc import Sequence

from .catalogue import OWN_WEIGHT, CompiledCatalogue
from .evidence_state import DiagnosisState, Finding

NO_FAILURES = frozenset({"success", "killed_by_user"})
"""Classes that are no failure of the training."""
PEERS = 0.12
"""Pieces of evidence that differ less in weight are equally strong; the first one is the cause."""
WARNED = 0.85
"""What a warning proves of what an event proves."""
NEAR = 2
"""Lines above what a program raised that belong to it (the assertions of a kernel, the message of a C++ library)."""
SAID = 0.64
"""Weight from which an exception that ended the program names its own cause; a vaguer one is explained by warnings."""


def root_of(state: DiagnosisState, catalogue: CompiledCatalogue) -> Finding | None:
    """The cause, None without one. A printed NaN loss counts: it comes before the errors that it causes."""
    roots = [each for each in state.findings if each.role == "root" or each.failure == "nan_loss"]
    counting = [each for each in roots if not _outranked(each, roots, catalogue)]
    if not counting:
        return None
    best = max(map(strength, counting))
    bar = best if best >= OWN_WEIGHT else best - PEERS  # a project's own pattern has no equal
    peers = [each for each in counting if strength(each) >= bar]
    told = [each for each in peers if each.told and each.terminal and strength(each) >= CERTAIN]
    return min(told if told and not all(each.told for each in peers) else peers, key=_order)


def _order(finding: Finding) -> tuple[int, float]:
    return finding.line, -finding.weight


def strength(finding: Finding) -> float:
    """How much it proves."""
    return finding.weight * WARNED if finding.warned else finding.weight


CERTAIN = 0.8
"""Weight from which one class explains another one that follows from it."""


def _explains(cause: Finding, mine: Finding, catalogue: CompiledCatalogue) -> bool:
    """Whether ``mine`` is a known consequence: of a kill by the kernel, of a lost GPU, of another rank's own error."""
    known = catalogue.class_of(mine.failure)
    if cause.failure == mine.failure or strength(cause) < CERTAIN or mine.weight >= OWN_WEIGHT:
        return False
    if known.of_other_ranks:
        return (
            cause.terminal and not catalogue.class_of(cause.failure).of_other_ranks and cause.failure not in NO_FAILURES
        )
    return cause.failure in known.follows_from


def _outranked(mine: Finding, roots: Sequence[Finding], catalogue: CompiledCatalogue) -> bool:
    """Whether a later end of the program leaves this one without effect."""
    if mine.line == 0 or mine.weight >= OWN_WEIGHT or mine.failure == "nan_loss":
        return False
    if any(_explains(each, mine, catalogue) for each in roots):
        return True
    for end in roots:
        if not end.terminal or end.last <= mine.last or end.failure == mine.failure:
            continue
        if end.weight < SAID or catalogue.class_of(end.failure).of_other_ranks:
            continue
        unrelated = mine.failure not in catalogue.class_of(end.failure).follows_from
        if not mine.terminal and unrelated and end.told and end.weight >= CERTAIN and end.line - mine.last > NEAR:
            return True
        if mine.warned or end.beats - mine.beats >= (2 if mine.terminal else 1):
            return True
    return False
