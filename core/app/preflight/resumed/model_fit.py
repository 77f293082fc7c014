"""Whether the model that a launch would build fits the checkpoint that it would resume from.

Only certain contradictions are reported: a checkpoint holds names and shapes, a config holds numbers whose meaning
depends on the trainer's code. So a number is contradicted only if nothing in the checkpoint has it, or if the
checkpoint itself contains another one.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

WIDTHS = frozenset({"hidden_size", "embed_dim", "d_model", "n_embd", "model_dim"})
"""The hidden size of a transformer: norms, biases and inputs of layers have this length."""
OWN_CHANNELS = frozenset({"base_channels", "model_channels", "init_channels", "hidden_channels"})
"""The same by names that say so also outside a section of the model (``--init_channels 16``)."""
CHANNELS = frozenset({"channels", "num_channels", "n_channels", "ch", "dim", *OWN_CHANNELS})
"""A width that some layers multiply: contradicted if the checkpoint has one length only, or none that it divides."""
FEW_CHANNELS = 8
"""A length up to this may be the channels of an image, a kernel size, or a pair of numbers."""
FEWEST_OF_ONE_WIDTH = 4
FEWEST = 8
"""With fewer matrices, a missing length is no contradiction: the checkpoint may be flattened or a fragment."""
DEPTHS = frozenset({"depth", "num_layers", "n_layer", "n_layers", "num_hidden_layers"})
HF_KEYS = (
    "model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "intermediate_size", "vocab_size", "d_model", "n_embd", "n_layer", "n_head",
)  # fmt: skip
CONFIG_BYTES = 1 << 20
_NUMBERED = re.compile(r"^(?P<group>.*?\b(?:blocks|layers|h|transformer_blocks))\.(?P<number>\d+)\.")
_PATCHES = re.compile(r"(?:^|\.)(?:patch_embed|x_embedder|patch_embedding)\b.*weight$")
_RANK = re.compile(r"lora_(?:down|A)(?:\.default)?\.weight$")


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint holds. ``shapes``: by key, without ``torch.compile``'s prefix; ``config``: its config.json."""

    name: str
    shapes: Mapping[str, tuple[int, ...]] = {}
    metadata: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the launch would build. ``model``: settings of a model section by bare name; ``settings``: all of them.

    ``config``: config.json of the base model.
    """

    model: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    config: Mapping[str, Any] = {}


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """One contradiction. ``fatal``: the trainer will refuse the checkpoint; else it only differs."""

    key: str
    held: str
    wanted: str
    fatal: bool = True

    @property
    def sentence(self) -> str:
        """The contradiction as a sentence."""
        return f"{self.key} is {self.wanted} in the config and {self.held} in the checkpoint"


def misfits(held: Held, wanted: Wanted) -> tuple[Misfit, ...]:
    """Every certain contradiction, fatal ones first."""
    found = [*_lora(held, wanted), *_hub(held, wanted), *_sections(held, wanted)]
    return tuple(sorted(found, key=lambda misfit: not misfit.fatal))


def read_config_json(folder: Path) -> dict[str, Any]:
    """``config.json`` in a folder; empty if there is none that can be read."""
    path = folder / "config.json"
    try:
        if path.stat().st_size > CONFIG_BYTES:
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _lora(held: Held, wanted: Wanted) -> Iterator[Misfit]:
    """Kohya: rank and module of the network, by the file's own metadata or its shapes."""
    if _true(wanted.settings.get("dim_from_weights")):
        return
    ranks = {shape[0] for key, shape in held.shapes.items() if _RANK.search(key) and len(shape) == 2}
    stored = _number(held.metadata.get("ss_network_dim"))
    rank = next(iter(ranks)) if len(ranks) == 1 else stored if not ranks else None
    asked = _number(wanted.settings.get("network_dim"))
    if rank is not None and asked is not None and asked != rank:
        yield Misfit(key="network_dim", held=f"{rank:g}", wanted=f"{asked:g}")
    module, meant = held.metadata.get("ss_network_module"), wanted.settings.get("network_module")
    if module and isinstance(meant, str) and meant != module:
        yield Misfit(key="network_module", held=module, wanted=meant)
    alpha, aimed = _number(held.metadata.get("ss_network_alpha")), _number(wanted.settings.get("network_alpha"))
    if alpha is not None and aimed is not None and alpha != aimed:
        yield Misfit(key="network_alpha", held=f"{alpha:g}", wanted=f"{aimed:g}", fatal=False)


def _hub(held: Held, wanted: Wanted) -> Iterator[Misfit]:
    """Transformers: two config.json files."""
    for key in HF_KEYS:
        if key in held.config and key in wanted.config and held.config[key] != wanted.config[key]:
            yield Misfit(key=key, held=str(held.config[key]), wanted=str(wanted.config[key]))


def _sections(held: Held, wanted: Wanted) -> Iterator[Misfit]:
    """A config with a model section, against names and shapes."""
    matrices = [shape for shape in held.shapes.values() if len(shape) >= 2]
    yield from _channels(held, wanted, matrices)
    if len(matrices) < FEWEST or any("lora_" in key for key in held.shapes):
        return
    sizes = {length for shape in held.shapes.values() for length in shape}
    flat = {key: value for key, value in wanted.settings.items() if key in WIDTHS and key not in wanted.model}
    for key, value in (*wanted.model.items(), *flat.items()):
        number = _number(value)
        if number is None or number <= 1 or number != int(number):
            continue
        if key in WIDTHS and number not in sizes:
            name = key if key in flat else f"model.{key}"
            yield Misfit(key=name, held=f"probably {_commonest(held.shapes)}", wanted=f"{int(number)}")
        if key in DEPTHS and (count := _depth(held.shapes)) is not None and count != number:
            yield Misfit(key=f"model.{key}", held=f"{count}", wanted=f"{int(number)}")
    patch = _number(wanted.model.get("patch_size"))
    kernels = {shape[2:] for key, shape in held.shapes.items() if _PATCHES.search(key) and len(shape) == 4}
    if patch is not None and len(kernels) == 1 and next(iter(kernels)) != (int(patch), int(patch)):
        yield Misfit(key="model.patch_size", held="x".join(map(str, next(iter(kernels)))), wanted=f"{int(patch)}")


def _channels(held: Held, wanted: Wanted, matrices: list[tuple[int, ...]]) -> Iterator[Misfit]:
    """A model whose layers all have one width, or none that is a multiple of the number: it cannot load its weights."""
    widths = {length for shape in matrices for length in shape[:2] if length > FEW_CHANNELS}
    if len(matrices) < FEWEST_OF_ONE_WIDTH or not widths or any("lora_" in key for key in held.shapes):
        return
    flat = {key: wanted.settings[key] for key in OWN_CHANNELS & wanted.settings.keys()}
    given = {key: (value, key) for key, value in flat.items()}
    given |= {key: (wanted.model[key], f"model.{key}") for key in CHANNELS & wanted.model.keys()}
    for _, (value, name) in sorted(given.items()):
        number = _number(value)
        if number is None or number <= FEW_CHANNELS:
            continue
        if number not in widths and (len(widths) == 1 or not any(width % number == 0 for width in widths)):
            yield Misfit(
                key=name,
                held=("" if len(widths) == 1 else "probably ") + f"{min(widths)}",
                wanted=f"{number:g}",
            )


def _depth(shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """How many numbered blocks there are, if there is one stack of them, numbered from 0 without a gap."""
    stacks: dict[str, set[int]] = {}
    for key in shapes:
        if (found := _NUMBERED.match(key)) is not None:
            stacks.setdefault(found["group"], set()).add(int(found["number"]))
    if len(stacks) != 1:
        return None
    numbers = next(iter(stacks.values()))
    return len(numbers) if numbers == set(range(len(numbers))) else None


def _commonest(shapes: Mapping[str, tuple[int, ...]]) -> int:
    counted: dict[int, int] = {}
    for shape in shapes.values():
        for length in shape:
            counted[length] = counted.get(length, 0) + (length > 1)
    return max(counted, key=lambda length: counted[length], default=0)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _true(value: object) -> bool:
    return value is not None and str(value).lower() in {"true", "1", "yes", ""}
