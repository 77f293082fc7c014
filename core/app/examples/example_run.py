"""Runs of the shipped example trainers for ``demo`` and ``drill``, each in a new folder with its trainwatch.toml."""

import shutil
import sys
import time
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from ...config.location import FILE_NAME
from ...config.spec import Overrides
from ...store.home import make_private
from ...store.run_directory import RunDirectory
from ..plan.definitions import read_definitions
from ..plan.specs import spec_of_project
from ..runs.known_runs import home

COMPANIONS = ("dit_demo.yaml",)
"""Files that a template's trainer reads from its working folder."""


def example_run(
    purpose: str, template: str, fill: Mapping[str, str] | None = None, *, simulated_gpu: bool = False
) -> RunDirectory:
    """A new run of an example trainer under ``TRAINWATCH_HOME/PURPOSE``. Earlier ones stay as they are.

    ``template``: a file of ``configs/examples``; ``@PYTHON@``, ``@EXAMPLES@`` and the keys of ``fill`` are replaced.
    """
    folder = _fresh_folder(make_private(home() / purpose))
    with as_file(files("trainwatch.configs") / "examples") as examples:
        text = (examples / template).read_text(encoding="utf-8")
        for mark, value in {"@PYTHON@": sys.executable, "@EXAMPLES@": str(examples), **(fill or {})}.items():
            text = text.replace(mark, value)
        (folder / FILE_NAME).write_text(text, encoding="utf-8")
        for name in COMPANIONS:
            shutil.copyfile(examples / name, folder / name)
    project = folder / FILE_NAME
    spec = spec_of_project(project, None, Overrides(), read_definitions(project), fresh=True)
    if simulated_gpu:
        spec = msgspec.structs.replace(spec, labels={"simulated_gpu": True})
    return RunDirectory.create(home(), spec)


def _fresh_folder(parent: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 1
    while True:
        folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder
