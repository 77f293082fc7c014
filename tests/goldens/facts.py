"""What goldens compare: states, kinds, numbers and decisions; not sentences, and no keys that came later.

An answer is reduced to its facts: a text with a blank is a sentence and left out, and so is what is empty; a list of
sentences is their number. ``keys.json`` has the keys that each kind of answer has, so that none vanishes, and a value
that was empty is noticed. ``python tests/make_goldens.py`` writes the goldens anew.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).parent / "answers"
KEYS = ANSWERS / "keys.json"
UPDATE = bool(os.environ.get("TRAINWATCH_UPDATE_GOLDENS"))
LEFT_OUT = frozenset({"pid", "runner_pid", "environment", "seq", "wall", "v"})
"""Keys whose values are of the machine, or follow from others."""
EPOCH_S = (1e9, 4e9)
"""A number in between is a time of day."""


def facts(answer: Any, *, root: str = "", wall0: float = 0.0) -> Any:
    """Return the facts of an answer. ``root``: a folder that is written ``.``; ``wall0``: the time that is zero."""
    match answer:
        case dict():
            kept = {key: facts(each, root=root, wall0=wall0) for key, each in answer.items() if key not in LEFT_OUT}
            return {key: each for key, each in kept.items() if not is_empty(each)}
        case list() | tuple():
            kept_rows = [facts(each, root=root, wall0=wall0) for each in answer]
            return len(kept_rows) if kept_rows and all(map(is_empty, kept_rows)) else kept_rows
        case str():
            text = answer.replace(root, ".") if root else answer
            return "" if any(map(str.isspace, text)) else text
        case float() if math.isfinite(answer):
            shown = answer - wall0 if EPOCH_S[0] < answer < EPOCH_S[1] else answer
            return float(f"{shown:.6g}")
        case _:
            return answer


def is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def keys(answer: Any, at: str = "") -> Iterator[str]:
    """All keys of an answer, each with those above it: ``incidents[].kind``."""
    if isinstance(answer, dict):
        for key, each in answer.items():
            yield f"{at}.{key}".lstrip(".")
            yield from keys(each, f"{at}.{key}")
    elif isinstance(answer, list | tuple):
        for each in answer:
            yield from keys(each, f"{at}[]")


def differences(known: Any, seen: Any, old: frozenset[str], at: str = "") -> list[str]:
    """Say where the facts of an answer are not the known ones. ``old``: the keys that are known."""
    if isinstance(known, dict) and isinstance(seen, dict):
        found = []
        for key in {**known, **seen}:
            here = f"{at}.{key}".lstrip(".")
            if key in known or re.sub(r"\[\d+\]", "[]", here) in old:
                found += differences(known.get(key), seen.get(key), old, here)
        return found
    if isinstance(known, list) and isinstance(seen, list) and len(known) == len(seen):
        return [
            d for n, (a, b) in enumerate(zip(known, seen, strict=True)) for d in differences(a, b, old, f"{at}[{n}]")
        ]
    numbers = isinstance(known, float | int) and isinstance(seen, float | int)
    same = math.isclose(known, seen, rel_tol=1e-4, abs_tol=1e-6) if numbers else known == seen
    return [] if same or (is_empty(known) and is_empty(seen)) else [f"{at}: {_dense(seen)}, known {_dense(known)}"]


def check(name: str, answers: Mapping[str, Any], *, verb: str = "") -> None:
    """Compare facts with the golden of this name. ``verb``: of which all of them are answers; else they name it."""
    path = ANSWERS / f"{name}.json"
    if UPDATE:
        ANSWERS.mkdir(exist_ok=True)
        path.write_text(_written(answers), encoding="utf-8")
    assert path.exists(), f"no golden {path.name}: write it with tests/make_goldens.py and review it"
    known, seen = json.loads(path.read_text(encoding="utf-8")), json.loads(json.dumps(answers))
    old = frozenset(known_keys())
    found = [f"{key}: {d}" for key in known for d in differences(known[key], seen.get(key), old, verb or key)]
    assert not found, f"{name}: {len(found)} differences\n" + "\n".join(found[:20])


def known_keys() -> set[str]:
    found: dict[str, list[str]] = json.loads(KEYS.read_text(encoding="utf-8")) if KEYS.exists() else {}
    return {f"{verb}{key}" for verb, each in found.items() for key in each}


def check_keys(verb: str, seen: set[str]) -> None:
    """No key of this verb's answers has vanished. ``seen``: those of all answers that goldens ask for."""
    if UPDATE:
        known = json.loads(KEYS.read_text(encoding="utf-8")) if KEYS.exists() else {}
        known[verb] = sorted(key.removeprefix(verb) for key in seen)
        lines = [f"{_dense(each)}: {_dense(known[each])}" for each in sorted(known)]
        KEYS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    gone = {key for key in known_keys() if re.split(r"[.\[]", key)[0] == verb} - seen
    assert not gone, f"keys that are gone: {sorted(gone)}"


def _written(answers: Mapping[str, Any]) -> str:
    """One line for each answer, or for each entry of one that is a list."""
    lines = []
    for key, value in answers.items():
        rows = ",\n".join(f"  {_dense(row)}" for row in value) if isinstance(value, list) else ""
        lines.append(f" {_dense(key)}: " + (f"[\n{rows}\n ]" if rows else _dense(value)))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dense(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
