"""Recorded logs: of an undisturbed run, with what the framework's own files say, and of a resume after kill -9."""

import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from .row import Row, Truth


def record(folder: Path, row: Row, version: str, log: Path, truth: Truth, *, places: dict[str, str]) -> None:
    """Write ``NAME.log`` and ``NAME.toml``. ``unsaid`` there: what the log never says.

    ``places``: folder of this machine → what stands for it in the recorded log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = log.read_bytes()
    for place, shown in places.items():
        text = text.replace(place.encode(), shown.encode())
    (folder / f"{row.name}.log").write_bytes(text)
    known = msgspec.structs.asdict(truth)
    unsaid = list(known.pop("unsaid"))
    lines = [f'framework = "{row.distribution} {version}"', f"unsaid = {unsaid}", "", "[truth]"]
    lines += [f"{key} = {value}" for key, value in known.items() if value is not None]
    facts = "\n".join(lines) + "\n"
    tomllib.loads(facts)
    (folder / f"{row.name}.toml").write_text(facts)


START = ("kind", "t", "attempt", "pid", "resume_from", "resume_step")
AFTER_S = 2.0
"""Seconds kept of the log after the proof."""


def record_resume(folder: Path, row: Row, trace: Path, proof: tuple[str, float], *, places: dict[str, str]) -> None:
    """Write ``NAME.resumed.jsonl``: the sentence of proof, then the lines of the trace that the proof follows from.

    ``proof``: that sentence, and when it was said, in run seconds.
    """
    said, t = proof
    kept: list[dict[str, Any]] = []
    attempt = 0
    data = trace.read_bytes()
    for line in (gzip.decompress(data) if trace.suffix == ".gz" else data).decode().splitlines():
        seen = json.loads(line)
        kind = seen["kind"]
        if seen["t"] > t + AFTER_S:
            break
        if kind == "start":
            attempt = seen["attempt"]
            seen = {key: seen[key] for key in START if key in seen}
        elif kind == "log" and not seen.get("source"):
            if kept and kept[-1]["kind"] == "log":
                kept[-1]["text"] += seen["text"]
                continue
        elif kind not in {"checkpoint", "exit"} or attempt > 1 or seen.get("event") == "created":
            continue
        kept.append(seen)
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in ({"resumed": said}, *kept))
    for place, shown in places.items():
        text = text.replace(place, shown)
    (folder / f"{row.name}.resumed.jsonl").write_text(text + "\n")
