"""A folder for a tmux server's socket: short, because a socket's path has 107 bytes and pytest's folders are long."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def socket_folder() -> Iterator[str]:
    """The value for ``TMUX_TMPDIR``; removed afterwards. The server in it is the caller's to end."""
    folder = tempfile.mkdtemp(prefix="tw-", dir="/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def end_server(*where: str, env: Mapping[str, str]) -> None:
    """End a tmux server that may be there. ``where``: options that name its socket. Without a tmux there is none."""
    if shutil.which("tmux") is not None:
        subprocess.run(["tmux", *where, "kill-server"], env=env, capture_output=True, check=False, timeout=10)
