"""Text: patterns, words for people, commands that a message suggests."""

import functools
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

# Regular expressions that compile at their first use: tables have hundreds, and one log needs a dozen.

METHODS = ("search", "match", "fullmatch", "finditer", "split", "sub")

GAP_CHARS = 300
"""Characters between two parts of one message. Why a bound: "a.*b" tries the rest of a line from each "a" in it."""
_ANYTHING = re.compile(r"(?<!\\)\.\*")


def bounded(pattern: str) -> str:
    """The pattern of a table with at most ``GAP_CHARS`` where it allows any text."""
    return _ANYTHING.sub(f".{{0,{GAP_CHARS}}}", pattern)


class LazyPattern:
    """A regular expression that is not compiled yet. Its methods are those of ``re.Pattern``.

    They cost the same from the first use on. Until then it has none: six objects for each of the 2,000 patterns of the
    tables take 3 MB.
    """

    __slots__ = ("_flags", "text", *METHODS)

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    split: Callable[..., list[str]]
    sub: Callable[..., str]

    def __init__(self, text: str, flags: int = 0) -> None:
        self.text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        made = self.compiled()
        for method in METHODS:
            setattr(self, method, getattr(made, method))
        return getattr(self, name)

    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern. Raises ``re.error`` if ``text`` is not a regular expression."""
        return re.compile(self.text, self._flags)


# Shell patterns for paths below a folder, as presets use them.


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a relative path (with ``/``) matches one of the patterns; without patterns every path does.

    ``*`` and ``?`` stand for anything but ``/``, ``**/`` for any folders or none.

    >>> matches("samples/epoch_1/a.png", ["samples/**/*.png"])
    True
    """
    return not globs or _compiled(tuple(globs)).fullmatch(path) is not None


@functools.cache
def _compiled(globs: tuple[str, ...]) -> re.Pattern[str]:
    signs = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    split = [re.split(r"(\*\*/|[*?])", glob) for glob in globs]
    return re.compile("|".join("".join(signs.get(part) or re.escape(part) for part in parts) for parts in split))


# Text from outside (names of runs and files, lines of logs) made safe for a terminal.

_BLANKS = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_JOINERS = "\u200c\u200d"
_SGR = LazyPattern("(\x1b\\[[0-9;:]*m)")
_SEQUENCE = LazyPattern("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?|[ -/]+[0-~]|[0-~])")


class _Shown(dict[int, str]):
    """Character → what a terminal gets: itself, or its code if it could move, hide or turn round what is shown.

    ``kept``: control characters that stay. ``as_json``: with the escapes that JSON has.
    """

    def __init__(self, kept: str = "", *, as_json: bool = False) -> None:
        super().__init__((ord(sign), sign) for sign in (*_BLANKS, *_JOINERS, *kept))
        self._as_json = as_json

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        if sign.isprintable() or "\ue000" <= sign <= "\uf8ff":  # private use: icons of some fonts
            shown = sign
        elif self._as_json:
            units = sign.encode("utf-16-be", "surrogatepass").hex()
            shown = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        else:
            shown = ascii(sign)[1:-1]
        self[code] = shown
        return shown


_IN_LINE, _IN_LINES, _IN_JSON = _Shown(), _Shown("\t\n\r"), _Shown("\n", as_json=True)


def printable(text: str) -> str:
    """``text`` on one line without control characters: a file name can hold terminal commands."""
    return text if text.isprintable() else text.translate(_IN_LINE)


def printable_lines(text: str) -> str:
    """The same for several lines; tabs become blanks."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))


def printable_output(text: str) -> str:
    """What a program prints, with its colours: other sequences for the terminal are left out, stray ones shown."""
    if "\x1b" not in text:
        return text if text.isprintable() else text.translate(_IN_LINES)
    parts = _SGR.split(text)
    plain = _SEQUENCE.sub
    parts[::2] = [plain("", part).translate(_IN_LINES) for part in parts[::2]]
    return "".join(parts)


def printable_json(text: str) -> str:
    """JSON of the same value whose text a terminal shows as it is."""
    return text if text.isprintable() else text.translate(_IN_JSON)


def beginning(text: str, most: int) -> str:
    """At most ``most`` characters; what is cut ends with an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


# Sizes of files and room on disks as text, in GB as they are sold. Memory is in GiB: memory_words.

SIZE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
MOST_DIGITS = 7
"""Sizes that are the same in so many digits are shown as the same."""


def three_digits(value: float, digits: int = 3) -> str:
    """Three significant digits without an exponent: 0.0912, 2.50, 17.1, 291, 6,120; or so many as told."""
    if not math.isfinite(value):
        return "–"
    magnitude = abs(float(f"{value:.{digits}g}"))
    if magnitude == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(magnitude)))
    return f"{value:,.{min(decimals, max(6, digits))}f}"


def _two_decimals(value: float) -> str:
    """The same, with two decimals below 1: 0.26."""
    return f"{value:.2f}" if abs(value) < 1 else three_digits(value)


def size(size_bytes: float | None, digits: int = 3) -> str:
    """870 MB, 17.1 GB: the size of a file, or room on a disk."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return "–"
    for factor, unit in SIZE_UNITS:
        if abs(size_bytes) >= factor * 0.9995:
            return f"{three_digits(size_bytes / factor, digits)} {unit}"
    return f"{size_bytes:.0f} B"


def size_of(used_bytes: float | None, total_bytes: float | None) -> str:
    """12.1 of 30.0 GB, in the unit of the total."""
    if used_bytes is None or total_bytes is None:
        return size(used_bytes)
    for factor, unit in SIZE_UNITS:
        if total_bytes >= factor:
            return f"{_two_decimals(used_bytes / factor)} of {three_digits(total_bytes / factor)} {unit}"
    return f"{used_bytes:.0f} of {total_bytes:.0f} B"


def sizes_apart(need_bytes: float, free_bytes: float | None) -> tuple[str, str]:
    """Both in words, with as many digits as tell them apart; the second empty if it is unknown."""
    if free_bytes is None:
        return size(need_bytes), ""
    for digits in range(3, MOST_DIGITS):
        if size(need_bytes, digits) != size(free_bytes, digits):
            return size(need_bytes, digits), size(free_bytes, digits)
    return size(need_bytes), size(free_bytes)


# A count with its noun, for the layers that make sentences.


def plural(number: int, one: str, many: str | None = None) -> str:
    """One of it is "1 step", two are "2 steps". ``many``: the plural if it is not ``one`` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


# The address that a server listens on, as people write it: ``127.0.0.1:9877``, ``[::1]:9877``, ``:9877``.

LOOPBACK = "127.0.0.1"


def listen_address(text: str) -> tuple[str, int]:
    """Return IP address and port; without an address, that of this machine alone. Raises ValueError with a sentence."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError('must be an address and a port from 1 to 65535, as in "127.0.0.1:9877"')
    import ipaddress  # slow to import, and rarely needed

    bare = host.removeprefix("[").removesuffix("]")
    try:
        return (LOOPBACK if bare in {"", "localhost"} else str(ipaddress.ip_address(bare))), int(port)
    except ValueError:
        raise ValueError(f'{bare!r} is no IP address; write it as in "127.0.0.1:9877"') from None


# Amounts of memory as text, in GiB as the tools of GPUs have them. Sizes of files and disks are in GB.

GIB = float(2**30)
MIB = float(2**20)
LEAST_GIB = 0.1
"""Smaller amounts are in MiB: 30 MiB says more than 0.03 GiB."""


def gib(amount_bytes: float) -> str:
    """The number of GiB with three digits: 0.26, 5.21, 15.4, 128."""
    return _two_decimals(amount_bytes / GIB)


def memory(amount_bytes: float | None) -> str:
    """15.4 GiB, 0.26 GiB, 30 MiB; ``–`` if unknown."""
    if amount_bytes is None or not math.isfinite(amount_bytes):
        return "–"
    if amount_bytes == 0:
        return "0 GiB"
    if abs(amount_bytes) < LEAST_GIB * GIB:
        return f"{amount_bytes / MIB:.0f} MiB"
    return f"{gib(amount_bytes)} GiB"


def memory_of(used_bytes: float | None, total_bytes: float | None) -> str:
    """14.2 of 15.9 GiB; without a total what is used."""
    if used_bytes is None or not math.isfinite(used_bytes) or not total_bytes:
        return memory(used_bytes)
    return f"{gib(used_bytes)} of {gib(total_bytes)} GiB"


# A command of trainwatch that a message suggests: as it stands, it can be pasted into a shell.

_called = ["trainwatch"]
_FAR = LazyPattern(r"([A-Za-z0-9][A-Za-z0-9._-]*):([a-z0-9][a-z0-9-]*)")


def parted(run_id: str) -> tuple[str, str] | None:
    found = _FAR.fullmatch(run_id)
    return None if found is None else (found[1], found[2])


def called_as(*words: str) -> None:
    """From now on the suggested commands begin with these words: what this person types to reach this program."""
    _called[0] = shlex.join(words)


def typed(verb: str, *words: str) -> str:
    """``trainwatch VERB WORDS``, each word quoted for a shell if it has to be. Capitals are for a person to replace.

    A command about one run names it by its id (``box1:job-1a2b3c4d`` is one of another machine): a name may be that of
    several runs, and without one the working folder decides.
    """
    if words and (far := parted(words[0])) is not None:
        return f"trainwatch --on {far[0]} {verb} {shlex.join((far[1], *words[1:]))}".rstrip()
    return f"{_called[0]} {verb} {shlex.join(words)}".rstrip()


# The verdict on a checkpoint as people read it, on screens and in what verbs print; ``--json`` has the verdict.

WORDS = {"nonfinite": "NaN or Inf", "opaque": "unverified"}
"""What people read in place of a verdict whose name says little."""


def verdict_word(verdict: str) -> str:
    return WORDS.get(verdict, verdict)


def verdict_in_words(verdict: str) -> str:
    """The same where there is room for a clause."""
    return "saved, not readable here" if verdict == "opaque" else verdict_word(verdict)


# Moments at which everything periodic of a process is due together.


def next_round(now: float, period_s: float) -> float:
    """The next multiple of ``period_s`` after ``now`` (seconds of one clock).

    Threads that are due together run one after another, with code and data still in the caches of the processor. A
    thread that wakes alone needs four to ten times as much CPU time for the same work.
    """
    due = (now // period_s + 1.0) * period_s
    return due if due > now else due + period_s  # rounding of the product


# The word that was meant.


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, or None. The dashes of options make no likeness."""
    import difflib  # slow to import

    lowered = {name.lower().lstrip("-"): name for name in known}
    found = difflib.get_close_matches(word.lower().lstrip("-"), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "…"?``, or the known words if none is near."""
    names = sorted(known)
    guess = nearest(word, names)
    if guess is not None:
        return f'; did you mean "{guess}"?'
    return f"; there are: {', '.join(names)}" if names else ""
