"""Writes the goldens anew: ``python tests/make_goldens.py [--journals] [PYTEST…]``, then look at the diff.

``--journals``: record the journals, too (tests/goldens/stories.py): after a change of their format.
A golden changes only in a commit that says why the new answer is better for a user.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = ["tests/goldens", "tests/scenarios", "tests/unit/test_report_texts.py"]
sys.path.insert(0, str(ROOT))

if __name__ == "__main__":
    options = sys.argv[1:]
    if "--journals" in options:
        from tests.goldens.journals import record_all

        options.remove("--journals")
        record_all()
    if not options:
        from tests.scenarios.decisions import write_all

        write_all()
    os.environ |= {"TRAINWATCH_UPDATE_GOLDENS": "1", "TRAINWATCH_MATRIX": "all"}
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *(options or GOLDENS)])
