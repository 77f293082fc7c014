"""What secrets look like: prefixes of tokens, places in which one stands, names that have one as their value.

Sources: the rules of gitleaks 8 (by their identifiers) and the documentation of the services.
"""

from typing import NamedTuple

WORD = r"[A-Za-z0-9_-]"
ALNUM = r"[A-Za-z0-9]"


class Prefix(NamedTuple):
    """``least`` characters of ``rest`` behind ``text`` are a token, wherever they stand."""

    text: str
    least: int
    source: str
    rest: str = WORD


PREFIXES = (
    Prefix("hf_", 20, "gitleaks huggingface-access-token", ALNUM),
    Prefix("api_org_", 20, "gitleaks huggingface-organization-api-token", ALNUM),
    Prefix("wandb_v1_", 16, "Weights & Biases: keys from 2025 on"),
    Prefix("KGAT_", 16, "Kaggle: API tokens", ALNUM),
    Prefix("sk-proj-", 12, "gitleaks openai-api-key"),
    Prefix("sk-svcacct-", 12, "gitleaks openai-api-key"),
    Prefix("sk-admin-", 12, "gitleaks openai-api-key"),
    Prefix("sk-ant-", 12, "gitleaks anthropic-api-key"),
    Prefix("sk-or-", 12, "OpenRouter: API keys"),
    Prefix("sk-lf-", 12, "Langfuse: secret keys"),
    Prefix("sk-", 16, "OpenAI: legacy keys; DeepSeek, Stability", ALNUM),
    Prefix("gsk_", 20, "Groq: API keys", ALNUM),
    Prefix("nvapi-", 20, "NVIDIA NGC: API keys"),
    Prefix("xai-", 20, "xAI: API keys", ALNUM),
    Prefix("csk-", 20, "Cerebras: API keys", ALNUM),
    Prefix("pplx-", 20, "gitleaks perplexity-api-key", ALNUM),
    Prefix("lsv2_", 20, "LangSmith: API keys"),
    Prefix("pcsk_", 20, "Pinecone: API keys"),
    Prefix("tgp_v1_", 20, "Together AI: API keys"),
    Prefix("fw_", 20, "Fireworks AI: API keys", ALNUM),
    Prefix("jina_", 20, "Jina AI: API keys", ALNUM),
    Prefix("r8_", 20, "Replicate: API tokens", ALNUM),
    Prefix("rpa_", 20, "RunPod: API keys", ALNUM),
    Prefix("sk_live_", 10, "gitleaks stripe-access-token", ALNUM),
    Prefix("sk_test_", 10, "gitleaks stripe-access-token", ALNUM),
    Prefix("rk_live_", 10, "gitleaks stripe-access-token", ALNUM),
    Prefix("rk_test_", 10, "gitleaks stripe-access-token", ALNUM),
    Prefix("ghp_", 16, "gitleaks github-pat", ALNUM),
    Prefix("gho_", 16, "gitleaks github-oauth", ALNUM),
    Prefix("ghu_", 16, "gitleaks github-app-token", ALNUM),
    Prefix("ghs_", 16, "gitleaks github-app-token", ALNUM),
    Prefix("ghr_", 16, "gitleaks github-refresh-token", ALNUM),
    Prefix("github_pat_", 20, "gitleaks github-fine-grained-pat"),
    Prefix("glpat-", 16, "gitleaks gitlab-pat", r"[\w.-]"),
    Prefix("gldt-", 16, "gitleaks gitlab-deploy-token"),
    Prefix("glrt-", 16, "gitleaks gitlab-rrt"),
    Prefix("glptt-", 16, "gitleaks gitlab-ptt"),
    Prefix("ATATT3", 20, "gitleaks atlassian-api-token", r"[\w=-]"),
    Prefix("npm_", 30, "gitleaks npm-access-token", ALNUM),
    Prefix("pypi-", 32, "gitleaks pypi-upload-token"),
    Prefix("rubygems_", 32, "gitleaks rubygems-api-token", ALNUM),
    Prefix("dckr_pat_", 16, "Docker Hub: personal access tokens"),
    Prefix("dckr_oat_", 16, "Docker Hub: organization access tokens"),
    Prefix("xoxa-", 10, "gitleaks slack-legacy-workspace-token"),
    Prefix("xoxb-", 10, "gitleaks slack-bot-token"),
    Prefix("xoxe-", 10, "gitleaks slack-config-refresh-token"),
    Prefix("xoxe.", 10, "gitleaks slack-config-access-token"),
    Prefix("xoxp-", 10, "gitleaks slack-user-token"),
    Prefix("xoxr-", 10, "gitleaks slack-legacy-workspace-token"),
    Prefix("xoxs-", 10, "gitleaks slack-legacy-token"),
    Prefix("xapp-", 10, "gitleaks slack-app-token"),
    Prefix("AKIA", 12, "gitleaks aws-access-token", r"[0-9A-Z]"),
    Prefix("ASIA", 12, "gitleaks aws-access-token", r"[0-9A-Z]"),
    Prefix("LTAI", 16, "gitleaks alibaba-access-key-id", ALNUM),
    Prefix("AIza", 30, "gitleaks gcp-api-key"),
    Prefix("ya29.", 20, "Google: OAuth access tokens", r"[\w.-]"),
    Prefix("GOCSPX-", 20, "Google: OAuth client secrets"),
    Prefix("dop_v1_", 32, "gitleaks digitalocean-pat", ALNUM),
    Prefix("doo_v1_", 32, "gitleaks digitalocean-access-token", ALNUM),
    Prefix("dor_v1_", 32, "gitleaks digitalocean-refresh-token", ALNUM),
    Prefix("hvs.", 20, "gitleaks vault-service-token"),
    Prefix("hvb.", 20, "gitleaks vault-batch-token"),
    Prefix("SG.", 30, "gitleaks sendgrid-api-token", r"[\w.-]"),
    Prefix("tskey-", 12, "Tailscale: key prefixes"),
    Prefix("dapi", 32, "gitleaks databricks-api-token", r"[0-9a-f]"),
    Prefix("dp.pt.", 32, "gitleaks doppler-api-token", ALNUM),
    Prefix("glc_", 32, "gitleaks grafana-cloud-api-token", r"[A-Za-z0-9+/=]"),
    Prefix("glsa_", 32, "gitleaks grafana-service-account-token"),
    Prefix("lin_api_", 32, "gitleaks linear-api-key", ALNUM),
    Prefix("ntn_", 32, "gitleaks notion-api-token", ALNUM),
    Prefix("sntrys_", 32, "gitleaks sentry-org-token", r"[\w+/=-]"),
    Prefix("sbp_", 32, "Supabase: access tokens", ALNUM),
    Prefix("pul-", 32, "gitleaks pulumi-api-token", r"[0-9a-f]"),
    Prefix("AGE-SECRET-KEY-1", 32, "gitleaks age-secret-key", r"[0-9A-Z]"),
    Prefix("eyJhcGlf", 24, 'Neptune: API tokens (base64 of {"api_)', r"[\w+/=-]"),
    Prefix("ops_eyJ", 32, "gitleaks 1password-service-account-token", r"[\w+/=-]"),
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
