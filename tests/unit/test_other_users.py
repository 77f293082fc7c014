"""A machine with other users: whose process is on a GPU is said as far as it can be known, and its command is not read."""

import os
import subprocess

import pytest

from tests.fakes.another_user import as_another_user
from trainwatch.core.app.gpu_survey import process_name
from trainwatch.core.sense.process.run_tree import is_another_users

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to look as another user")


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
