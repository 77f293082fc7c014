"""What one tensor file holds, whatever its format: regions of bytes, and tensors as views of them."""

from typing import Literal

import msgspec

from .byte_range import Corrupt
from .elements import Element
from .pickle_values import Mapping, PickleValue, Storage, shown, tensors_in

FileFormat = Literal["safetensors", "torch_zip", "torch_legacy", "pickle"]
Packing = Literal["stored", "deflated"]
_LIGHTNING_MARK = "pytorch-lightning_version"
_LIGHTNING_BOOKKEEPING = ("callbacks.", "loops.")
"""Lightning's callbacks start their best scores at infinity (EarlyStopping.best_score); no weight lies there."""

TORCHSCRIPT = "TorchScript code"
"""Opaque member of a model compiled for inference."""


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A range of a file that is checked as one: a safetensors tensor, a zip member, a legacy storage.

    ``start``: byte in the file. ``packed_bytes`` there, ``size_bytes`` unpacked. ``element`` None: bytes whose values
    are not tested. ``crc`` None: the format stores none.
    """

    label: str
    start: int
    size_bytes: int
    element: Element | None = None
    crc: int | None = None
    packing: Packing = "stored"
    packed_bytes: int = 0
    big_endian: bool = False


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor as a view of a region. ``offset`` and ``strides`` in elements; ``strides`` None: contiguous.

    ``region`` None: a tensor without bytes (meta device). ``tested`` False: may hold infinities.
    """

    name: str
    element: Element
    shape: tuple[int, ...]
    region: int | None
    offset: int = 0
    strides: tuple[int, ...] | None = None
    tested: bool = True

    @property
    def count(self) -> int:
        """Number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie one after the other in row-major order."""
        if self.strides is None:
            return True
        expected = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and stride != expected:
                return False
            expected *= length
        return True


class FileContents(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor file with an undamaged structure.

    ``opaque``: names of objects beyond tensors and plain values. ``refused``: names of callables that no known
    framework stores and that loading the file would call. ``objects``: names that ``torch.load`` of the file refuses
    with ``weights_only``. ``hostile``: imported names that can run commands.
    ``tree``: the pickled object as inert values (None for safetensors). ``metadata``: as stored by safetensors.
    ``notes``: unusual but harmless.
    """

    format: FileFormat
    regions: tuple[Region, ...]
    tensors: tuple[Tensor, ...]
    opaque: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    hostile: tuple[str, ...] = ()
    tree: PickleValue = None
    metadata: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def describe_views(tree: PickleValue, region_of: dict[str, int | None]) -> tuple[Tensor, ...]:
    """Every tensor in the tree, by name. ``region_of``: storage key → region. Raises Corrupt for a missing storage."""
    untested = _LIGHTNING_BOOKKEEPING if isinstance(tree, Mapping) and _LIGHTNING_MARK in tree.keys() else ()  # noqa: SIM118 -- not a dict
    tensors: list[Tensor] = []
    for name, view in tensors_in(tree):
        region = None
        if view.storage is not None:
            region = region_of.get(view.storage.key)
            if region is None:
                raise Corrupt(f"storage {shown(view.storage.key)}, which tensor {shown(name)} needs, is missing")
        tensors.append(
            Tensor(
                name=name,
                element=view.element,
                shape=view.shape,
                region=region,
                offset=view.offset,
                strides=view.strides,
                tested=not name.startswith(untested) if untested else True,
            )
        )
    return tuple(tensors)


def storage_elements(storages: dict[str, Storage], tree: PickleValue) -> dict[str, Element]:
    """The element type of each storage: its own, or for an untyped one that of the tensors over it, if they agree."""
    known = {key: storage.element for key, storage in storages.items() if storage.element is not None}
    if len(known) == len(storages):
        return known
    seen: dict[str, set[Element]] = {}
    for _, view in tensors_in(tree):
        if view.storage is not None and view.storage.key not in known:
            seen.setdefault(view.storage.key, set()).add(view.element)
    return known | {key: next(iter(elements)) for key, elements in seen.items() if len(elements) == 1}
