"""A count with its noun, for the layers that make sentences."""


def plural(number: int, one: str, many: str | None = None) -> str:
    """One of it is "1 step", two are "2 steps". ``many``: the plural if it is not ``one`` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
