"""An option of a trainer: what can be told to it from outside."""

from typing import Any, Literal

import msgspec

from .. import words

Kind = Literal["option", "positional", "override", "environment", "switch"]
"""``switch``: no option, but a value that the source itself sets (``RESUME = False``), or one that cannot be seen."""
Takes = Literal["value", "flag", "truth", "number"]
"""``flag``: no value; ``truth``: a value that says yes or no."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """``name``: as it is written on the command line (``--resume``, ``trainer.resume``, ``RESUME``).

    ``dest``: the name under which the code reads it. ``default``: None if there is none or it is not a literal.
    ``joined``: only ``--name=value`` is read. ``after``: a word (subcommand) that must stand before it. ``library``:
    it is declared by this library, not by the project. ``parameter``: it comes as a parameter of this function.
    """

    name: str
    dest: str
    kind: Kind = "option"
    takes: Takes = "value"
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    file: str = ""
    line: int = 0
    joined: bool = False
    after: str = ""
    library: str = ""
    parameter: str = ""
    negated: str = ""
    """The option that switches it off (``--no-resume``)."""
    aliases: tuple[str, ...] = ()
    """All names of an option (``-r``, ``--resume``)."""
    unseen: bool = False
    """Of a switch: its value cannot be seen."""

    @property
    def place(self) -> str:
        """Where it is declared, for people (``train.py:12``)."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def says_resume(self) -> bool:
        """Whether its name says that a training goes on by it, and nothing else."""
        names = (self.name, self.dest, *self.aliases)
        bare = {name.lstrip("-+").replace("-", "_").rpartition(".")[2].lower() for name in names}
        return self.library != "transformers" and any(words.RESUME_OPTION.fullmatch(name) for name in bare)
