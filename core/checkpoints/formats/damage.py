"""What can be wrong with a checkpoint: raised by the readers, turned into a verdict by ``inspection.conclude``.

``Damage``
├── ``Torn``       it ends too early, or a member that is written last is missing
├── ``Corrupt``    its structure contradicts itself, or a checksum is wrong
├── ``NonFinite``  a tensor holds NaN or Inf
├── ``Opaque``     its tensors cannot be listed without running code, or may not be read
└── ``Growing``    it changed while it was being read
"""

from typing import ClassVar

from ...model.checkpoints.checkpoint import Verdict


class Damage(Exception):  # noqa: N818 -- a finding about a file, not an error of ours
    """``reason`` is a sentence that names the member and, if known, the byte."""

    verdict: ClassVar[Verdict]
    understood: bool
    """False: another program may see nothing wrong with it."""
    unfinished: bool
    """What is written last is missing: it is as its writer leaves it if it dies in the middle of a save."""

    def __init__(self, reason: str, *, understood: bool = True, unfinished: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.understood = understood and not unfinished and self.verdict != "opaque"
        self.unfinished = unfinished

    def within(self, member: str) -> "Damage":
        """The same finding for a member of a larger checkpoint."""
        return type(self)(f"{member}: {self.reason}", understood=self.understood, unfinished=self.unfinished)


class Torn(Damage):
    """It ends before what its own structure announces, or lacks a member that is written last."""

    verdict = "torn"


class Corrupt(Damage):
    """Its structure contradicts itself, or a checksum is wrong."""

    verdict = "corrupt"


class NoCounts(Corrupt):
    """A state file in order that holds neither a step nor an epoch under the names that are known."""


class NonFinite(Damage):
    """NaN or Inf inside. ``names``: of the tensors; ``nan``: of those with NaN among them."""

    verdict = "nonfinite"

    def __init__(
        self, reason: str, *, understood: bool = True, names: tuple[str, ...] = (), nan: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reason, understood=understood)
        self.names = names
        self.nan = nan

    def within(self, member: str) -> "NonFinite":
        return NonFinite(
            f"{member}: {self.reason}",
            understood=self.understood,
            names=tuple(f"{member}: {name}" for name in self.names),
            nan=tuple(f"{member}: {name}" for name in self.nan),
        )


class Opaque(Damage):
    """Cannot be listed without running code, or may not be read."""

    verdict = "opaque"


class Growing(Damage):
    """Changed while it was read."""

    verdict = "writing"


SEVERITY: tuple[Verdict, ...] = ("complete", "opaque", "nonfinite", "corrupt", "torn", "writing")
"""The finding furthest to the right gives the verdict: a cut file explains the rest, and while a file is being written
nothing else that was found in it counts."""


def worst(findings: list[Damage]) -> Damage | None:
    """The finding that gives the verdict: the first of the worst kind."""
    return max(findings, key=lambda finding: SEVERITY.index(finding.verdict), default=None)
