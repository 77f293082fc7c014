"""A folder for a tmux server's socket: short, because a socket's path has 107 bytes and pytest's folders are long."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def socket_folder() -> Iterator[str]:
    """The value for ``TMUX_TMPDIR``; removed afterwards. The server in it is the caller's to end."""
    folder = tempfile.mkdtemp(prefix="tw-", dir="/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
