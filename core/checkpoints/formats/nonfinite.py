"""Deep check of one tensor file: every checksum, and every value of every tensor finite."""

from bisect import bisect_right
from typing import TYPE_CHECKING

from ...model.checkpoint import NAMES_KEPT
from .byte_range import ByteRange, Corrupt, Damage, NonFinite
from .file_contents import FileContents, Region, Tensor
from .pickle_values import shown

if TYPE_CHECKING:
    from .value_scan import Array, Scanner


_MASK_WORD = "mask"
"""Attention masks that are saved as buffers hold -Inf by design."""


def check_values(source: ByteRange, contents: FileContents, scanner: "Scanner") -> list[Damage]:
    """Read every region of a file once; returns what is wrong (empty: nothing). Raises Damage when it cannot be read.

    A value that no tensor covers is not tested: storages may be larger than the views of them.
    """
    tally = _Tally(contents)
    damages: list[Damage] = []
    for group in _runs(contents.regions):
        first = contents.regions[group[0]]
        if len(group) == 1 and first.packing == "deflated":
            crc = scanner.scan_deflated(
                source,
                first.start,
                first.packed_bytes,
                first.size_bytes,
                first.element.check if first.element else "none",
                on_bad=tally.listener(group),
                big_endian=first.big_endian,
            )
        else:
            crc = scanner.scan(
                source,
                first.start,
                sum(contents.regions[index].size_bytes for index in group),
                first.element.check if first.element else "none",
                on_bad=tally.listener(group),
                checksum=first.crc is not None,
                big_endian=first.big_endian,
            )
        if first.crc is not None and crc != first.crc:
            damages.append(Corrupt(f"member {shown(first.label)} at byte {first.start} has a wrong checksum"))
    finding = tally.finding()
    return damages if finding is None else [*damages, finding]


def _runs(regions: tuple[Region, ...]) -> list[list[int]]:
    """Neighbours of one kind are scanned as one stretch; thousands of small tensors would cost thousands of reads."""
    runs: list[list[int]] = []
    for index in sorted(range(len(regions)), key=lambda index: regions[index].start):
        region = regions[index]
        before = regions[runs[-1][-1]] if runs else None
        if (
            before is not None
            and before.crc is None
            and region.crc is None
            and before.packing == region.packing == "stored"
            and before.start + before.size_bytes == region.start
            and _check_of(before) == _check_of(region)
            and before.big_endian == region.big_endian
        ):
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _check_of(region: Region) -> tuple[str, int]:
    return (region.element.check, region.element.bits) if region.element else ("none", 8)


_PART_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


class _Tally:
    """Counts non-finite values by tensor."""

    def __init__(self, contents: FileContents) -> None:
        self._contents = contents
        self._views: dict[int, list[Tensor]] = {}
        for tensor in contents.tensors:
            if tensor.region is not None:
                self._views.setdefault(tensor.region, []).append(tensor)
        self._count = 0
        self._names: dict[str, None] = {}
        self._nan: dict[str, None] = {}
        self._first: tuple[str, int] | None = None

    def listener(self, group: list[int]) -> "_Listener":
        return _Listener(self, group, self._contents.regions)

    def add(self, region_index: int, positions: "Array", negative: "Array", nan: "Array") -> None:
        """``positions``: parts (elements, or halves of complex ones) from the region's start."""
        region = self._contents.regions[region_index]
        element = region.element
        if element is None:
            return
        width = _PART_BYTES.get(element.check, 1)
        parts = max(1, element.bits // (8 * width))
        for tensor in self._views.get(region_index, ()):
            if not tensor.tested:
                continue
            within = _covered(tensor, positions // parts)
            if _MASK_WORD in tensor.name.lower():
                within &= ~negative
            hits = positions[within]
            if len(hits):
                self._count += len(hits)
                self._names[tensor.name] = None
                if nan[within].any():
                    self._nan[tensor.name] = None
                if self._first is None:
                    self._first = (tensor.name, region.start + int(hits[0]) * width)
                positions = positions[~within]
                negative, nan = negative[~within], nan[~within]

    def finding(self) -> NonFinite | None:
        if self._first is None:
            return None
        name, at = self._first
        where = f"in tensor {shown(name)}" if len(self._names) == 1 else f"in {len(self._names)} tensors"
        first = f"at byte {at}" if len(self._names) == 1 else f"{shown(name)} at byte {at}"
        kept = tuple(self._names)[:NAMES_KEPT], tuple(self._nan)[:NAMES_KEPT]
        return NonFinite(f"holds {self._count} NaN or Inf {where}, the first {first}", names=kept[0], nan=kept[1])


class _Listener:
    """Hands bad values of a run of regions to the regions they lie in."""

    def __init__(self, tally: _Tally, group: list[int], regions: tuple[Region, ...]) -> None:
        self._tally = tally
        self._group = group
        self._regions = regions
        self._base = regions[group[0]].start
        self._starts = [regions[index].start - self._base for index in group]

    def __call__(self, offset: int, positions: "Array", negative: "Array", nan: "Array") -> None:
        element = self._regions[self._group[0]].element
        width = _PART_BYTES.get(element.check, 1) if element else 1
        at = positions.astype("int64") * width + offset
        while len(at):
            place = bisect_right(self._starts, int(at[0])) - 1
            # regions without bytes share their start with the next one
            end = self._starts[place + 1] if place + 1 < len(self._starts) else None
            here = at < end if end is not None else at >= 0
            index = self._group[place]
            start = self._starts[place]
            self._tally.add(index, (at[here] - start) // width, negative[here], nan[here])
            at, negative, nan = at[~here], negative[~here], nan[~here]


def _covered(tensor: Tensor, elements: "Array") -> "Array":
    """Which element positions of a region the tensor covers.

    Exact for views whose strides nest (all that torch makes from slicing and transposing); for others it may take too
    many as covered, never too few.
    """
    inside: Array = elements >= tensor.offset
    if tensor.contiguous:
        inside &= elements < tensor.offset + tensor.count
        return inside
    rest = elements - tensor.offset
    strides = tensor.strides or ()
    for stride, length in sorted(zip(strides, tensor.shape, strict=True), reverse=True):
        if stride > 0 and length > 1:
            steps = rest // stride
            steps[steps > length - 1] = length - 1
            rest -= steps * stride
    inside &= rest == 0
    return inside
