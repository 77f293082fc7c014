"""The bar and the pace that two of the stand-ins have in common."""

import time

ITEMS = 40
"""Ten steps of four: an epoch."""
STEP_S = 0.025


def bar(label: str, step: int, total: int, after: str, begun: float) -> str:
    """One drawing of tqdm's bar."""
    spent = time.monotonic() - begun
    share = step / total
    drawn = "█" * int(10 * share)
    return (
        f"\r{label}{100 * share:3.0f}%|{drawn:10}| {step}/{total} "
        f"[00:{int(spent):02d}<00:{int(spent / share - spent):02d}, {spent / step:5.2f}s/it{after}]"
    )
