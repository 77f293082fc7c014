"""Write the table of failure classes into ``docs/failure-taxonomy.md``: ``python docs/make_failure_table.py``."""

import re
from pathlib import Path

from trainwatch.core.config.shipped import load_failures
from trainwatch.core.model.shipped import FailureCatalogue, FailureClass

PAGE = Path(__file__).parent / "failure-taxonomy.md"
HEAD = "| class | mechanism | never trained | once trained |\n|---|---|---|---|\n"
WAITS = {
    "person": "waits for a person",
    "network": "restart, as soon as the network is there",
    "disk": "restart, as soon as there is room",
    "gpu": "restart, as soon as a GPU of the run is usable",
}
"""``waits_for`` of a class, in words."""


def table(catalogue: FailureCatalogue) -> str:
    """One row per class, in the order of ``configs/failures.toml``."""
    return HEAD + "".join(f"| `{c.name}` | {c.mechanism} | {_at_start(c)} | {_later(c)} |\n" for c in catalogue.classes)


def _at_start(known: FailureClass) -> str:
    if known.name == "success":
        return "–"
    if known.waits_for is not None:
        return WAITS[known.waits_for]
    return "restart" if known.retryable else "given up, if certain"


def _later(known: FailureClass) -> str:
    return _at_start(known) if known.waits_for is not None or known.name == "success" else "restart"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(re.escape(HEAD) + r"(?:\|.*\n)+", lambda _: table(load_failures()), text), encoding="utf-8")
