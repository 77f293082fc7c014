"""``{word}`` in a command: a placeholder, a misspelt one, or braces of the trainer."""

import re
from collections.abc import Iterator, Sequence

from ..model.run import PLACEHOLDERS

_BRACED = re.compile(r"(?<![$\w{])\{([A-Za-z_]\w*)\}(?!\})")
"""Not ``${VARIABLE}``, not ``{{literal}}``."""
_FORMATTED = re.compile(r"""\b[rR]?[fF][rR]?["']""")
"""Python code with f-strings: its braces are not placeholders."""
_PROSE = re.compile(r"[\s\"'()\[\]]")
"""An argument with one of these is a line of code or JSON: braces are usual there."""
NEAR = 0.7
NEAR_IN_PROSE = 0.8
"""Similarity from which a word counts as a misspelt placeholder; in code, ``{result}`` does not."""


def misspelt(command: Sequence[str]) -> Iterator[str]:
    """A sentence for each unknown placeholder: a misspelt one, or one that is a whole argument."""
    for word in command:
        if _FORMATTED.search(word):
            continue
        cutoff = NEAR_IN_PROSE if _PROSE.search(word) else NEAR
        for found in _BRACED.finditer(word):
            name = found[1]
            if name in PLACEHOLDERS:
                continue
            from difflib import get_close_matches  # loaded for a misspelt word only

            near = get_close_matches(name.lower(), PLACEHOLDERS, n=1, cutoff=cutoff)
            if near:
                yield f'the command uses the unknown placeholder {{{name}}}; did you mean "{{{near[0]}}}"?'
            elif found[0] == word:
                known = " ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
                yield f"the command uses the unknown placeholder {{{name}}}; there are: {known}"
