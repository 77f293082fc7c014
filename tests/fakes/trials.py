"""Results of trials."""

from collections.abc import Mapping

from tests.fakes.feed import WALL0
from trainwatch.core.model.launch import TrialResult

MEASURED = TrialResult(
    profile="conservative", wall=WALL0, ran_s=300.0, steps=76, s_per_step=3.94, vram_peak_bytes=11.4e9,
    vram_total_bytes=16e9, ram_peak_bytes=7.9e9, gpu_util_pct=91.0, started=True, memory_stable=True,
    loss_falling=True, exit="ended after 5 minutes",
)  # fmt: skip


class FakeTrials:
    """What was measured, by profile."""

    def __init__(self, results: Mapping[str, TrialResult] | None = None) -> None:
        self.kept = dict(results or {})

    def __call__(self) -> Mapping[str, TrialResult]:
        return dict(self.kept)
