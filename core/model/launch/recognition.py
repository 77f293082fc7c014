"""What the trainer's source shows, and the preset that was recognised with the reason."""

import msgspec


class Imported(msgspec.Struct, frozen=True):
    """A module or a name in it that the trainer's script uses. ``place``: ``train.py:3``."""

    name: str
    place: str

    def is_of(self, pattern: str) -> bool:
        """Whether it is this module or name, or something in it."""
        return self.name == pattern or self.name.startswith(f"{pattern}.")


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``imported``: in the order of the script. ``folders``: that of the script, and the working folder.

    Nothing is imported or run for it. Empty: the script is not known or cannot be read.
    """

    imported: tuple[Imported, ...] = ()
    folders: tuple[str, ...] = ()

    def use_of(self, patterns: tuple[str, ...]) -> Imported | None:
        """The first use of one of these modules or names."""
        return next((one for one in self.imported for pattern in patterns if one.is_of(pattern)), None)


class OwnEnd(msgspec.Struct, frozen=True):
    """A text with which the trainer's own source ends it (``sys.exit(f"no recipe {name}")``).

    ``parts``: what is written out of its last line, before, between and after what is filled in. ``code``: the
    function, the tests and the statement around it. ``place``: ``train.py:12``.
    """

    parts: tuple[str, ...]
    code: str = ""
    place: str = ""

    def says(self, line: str) -> bool:
        """Whether the line is this text."""
        first, *rest = self.parts
        if not rest or not line.startswith(first):
            return not rest and line == first
        at = len(first)
        for part in rest[:-1]:
            found = line.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return line.endswith(rest[-1]) and at <= len(line) - len(rest[-1])


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """``why``: for people ("train.py:3 imports lightning"). ``resumes``: the preset's ways to resume may be used."""

    preset: str
    why: str = ""
    resumes: bool = True
