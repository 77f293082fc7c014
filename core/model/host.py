"""Another machine on which runs are watched through ssh."""

import msgspec


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """``[hosts.NAME]``. ``ssh``: what ``ssh`` takes as its destination (``user@box1``, a name of ``~/.ssh/config``).

    ``command``: how trainwatch is called there, as words of a shell; empty = it is looked for. ``folder``: the working
    folder there; empty = the home folder.
    """

    name: str
    ssh: str
    command: str = ""
    folder: str = ""


class There(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on a host. ``version`` empty: no trainwatch."""

    version: str = ""
    path: str = ""
