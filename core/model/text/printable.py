"""Text from outside (names of runs and files, lines of logs) made safe for a terminal."""


def printable(text: str) -> str:
    """``text`` on one line without control characters: a file name can hold terminal commands."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """The same for several lines; tabs become blanks."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))


def beginning(text: str, most: int) -> str:
    """At most ``most`` characters; what is cut ends with an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
