"""Asking another machine about one of its runs, and what it answered last."""

import time
from typing import Any

import msgspec

from ....store.mirror.kept_answers import Kept, KeptAnswers
from .link import CALL_S, Link, LinkLost


class FarRun:
    """Asks about one run over a line."""

    def __init__(self, link: Link, run_id: str, kept: KeptAnswers) -> None:
        self._link, self.id, self._kept = link, run_id, kept
        self.old: dict[str, float] = {}
        """What was shown from answers that were kept → when those were given, by the clock here."""

    def asked(self, what: str, type_: Any, *, timeout_s: float = CALL_S, **values: Any) -> Any:
        """Raises RuntimeError with a sentence; LinkLost if there is no line."""
        return self._read(self._link.answer(what, self.id, msgspec.to_builtins(values), timeout_s), type_)

    def known(self, what: str, type_: Any, *, name: str = "", **values: Any) -> Any:
        """The same for a question that changes nothing: without a line, the answer that was given last to it.

        ``name``: of what is asked for, for a person. Raises as ``asked`` if there never was one.
        """
        plain = msgspec.to_builtins(values)
        try:
            answer = Kept(time.time(), self._link.answer(what, self.id, plain))
        except LinkLost as lost:
            before = self._kept.find(what, plain)
            if before is None:
                raise LinkLost(f"{lost}; nothing is kept from before") from None
            self.old[name or what] = before.wall
            return self._read(before.data, type_)
        self._kept.keep(what, plain, answer)
        self.is_there(name or what)
        return self._read(answer.data, type_)

    def keep(self, what: str, value: Any, **values: Any) -> None:
        """Keep something that was put together of several answers."""
        self._kept.keep(what, values, Kept(time.time(), msgspec.msgpack.encode(value)))

    def kept(self, what: str, type_: Any, *, name: str, **values: Any) -> Any:
        """What was kept, for use without a line; None if nothing was."""
        before = self._kept.find(what, values)
        if before is None:
            return None
        self.old[name] = before.wall
        return self._read(before.data, type_)

    def is_there(self, name: str) -> None:
        """It was answered: nothing of this name is shown from before."""
        self.old.pop(name, None)

    def _read(self, data: bytes, type_: Any) -> Any:
        try:
            return msgspec.msgpack.decode(data, type=type_)
        except msgspec.MsgspecError as error:
            name = self._link.host.name
            raise RuntimeError(f"{name} answered what this version does not understand ({error})") from error
