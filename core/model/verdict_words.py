"""The verdict on a checkpoint as people read it, on screens and in what verbs print; ``--json`` has the verdict."""

WORDS = {"nonfinite": "NaN or Inf", "opaque": "unverified"}
"""What people read in place of a verdict whose name says little."""


def verdict_word(verdict: str) -> str:
    return WORDS.get(verdict, verdict)


def verdict_in_words(verdict: str) -> str:
    """The same where there is room for a clause."""
    return "saved, not readable here" if verdict == "opaque" else verdict_word(verdict)
