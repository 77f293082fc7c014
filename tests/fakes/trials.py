"""Trials that are over when the test says so."""

import threading
from collections.abc import Callable, Mapping, Sequence

from tests.fakes.feed import WALL0
from trainwatch.core.model.trial import TrialResult

MEASURED = TrialResult(
    profile="conservative", wall=WALL0, ran_s=300.0, steps=76, s_per_step=3.94, vram_peak_bytes=11.4e9,
    vram_total_bytes=16e9, ram_peak_bytes=7.9e9, gpu_util_pct=91.0, started=True, memory_stable=True,
    loss_falling=True, exit="ended after 5 minutes",
)  # fmt: skip


class FakeTrials:
    """Remembers what was tried. ``gate``: a trial goes on until it is set."""

    def __init__(self, rivals: Sequence[str] = (), results: Mapping[str, TrialResult] | None = None) -> None:
        self.said, self.kept = tuple(rivals), dict(results or {})
        self.tried: list[tuple[str, float, bool]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.refusal = ""

    def rivals(self) -> Sequence[str]:
        return self.said

    def results(self) -> Mapping[str, TrialResult]:
        return dict(self.kept)

    def attempt(
        self, profile: str, minutes: float, *, beside: bool, progress: Callable[[int, int], None]
    ) -> TrialResult:
        self.tried.append((profile, minutes, beside))
        if self.refusal:
            raise RuntimeError(self.refusal)
        progress(72, 300)
        while not self.gate.wait(0.01):
            progress(72, 300)
        self.kept[profile] = MEASURED
        return MEASURED
