"""A file of ``torch.save`` from before the zip form: five pickles, then the storages.

Magic number, protocol, system, object, list of storage keys; then for each key its number of elements (eight bytes)
and the elements. No checksums. Source: ``torch/serialization.py`` (``_legacy_save``, ``_legacy_load``).
"""

from .byte_range import ByteRange
from .damage import Corrupt, Damage, Opaque, Torn
from .file_contents import FileContents, Region, describe_views, storage_elements
from .foreign_formats import TORCH_LEGACY
from .pickles.pickle_reader import MAX_PICKLE_BYTES, read_pickle
from .pickles.pickle_values import Mapping, PickleValue, Storage, shown
from .pickles.torch_objects import TorchInterpreter

_PROTOCOL = 1001
_FIRST_WINDOW_BYTES = 1 << 20
_MAX_NESTING = 4


def read_legacy(source: ByteRange) -> FileContents:
    """List tensors and storages and check that the file ends where the last storage does. Raises Damage."""
    interpreter, tree, system, keys, start = _head(source)
    walk_nested(interpreter)
    little = system.get("little_endian") if isinstance(system, Mapping) else True
    elements = storage_elements(interpreter.storages, tree)
    regions: list[Region] = []
    region_of: dict[str, int | None] = {}
    at = start
    for key in keys:
        storage = interpreter.storages.get(key)
        if storage is None or key in region_of:
            raise Corrupt(f"its list of storages names {shown(key)}, which no tensor needs")
        size = _storage_size(source, storage, at)
        region_of[key] = len(regions)
        regions.append(
            Region(
                label=f"storage {key}",
                start=at + 8,
                size_bytes=size,
                element=elements.get(key),
                big_endian=little is False,
            )
        )
        at += 8 + size
    if at < source.size:
        raise Corrupt(f"has {source.size - at} bytes after its last storage, from byte {at}")
    missing = [key for key in interpreter.storages if key not in region_of]
    if missing:
        raise Corrupt(f"storage {shown(missing[0])}, which its tensors need, is missing")
    return FileContents(
        format="torch_legacy",
        regions=tuple(regions),
        tensors=describe_views(tree, region_of),
        opaque=tuple(interpreter.opaque),
        objects=tuple(interpreter.objects),
        refused=tuple(interpreter.refused),
        hostile=tuple(interpreter.hostile),
        tree=tree,
    )


def read_plain_pickle(source: ByteRange) -> FileContents:
    """A single pickle that ``torch.save`` did not write: its names, no tensors. Raises Damage."""
    if source.size > MAX_PICKLE_BYTES:
        raise Opaque(f"is a pickle of {source.size} bytes, too large to be listed")
    interpreter = TorchInterpreter()
    tree, _ = read_pickle(source.read(0, source.size), interpreter)
    walk_nested(interpreter)
    return FileContents(
        format="pickle",
        regions=(Region(label="pickle", start=0, size_bytes=source.size),),
        tensors=(),
        opaque=tuple(interpreter.opaque),
        refused=tuple(interpreter.refused),
        hostile=tuple(interpreter.hostile),
        tree=tree,
    )


def walk_nested(interpreter: TorchInterpreter) -> None:
    """Walk the pickles that ``_load_from_bytes`` would load, and theirs, for the names they ask for."""
    for _ in range(_MAX_NESTING):
        pending, interpreter.nested = interpreter.nested, []
        for data in pending:
            inner = TorchInterpreter(legacy=True)
            at = 0
            try:
                for _ in range(5):
                    _, at = read_pickle(data, inner, at)
            except Damage as damage:
                raise Corrupt(f"a tensor stored inside its pickle is damaged: {damage.reason}") from damage
            finally:
                interpreter.opaque.update(inner.opaque)
                interpreter.refused.update(inner.refused)
                interpreter.hostile.update(inner.hostile)
            for deeper in inner.nested:
                interpreter.add_nested(deeper)
    if interpreter.nested:
        raise Opaque("its pickles are nested too deep to be listed")


def _head(source: ByteRange) -> tuple[TorchInterpreter, PickleValue, PickleValue, list[str], int]:
    window = min(source.size, _FIRST_WINDOW_BYTES)
    while True:
        data = source.read(0, window)
        try:
            return _head_in(data)
        except Torn as torn:
            if window == source.size:
                raise Torn(f"is cut inside its pickles: {torn.reason}") from torn
            if window >= MAX_PICKLE_BYTES:
                raise Opaque("its pickles are too large to be listed") from torn
            window = min(source.size, window * 8, MAX_PICKLE_BYTES)


def _head_in(data: bytes) -> tuple[TorchInterpreter, PickleValue, PickleValue, list[str], int]:
    interpreter = TorchInterpreter(legacy=True)
    at = len(TORCH_LEGACY)
    protocol, at = read_pickle(data, interpreter, at)
    if not isinstance(protocol, int) or protocol != _PROTOCOL:
        raise Corrupt(f"has a protocol other than {_PROTOCOL} at byte {len(TORCH_LEGACY)}")
    system, at = read_pickle(data, interpreter, at)
    tree, at = read_pickle(data, interpreter, at)
    keys, end = read_pickle(data, interpreter, at)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Corrupt(f"has no list of storages at byte {at}")
    return interpreter, tree, system, keys, end


def _storage_size(source: ByteRange, storage: Storage, at: int) -> int:
    label = shown(storage.key)
    if at + 8 > source.size:
        raise Torn(f"is cut off: {source.size} bytes, storage {label} should begin at byte {at}")
    numel = int.from_bytes(source.read(at, 8), "little", signed=True)
    if numel != storage.numel:
        raise Corrupt(f"storage {label} at byte {at} has {numel} elements, its tensors need {storage.numel}")
    size = storage.element.size_bytes(numel) if storage.element else numel
    if at + 8 + size > source.size:
        raise Torn(f"is cut off: {source.size} of at least {at + 8 + size} bytes, inside storage {label}")
    return size
