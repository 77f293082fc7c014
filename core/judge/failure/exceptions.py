"""Python exceptions in a log: the line that names the type, on any rank, with or without a box, and what it proves.

The type counts less than a message that a signature knows. Of a generic type the words of the message count, so that
a library that no signature knows is understood, too; such weights stay below what counts as sure.
"""

import builtins
import re
from functools import lru_cache
from typing import NamedTuple

from ...model.text.patterns import LazyPattern
from .catalogue import CompiledCatalogue, Proof

_CONFIGURED = LazyPattern(
    r"\b(?:args|cfg|config|conf|opts?|params|hparams|hyp|settings|options|FLAGS)(?:\[|\.\w+\[|\.get\()"
)
_HUMP = LazyPattern(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OF_CONFIG = frozenset({"KeyError", "AttributeError", "AssertionError", "ValueError"})
"""Types that mean a wrong configuration if the line that raised them read one."""
CONTEXT_WEIGHT = 0.75
"""What the source line that raised an exception proves."""


class Raised(NamedTuple):
    """An exception named in a line. ``type`` without its module; ``message`` may be empty."""

    type: str
    module: str
    message: str


def find_exception(line: str, catalogue: CompiledCatalogue) -> Raised | None:
    """The exception that the line (without rank prefix) names, None if it names none. Warnings are not exceptions."""
    found = catalogue.exception_line.search(line)
    if found is None:
        return None
    module, _, kind = found["type"].rpartition(".")
    if kind.endswith("Warning") or (kind in ("Error", "Failed", "Timeout", "Exit", "Interrupt") and not module):
        return None
    return Raised(kind, module, found["message"] or "")


_ANY = LazyPattern(r"(?P<type>(?:[A-Za-z_]\w*\.)+_?[A-Z]\w*|_?[A-Z][a-z]\w*[A-Z]\w*)(?:: (?P<message>.*))?$")


def any_exception(line: str) -> Raised | None:
    """The exception that ends a traceback, whatever its type is called; None if the line does not look like one."""
    found = _ANY.match(line)
    if found is None:
        return None
    module, _, kind = found["type"].rpartition(".")
    return Raised(kind, module, found["message"] or "")


def reads_configuration(line: str) -> bool:
    """True for a source line that reads arguments or a configuration: its KeyError is a config error."""
    return _CONFIGURED.search(line) is not None


def proof_of(
    raised: Raised, catalogue: CompiledCatalogue, *, configured: bool, restored: bool = False, with_message: bool = True
) -> Proof | None:
    """What an exception proves; None for consequences of another failure.

    ``configured``: the line that raised it read a configuration; ``restored``: it read a checkpoint. ``with_message``
    False: a signature knows the message, so its words do not count again.
    """
    kind = raised.type
    if kind in catalogue.consequences:
        return None
    if restored and kind == "KeyError":
        return Proof("checkpoint_mismatch", CONTEXT_WEIGHT, told=True)
    if configured and kind in _OF_CONFIG:
        return Proof("config_error", CONTEXT_WEIGHT, told=True)
    known = catalogue.exceptions.get(kind)
    generic = kind in catalogue.generic_exceptions
    if known is None or generic:
        inner = find_exception(raised.message, catalogue)
        # Julia's LoadError, a handler of its own, a RuntimeError of Paddle
        if inner is not None and inner.type != kind and (not generic or _names_mechanism(inner.type, catalogue)):
            return proof_of(inner, catalogue, configured=configured, restored=restored, with_message=with_message)
    if with_message and (known is None or kind == "KeyError" or generic):
        known = proof_of_message(kind, raised.message, catalogue) or known
    if known is not None:
        return known
    proofs = [catalogue.exceptions[name] for name in catalogue.exception_patterns if _fits(kind, name)]
    proofs += [proof for proof in (_of_module(raised.module, catalogue),) if proof is not None]
    return max(proofs, key=lambda proof: proof.weight, default=None)


def _names_mechanism(kind: str, catalogue: CompiledCatalogue) -> bool:
    """Whether the type alone tells more than that the program has an error."""
    known = catalogue.exceptions.get(kind)
    return known is not None and kind not in catalogue.generic_exceptions and known.failure != "code_bug"


def _of_module(module: str, catalogue: CompiledCatalogue) -> Proof | None:
    """What the package proves that defines the type."""
    while module:
        if (proof := catalogue.modules.get(module)) is not None:
            return proof
        module = module.rpartition(".")[0]
    return None


def _fits(kind: str, name: str) -> bool:
    """Whether the type has this name, in which ``*`` at either end stands for anything."""
    if name.endswith("*"):
        return name[1:-1] in kind if name.startswith("*") else kind.startswith(name[:-1])
    return kind.endswith(name[1:])


def proof_of_words(text: str, catalogue: CompiledCatalogue) -> Proof | None:
    """What the words of an error line prove that names no exception; less than those of an exception."""
    proof = proof_of_message("Exception", text, catalogue)
    return None if proof is None else Proof(proof.failure, round(proof.weight * LOGGED, 3), told=True)


MESSAGE_CHARS = 240
"""Characters of a message whose words count. Behind them stand dumps of objects."""
LOGGED = 0.85
"""What the words of a logged error prove of what those of an exception prove."""


_ADDRESS = LazyPattern(r"(?P<host>\bhttps?://[\w.:-]+)/\S*")
"""The words of a page's path say nothing of what happened."""
_VALUE = LazyPattern(
    r"(?:\b[a-z]\w*=\S+|'[^']*'|\"[^\"]*\"|`[^`]*`|\b[a-z]\w*_\w+\b)"
    r"(?= (?:is|are|was|were) not | is an? (?:in|un)| must | should | cannot be )"
)
"""A value that is refused, or the name of a setting: its words say nothing either."""


_CHOICES = LazyPattern(r"(?P<words>\bmust be(?: one of| either)?|\bone of|\bchoose from)\s*[\[('\"].*")
"""The values that are allowed, and what was given."""
_COUNT = LazyPattern(r"(?<![\d.])\d{4,9}(?![\d.])|\b0x[0-9a-f]{4,}\b|\b\d+\.\d{2,}\b", re.IGNORECASE)
"""Steps, sizes and addresses: no table has such numbers, and a message that returns differs in them only."""


def proof_of_message(kind: str, message: str, catalogue: CompiledCatalogue) -> Proof | None:
    """What the words of an exception prove, None if nothing. ``kind``: its type, without the module.

    Of a type that is not generic the words of its name count, too: ``ServerDisconnectedError``.
    """
    if kind == "KeyError" and " " not in message:
        return next((proof for pattern, proof in catalogue.key_errors if pattern.match(message)), None)
    return _proof_of_shape(kind, _COUNT.sub("1000", message[:MESSAGE_CHARS]), catalogue)


@lru_cache(maxsize=1024)
def _proof_of_shape(kind: str, message: str, catalogue: CompiledCatalogue) -> Proof | None:
    message = _CHOICES.sub(r"\g<words> 'value'", message)
    message = _VALUE.sub("'value'", _ADDRESS.sub(r"\g<host>", message))
    low = (message if kind in catalogue.generic_exceptions else f"{_HUMP.sub(' ', kind)}: {message}").lower()
    return next((proof for pattern, proof in catalogue.messages if pattern.search(low) is not None), None)


def is_of_the_system(line: str) -> bool:
    """Whether the line names an exception of the operating system (a file, a mount), by Python's own types."""
    kind = getattr(builtins, line.partition(":")[0].strip().rpartition(".")[2], None)
    return isinstance(kind, type) and issubclass(kind, OSError)
