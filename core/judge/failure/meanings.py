"""What a message means, by the kinds of things it speaks of, in any order and in any library's words.

A message that no signature knows still says of what it speaks (a device, memory, a rank …) and what happened to it (it
ran out, died, fell silent …). ``[concepts]`` in ``failures.toml`` holds the words of each kind; a row of a class names
the kinds that stand together: ``"device memory lack"``.
"""

from collections.abc import Mapping, Sequence

from ...model.text.patterns import LazyPattern

_GAP = LazyPattern(r"\[[^\]]{0,80}\]| ")
"""Words of a kind stand apart by a space, or as in a name: ``OUT_OF_DEVICE_MEMORY``."""
NEAR_CHARS = 40
"""Words joined by ``~`` stand at most this far apart: about six words, a clause."""


def pattern_of_meaning(meaning: str, concepts: Mapping[str, Sequence[str]]) -> str:
    """A regular expression for lower-cased messages. ``a b``: both; ``a~b``: both and near; ``!a``: not this one.

    Raises ValueError (one line) for a kind of words that ``concepts`` does not hold.
    """
    parts = []
    for term in meaning.split():
        absent = term.startswith("!")
        words = [_words_of(name, concepts, meaning) for name in term.removeprefix("!").split("~")]
        if len(words) == 2:
            first, second = words
            gap = rf".{{0,{NEAR_CHARS}}}?"
            found = rf"(?:{first}{gap}{second}|{second}{gap}{first})"
        else:
            found = words[0]
        parts.append(f"(?!.*?{found})" if absent else f"(?=.*?{found})")
    return rf"\A{''.join(parts)}"


def _words_of(name: str, concepts: Mapping[str, Sequence[str]], meaning: str) -> str:
    if name not in concepts:
        raise ValueError(f"meaning {meaning!r}: no [concepts] entry {name!r}")
    words = _GAP.sub(lambda found: found[0] if found[0] != " " else "[ _-]", "|".join(concepts[name]))
    return rf"(?<![a-z0-9])(?:{words})(?![a-z])"
