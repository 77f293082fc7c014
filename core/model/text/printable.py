"""Text of others (names of runs, files, lines of logs) on its way to a terminal."""


def printable(text: str) -> str:
    """``text`` on one line without control characters: a file may be named so that it would rule the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines, which stay apart; a tab becomes blanks."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
