"""Run the cases of all requirements and write docs/requirements.md: python docs/make_requirements.py.

Words behind it go to pytest, such as ``-x`` or ``-n 4``. If they leave out a requirement, no page
is written.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tests.requirements.shown import PAGE_VARIABLE

    argv = [sys.executable, "-m", "pytest", "tests/requirements", *sys.argv[1:]]
    env = os.environ | {PAGE_VARIABLE: str(PAGE), "TRAINWATCH_MATRIX": "all"}
    sys.exit(subprocess.run(argv, cwd=ROOT, env=env, check=False).returncode)
