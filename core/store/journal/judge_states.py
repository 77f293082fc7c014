"""The judge's newest states, in two files beside the journal: they are large, and only the newest one is needed.

A record of the journal names its state by the checksum of the file's content. The file that the newest record does not
name is written over, so a kill or a power cut between the two writes leaves the older pair whole.
"""

import contextlib
import os
from pathlib import Path
from zlib import crc32

import msgspec

from ...model.fact import JudgeSnapshot
from ...model.text.json_line import encode_line
from ..atomic import write_all

NAMES = ("judge-a.json", "judge-b.json")


class JudgeStates:
    """Writes the states of one run. ``newest``: the newest snapshot in the journal."""

    def __init__(self, folder: Path, newest: JudgeSnapshot | None) -> None:
        self._folder = folder
        name = newest.name if newest is not None else ""
        self._kept = next((each for each in NAMES if _content(folder / each, name) is not None), NAMES[1])
        self._put = self._kept

    def put(self, snapshot: JudgeSnapshot, seq: int) -> JudgeSnapshot:
        """Write the state, and return the record for the journal, which names it; ``seq``: the number of that record.

        The snapshot itself is returned if the file cannot be written: the journal then holds all of it.
        """
        payload = encode_line(snapshot.state)
        place = next(each for each in NAMES if each != self._kept)
        try:
            _write(self._folder / place, payload)
        except OSError:
            return snapshot
        self._put = place
        return JudgeSnapshot(version=snapshot.version, state={}, name=f"{seq}-{crc32(payload):08x}")

    def written(self) -> None:
        """The journal has the record of the state that was put last."""
        self._kept = self._put


def with_state(folder: Path, snapshot: JudgeSnapshot) -> JudgeSnapshot | None:
    """The snapshot with its state from the file that it names; None if that is lost or damaged."""
    if not snapshot.name:
        return snapshot
    for each in NAMES:
        payload = _content(folder / each, snapshot.name)
        if payload is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                state = msgspec.json.decode(payload, type=dict[str, object])
                return JudgeSnapshot(version=snapshot.version, state=state, name=snapshot.name)
    return None


def _content(path: Path, name: str) -> bytes | None:
    """The content of the file if it has this name."""
    checksum = name.partition("-")[2]
    try:
        payload = path.read_bytes()
    except OSError:
        return None
    return payload if f"{crc32(payload):08x}" == checksum else None


def _write(path: Path, payload: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, payload)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
