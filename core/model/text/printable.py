"""Text from outside (names of runs and files, lines of logs) made safe for a terminal."""

from .patterns import LazyPattern

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
