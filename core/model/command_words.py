"""The words of a command line: where the trainer's own begin, and a config file that is its only argument."""

from collections.abc import Sequence

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml", ".json")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})


def options_start(argv: Sequence[str]) -> int:
    """Index of the trainer's first own option: after its script or module, so that a launcher's are not changed."""
    for index, part in enumerate(argv):
        if part.endswith((".py", ".sh")) and not part.startswith("-"):
            return index + 1
    for index, part in enumerate(argv[:-1]):
        if part == "-m":
            return index + 2
    return min(1, len(argv))


def lone_config(argv: Sequence[str]) -> str | None:
    """The trainer's config file, if it is its only argument (``train.py cfg.yaml``, ``trainer train cfg.yaml``).

    Then the trainer takes no option beside it: HfArgumentParser reads a file only when nothing else is given.
    """
    own = list(argv[options_start(argv) :])
    if not own or any(word.startswith("-") or "=" in word for word in own):
        return None
    subcommands, last = own[:-1], own[-1]
    if len(subcommands) > 1 or not all(word.isidentifier() for word in subcommands):
        return None
    return last if last.lower().endswith(CONFIG_SUFFIXES) else None


def hides_trainer(argv: Sequence[str]) -> bool:
    """Whether a shell starts the trainer, so that its own options cannot be seen: ``bash train.sh``, ``sh -c "…"``."""
    start = options_start(argv)
    program = argv[0].rpartition("/")[2] if argv else ""
    return program in _SHELLS or (0 < start <= len(argv) and argv[start - 1].endswith(".sh"))
