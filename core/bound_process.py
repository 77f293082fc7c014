"""Programs that end with the process that started them, also if that one is killed.

``bound(argv)`` is the argv of such a program. This file is run in between: it asks the kernel for a signal at the
death of its parent (``PR_SET_PDEATHSIG``), looks whether the parent is there still, and then executes the program,
which keeps the request. ``tree=True``: for programs that may start others (a shell script, ``conda run``). This file
then stays their parent, and ends the whole process group when its own parent is gone: SIGTERM, and SIGKILL KILL_S
later.

The kernel's parent is the *thread* that started the program, so that thread has to live as long as the program is
wanted: one that waits for it does. A set-user-id program, or one with file capabilities, drops the request.
Standard library only: about 10 ms more than Python itself takes.
"""
# Run by path, without site-packages: no pathlib, and what a function alone uses is loaded by it.
# ruff: noqa: PTH118, SIM105

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType
    from typing import Literal, NoReturn

PR_SET_PDEATHSIG = 1
SIGKILL, SIGTERM = 9, 15
KILL_S = 2.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126


def bound(
    argv: Sequence[str], *, at_end: int = SIGKILL, tree: bool = False, cwd: str = ".", path: str | None = None
) -> list[str]:
    """``argv`` for a program that gets the signal ``at_end`` when this process is gone.

    ``tree``: its process group is ended instead; start it in a session of its own. ``cwd``, ``path``: the program's
    folder and PATH. Raises FileNotFoundError, as starting ``argv`` itself would. Without this file or its interpreter
    (trainwatch was uninstalled or moved) it is ``argv`` itself: nothing ends it then but who started it.
    """
    import shutil  # only here: it loads the compression modules, which the runner has no use for

    named = os.path.join(cwd, argv[0]) if "/" in argv[0] else argv[0]
    if shutil.which(named, mode=os.F_OK, path=path) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    if missing_files():
        return list(argv)
    how = "tree" if tree else str(int(at_end))
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), how, *argv]  # noqa: PTH100


class NoAnswerError(Exception):
    """A program did not begin, did not answer in time, or failed. The message is a clause that begins with its name.

    ``printed``, ``said``: its output and its errors. ``code``: its exit status; negative: the signal that ended it.
    """

    def __init__(
        self, message: str, kind: Literal["absent", "not begun", "late", "failed"], code: int | None = None,
        printed: str = "", said: str = "",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.kind = kind
        self.code, self.printed, self.said = code, printed, said


def answer(
    argv: Sequence[str],
    limit_s: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    tree: bool = False,
    by_itself: bool = False,
) -> str:
    """What a program prints that ends well within ``limit_s``; else it is ended. Raises NoAnswerError.

    ``tree``: it may start others, which end with it. ``by_itself``: it calls ``end_with``.
    """
    import contextlib
    import subprocess  # only here: the runner has no use for it

    name, path = os.path.basename(argv[0]), None if env is None else env.get("PATH")  # noqa: PTH119
    try:
        child = subprocess.Popen(
            argv if by_itself else bound(argv, tree=tree, cwd=cwd or ".", path=path), cwd=cwd, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
            errors="replace", start_new_session=tree,
        )  # fmt: skip
    except (OSError, ValueError) as fault:
        if isinstance(fault, FileNotFoundError) and fault.filename == argv[0]:
            raise NoAnswerError(f"{name} is not found", "absent") from fault
        raise NoAnswerError(f"{name}: {getattr(fault, 'strerror', None) or fault}", "not begun") from fault
    with child:
        try:
            printed, said = child.communicate(timeout=limit_s)
        except BaseException as fault:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, SIGKILL) if tree else child.kill()
            if isinstance(fault, subprocess.TimeoutExpired):
                raise NoAnswerError(f"{name} did not answer within {limit_s:g} s", "late") from fault
            raise
    if child.returncode != 0:
        why = " ".join(said.split())[:400].removeprefix(f"{name}: ") or f"exit code {child.returncode}"
        raise NoAnswerError(f"{name}: {why}", "failed", child.returncode, printed, said)
    return printed


def missing_files() -> str:
    """Of this file and the interpreter the one that is gone, if trainwatch was uninstalled or moved; else ``""``."""
    needed = (sys.executable, os.path.abspath(__file__))  # noqa: PTH100
    return next((path for path in needed if not os.path.exists(path)), "")  # noqa: PTH110


def end_with(parent: int, at_end: int) -> None:
    """Let the kernel send ``at_end`` to this process when its parent is gone; end now if it is gone already."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(at_end), 0, 0, 0)
    except (OSError, AttributeError):
        pass
    if os.getppid() != parent:
        os._exit(0)


def _execute(argv: list[str]) -> NoReturn:
    try:
        os.execvp(argv[0], argv)
    except OSError as fault:
        os.write(2, f"{argv[0]}: {fault.strerror}\n".encode("utf-8", "replace"))
        os._exit(NOT_FOUND if fault.errno in {errno.ENOENT, errno.ENOTDIR} else NOT_EXECUTABLE)


def _keep(argv: list[str]) -> int:
    """Run ``argv`` as a child, and end the process group if the parent of this process is gone."""
    import signal

    def end_group(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(SIGTERM, signal.SIG_IGN)
        os.killpg(0, SIGTERM)
        time.sleep(KILL_S)
        os.killpg(0, SIGKILL)

    try:
        os.setsid()
    except PermissionError:
        pass  # it leads a group already: it was started in a session of its own
    signal.signal(SIGTERM, end_group)
    own = os.getpid()
    end_with(int(sys.argv[1]), SIGTERM)
    child = os.fork()
    if child == 0:
        signal.signal(SIGTERM, signal.SIG_DFL)
        end_with(own, SIGKILL)
        _execute(argv)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    """``PARENT_PID SIGNAL|tree PROGRAM …``: see the module."""
    parent, how, *argv = arguments
    if how == "tree":
        return _keep(argv)
    end_with(int(parent), int(how))
    _execute(argv)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
