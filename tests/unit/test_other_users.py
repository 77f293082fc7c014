"""A machine with other users: whose process is on a GPU is said as far as it can be known, and its command is not read."""

import ctypes
import os
import subprocess
from collections.abc import Callable

import pytest

from trainwatch.core.app.gpu_survey import process_name
from trainwatch.core.sense.process.process_words import is_another_users

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to look as another user")
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


def test_of_another_users_process_only_the_user_is_said() -> None:
    own = os.getpid()
    assert as_another_user(lambda: process_name(own)) == f"another user's process (root), pid {own}"
    assert as_another_user(lambda: str(is_another_users(own))) == "True"


def test_a_hidden_process_is_known_to_be_another_users() -> None:
    own = os.getpid()
    assert as_another_user(lambda: process_name(own), hidepid=True) == f"another user's process, pid {own}"


def test_a_process_that_is_not_there_is_nobodys() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert as_another_user(lambda: process_name(ended.pid), hidepid=True) == f"pid {ended.pid}"


def test_ones_own_process_has_its_command() -> None:
    assert f"(pid {os.getpid()})" in process_name(os.getpid())
