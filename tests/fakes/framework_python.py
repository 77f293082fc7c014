"""A Python in which real training frameworks can be imported: this one, or an environment of the gallery."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.gallery.environments import cache_folder

VARIABLE = "TRAINWATCH_FRAMEWORK_PYTHON"
"""Names another interpreter to try first."""


@functools.cache
def python_with(*packages: str) -> str:
    """The interpreter that imports them. Skips the test if there is none."""
    found = [os.environ[VARIABLE]] if VARIABLE in os.environ else []
    found += [sys.executable, *map(str, sorted(Path(cache_folder(None)).glob("*/bin/python")))]
    looks = f"import {', '.join(packages)}"
    for python in found:
        if subprocess.run([python, "-c", looks], check=False, capture_output=True).returncode == 0:
            return python
    pytest.skip(
        f"no Python with {' and '.join(packages)}: `./trainwatch.sh frameworks hf lightning --quick` makes one, "
        f"or name one in {VARIABLE}"
    )
