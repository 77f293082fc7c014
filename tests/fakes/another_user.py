"""A second user of this machine, in a fork of the test. Needs root."""

import ctypes
import os
import subprocess
from collections.abc import Callable

import pytest

NOBODY = 65534
CLONE_NEWNS = 0x00020000


def as_another_user(look: Callable[[], str], *, hidepid: bool = False) -> str:
    """What a user without rights sees, in a fork of this process with a mount namespace of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "failed"
        try:
            if hidepid:
                assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
                subprocess.run(["mount", "--make-rprivate", "/"], check=True)
                subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], check=True)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = look()
        except BaseException as error:
            said = repr(error)
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    if hidepid and "CalledProcessError" in said:
        pytest.skip(f"no mount namespace here: {said}")
    return said
