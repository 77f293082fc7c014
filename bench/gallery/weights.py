"""Run by a row's own Python: ``weights.py A B`` prints the largest difference between the tensors of two files.

Files of safetensors, of ``torch.save`` (any nesting of dicts and lists) and of HDF5 (also inside a ``.keras`` archive).
"""

import io
import sys
import zipfile


def tensors(path):
    """Name → numpy array."""
    if path.endswith(".safetensors"):
        from safetensors.numpy import load_file

        return load_file(path)
    if path.endswith((".h5", ".keras")):
        return of_hdf5(path)
    import torch

    stored = torch.load(path, map_location="cpu", weights_only=False)
    if isinstance(stored, dict) and "pytorch-lightning_version" in stored:
        stored.pop("callbacks", None)  # scores by path, and the path has the number of the attempt
    return dict(nested(stored, ""))


def nested(value, name):
    if hasattr(value, "detach"):
        yield name, value.detach().double().numpy()
    elif hasattr(value, "state_dict"):
        yield from nested(value.state_dict(), name)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nested(inner, f"{name}/{key}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from nested(inner, f"{name}/{number}")


def of_hdf5(path):
    import h5py

    source = path
    if path.endswith(".keras"):
        with zipfile.ZipFile(path) as archive:
            source = io.BytesIO(archive.read("model.weights.h5"))
    found = {}
    with h5py.File(source) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if hasattr(item, "dtype") else None)
    return found


def difference(one, other):
    import numpy as np

    if one.keys() != other.keys():
        return float("inf")
    gaps = [np.abs(np.asarray(one[k], "float64") - np.asarray(other[k], "float64")).max() for k in one if one[k].size]
    return float(max(gaps, default=float("inf")))


print(difference(tensors(sys.argv[1]), tensors(sys.argv[2])))
