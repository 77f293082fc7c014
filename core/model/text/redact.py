"""Removal of secrets from text that users send to others: environment values, tokens, passwords, keys.

A value with a name is recognised by the name (``--api-key``, ``HF_TOKEN=``), one without by its form (``hf_…``).
"""

import re
from collections.abc import Iterable, Mapping, Sequence

HIDDEN = "[redacted]"
SHORTEST_SECRET = 6
"""Shorter values ("1", "true") occur everywhere in a text."""
ONE_WORD = frozenset(
    {"token", "secret", "password", "passwd", "passphrase", "pwd", "credential", "credentials", "apikey", "auth",
     "authorization", "cookie", "webhook", "pat"}
)  # fmt: skip
KEYS_OF = frozenset({"api", "access", "secret", "private", "auth", "account", "encryption", "license", "signing"})
OPEN_PREFIXES = (
    "CUDA_", "PYTORCH_", "TORCH_", "NCCL_", "OMP_", "MKL_", "TOKENIZERS_PARALLELISM", "ACCELERATE_", "TRITON_",
    "HF_HUB_OFFLINE", "WANDB_MODE", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV",
)  # fmt: skip
"""Variables that help to explain failures and hold no secrets. Values of others are never shown."""

_SHAPES = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\b\d{6,}:[A-Za-z0-9_-]{30,}|(?<=/api/webhooks/)\d+/[\w-]+|(?<=hooks\.slack\.com/services/)[\w/]+"
    r"|(?<=\b[Bb]earer )[\w.~+/=-]{8,}"
)
_USER_IN_URL = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_LABEL = re.compile(
    r"""(?<![\w-])(?P<name>-*[A-Za-z_][\w-]*+)(?:["']?\s*[:=]\s*["']?)|(?<![\w-])(?P<option>--?[A-Za-z][\w-]*+)\s+(?!-)"""
)
"""A name and the characters up to its value. Values are not part of it: they may hold labels themselves."""
_VALUE = re.compile(r"""\[redacted\]|[^\s"',;&#})\]]+""")
_PLAIN = re.compile(r"\d{1,6}(\.\d+)?|true|false|none|null|\[redacted\]", re.IGNORECASE)


class Redaction:
    """Redacts the text of one run. ``env``: variables whose secret values may turn up in any text.

    ``secrets``: more of such values (``url_secrets`` of its notification URLs).
    """

    def __init__(self, env: Mapping[str, str] | None = None, secrets: Iterable[str] = ()) -> None:
        found = {*secrets}
        found |= {v for k, v in (env or {}).items() if is_secret_name(k) and len(v) >= SHORTEST_SECRET}
        self._values = sorted(found, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        text = _USER_IN_URL.sub(HIDDEN, text)
        text = _SHAPES.sub(HIDDEN, text)
        return _hide_labelled(text)

    def words(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command line without its secrets."""
        shown: list[str] = []
        hide_next = False
        for word in argv:
            if hide_next and not word.startswith("-"):
                shown.append(HIDDEN)
                hide_next = False
                continue
            name, equals, value = word.partition("=")
            if equals and is_secret_name(name.lstrip("-")) and value:
                shown.append(f"{name}={HIDDEN}")
            else:
                shown.append(self.text(word))
            hide_next = not equals and word.startswith("-") and is_secret_name(word.lstrip("-"))
        return tuple(shown)

    def environment(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """``NAME=value`` of the variables in the list, and the number of the others."""
        shown = [f"{k}={self.text(v)}" for k, v in sorted(env.items()) if _is_open(k)]
        rest = sum(not _is_open(k) for k in env)
        return (*shown, f"{rest} more, values withheld") if rest else tuple(shown)

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The secret parts of each URL."""
        return tuple(self.text(text) for text in texts)


def url_secrets(urls: Iterable[str]) -> tuple[str, ...]:
    """Secrets in notification URLs: the whole, and each part but a host name with a dot in it.

    Services put their tokens everywhere: ``tgram://TOKEN/CHAT``, ``ntfy://ntfy.sh/TOPIC``, ``json://USER:WORD@host``.
    """
    found: dict[str, None] = {}
    for url in urls:
        found[url] = None
        scheme, _, rest = url.partition("://")
        parts = re.split(r"[/@?&=]", rest or scheme)
        host = next((p for p in parts if re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", p)), None)
        for part in parts:
            for piece in (part, *part.split(":")):
                if part != host and len(piece) >= SHORTEST_SECRET:
                    found[piece] = None
    return tuple(found)


def is_secret_name(name: str) -> bool:
    """Whether a variable or option of this name holds a secret: by its last words, so ``max_token_length`` does not."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", name) if part]
    # HTTPHeaders, apiKey: parts of camel case count, too.
    words = [w.lower() for part in parts for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", part)]
    if not words:
        return False
    if words[-1] == "url" and len(words) > 1:
        words = words[:-1]
        return words[-1] in {"webhook", "hook"}
    return words[-1] in ONE_WORD or (words[-1] == "key" and len(words) > 1 and words[-2] in KEYS_OF)


def _is_open(name: str) -> bool:
    return name.startswith(OPEN_PREFIXES) and not is_secret_name(name)


def _hide_labelled(text: str) -> str:
    parts: list[str] = []
    done = 0
    for label in _LABEL.finditer(text):
        name = label["name"] or label["option"].lstrip("-")
        if label.start() < done or not is_secret_name(name):
            continue
        value = _VALUE.match(text, label.end())
        if value is not None and not _PLAIN.fullmatch(value[0]):
            parts += [text[done : value.start()], HIDDEN]
            done = value.end()
    return "".join((*parts, text[done:]))
