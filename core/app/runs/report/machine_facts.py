"""Facts about this machine that a bug report needs: driver, kernel, WSL …, as they are now."""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trainwatch import __version__

from ...gpu_survey import surveying


@contextmanager
def asking_machine() -> Iterator[Callable[[], Mapping[str, str]]]:
    """Ask for the facts while the caller does something else: the driver takes longer than the rest of a report.

    To call what it gets waits for them: by their names, without unknown ones.
    """
    with surveying() as gpus_now:

        def facts() -> Mapping[str, str]:
            gpus = gpus_now()
            found = {
                "driver": f"{gpus.driver}, CUDA {gpus.cuda or '–'}" if gpus.driver else None,
                "GPUs now": ", ".join(f"{g.index}: {g.name}" for g in gpus.gpus if g.name),
                "kernel": f"{platform.system()} {platform.release()}",
                "WSL": wsl(platform.release(), os.environ),
                "system": _system(),
                "trainwatch": f"{__version__}, Python {sys.version.split()[0]}",
            }
            return {name: value for name, value in found.items() if value}

        yield facts


def wsl(release: str, environ: Mapping[str, str]) -> str | None:
    """The kernel's name tells WSL1 from WSL2; None outside Windows."""
    if "microsoft" not in release.lower():
        return None
    generation = "WSL2" if "wsl2" in release.lower() or "WSL_INTEROP" in environ else "WSL1"
    return f"{generation}, distribution {environ.get('WSL_DISTRO_NAME', 'unknown')}"


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME") if Path("/etc").is_dir() else None
    except OSError:
        return None
