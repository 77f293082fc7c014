"""Checks of memory, and advice on settings by the size of the machine."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ....model.text.memory_words import GIB, memory
from ...plan.launch_plan import LaunchPlan
from ..check import GB, Check, Machine, passed, warned
from ..launch_checks import is_sdxl

CARD_SLACK_GB = 1.0
"""GPU memory is sold in GiB: a card of 16 GB has 15.99 GiB, or 15.2 after the driver's share."""
OVER_GB = 2.0
"""A profile for "over 16 GB" counts as 16 GB plus this, so that a card of 16 GB is too small for it."""
MIN_RAM_AVAILABLE_BYTES = 10 * GB
"""sd-scripts with SDXL needs about this much available RAM at its start."""


class Advice(NamedTuple):
    """Values for a machine on which ``when`` holds. ``must``: without them the machine may run out of memory."""

    why: str
    when: Callable[[Machine], bool]
    values: dict[str, Any]
    must: bool


ADVICE: tuple[Advice, ...] = (
    Advice(
        "RAM below 24 GB",
        lambda m: _below(m.ram_total_bytes, 24 * GB),
        {
            "lowram": True,
            "max_data_loader_n_workers": 1,
            "persistent_data_loader_workers": False,
            "cache_latents_to_disk": True,
        },
        must=True,
    ),
    Advice(
        "less than 8 GB of RAM available", lambda m: _below(m.ram_available_bytes, 8 * GB), {"lowram": True}, must=True
    ),
    Advice(
        "more than 500 MB of swap in use", lambda m: _above(m.swap_used_bytes, 0.5 * GB), {"lowram": True}, must=True
    ),
    Advice(
        "RAM above 48 GB",
        lambda m: _above(m.ram_total_bytes, 48 * GB),
        {"max_data_loader_n_workers": 4, "vae_batch_size": 4},
        must=False,
    ),
    Advice(
        "GPU memory above 20 GB",
        lambda m: _above(m.vram_bytes, 20 * GB),
        {"gradient_checkpointing": True, "train_batch_size": 2, "gradient_accumulation_steps": 4},
        must=False,
    ),
)


def check_memory(machine: Machine) -> Check | None:
    available = machine.ram_available_bytes
    if available is None:
        return None
    found = f"{memory(available)} available"
    if machine.ram_total_bytes is not None:
        found += f" of {memory(machine.ram_total_bytes)}"
    if available < MIN_RAM_AVAILABLE_BYTES:
        return warned(
            "memory",
            found,
            f"close other programs (a training needs {memory(MIN_RAM_AVAILABLE_BYTES)}), or use --profile conservative",
        )
    return passed("memory", found)


def check_advice(plan: LaunchPlan, machine: Machine) -> Check | None:
    """Settings of kohya that suit this machine better than those of the launch."""
    if plan.spec.preset != "kohya":
        return None
    needed: dict[str, Any] = {}
    possible: dict[str, Any] = {}
    reasons: list[str] = []
    for advice in ADVICE:
        if not advice.when(machine):
            continue
        differing = {key: value for key, value in advice.values.items() if not _is_set(plan, key, value)}
        if differing:
            (needed if advice.must else possible).update(differing)
            reasons.append(advice.why)
    if needed:
        return warned("hardware", f"{', '.join(reasons)}: the launch may run out of memory", f"set {_listed(needed)}")
    if possible:
        return passed("hardware", f"{', '.join(reasons)} would allow {_listed(possible)}")
    known = [word for word, value in (("RAM", machine.ram_total_bytes), ("GPU memory", machine.vram_bytes)) if value]
    if not known:
        return passed("hardware", "RAM and GPU memory are unknown here: no advice")
    return passed("hardware", f"by its {' and '.join(known)} the settings fit")


def asks_of_gpus(plan: LaunchPlan) -> bool:
    """Whether a check of the GPU memory says something about this launch."""
    return plan.spec.preset == "kohya" or is_sdxl(plan) or _least_gb(plan.expect.get("vram", "")) is not None


def check_need(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The GPU memory that the profile usually needs fits into the smallest GPU."""
    needs, profile = plan.expect.get("vram"), plan.spec.settings.profiles.use
    least = _least_gb(needs or "")
    if least is None:
        return None
    if machine.vram_bytes is None:
        return passed("vram need", f"profile {profile} usually takes {needs}; the GPU's memory is unknown here")
    found = f"profile {profile} usually takes {needs}, the smallest GPU has {memory(machine.vram_bytes)}"
    if machine.vram_bytes / GIB < least - CARD_SLACK_GB:
        return warned(
            "vram need", found, "use a smaller profile (`trainwatch profiles`), or measure it: trainwatch trial"
        )
    return passed("vram need", found)


def _least_gb(words: str) -> float | None:
    """The smallest size that "12–13 GB", "~14 GB" or "over 16 GB" means."""
    number = re.search(r"(\d+(?:\.\d+)?)", words)
    if number is None or "GB" not in words:
        return None
    return float(number[1]) + (OVER_GB if words.startswith("over") else 0.0)


def _is_set(plan: LaunchPlan, key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return (plan.truth(key) or False) is value
    return plan.number(key) == float(value)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())


def _below(value: float | None, bound: float) -> bool:
    return value is not None and value < bound


def _above(value: float | None, bound: float) -> bool:
    return value is not None and value > bound
