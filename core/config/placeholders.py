"""``{word}`` in a command: one of ours, a misspelt one of ours, or braces that belong to the trainer."""

import difflib
import re
from collections.abc import Iterator, Sequence

from ..model.run import PLACEHOLDERS

_BRACED = re.compile(r"(?<![$\w{])\{([A-Za-z_]\w*)\}(?!\})")
"""Not ``${VARIABLE}``, not ``{{literal}}``."""
_FORMATTED = re.compile(r"""\b[rR]?[fF][rR]?["']""")
"""Python code with f-strings: every brace is its own."""
_PROSE = re.compile(r"[\s\"'()\[\]]")
"""An argument with one of these is a line of code or JSON: braces are usual there."""
NEAR = 0.7
NEAR_IN_PROSE = 0.8
"""How alike a word must be to be taken for a misspelt placeholder; in code a ``{result}`` is nobody's mistake."""


def misspelt(command: Sequence[str]) -> Iterator[str]:
    """A sentence for each placeholder that nobody fills in: one that is nearly ours, or an argument of its own."""
    for word in command:
        if _FORMATTED.search(word):
            continue
        cutoff = NEAR_IN_PROSE if _PROSE.search(word) else NEAR
        for found in _BRACED.finditer(word):
            name = found[1]
            if name in PLACEHOLDERS:
                continue
            near = difflib.get_close_matches(name.lower(), PLACEHOLDERS, n=1, cutoff=cutoff)
            if near:
                yield f'the command uses the unknown placeholder {{{name}}}; did you mean "{{{near[0]}}}"?'
            elif found[0] == word:
                known = " ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
                yield f"the command uses the unknown placeholder {{{name}}}; there are: {known}"
