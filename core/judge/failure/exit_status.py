"""The signal in an exit status. The catalogue has what a status proves; 137 alone proves no memory shortage."""

SIGNALS: dict[str, int] = {
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
    "SIGPWR": 30,
    "SIGSYS": 31,
}
"""Numbers on Linux (signal(7))."""
LAST_SIGNAL = 64
"""SIGRTMAX. Windows has larger numbers, which are states (NTSTATUS)."""
USAGE = 2
"""What parsers of options exit with: argparse, click, getopt(1)."""
NAMES = {number: name for name, number in SIGNALS.items()}


def signal_of(exit_code: int | None, signal: int | str | None) -> int | None:
    """The signal that ended the process: named, numbered, or inside an exit code (−9, 137); None if there was none."""
    if isinstance(signal, str):
        name = signal.upper()
        return SIGNALS.get(name if name.startswith("SIG") else f"SIG{name}")
    if signal is not None:
        return signal or None
    if exit_code is None:
        return None
    if exit_code < 0:
        return -exit_code if -exit_code <= LAST_SIGNAL else None
    return exit_code - 128 if 128 < exit_code <= 128 + LAST_SIGNAL else None
