"""Compares two checkpoints by tensor: keys, shapes, norms, how far the weights moved, values that are not finite."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ...model.checkpoint import Comparison, TensorChange
from ..formats.byte_range import ByteRange, Damage, Pace, ProgressCallback, idle_io_priority, open_bytes
from ..formats.tensors import FileContents, Region, Tensor, shown
from ..inspection import conclude, subject_of_any
from ..layouts.layout_reading import weights_in
from ..listing import COMPILED_PREFIX

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_CHUNK_ELEMENTS = 1 << 19


class ComparisonRefusedError(Exception):
    """Two things that cannot be compared; the message says why."""


class _Placed(msgspec.Struct, frozen=True):
    tensor: Tensor
    region: Region | None
    source: ByteRange

    @property
    def size_bytes(self) -> int:
        return self.tensor.element.size_bytes(self.tensor.count)


def compare(a: Path, b: Path, *, progress: ProgressCallback | None = None) -> Comparison:
    """Compare the weights of two checkpoints of any layout but DCP, 4 MB at a time.

    ``_orig_mod.`` (torch.compile) is taken off the keys first. Raises FileNotFoundError, ComparisonRefusedError.
    """
    with ExitStack() as stack, idle_io_priority():
        try:
            return _compare(a, b, _weights(a, stack), _weights(b, stack), progress)
        except Damage as damage:
            raise ComparisonRefusedError(f"cannot compare {a} with {b}: {damage.reason}") from damage


def _compare(
    a: Path, b: Path, first: dict[str, _Placed], second: dict[str, _Placed], progress: ProgressCallback | None
) -> Comparison:
    common = sorted(first.keys() & second.keys())
    other_shape: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
    skipped: list[tuple[str, str]] = []
    changes: list[TensorChange] = []
    pace = Pace(sum(first[name].size_bytes + second[name].size_bytes for name in common), progress)
    moved = base = 0.0
    for name in common:
        if (shape := first[name].tensor.shape) != (other := second[name].tensor.shape):
            other_shape.append((name, shape, other))
            continue
        why = _unreadable(first[name]) or _unreadable(second[name])
        if why is not None:
            skipped.append((name, why))
            continue
        change, distance = _change(name, first[name], second[name])
        pace.advance(first[name].size_bytes + second[name].size_bytes)
        changes.append(change)
        moved += distance
        base += change.norm_a**2
    pace.finish()
    return Comparison(
        a=str(a),
        b=str(b),
        only_in_a=tuple(sorted(first.keys() - second.keys())),
        only_in_b=tuple(sorted(second.keys() - first.keys())),
        other_shape=tuple(other_shape),
        changes=tuple(changes),
        skipped=tuple(skipped),
        relative_change=math.sqrt(moved / base) if base > 0 else None,
        nonfinite_a=sum(change.nonfinite_a for change in changes),
        nonfinite_b=sum(change.nonfinite_b for change in changes),
    )


def _weights(path: Path, stack: ExitStack) -> dict[str, _Placed]:
    subject = subject_of_any(path)
    if subject is None:
        raise ComparisonRefusedError(f"{path} is not a checkpoint")
    finding = subject.examine(None)
    if finding.kind == "dcp":
        raise ComparisonRefusedError(f"{path}: DCP checkpoints are not compared; export them first (dcp_to_torch_save)")
    listed = any(found.contents is not None and found.contents.tensors for found in finding.files.values())
    if not listed and not conclude(subject, finding).understood:
        raise ComparisonRefusedError(
            f"{path}: it is of an unknown format, which only the program that wrote it can read: how far its weights "
            "moved cannot be told here"
        )
    placed: dict[str, _Placed] = {}
    files = subject.members.files
    for name in files if len(files) == 1 else sorted(weights_in(subject.members)):
        found = finding.files.get(name)
        if found is None or found.contents is None:
            why = found.damage.reason if found is not None and found.damage is not None else "it cannot be listed"
            raise ComparisonRefusedError(f"{path}: {name}: {why}")
        source = stack.enter_context(open_bytes(files[name].path))
        placed.update(_placed(found.contents, source))
    if not placed:
        raise ComparisonRefusedError(f"{path} holds no tensors that can be listed")
    return placed


def _placed(contents: FileContents, source: ByteRange) -> Iterator[tuple[str, _Placed]]:
    for tensor in contents.tensors:
        region = None if tensor.region is None else contents.regions[tensor.region]
        yield shown(tensor.name.replace(COMPILED_PREFIX, ""), 200), _Placed(tensor, region, source)


def _unreadable(placed: _Placed) -> str | None:
    if placed.region is None:
        return "has no bytes"
    if placed.region.packing != "stored":
        return "is compressed in its archive"
    if not placed.tensor.contiguous:
        return "is stored as a view that is not contiguous"
    if placed.tensor.element.name not in _DECODERS:
        return f"has values of type {placed.tensor.element.name}"
    return None


def _change(name: str, a: _Placed, b: _Placed) -> tuple[TensorChange, float]:
    import numpy as np

    squares_a = squares_b = distance = 0.0
    bad_a = bad_b = 0
    for start in range(0, a.tensor.count, _CHUNK_ELEMENTS):
        count = min(_CHUNK_ELEMENTS, a.tensor.count - start)
        values_a, values_b = _values(np, a, start, count), _values(np, b, start, count)
        finite_a, finite_b = np.isfinite(values_a), np.isfinite(values_b)
        bad_a += len(values_a) - int(np.count_nonzero(finite_a))
        bad_b += len(values_b) - int(np.count_nonzero(finite_b))
        squares_a += _squares(values_a[finite_a])
        squares_b += _squares(values_b[finite_b])
        both = finite_a & finite_b
        distance += _squares(values_b[both] - values_a[both])
    change = TensorChange(
        name=name,
        shape=a.tensor.shape,
        norm_a=math.sqrt(squares_a),
        norm_b=math.sqrt(squares_b),
        relative_change=math.sqrt(distance / squares_a) if squares_a > 0 else None,
        nonfinite_a=bad_a,
        nonfinite_b=bad_b,
    )
    return change, distance


def _squares(values: "Array") -> float:
    return float(values @ values)


_DECODERS: dict[str, str] = {
    "float64": "f8", "float32": "f4", "float16": "f2", "bfloat16": "u2", "int64": "i8", "int32": "i4", "int16": "i2",
    "int8": "i1", "uint8": "u1", "bool": "u1",
}  # fmt: skip


def _values(np: Any, placed: _Placed, start: int, count: int) -> "Array":
    """``count`` elements of a tensor from ``start``, as float64."""
    assert placed.region is not None
    code = _DECODERS[placed.tensor.element.name]
    width = int(code[1])
    order = ">" if placed.region.big_endian else "<"
    raw = placed.source.read(placed.region.start + (placed.tensor.offset + start) * width, count * width)
    stored = np.frombuffer(raw, dtype=f"{order}{code}")
    if placed.tensor.element.name == "bfloat16":
        # its bits are the upper half of a float32
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    values: Array = stored.astype(np.float64)
    return values
