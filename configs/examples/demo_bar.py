"""Progress bars with the characters that tqdm would print, for trainers that must run with nothing but numpy."""

import os
import sys
import time
from typing import TextIO

_FINE = " ▏▎▍▌▋▊▉█"
_PLAIN = " 123456789#"


def interval_text(seconds: float) -> str:
    """``05:09``, ``1:02:30``."""
    minutes, s = divmod(int(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours:d}:{m:02d}:{s:02d}" if hours else f"{m:02d}:{s:02d}"


def bar_text(fraction: float, width: int, *, plain: bool) -> str:
    """The bar itself, ``width`` characters."""
    symbols = _PLAIN if plain else _FINE
    parts = len(symbols) - 1
    full, part = divmod(int(fraction * width * parts), parts)
    if full >= width:
        return symbols[-1] * width
    return symbols[-1] * full + symbols[part] + symbols[0] * (width - full - 1)


def meter(
    n: int, total: int, elapsed: float, *, initial: int, desc: str, postfix: str, width: int, rate: bool, plain: bool
) -> str:
    """One line as tqdm formats it: ``steps:  12%|█▏        | 123/1000 [00:12<01:29,  9.84it/s, avr_loss=2.31]``."""
    done = n - initial
    speed = done / elapsed if done and elapsed else 0.0
    remaining = interval_text((total - n) / speed) if speed else "?"
    speed_text = "?it/s"
    if speed:
        speed_text = f"{1 / speed:5.2f}s/it" if speed < 1 else f"{speed:5.2f}it/s"
    tail = (f", {speed_text}" if rate else "") + (f", {postfix}" if postfix else "")
    fraction = n / total if total else 1.0
    bar = bar_text(fraction, width, plain=plain)
    return f"{desc}: {fraction * 100:3.0f}%|{bar}| {n}/{total} [{interval_text(elapsed)}<{remaining}{tail}]"


class Bar:
    """A bar on stderr that overwrites itself, at most every ``TQDM_MININTERVAL`` seconds (0.1)."""

    def __init__(self, desc: str, total: int, initial: int = 0, *, width: int = 10, rate: bool = True) -> None:
        self._stream: TextIO = sys.stderr
        self._desc, self._total, self._initial = desc, total, initial
        self._width, self._rate = width, rate
        self._plain = "utf" not in (self._stream.encoding or "").lower()
        self._every = float(os.environ.get("TQDM_MININTERVAL", "0.1"))
        self._begun = self._drawn = time.monotonic()
        self._n, self._postfix = initial, ""
        self._draw()

    def update(self, n: int, postfix: str) -> None:
        """``n`` steps are done."""
        self._n, self._postfix = n, postfix
        if time.monotonic() - self._drawn >= self._every:
            self._draw()

    def line(self, text: str) -> None:
        """A line of text that does not end up behind the bar."""
        self._draw()
        self._stream.write("\n")
        self._stream.flush()
        print(text, flush=True)

    def close(self) -> None:
        """Draw the last state and end the line."""
        self._draw()
        self._stream.write("\n")
        self._stream.flush()

    def _draw(self) -> None:
        now = time.monotonic()
        self._drawn = now
        text = meter(
            self._n,
            self._total,
            now - self._begun,
            initial=self._initial,
            desc=self._desc,
            postfix=self._postfix,
            width=self._width,
            rate=self._rate,
            plain=self._plain,
        )
        self._stream.write(f"\r{text}")
        self._stream.flush()
