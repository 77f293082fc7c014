"""Tensors of a pickle as views of the regions that hold their bytes."""

from .contents import Tensor
from .damage import Corrupt
from .element import Element
from .pickle_tree import tensors_in
from .pickle_values import Mapping, PickleValue, Storage, shown

_LIGHTNING_MARK = "pytorch-lightning_version"
_LIGHTNING_BOOKKEEPING = ("callbacks.", "loops.")
"""Lightning's callbacks start their best scores at infinity (EarlyStopping.best_score); no weight lies there."""


def describe_views(tree: PickleValue, region_of: dict[str, int | None]) -> tuple[Tensor, ...]:
    """Every tensor in the tree, by name. ``region_of``: storage key → region. Raises Corrupt for a missing storage."""
    unjudged = _LIGHTNING_BOOKKEEPING if isinstance(tree, Mapping) and _LIGHTNING_MARK in tree.keys() else ()  # noqa: SIM118 -- not a dict
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
                judged=not name.startswith(unjudged) if unjudged else True,
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
