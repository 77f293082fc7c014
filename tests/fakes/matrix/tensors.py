"""What two of the stand-ins train and save with: PyTorch, or (``MATRIX_LIGHT``) numpy and the same files by hand.

Importing PyTorch costs more than all else that a cell of the matrix does.
"""

import os

if os.environ.get("MATRIX_LIGHT"):
    from safetensors.numpy import load_file, save_file

    from tests.fakes.matrix.tensors_numpy import OutOfMemoryError, SmallModel, chance, described, load, save, write_nan
else:
    from safetensors.torch import load_file, save_file  # type: ignore[assignment]

    from tests.fakes.matrix.tensors_torch import (  # type: ignore[assignment]
        OutOfMemoryError,
        SmallModel,
        chance,
        described,
        load,
        save,
        write_nan,
    )

__all__ = [
    "OutOfMemoryError",
    "SmallModel",
    "chance",
    "described",
    "load",
    "load_file",
    "save",
    "save_file",
    "write_nan",
]
