"""Removal of secrets from text that users send to others: environment values, tokens, passwords, keys.

A value with a name is recognised by the name (``--api-key``, ``HF_TOKEN=``), one without by its form (``hf_…``).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from .patterns import LazyPattern

HIDDEN = "[redacted]"
MOST_KEPT, LONGEST_KEPT = 500, 200
"""Texts whose result is kept, and their characters: the incidents of a week say the same again and again."""
SHORTEST_SECRET = 6
"""Shorter values ("1", "true") occur everywhere in a text."""
ONE_WORD = frozenset(
    {"token", "secret", "password", "passwd", "passphrase", "pwd", "credential", "credentials", "apikey", "auth",
     "authorization", "cookie", "webhook", "pat"}
)  # fmt: skip
KEYS_OF = frozenset(
    {"api", "access", "secret", "private", "auth", "account", "encryption", "license", "signing", "wandb", "openai",
     "anthropic", "hf", "huggingface", "comet", "neptune", "aws", "azure", "gcp", "subscription"}
)  # fmt: skip
MODEL_TOKENS = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "image", "audio", "special", "stop", "trigger", "class",
     "instance", "placeholder", "initializer", "prompt", "new", "next", "last", "first", "per", "start", "end"}
)  # fmt: skip
"""``pad_token``, ``placeholder_token`` …: tokens of a language model, which are no secrets."""
PATTERNS_OF = frozenset({"github", "gitlab", "git", "azure", "ado", "gh"})
"""``github_pat`` is a token; ``file_pat`` is a pattern."""
OPEN_PREFIXES = (
    "CUDA_", "PYTORCH_", "TORCH_", "NCCL_", "OMP_", "MKL_", "TOKENIZERS_PARALLELISM", "ACCELERATE_", "TRITON_",
    "HF_HUB_OFFLINE", "WANDB_MODE", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV",
)  # fmt: skip
"""Variables that help to explain failures and hold no secrets. Values of others are never shown."""

SCHEMES = frozenset({"bearer", "basic", "token", "digest", "apikey"})
_SHAPES = LazyPattern(
    r"\bhf_[A-Za-z0-9]{20,}|\bhf_(?![a-z]+\d*\b)[A-Za-z0-9]{16,}|\bhf_(?=[a-z]*\d)(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{8,}"
    r"|\bsk-(?:proj|ant|or|svcacct|admin|lf)-[\w-]{12,}|\bsk-[A-Za-z0-9]{16,}\b|\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{32,}"
    r"|\bxox[abeprs]-[\w-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{12,}\b|\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\b\d{6,}:[A-Za-z0-9_-]{30,}|(?<=/api/webhooks/)\d+/[\w-]+|(?<=hooks\.slack\.com/services/)[\w/]+"
    r"|(?<=wandb login )[0-9a-zA-Z]{20,}|(?<=\b[Bb]earer )(?!\[redacted\])[\w.~+/=-]{4,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
_HINTS = (
    "hf_", "sk-", "sk_", "rk_", "ghp_", "gho_", "ghu_", "ghr_", "ghs_", "_pat_", "glpat-", "npm_", "pypi-", "xox",
    "AKIA", "ASIA", "AIza", "ya29", "eyJ", "hooks", "earer ", "login ", "PRIVATE KEY",
)  # fmt: skip
"""Every one of _SHAPES has one of these or _NUMBER. To look for plain text is much faster, and less is compiled."""
_HINT = LazyPattern("|".join(map(re.escape, _HINTS)))
_NUMBER = LazyPattern(r"\d{6}:")
_NAMED = ("token", "secret", "pass", "pwd", "credential", "api", "auth", "cookie", "hook", "pat", "key")
"""The same for names of secrets (``is_secret_name``), in small letters."""
_NAME = LazyPattern("|".join(_NAMED))
_USER_IN_URL = LazyPattern(
    r"(?<=://)(?:[^/\s@:\"'<>]*:[^/\s\"'<>]*|(?<=https://)[^/\s@:\"'<>]+|(?<=http://)[^/\s@:\"'<>]+)(?=@)"
)
"""``user:password``, whatever the scheme; a name alone only in http (a token), not in ``ssh://git@host``."""
_SIGNED = LazyPattern(
    r"(?<=[?&])((?:x-amz-|x-goog-)?(?:signature|credential|security-token)|sig)=[^&\s\"'<>]+", re.IGNORECASE
)
_LABEL = LazyPattern(
    r"""(?<![\w-])(?P<name>-*[A-Za-z_][\w-]*+)(?:["']?[ \t]*[:=][ \t]*)"""
    r"""|(?<![\w-])(?P<option>--?[A-Za-z][\w-]*+)(?:["']?,?[ \t]+|["'],[ \t]*)(?!["']?-)"""
)
"""A name and the characters up to its value. Values are not part of it: they may hold labels themselves."""
_VALUE = LazyPattern(
    r"""(?:(?:Bearer|Basic|Token|Digest|ApiKey)\s+)?(?:"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'"""
    r"""|["']?(?P<bare>\[redacted\]|[^\s"',;&#})\]]+))"""
)
_PLAIN = LazyPattern(r"\d{1,6}(\.\d+)?|<[^<>]*>|\[[A-Z]+\]|\[[A-Z]+", re.IGNORECASE)
_NOTHING = LazyPattern(r"true|false|none|null|\[redacted\]|\*+|\$\{?\w+\}?|", re.IGNORECASE)
_PLACE = LazyPattern(r"~?\.{0,2}/[\w./-]*")
_NEVER_A_NUMBER = frozenset({"password", "passwd", "passphrase", "key", "apikey"})


class Redaction:
    """Redacts the text of one run. ``env``: variables whose secret values may turn up in any text.

    ``secrets``: more of such values (``url_secrets`` of its notification URLs).
    """

    def __init__(self, env: Mapping[str, str] | None = None, secrets: Iterable[str] = ()) -> None:
        found = {*secrets}
        found |= {v for k, v in (env or {}).items() if is_secret_name(k) and len(v) >= SHORTEST_SECRET}
        self._values = sorted(found, key=len, reverse=True)
        self._done: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text without its secrets."""
        if text in self._done:
            return self._done[text]
        hidden = self._hidden(text)
        if len(text) <= LONGEST_KEPT:
            if len(self._done) >= MOST_KEPT:
                self._done = {}
            self._done[text] = hidden
        return hidden

    def _hidden(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        if "://" in text:
            text = _SIGNED.sub(lambda found: f"{found[1]}={HIDDEN}", _USER_IN_URL.sub(HIDDEN, text))
        if _HINT.search(text) or (":" in text and _NUMBER.search(text)):
            text = _SHAPES.sub(HIDDEN, text)
        return _hide_labelled(text) if _may_name(text) else text

    def words(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command line without its secrets."""
        shown: list[str] = []
        label = ""  # the name whose value the next word is
        for word in argv:
            if label and not word.startswith("-"):
                scheme = word.lower() in SCHEMES
                shown.append(word if scheme or is_harmless(label, word) else HIDDEN)
                label = label if scheme else ""
                continue
            name, equals, value = word.partition("=")
            if equals and is_secret_name(name.lstrip("-")) and not is_harmless(name, value):
                shown.append(f"{name}={HIDDEN}")
            else:
                shown.append(self.text(word))
            named = word.startswith("-") or word.endswith(":")
            label = word if not equals and named and is_secret_name(word.strip("-:")) else ""
            if word == "login" and shown[-2:-1] == ["wandb"]:
                label = "api_key"
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


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a variable or option of this name holds a secret: by its last words, so ``max_token_length`` does not."""
    words = _words(name) if _may_name(name) else []
    if not words or name == "PWD":
        return False
    before = words[-2] if len(words) > 1 else ""
    match words[-1]:
        case "url" if len(words) > 1:
            return before in {"webhook", "hook"}
        case "key":
            return before in KEYS_OF
        case "token":
            return before not in MODEL_TOKENS
        case "pat":
            return not before or before in PATTERNS_OF
        case last:
            return last in ONE_WORD


def _may_name(text: str) -> bool:
    """Whether a name of a secret can be in the text."""
    return _NAME.search(text.casefold()) is not None


def _words(name: str) -> list[str]:
    plain = name.replace("_", "")
    if plain.isalpha() and plain.isupper() and plain.isascii():  # as most variables are
        return name.lower().replace("_", " ").split()
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", name) if part]
    # HTTPHeaders, apiKey: parts of camel case count, too.
    return [w.lower() for part in parts for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", part)]


def is_harmless(name: str, value: str) -> bool:
    """Whether the value of a secret name is none: nothing, a switch, a small number, the path of a credentials file."""
    if _NOTHING.fullmatch(value):
        return True
    last = _words(name)[-1:] or [""]
    if last[0] in {"credential", "credentials"} and _PLACE.fullmatch(value):
        return True
    return last[0] not in _NEVER_A_NUMBER and _PLAIN.fullmatch(value) is not None


def _is_open(name: str) -> bool:
    return name.startswith(OPEN_PREFIXES) and not is_secret_name(name)


def _hide_labelled(text: str) -> str:
    parts: list[str] = []
    done = 0
    for label in _LABEL.finditer(text):
        name = label["name"] or label["option"]
        if label.start() < done or not is_secret_name(name):
            continue
        value = _VALUE.match(text, label.end())
        group = value.lastgroup if value is not None else None
        if value is None or group is None or is_harmless(name, value[group]):
            continue
        start = value.start(group) if value.start(group) - value.start() <= 1 else value.start()
        parts += [text[done:start], HIDDEN]
        done = value.end(group)
    return "".join((*parts, text[done:]))
