"""What containers, launchers and journals make of a log: eight of them, each a function from lines to lines."""

import json
from collections.abc import Callable, Sequence

Lines = Sequence[str]


def _ansi(lines: Lines) -> list[str]:
    return [f"\x1b[32m{line}\x1b[0m" for line in lines]


def _rank(lines: Lines) -> list[str]:
    return [f"[rank0]: {line}" for line in lines]


def _ray(lines: Lines) -> list[str]:
    return [f"(TrainWorker pid=4242, ip=10.0.0.7) {line}" for line in lines]


def _srun(lines: Lines) -> list[str]:
    return [f"0: {line}" for line in lines]


def _journald(lines: Lines) -> list[str]:
    return [f"Mar 03 04:12:{n % 60:02d} node7 train[881]: {line}" for n, line in enumerate(lines)]


def _cri(lines: Lines) -> list[str]:
    return [f"2026-03-03T04:12:{n % 60:02d}.123456789Z stderr F {line}" for n, line in enumerate(lines)]


def _json(lines: Lines) -> list[str]:
    return [json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-03-03T04:12:09.1Z"}) for line in lines]


def _crlf(lines: Lines) -> list[str]:
    return [f"{line}\r" for line in lines]


CARRIERS: dict[str, Callable[[Lines], list[str]]] = {
    "CRLF": _crlf,
    "ANSI": _ansi,
    "rank": _rank,
    "ray": _ray,
    "srun": _srun,
    "journald": _journald,
    "CRI": _cri,
    "JSON": _json,
}
