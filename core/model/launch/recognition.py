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


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """``why``: for people ("train.py:3 imports lightning"). ``resumes``: the preset's ways to resume may be used."""

    preset: str
    why: str = ""
    resumes: bool = True
