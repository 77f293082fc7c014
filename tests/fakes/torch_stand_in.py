"""A torch for trainers that only save and load: the real one takes two seconds to import.

What it saves has the bytes of ``torch.save``; of what it loads, tensors are None.
"""

import io
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "<run_path>":
    sys.path.append(str(Path(__file__).parents[2]))
from tests.fakes.torch_files import write_zip


class Reader(pickle.Unpickler):
    def persistent_load(self, _pid: object) -> None:
        return None

    def find_class(self, _module: str, _name: str) -> Any:
        return lambda *_: None


def ones(*shape: int) -> Any:
    return np.ones(shape, "float32")


def save(value: object, path: str) -> None:
    write_zip(Path(path), value)


def load(path: str) -> Any:
    return Reader(io.BytesIO(zipfile.ZipFile(path).read("archive/data.pkl"))).load()


def stand_in(folder: Path) -> str:
    """Make a ``torch`` there whose source shows nothing to who reads it. Returns the folder, for PYTHONPATH."""
    folder.mkdir()
    text = f"import runpy\nglobals().update(runpy.run_path({__file__!r}))\n"
    (folder / "torch.py").write_text(text)
    return str(folder)
