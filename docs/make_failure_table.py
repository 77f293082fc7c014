"""Write the table of failure classes into ``docs/failure-taxonomy.md``: ``python docs/make_failure_table.py``."""

import re
from pathlib import Path

from trainwatch.core.config.shipped import load_failures
from trainwatch.core.model.shipped.failure import FailureCatalogue, FailureClass

PAGE = Path(__file__).parent / "failure-taxonomy.md"
HEAD = "| class | mechanism | restart? |\n|---|---|---|\n"


def table(catalogue: FailureCatalogue) -> str:
    """One row per class, in the order of ``configs/failures.toml``."""
    return HEAD + "".join(f"| `{c.name}` | {c.mechanism} | {_restart(c)} |\n" for c in catalogue.classes)


def _restart(known: FailureClass) -> str:
    return known.restart or ("yes" if known.retryable else "no")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(re.escape(HEAD) + r"(?:\|.*\n)+", lambda _: table(load_failures()), text), encoding="utf-8")
