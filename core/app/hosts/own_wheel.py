"""A wheel of the trainwatch that runs, made of its own files: for a machine that has none."""

import base64
import hashlib
import io
import os
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import trainwatch
from trainwatch import __version__

from ..errors import CliError, ExitCode

DISTRIBUTION = "trainwatch-tui"
_LEFT_OUT = ("__pycache__",)
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip file can hold: the same files make the same wheel."""


def own_wheel() -> tuple[str, bytes]:
    """The name of the file and its content (PEP 427). Raises CliError if this trainwatch was not installed by pip."""
    try:
        about = distribution(DISTRIBUTION)
        metadata, entries = about.read_text("METADATA"), about.read_text("entry_points.txt")
    except PackageNotFoundError:
        metadata = entries = None
    if metadata is None or entries is None:
        raise CliError(ExitCode.FAILED, "this trainwatch was not installed as a package: install it there by hand")
    info = f"{DISTRIBUTION.replace('-', '_')}-{__version__}.dist-info"
    files = _package_files()
    files[f"{info}/METADATA"] = _with_version(metadata).encode()
    files[f"{info}/entry_points.txt"] = entries.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: trainwatch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl", made.getvalue()


def _package_files() -> dict[str, bytes]:
    """Name in the wheel → content, of all files of the package; links of a checkout are followed."""
    top = Path(trainwatch.__path__[0])
    found: dict[str, bytes] = {}
    for folder, below, names in os.walk(top, followlinks=True):
        below[:] = sorted(each for each in below if each not in _LEFT_OUT)
        for name in sorted(names):
            if not name.endswith(".pyc"):
                path = Path(folder) / name
                found[f"trainwatch/{path.relative_to(top).as_posix()}"] = path.read_bytes()
    return found


def _with_version(metadata: str) -> str:
    """The metadata with the version that runs: those of an editable install may be older."""
    head, empty, rest = metadata.partition("\n\n")
    lines = [f"Version: {__version__}" if line.startswith("Version:") else line for line in head.splitlines()]
    return "\n".join(lines) + empty + rest


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
