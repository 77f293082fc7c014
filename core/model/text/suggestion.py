"""A command of trainwatch that a message suggests: as it stands, it can be pasted into a shell."""

import shlex


def typed(verb: str, *words: str) -> str:
    """``trainwatch VERB WORDS``, each word quoted for a shell if it has to be. Capitals are for a person to replace.

    A command about one run names it by its id: a name may be that of several runs, and without one the working folder
    decides.
    """
    return f"trainwatch {verb} {shlex.join(words)}".rstrip()
