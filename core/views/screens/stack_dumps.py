"""The stack dumps of an incident, by process, two looks side by side."""

import re
from collections.abc import Sequence

import msgspec

from ...model.incident import EvidenceFile

STACK_NAME = re.compile(r"^stacks-(?P<pid>\d+)-(?P<round>\d+)\.txt$")


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """One column: a file's lines. ``differs``: indices of lines that the sheet beside it does not have."""

    name: str
    title: str
    lines: tuple[str, ...]
    differs: frozenset[int] = frozenset()
    cut: bool = False


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Two looks at one process side by side, or one file alone. ``verdict``: a sentence about both."""

    title: str
    sheets: tuple[Sheet, ...]
    verdict: str = ""


def spreads(files: Sequence[EvidenceFile]) -> tuple[Spread, ...]:
    """Stack dumps first, by process, the first and the last look; then every other file."""
    looks: dict[int, list[tuple[int, EvidenceFile]]] = {}
    others: list[EvidenceFile] = []
    for file in files:
        match = STACK_NAME.match(file.name)
        if match:
            looks.setdefault(int(match["pid"]), []).append((int(match["round"]), file))
        else:
            others.append(file)
    found = [_process(pid, [f for _, f in sorted(rounds, key=lambda r: r[0])]) for pid, rounds in looks.items()]
    for file in sorted(others, key=lambda f: (f.name != "log-tail.txt", f.name)):
        lines = tuple(file.text.splitlines())
        sheet = Sheet(name=file.name, title=file.name, lines=lines, cut=file.cut)
        found.append(Spread(title=file.name, sheets=(sheet,)))
    return tuple(found)


def _process(pid: int, rounds: list[EvidenceFile]) -> Spread:
    first, last = rounds[0], rounds[-1]
    one = tuple(first.text.splitlines())
    if first is last:
        sheet = Sheet(name=first.name, title="one look", lines=one, cut=first.cut)
        return Spread(title=f"process {pid}", sheets=(sheet,), verdict="One look only: whether it moved is unknown.")
    two = tuple(last.text.splitlines())
    sheets = (
        Sheet(name=first.name, title="first look", lines=one, differs=_missing(one, two), cut=first.cut),
        Sheet(name=last.name, title="last look", lines=two, differs=_missing(two, one), cut=last.cut),
    )
    moved = any(sheet.differs for sheet in sheets)
    verdict = "It moved between the looks." if moved else "It was at the same place in both looks."
    return Spread(title=f"process {pid}", sheets=sheets, verdict=verdict)


def _missing(lines: tuple[str, ...], beside: tuple[str, ...]) -> frozenset[int]:
    """Frames that the other look does not have; headings of threads say active or idle, which always differs."""
    known = set(beside)
    return frozenset(i for i, line in enumerate(lines) if line.startswith("    ") and line not in known)
