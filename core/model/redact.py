"""Removal of secrets from text that users send to others: environment values, tokens, passwords, keys.

A value with a name is recognised by the name (``--api-key``, ``HF_TOKEN=``), one without by its form (``hf_…``).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from .text import LazyPattern

# What secrets look like: prefixes of tokens, places in which one stands, names that have one as their value.
#
# Sources: the rules of gitleaks 8 (by their identifiers) and the documentation of the services.

WORD = r"[A-Za-z0-9_-]"
ALNUM = r"[A-Za-z0-9]"


class Prefix(NamedTuple):
    """``least`` characters of ``rest`` behind ``text`` are a token, wherever they stand."""

    text: str
    least: int
    source: str
    rest: str


PREFIXES = tuple(
    Prefix(text, least, source, rest)
    for texts, least, source, rest in (
        ("hf_ api_org_", 20, "gitleaks huggingface-access-token, -organization-api-token", ALNUM),
        ("wandb_v1_", 16, "Weights & Biases: keys from 2025 on", WORD),
        ("KGAT_", 16, "Kaggle: API tokens", ALNUM),
        ("sk-proj- sk-svcacct- sk-admin-", 12, "gitleaks openai-api-key", WORD),
        ("sk-ant- sk-or- sk-lf-", 12, "gitleaks anthropic-api-key; OpenRouter, Langfuse: keys", WORD),
        ("sk-", 16, "OpenAI: legacy keys; DeepSeek, Stability", ALNUM),
        ("gsk_ xai- csk- pplx- fw_ jina_ r8_ rpa_", 20,
         "API keys of Groq, xAI, Cerebras, Perplexity, Fireworks AI, Jina AI, Replicate, RunPod", ALNUM),
        ("nvapi- lsv2_ pcsk_ tgp_v1_", 20, "API keys of NVIDIA NGC, LangSmith, Pinecone, Together AI", WORD),
        ("sk_live_ sk_test_ rk_live_ rk_test_", 10, "gitleaks stripe-access-token", ALNUM),
        ("ghp_ gho_ ghu_ ghs_ ghr_", 16, "gitleaks github-pat, -oauth, -app-token, -refresh-token", ALNUM),
        ("github_pat_", 20, "gitleaks github-fine-grained-pat", WORD),
        ("glpat-", 16, "gitleaks gitlab-pat", r"[\w.-]"),
        ("gldt- glrt- glptt-", 16, "gitleaks gitlab-deploy-token, -rrt, -ptt", WORD),
        ("ATATT3", 20, "gitleaks atlassian-api-token", r"[\w=-]"),
        ("npm_", 30, "gitleaks npm-access-token", ALNUM),
        ("pypi-", 32, "gitleaks pypi-upload-token", WORD),
        ("rubygems_ dop_v1_ doo_v1_ dor_v1_ dp.pt. lin_api_ ntn_ sbp_", 32,
         "gitleaks rubygems-, digitalocean-, doppler-, linear-, notion-api-token …; Supabase", ALNUM),
        ("dckr_pat_ dckr_oat_", 16, "Docker Hub: access tokens", WORD),
        ("xoxa- xoxb- xoxe- xoxe. xoxp- xoxr- xoxs- xapp-", 10, "gitleaks slack-bot-token, -user-token …", WORD),
        ("AKIA ASIA", 12, "gitleaks aws-access-token", r"[0-9A-Z]"),
        ("LTAI", 16, "gitleaks alibaba-access-key-id", ALNUM),
        ("AIza", 30, "gitleaks gcp-api-key", WORD),
        ("ya29.", 20, "Google: OAuth access tokens", r"[\w.-]"),
        ("GOCSPX- hvs. hvb.", 20, "Google: OAuth client secrets; gitleaks vault-service-, vault-batch-token", WORD),
        ("SG.", 30, "gitleaks sendgrid-api-token", r"[\w.-]"),
        ("tskey-", 12, "Tailscale: key prefixes", WORD),
        ("dapi pul-", 32, "gitleaks databricks-api-token, pulumi-api-token", r"[0-9a-f]"),
        ("glc_", 32, "gitleaks grafana-cloud-api-token", r"[A-Za-z0-9+/=]"),
        ("glsa_", 32, "gitleaks grafana-service-account-token", WORD),
        ("sntrys_ ops_eyJ", 32, "gitleaks sentry-org-token, 1password-service-account-token", r"[\w+/=-]"),
        ("AGE-SECRET-KEY-1", 32, "gitleaks age-secret-key", r"[0-9A-Z]"),
        ("eyJhcGlf", 24, 'Neptune: API tokens (base64 of {"api_)', r"[\w+/=-]"),
    )
    for text in texts.split()
)  # fmt: skip


class Form(NamedTuple):
    """``hint``: in small letters, in each text that has the form. Group ``keep`` of the pattern is no secret."""

    hint: str
    pattern: str
    source: str


_KEPT = r"(?!\[redacted\])[^\s'\"<>,;]{4,}"
FORMS = (
    Form("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
         "gitleaks private-key"),
    Form("hf_", rf"(?<!{ALNUM})hf_(?:(?![a-z]+\d*\b){ALNUM}{{16,}}|(?=[a-z]*\d)(?=[a-z0-9]*[A-Z]){ALNUM}{{8,}})",
         "Hugging Face: shorter tokens, told from names (hf_checkpoint12) by their characters"),
    Form("eyj", r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", "gitleaks jwt"),
    Form(":", r"(?<!\d)\d{6,}:[A-Za-z0-9_-]{30,}", "gitleaks telegram-bot-api-token: …/botTOKEN/…"),
    Form("/api/webhooks/", r"(?<=/api/webhooks/)\d+/[\w-]+", "Discord: webhooks"),
    Form("hooks.slack.com", r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/-]+",
         "gitleaks slack-webhook-url"),
    Form("webhook.office.com", r"(?<=webhook\.office\.com/)webhook[\w/@-]+", "gitleaks microsoft-teams-webhook"),
    Form("bearer", rf"(?P<keep>(?i:\bbearer)[ \t]+(?=\S*\d|\S{{16}})){_KEPT}", "RFC 6750"),
    Form("wandb login", rf"(?P<keep>\bwandb login(?:[ \t]+--?[\w-]+){{0,4}}[ \t]+)(?=\w{{16}}){_KEPT}",
         "Weights & Biases: wandb login"),
    Form("machine", rf"(?P<keep>\bmachine[ \t]+\S{{1,80}}[ \t]+login[ \t]+\S{{1,80}}[ \t]+password[ \t]+){_KEPT}",
         "ftp(1): .netrc"),
    Form("sshpass", rf"(?P<keep>\bsshpass[ \t]+-p[ \t]*){_KEPT}", "sshpass(1)"),
    Form("curl", rf"(?P<keep>\bcurl\b[^\n]{{0,200}}?[ \t](?:-u|--user)[ =](?:'\"'\"'|['\"])?[^\s:'\"]{{1,80}}:){_KEPT}",
         "gitleaks curl-auth-user"),
)  # fmt: skip

SCHEMES = frozenset(
    {"bearer", "basic", "token", "digest", "apikey", "api-key", "key", "jwt", "ssws", "genie-key", "geniekey", "splunk"}
)
"""Words before the credentials of an HTTP header, in any case. Source: IANA's registry, and usage."""
ALWAYS = frozenset(
    {"token", "secret", "password", "passwd", "passphrase", "passcode", "pwd", "credential", "credentials", "apikey",
     "auth", "authorization", "cookie", "webhook", "pat"}
)  # fmt: skip
"""Last words of names whose value is a secret."""
GLUED = ("password", "passwd", "passphrase", "secret", "apikey", "accesskey", "secretkey", "authtoken", "accesstoken")
"""Ends of words that are written as one: ``PGPASSWORD``, ``sshpasswd``."""
PERHAPS = frozenset({"key", "pass"})
"""Last words of names whose value is one if it looks like one: ``key=value``, ``monkey_pass=1`` are none."""
KEYS_OF = frozenset(
    {"api", "access", "secret", "private", "auth", "account", "encryption", "license", "signing", "wandb", "openai",
     "anthropic", "hf", "huggingface", "comet", "neptune", "aws", "azure", "gcp", "subscription"}
)  # fmt: skip
PASSES_OF = frozenset(
    {"db", "database", "sql", "mysql", "pg", "postgres", "redis", "mongo", "smtp", "imap", "mail", "email", "ftp",
     "sftp", "ssh", "http", "proxy", "user", "login", "root", "admin", "registry", "rabbitmq", "es"}
)  # fmt: skip
"""Words before ``key`` and ``pass`` with which the value is one however it looks."""
MODEL_TOKENS = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "image", "audio", "special", "stop", "trigger", "class",
     "instance", "placeholder", "initializer", "prompt", "new", "next", "last", "first", "per", "start", "end"}
)  # fmt: skip
"""``pad_token``, ``placeholder_token`` …: tokens of a language model, which are no secrets."""
PATTERNS_OF = frozenset({"github", "gitlab", "git", "azure", "ado", "gh"})
"""``github_pat`` is a token; ``file_pat`` is a pattern."""


HIDDEN = "[redacted]"
MOST_KEPT, LONGEST_KEPT = 500, 200
"""Texts whose result is kept, and their characters: the incidents of a week say the same again and again."""
SHORTEST_SECRET = 6
"""Shorter values ("1", "true") occur everywhere in a text."""
SHORTEST_KEY = 8
"""Characters of a value that looks like a secret."""
LOGIN = "wandb login key"
_SENTENCES = frozenset({"password", "passphrase"})
OPEN_PREFIXES = (
    "CUDA_", "PYTORCH_", "TORCH_", "NCCL_", "OMP_", "MKL_", "TOKENIZERS_PARALLELISM", "ACCELERATE_", "TRITON_",
    "HF_HUB_OFFLINE", "WANDB_MODE", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV",
)  # fmt: skip
"""Variables that help to explain failures and hold no secrets. Values of others are never shown."""

_TOKENS = tuple((p.text, LazyPattern(rf"(?<!{ALNUM}){re.escape(p.text)}{p.rest}{{{p.least},}}")) for p in PREFIXES)
_FORMS = tuple((form.hint, LazyPattern(form.pattern)) for form in FORMS)
_NAME = LazyPattern("token|secret|pass|pwd|credential|api|auth|cookie|hook|pat|key")
"""One of these is in each name of a secret, in small letters. To look for it is much faster, and less is compiled."""
_USER_IN_URL = LazyPattern(
    r"(?<=://)(?:[^/\s@:\"'<>]{0,256}:(?!\d{1,5}/)[^\s@\"'<>]{0,256}"
    r"|(?:(?<=https://)|(?<=http://))[^/\s@:\"'<>]{1,256})(?=@)"
)
"""``user:password``, whatever the scheme, but no port; a name alone only in http (a token), not in ``ssh://git@host``."""
_SIGNED = LazyPattern(
    r"(?<=[?&])((?:x-amz-|x-goog-)?(?:signature|credential|security-token)|sig)=[^&\s\"'<>]+", re.IGNORECASE
)
_LABEL = LazyPattern(
    r"""(?<![\w-])(?P<name>-*[A-Za-z_][\w-]*+)(?:(?:'"'"'|\\{0,8}["'])?[ \t]*[:=][ \t]*)"""
    r"""|(?<![\w-])(?P<option>--?[A-Za-z][\w-]*+)(?:["']?,?[ \t]+|["'],[ \t]*)(?!["']?-)"""
)
"""A name and the characters up to its value, with the quotes of Python, JSON, JSON within JSON and shells.

Values are not part of it: they may hold labels themselves.
"""
_VALUE = LazyPattern(
    rf"""(?:(?i:{"|".join(sorted(SCHEMES))})[ \t]+)?"""
    r"""(?:'"'"'(?P<shell>[^'\n]*)|\\{1,8}"(?P<escaped>[^"\\\n]*)|"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'"""
    r"""|["']?(?P<bare>\[redacted\]|[^\s"',;&#})\]]{1,400}+))"""
)
_REST = LazyPattern(r"[^\s\"',;&#})\]]*+")
"""Of a bare value that is a secret. What no secret is was not read to its end: ``key=key=key=…`` holds many."""
_FURTHER_WORDS = LazyPattern(r"(?:[ \t]+[^\s\"',;:=&#})\]]++(?![:=])){1,8}")
"""The rest of a password of several words, behind ``password:``."""
_PLAIN = LazyPattern(r"\d{1,6}(\.\d+)?|<[^<>]*>|\[[A-Z]+\]|\[[A-Z]+", re.IGNORECASE)
_NOTHING = LazyPattern(r"true|false|none|null|\[redacted\]|\*+|\$\{?\w+\}?|", re.IGNORECASE)
_PLACE = LazyPattern(r"~?\.{0,2}/[\w./-]*")
_MEASURE = LazyPattern(r"[-+]?\d[\d.,:e+-]*[A-Za-z%/µ²]{0,5}")
"""A number with or without a unit: 12.5ms, 1e-4, 16G."""
_MIXED = LazyPattern(r"(?=[A-Za-z]*\d++[A-Za-z])[A-Za-z0-9]{8,}|[0-9a-f]{16,}")
"""A part of a word that nobody types as a name: a digit within letters."""
_NEVER_A_NUMBER = frozenset({"password", "passwd", "passphrase", "passcode", "key", "apikey", "pass"})
LONGEST_NAME = 64
"""Characters of a name by which it is known: its last ones."""


class Redaction:
    """Redacts the text of one run, or of this process. Thread-safe.

    ``env``: variables whose secret values may turn up in any text. ``secrets``: more of such values (``url_secrets`` of
    its notification URLs).
    """

    def __init__(self, env: Mapping[str, str] | None = None, secrets: Iterable[str] = ()) -> None:
        found = {*secrets}
        found |= {v for k, v in (env or {}).items() if is_secret(k, v) and len(v) >= SHORTEST_SECRET}
        self._values = sorted(found, key=len, reverse=True)
        self._done: dict[str, str] = {}

    def know(self, env: Mapping[str, str], secrets: Iterable[str] = ()) -> None:
        """Hide the values of secret variables of ``env``, and ``secrets``, from now on."""
        found = {*self._values, *secrets, *(v for k, v in env.items() if is_secret(k, v))}
        self._values = sorted(found, key=len, reverse=True)
        self._done = {}  # after the values: a thread that began with the former ones keeps its result in the former

    def text(self, text: str) -> str:
        done = self._done
        hidden = done.get(text)
        if hidden is None:
            hidden = self._hidden(text)
            if len(text) <= LONGEST_KEPT:
                if len(done) >= MOST_KEPT:
                    done.clear()
                done[text] = hidden
        return hidden

    def _hidden(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        if "://" in text:
            text = _SIGNED.sub(lambda found: f"{found[1]}={HIDDEN}", _USER_IN_URL.sub(HIDDEN, text))
        for pattern in [pattern for prefix, pattern in _TOKENS if prefix in text]:
            text = pattern.sub(HIDDEN, text)
        small = text.casefold()
        for pattern in [pattern for hint, pattern in _FORMS if hint in small]:
            text = pattern.sub(lambda found: f"{found.groupdict().get('keep', '')}{HIDDEN}", text)
        return _hide_labelled(text) if _may_name(text) else text

    def words(self, argv: Sequence[str]) -> tuple[str, ...]:
        shown: list[str] = []
        label = ""  # the name whose value the next word is
        for word in argv:
            if label and not word.startswith("-"):
                scheme = word.lower() in SCHEMES
                shown.append(word if scheme or not is_secret(label, word) else HIDDEN)
                label = label if scheme else ""
                continue
            name, equals, value = word.partition("=")
            hidden = self.text(word)
            if hidden == word and equals and is_secret(name.lstrip("-"), value):
                hidden = f"{name}={HIDDEN}"
            shown.append(hidden)
            if label == LOGIN:  # its options stand before its key
                continue
            named = word.startswith("-") or word.endswith(":")
            label = word.strip("-:") if not equals and named and is_secret_name(word.strip("-:")) else ""
            if word == "login" and shown[-2:-1] == ["wandb"]:
                label = LOGIN
        return tuple(shown)

    def environment(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """``NAME=value`` of the variables in the list, and the number of the others."""
        shown = [f"{k}={self.text(v)}" for k, v in sorted(env.items()) if _is_open(k)]
        rest = sum(not _is_open(k) for k in env)
        return (*shown, f"{rest} more, values withheld") if rest else tuple(shown)

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)

    def value(self, value: Any, name: str = "") -> Any:
        """The same without secrets, however deep: texts, lists, mappings, msgspec structs. ``name``: of the field."""
        if isinstance(value, str):
            return HIDDEN if is_secret(name, value) else self.text(value)
        if isinstance(value, dict):
            return {key: self.value(inner, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            if name in COMMAND_FIELDS and all(isinstance(word, str) for word in value):
                return type(value)(self.words(value))
            return type(value)([self.value(inner, name) for inner in value])
        if not hasattr(value, "__struct_fields__"):
            return value
        from msgspec.structs import replace  # not in processes that have only texts

        new = {field: self.value(getattr(value, field), field) for field in value.__struct_fields__}
        changed = {field: inner for field, inner in new.items() if inner != getattr(value, field)}
        return replace(value, **changed) if changed else value


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


def is_secret(name: str, value: str) -> bool:
    match _kind(name[-LONGEST_NAME:]):
        case "always":
            return not is_harmless(name, value)
        case "perhaps":
            return looks_secret(value)
        case _:
            return False


def is_secret_name(name: str) -> bool:
    """Whether a name may have a secret as its value, which ``is_secret`` tells."""
    return _kind(name[-LONGEST_NAME:]) != "never"


@lru_cache(maxsize=1024)
def _kind(name: str) -> Literal["always", "perhaps", "never"]:
    """By its last words, so ``max_token_length`` holds none."""
    words = _words(name) if _may_name(name) else []
    if not words or name == "PWD":
        return "never"
    before, last = words[-2] if len(words) > 1 else "", words[-1]
    match last:
        case "url" if before in {"webhook", "hook"}:
            known = True
        case "key":
            known = before in KEYS_OF
        case "pass":
            known = before in PASSES_OF or (name.isupper() and bool(before))
        case "token":
            known = before not in MODEL_TOKENS
        case "pat":
            known = not before or before in PATTERNS_OF
        case _:
            known = last in ALWAYS or last.endswith(GLUED)
    return "always" if known else "perhaps" if last in PERHAPS else "never"


def looks_secret(value: str) -> bool:
    """Whether a text looks like a password or a key: digits within letters, and no path, number or list of words."""
    if len(value) < SHORTEST_KEY or value.startswith(("/", "~", "./", "../")) or _MEASURE.fullmatch(value):
        return False
    return " " not in value and _MIXED.search(value[:LONGEST_KEPT]) is not None


def _may_name(text: str) -> bool:
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
        if value is None or group is None or not is_secret(name, value[group]):
            continue
        parts += [text[done : value.start(group)], HIDDEN]
        rest = _REST.match(text, value.end(group)) if group == "bare" else None
        done = value.end(group) if rest is None else rest.end()
        if group == "bare" and label[0].endswith(": ") and _words(name[-LONGEST_NAME:])[-1] in _SENTENCES:
            further = _FURTHER_WORDS.match(text, done)
            done = done if further is None else further.end()
    return "".join((*parts, text[done:]))


# The edge: every text that leaves for a person, a notification or a shared file passes one function here.
#
# Raw logs, journals and orders (mode 0600) keep what they hold. ``know`` adds values that are secret whatever their
# form: those of the environment's secret variables and the parts of notification URLs.

COMMAND_FIELDS = frozenset({"command", "argv", "cmd", "cmdline"})
"""Fields whose list of words is a command line."""


EDGE = Redaction()
"""Of this process."""
