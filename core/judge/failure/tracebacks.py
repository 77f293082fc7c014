"""Python exceptions as they stand in logs: the line that names the type, on any rank, in or out of a box.

The table tells what an exception type alone proves. A message that a signature knows counts for more.
"""

from typing import NamedTuple

from ...model.failure import FailureClass
from ..text.patterns import LazyPattern
from .exception_messages import GENERIC_TYPES, class_of_message

_NAMED = LazyPattern(
    r"(?:^|(?<=[\]│|>]\s)|(?<=:\s)|(?<=-\s))(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]*(?:Error|Exception|Interrupt"
    r"|Exit|Timeout|StopIteration|Warning|Failed|Fault|IsLost)|(?:cv2|struct|zlib|socket|binascii)\.error)"
    r"(?::(?:\s(?P<message>.*))?$|\s*$)"
)
_CONFIGURED = LazyPattern(
    r"\b(?:args|cfg|config|conf|opts?|params|hparams|hyp|settings|options|FLAGS)(?:\[|\.\w+\[|\.get\()"
)


class Raised(NamedTuple):
    """An exception named in a line. ``type`` without its module; ``message`` may be empty."""

    type: str
    module: str
    message: str


EXCEPTIONS: dict[str, tuple[FailureClass, float]] = {
    "ModuleNotFoundError": ("import_error", 0.88),
    "ImportError": ("import_error", 0.85),
    "FileNotFoundError": ("config_error", 0.78),
    "NotADirectoryError": ("config_error", 0.75),
    "IsADirectoryError": ("config_error", 0.75),
    "FileExistsError": ("config_error", 0.7),
    "PermissionError": ("config_error", 0.72),
    "MisconfigurationException": ("config_error", 0.88),
    "ValidationError": ("config_error", 0.72),
    "HFValidationError": ("config_error", 0.85),
    "UsageError": ("config_error", 0.85),
    "ArgumentError": ("config_error", 0.75),
    "ArgumentTypeError": ("config_error", 0.8),
    "NameError": ("code_bug", 0.85),
    "UnboundLocalError": ("code_bug", 0.86),
    "AttributeError": ("code_bug", 0.78),
    "TypeError": ("code_bug", 0.78),
    "KeyError": ("code_bug", 0.65),
    "IndexError": ("code_bug", 0.78),
    "SyntaxError": ("code_bug", 0.85),
    "IndentationError": ("code_bug", 0.86),
    "TabError": ("code_bug", 0.86),
    "AssertionError": ("code_bug", 0.6),
    "ZeroDivisionError": ("code_bug", 0.78),
    "NotImplementedError": ("code_bug", 0.72),
    "RecursionError": ("code_bug", 0.8),
    "StopIteration": ("code_bug", 0.7),
    "UnicodeDecodeError": ("code_bug", 0.55),
    "UnicodeEncodeError": ("code_bug", 0.6),
    "ShapeError": ("code_bug", 0.75),
    "InvalidArgumentError": ("code_bug", 0.55),
    "PicklingError": ("code_bug", 0.75),
    "ValueError": ("code_bug", 0.5),
    "RuntimeError": ("code_bug", 0.42),
    "Exception": ("code_bug", 0.35),
    "MemoryError": ("host_oom", 0.9),
    "_ArrayMemoryError": ("host_oom", 0.92),
    "OutOfMemoryError": ("cuda_oom", 0.88),
    "ConnectionError": ("network_error", 0.75),
    "ConnectTimeout": ("network_error", 0.88),
    "ReadTimeout": ("network_error", 0.88),
    "HTTPError": ("network_error", 0.78),
    "HfHubHTTPError": ("network_error", 0.78),
    "MaxRetryError": ("network_error", 0.88),
    "NewConnectionError": ("network_error", 0.85),
    "ProtocolError": ("network_error", 0.75),
    "URLError": ("network_error", 0.85),
    "SSLError": ("network_error", 0.88),
    "gaierror": ("network_error", 0.9),
    "CommError": ("network_error", 0.85),
    "ProxyError": ("network_error", 0.85),
    "ConnectionRefusedError": ("network_error", 0.6),
    "ConnectionResetError": ("network_error", 0.4),
    "ConnectionAbortedError": ("network_error", 0.5),
    "TimeoutError": ("network_error", 0.45),
    "UnpicklingError": ("checkpoint_corrupt", 0.85),
    "BadZipFile": ("checkpoint_corrupt", 0.9),
    "SafetensorError": ("checkpoint_corrupt", 0.7),
    "KeyboardInterrupt": ("killed_by_user", 0.9),
    "DistBackendError": ("nccl_timeout", 0.72),
    "DistNetworkError": ("nccl_timeout", 0.6),
    "DistStoreError": ("nccl_timeout", 0.75),
    "FloatingPointError": ("nan_loss", 0.9),
    "UnidentifiedImageError": ("io_error", 0.7),
    "BlockingIOError": ("io_error", 0.6),
    "OSError": ("io_error", 0.45),
    "IOError": ("io_error", 0.5),
    "CompilationError": ("triton_compile", 0.9),
    "InductorError": ("triton_compile", 0.93),
}
"""Exception type → class and how much the type alone proves. Source: the Python and library documentation."""

CONSEQUENCES = frozenset(
    {
        "BrokenPipeError",
        "EOFError",
        "SystemExit",
        "ChildFailedError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "CalledProcessError",
        "BrokenProcessPool",
        "TerminatedWorkerError",
        "RayTaskError",
        "RayActorError",
        "ActorDiedError",
        "ActorUnavailableError",
        "WorkerCrashedError",
        "CancelledError",
        "Empty",
    }
)
"""Types that tell of another process's or thread's failure: never a cause by themselves."""


def find_exception(line: str) -> Raised | None:
    """The exception that the line (without rank prefix) names, None when it names none. Warnings are not exceptions."""
    found = _NAMED.search(line)
    if found is None:
        return None
    module, _, kind = found["type"].rpartition(".")
    if kind.endswith("Warning") or (kind in ("Error", "Failed", "Timeout", "Exit", "Interrupt") and not module):
        return None
    return Raised(kind, module, found["message"] or "")


def reads_configuration(line: str) -> bool:
    """True for a source line that reads arguments or a configuration: its KeyError is a config error."""
    return _CONFIGURED.search(line) is not None


def class_of(
    raised: Raised, *, configured: bool, restored: bool = False, spoken: bool = True
) -> tuple[FailureClass, float] | None:
    """What the type says; None for consequences.

    ``configured``: the line that raised it read a configuration; ``restored``: it read a checkpoint. ``spoken`` False:
    a signature knows the message, so its words are not weighed again.
    """
    if raised.type in CONSEQUENCES:
        return None
    if restored and raised.type == "KeyError":
        return "checkpoint_mismatch", 0.75
    if configured and raised.type in ("KeyError", "AttributeError", "AssertionError", "ValueError"):
        return "config_error", 0.75
    known = EXCEPTIONS.get(raised.type)
    if spoken and (known is None or raised.type == "KeyError" or raised.type in GENERIC_TYPES):
        known = class_of_message(raised.type, raised.message) or known
    if known is not None:
        return known
    if raised.type.endswith(("ConnectionError", "TimeoutError", "HTTPError")):
        return "network_error", 0.7
    if "Config" in raised.type:
        return "config_error", 0.85
    return ("code_bug", 0.4) if raised.type.endswith(("Error", "Exception", "error")) else None
