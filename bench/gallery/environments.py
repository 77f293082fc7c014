"""Virtual environments of the rows, under the cache: one with PyTorch, one for each family on top of it.

A family's environment sees the packages of the one with PyTorch through a ``.pth`` file, so that pip takes torch as
installed; ``constraints.txt`` keeps it from choosing another.
"""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

TORCH = os.environ.get("TRAINWATCH_TORCH", "torch==2.13.0")
BASE_PACKAGES = ("numpy", "pillow", "setuptools", "wheel")


class NotInstalled(Exception):  # noqa: N818  named after the condition
    """A package could not be installed. The message ends with pip's last lines."""


def cache_folder(given: str | None) -> Path:
    if given:
        return Path(given).resolve()
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(home) / "trainwatch" / "frameworks"


def environment(cache: Path, name: str, packages: tuple[str, ...]) -> Path:
    """The folder of the environment, made and completed if necessary. ``packages``: of all rows that share it."""
    base = _base(cache)
    folder = cache / name
    _make(folder)
    (_site(folder) / "_torch.pth").write_text(f"{_site(base)}\n")
    if folder != base:
        _, _, script = (base / "bin" / "torchrun").read_text().partition("\n")
        (folder / "bin" / "torchrun").write_text(f"#!{folder / 'bin' / 'python'}\n{script}")
        (folder / "bin" / "torchrun").chmod(0o755)
    stamp = folder / ".gallery"
    wanted = msgspec.json.encode(sorted(packages)).decode()
    if packages and (not stamp.exists() or stamp.read_text() != wanted):
        _pip(folder, "-c", str(cache / "constraints.txt"), *packages)
        stamp.write_text(wanted)
    return folder


def version(folder: Path, distribution: str) -> str:
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    done = subprocess.run([folder / "bin" / "python", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def _base(cache: Path) -> Path:
    folder = cache / "torch"
    if not (_site(folder) / "torch").is_dir():
        _make(folder)
        _pip(folder, *BASE_PACKAGES)
        _pip(folder, *TORCH.split())
    if not (cache / "constraints.txt").exists():
        found = version(folder, "torch").partition("+")[0]
        (cache / "constraints.txt").write_text(f"torch=={found}\n")
    return folder


def _make(folder: Path) -> None:
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)


def _site(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _pip(folder: Path, *words: str) -> None:
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotInstalled("; ".join((done.stderr or done.stdout).strip().splitlines()[-2:]))
