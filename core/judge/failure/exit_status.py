"""What an exit status says when the log says nothing. One row per signal; 137 alone proves no memory shortage."""

from ...model.failure import FailureClass

SIGNALS: dict[int, tuple[FailureClass, float]] = {
    1: ("killed_by_user", 0.65),
    2: ("killed_by_user", 0.85),
    3: ("killed_by_user", 0.75),
    4: ("segfault", 0.7),
    6: ("unknown", 0.3),
    7: ("segfault", 0.65),
    8: ("segfault", 0.5),
    9: ("unknown", 0.3),
    11: ("segfault", 0.82),
    15: ("killed_by_user", 0.7),
    24: ("killed_by_user", 0.7),
    31: ("segfault", 0.5),
}
"""Signal → class and confidence without any other evidence. Source: signal(7)."""

CODES: dict[int, tuple[FailureClass, float]] = {126: ("config_error", 0.75), 127: ("config_error", 0.78)}
"""The same for exit codes that a shell, env or a launcher gives: the command is no program, or is not there. Neither
changes by starting again. Source: POSIX, Shell Command Language 2.8.2."""

NAMES: dict[str, int] = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGTRAP": 5,
    "SIGABRT": 6,
    "SIGBUS": 7,
    "SIGFPE": 8,
    "SIGKILL": 9,
    "SIGUSR1": 10,
    "SIGSEGV": 11,
    "SIGUSR2": 12,
    "SIGPIPE": 13,
    "SIGALRM": 14,
    "SIGTERM": 15,
    "SIGXCPU": 24,
    "SIGXFSZ": 25,
    "SIGSYS": 31,
}


def signal_of(exit_code: int | None, signal: int | str | None) -> int | None:
    """The signal that ended the process: named, numbered, or inside an exit code (−9, 137); None = there was none."""
    if isinstance(signal, str):
        name = signal.upper()
        return NAMES.get(name if name.startswith("SIG") else f"SIG{name}")
    if signal is not None:
        return signal or None
    if exit_code is None:
        return None
    if exit_code < 0:
        return -exit_code
    return exit_code - 128 if 128 < exit_code <= 128 + 64 else None
