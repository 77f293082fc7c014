"""Calling the tool of a place: docker, podman, sudo."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...bound_process import bound
from ..processes import ATTEMPT_VARIABLE
from .place import ANSWER_S, PlaceError


def called(argv: Sequence[str], *, cwd: str, env: Mapping[str, str] | None = None) -> str:
    """What the tool printed. ``env``: the trainer's, which may name the engine (DOCKER_HOST). Raises PlaceError."""
    environment = {**(os.environ if env is None else env), "LC_ALL": "C"}
    environment.pop(ATTEMPT_VARIABLE, None)  # the call is no process of the attempt
    name = Path(argv[0]).name
    try:
        done = subprocess.run(
            bound(argv, tree=True, cwd=cwd, path=environment.get("PATH")),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as fault:
        raise PlaceError(f"{name} did not answer within {ANSWER_S:.0f} s") from fault
    except OSError as fault:
        raise PlaceError(f"{name}: {fault.strerror or fault}") from fault
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[:300] or f"exit code {done.returncode}"
        raise PlaceError(f"{name}: {said.removeprefix(f'{name}: ')}")
    return done.stdout
