"""Secrets stay at home: by name, by shape, by value; the ordinary text of trainings that looks like them stays."""

import json
import random
import shlex
import string
import time

import pytest

from tests.tiers import SECOND_TIER
from trainwatch.core.model.redact import HIDDEN, PREFIXES, Redaction, is_secret


def made(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """A value as of a generator of keys, always the same. It has all kinds of characters at its beginning."""
    chosen = random.Random(f"{length}{alphabet}")
    start = "7aB" if alphabet.startswith("a") and "B" in alphabet else "7a" if "a" in alphabet else "7B"
    return start + "".join(chosen.choice(alphabet) for _ in range(length - len(start)))


ANY, HEX, UPPER = made(40), made(40, "0123456789abcdef"), made(32, string.digits + string.ascii_uppercase)
BODY_OF = {r"[0-9A-Z]": UPPER, r"[0-9a-f]": HEX}
PEM = "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQ{}==\\n-----END RSA PRIVATE KEY-----"

SECRETS = [
    # (text with {} where the secret stands, the secret)
    *((f"{prefix.text}{{}}", BODY_OF.get(prefix.rest, ANY)) for prefix in PREFIXES),
    *((f"got {quote}{prefix.text}{{}}{quote}, rejected", BODY_OF.get(prefix.rest, ANY))
      for prefix in PREFIXES[::6] for quote in ("'", "(", "=")),
    # Telegram, Slack, Teams, Discord
    ("https://api.telegram.org/bot123456789:{}/sendMessage", f"AA{made(33)}"),
    ("POST /bot987654321:{}/getMe HTTP/1.1", f"AA{made(33)}"),
    ("tgram://123456789:{}/-100200300", f"AA{made(33)}"),
    ("chat_bot123456789:{}", f"AA{made(33)}"),
    ("https://hooks.slack.com/services/T0AAAA/B0AAAA/{}", made(24)),
    ("https://hooks.slack.com/workflows/T0AAAA/A0AAAA/12345/{}", made(24)),
    ("https://hooks.slack.com/triggers/T0AAAA/12345/{}", made(32)),
    ("https://acme.webhook.office.com/webhookb2/8d2f-11@9c3e-22/IncomingWebhook/{}/77aa", made(32)),
    ("https://discord.com/api/webhooks/123456789/{}", made(68)),
    ("SLACK_WEBHOOK_URL={}", "https://intern.example/x7y8z9"),
    # schemes, in any case
    ("Authorization: Bearer {}", ANY),
    ("Authorization: token {}", "0a1b2c3d"),
    ("authorization: TOKEN {}", "0a1b2c3d"),
    ("-H 'Authorization: token {}'", HEX),
    ('curl -H "authorization: bearer {}" https://h.example', ANY),
    ("Authorization: BASIC {}", "dXNlcjpodW50ZXIy"),
    ("Proxy-Authorization: Basic {}", "dXNlcjpodW50ZXIy"),
    ("AUTHORIZATION=Bearer {}", ANY),
    ("headers={{'Authorization': 'Bearer {}'}}", ANY),
    ("headers={{'Authorization': 'bearer {}', 'Accept': '*/*'}}", ANY),
    ("Authorization: Api-Key {}", "9f8e7d6c5b4a"),
    ("Authorization: {}", "9f8e7d6c5b4a"),
    ("BEARER {} was rejected", ANY),
    ("bearer {}", ANY),
    ("X-API-Key: {}", "9f8e7d6c5b4a"),
    ("x-auth-token: {}", "9f8e7d6c5b4a"),
    ("Ocp-Apim-Subscription-Key: {}", HEX),
    ("Cookie: {}", "session=9f8e7d6c"),
    # names in any spelling
    ("PGPASSWORD={}", "Hunter2secret"),
    ("PGPASSWORD={} psql -h db", "hunter"),
    ("MYSQL_PWD={}", "hunter2"),
    ("DB_PASS={}", "hunter2"),
    ("SMTP_PASS={}", "correct-horse"),
    ("db_pass: {}", "hunter22"),
    ("MY_SERVICE_PASS={}", "opensesame"),
    ("DB_PASSWORD={}", "hunter2"),
    ("RABBITMQ_DEFAULT_PASS={}", "guest-of-honour"),
    ("SSHPASSWORD={}", "hunter2"),
    ("KAGGLE_KEY={}", made(32, "0123456789abcdef")),
    ("REPLICATE_KEY={}", ANY),
    ("MY_SERVICE_KEY={}", ANY),
    ("ENCRYPTION_KEY={}", "short1"),
    ("export COMET_API_KEY={}", ANY),
    ("export RUNPOD_API_KEY='{}'", ANY),
    ("SUPABASE_SERVICE_ROLE_KEY={}", ANY),
    ("AccountKey={}", f"{made(40)}=="),
    ("aws_secret_access_key = {}", ANY),
    ("AWS_SESSION_TOKEN={}", ANY),
    ("client_secret: {}", "hunter2"),
    ("CLIENTSECRET={}", "hunter2"),
    ("refresh_token={}", ANY),
    ("HUGGINGFACE_TOKEN={}", "abcdef"),
    ("hub_token: {}", "abcdef"),
    ("passphrase: {}", "correct horse battery staple"),
    ("password: {}", "several words in it"),
    ("Password = {}", "hunter2"),
    ("wandb.login(key='{}')", HEX),
    ("wandb.login(key={})", HEX),
    ("api_key={}", "abc"),
    ("APIKEY={}", "abc123"),
    ("--api-key {} --steps 4", "12ab34cd"),
    ("--wandb_api_key={}", HEX),
    ("--db-password {}", "hunter2"),
    ("--hf-token '{}'", "abc def"),
    # JSON, and JSON within JSON
    ('{{"password": "{}"}}', "hunter2"),
    ('{{"api_key":"{}"}}', "abc"),
    ('{{\\"api_key\\": \\"{}\\"}}', "abc12"),
    ('"{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}"', "hunter2"),
    ('{{"env": "{{\\"HF_TOKEN\\":\\"{}\\"}}"}}', "abcdefgh"),
    ("{{'secret': '{}'}}", "abc"),
    # commands
    ("wandb login {}", HEX),
    ("wandb login --relogin {}", HEX),
    ("$ wandb login --relogin --cloud {}", HEX),
    ("sshpass -p {} ssh box", "hunter2"),
    ("curl -u ann:{} https://h.example", "hunter2"),
    ("curl --user 'ann:{}' https://h.example", "hunter2"),
    ("machine api.wandb.ai login user password {}", HEX),
    # addresses
    ("https://ann:{}@h.example/x", "hunter2"),
    ("https://{}@h.example/x.git", ANY),
    ("postgres://u:{}@db:5432/x", "hunter/2"),
    ("redis://:{}@cache:6379/0", "hun/ter2"),
    ("mongodb+srv://u:{}@c.example/db", "p/w/d"),
    ("https://h.example/x?api_key={}&size=4", "0123abcdef"),
    ("https://h.example/x?a=b&access_token={}", "q1w2e3r4"),
    ("https://blob.example/a?sv=1&sig={}&se=2", "ab%2Bcd"),
    ("s3://b/x?X-Amz-Signature={}", HEX),
    # private keys
    (f"python t.py --key '{PEM}'", made(40)),
    (f'{{{{"private_key": "{PEM}"}}}}', made(40)),
    ("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", made(64)),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\n{}", made(64)),
    ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{}", made(43)),
]  # fmt: skip

HARMLESS = [
    "tokens=4096", "max_token: 512", "max_tokens = 4096, num_tokens: 12345", "key=value", 'pad_token="<pad>"',
    "monkey_pass=1", "pad_token: 0, eos_token: </s>, bos_token: <s>", "eos_token='<|endoftext|>'",
    "tokens_per_second: 12034.5", "train/tokens_per_sec 1.2e5", "tokenizer: meta-llama/Llama-3-8B", "token_type_ids",
    "--tokenizer bert-base-uncased --max_token_length 225", "keep_tokens: 1", "next_token: the", "unk_token=[UNK]",
    "trigger_token=sks", "placeholder_token: <cat-toy>", "forward_pass=12.5ms", "backward_pass: 30.1ms", "num_passes=2",
    "pass=3 fail=0", "PASS: test_resume_from_checkpoint", "PASSED tests/test_x.py::test_y", "pass 2 of 3",
    "multi_pass: true", "second_pass=val_epoch2", "sort_key=val_loss", "primary_key: user_id", "monitor_key=metrics/mAP50-95",
    "key=layer12.attn.to_q.weight", "key: layers.0.self_attn.q_proj", 'Missing key(s) in state_dict: "fc.weight"',
    "KeyError: 'model.embed_tokens.weight'", "unexpected_keys=[]", "rng_key=[0 42]", "partition_key=2024-06-01",
    "image_key=jpg;png, caption_key=txt", "key_padding_mask=None", "num_key_value_heads: 8", "keyboard interrupt",
    "optimizer=AdamW8bit lr=1e-4 weight_decay=0.01", "lr: 1.00e-04, beta2=0.999, eps=1e-08", "dtype=bfloat16 fp8_e4m3fn=1",
    "steps:   1%|   | 44/10260 [01:00<1:00:00, 2.50s/it, avr_loss=0.1026]",
    "{'loss': 0.1234, 'learning_rate': 1e-05, 'epoch': 0.12, 'num_input_tokens_seen': 12345}",
    "step 10:30 eta 2:00:00, lr: 1.00e-04", "commit 3f2a9c1d4e5b60718293a4b5c6d7e8f901234567",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  model.safetensors",
    "/home/ann/.cache/huggingface/hub/models--a--b/snapshots/3f2a9c1d4e5b6071/model.safetensors",
    "saving outputs/sk-learn-experiments-12/checkpoint-500", "hf_datasets/hf_checkpoint12", "hf_transfer is enabled",
    "https://github.com/x/y/issues/3", "git@github.com:ann/repo.git", "ssh://git@github.com/x", "http://localhost:6006/@x",
    "https://registry.example:443/@scope/pkg@1.0", "tcp://10.0.0.1:29500", "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500",
    "CUDA_VISIBLE_DEVICES=0,1 python train.py --config configs/a.yaml", "RuntimeError: CUDA out of memory. Tried to allocate 1.96 GiB",
    "bearer of bad news", "the bearer was rejected", "basic_auth: false", "author: ann", "authors=3", "password: null", "token: null", "secret: ''",
    "use_auth_token=False", "hub_token: <hub_token>", "HF_TOKEN=$HF_TOKEN", "path_to_keys=/data/keys/a1b2c3d4e5", "credentials: ~/.aws/credentials",
    "docker run -u 1000:1000 image", "hooks: [<CheckpointHook>]", "pattern=*.pt file_pat: step_*.pt", "wandb login", "wandb: Run data is saved locally",
    "curl https://h.example/data.zip -o data.zip", "SG.step", "as rpa_x gsk_y r8_z", "xai-explain dapi dp.pt", "MoE top-k=2 n_routed=64 glc_x",
    "compile_pass=inductor", "epoch=3-step=1200.ckpt", "version_12/checkpoints/last.ckpt", "2026-11-28 15:29:45 INFO step 31 of 60",
]  # fmt: skip


def test_the_table_is_as_large_as_it_claims() -> None:
    assert len({text for text, _ in SECRETS}) >= 100
    assert len(set(HARMLESS)) >= 60
    assert all(prefix.source for prefix in PREFIXES)


@pytest.mark.parametrize(("shape", "secret"), SECRETS, ids=[text[:40] for text, _ in SECRETS])
def test_a_secret_of_the_table_never_leaves(shape: str, secret: str) -> None:
    text = shape.format(secret)
    for written in (text, f"  {text}", f"E: {text}", json.dumps({"line": text}), shlex.join(["python", "t.py", text])):
        shown = Redaction().text(written)
        assert secret not in shown, shown
        assert HIDDEN in shown
        assert Redaction().text(shown) == shown
    value = Redaction().value({"incidents": [{"reason": text}], "argv": ["python", "t.py", text]})
    assert secret not in json.dumps(value)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_of_a_training_stays(text: str) -> None:
    assert Redaction().text(text) == text
    assert Redaction().words(["python", "t.py", text])[2] == text


@pytest.mark.parametrize(
    "argv",
    [
        ["wandb", "login", "--relogin", HEX], ["wandb", "login", HEX], ["t.py", "--db-pass", "hunter22x"],
        ["curl", "-H", f"Authorization: token {HEX}"], ["env", "PGPASSWORD=hunter2", "psql"],
        ["t.py", "--header", "Authorization:", "token", HEX], ["t.py", "--key", PEM.format(HEX)], ["t.py", PEM.format(HEX)],
    ],
    ids=lambda argv: " ".join(argv)[:40],
)  # fmt: skip
def test_a_secret_of_a_command_line_never_leaves(argv: list[str]) -> None:
    shown = Redaction().words(argv)
    assert HIDDEN in " ".join(shown)
    assert not any(secret in " ".join(shown) for secret in (HEX, "hunter2"))


@pytest.mark.parametrize(
    "name",
    ["WANDB_API_KEY", "HF_TOKEN", "--api-key", "--api_key", "apiKey", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "--token",
     "hub_token", "SLACK_WEBHOOK_URL", "PRIVATE_KEY", "Authorization"],
)  # fmt: skip
def test_secret_names_are_recognised(name: str) -> None:
    assert is_secret(name, "hunter2")


@pytest.mark.parametrize(
    "name",
    ["max_token_length", "--tokenizer", "num_tokens", "key", "--keep_tokens", "learning_rate", "CUDA_VISIBLE_DEVICES",
     "DATASET_URL", "url", "", "---", "author", "keyboard"],
)  # fmt: skip
def test_names_that_are_not_secret_are_not_redacted(name: str) -> None:
    assert not is_secret(name, "hunter2")


def test_redaction_hides_only_secret_values_in_a_command_line() -> None:
    words = ("python", "t.py", "--api-key", "s3cr3t", "--hf_token=abc123", "-v", "--token", "--steps", "4")
    assert Redaction().words(words) == (
        "python", "t.py", "--api-key", HIDDEN, f"--hf_token={HIDDEN}", "-v", "--token", "--steps", "4"
    )  # fmt: skip


def test_values_of_secret_variables_are_hidden_in_any_text() -> None:
    hide = Redaction({"MY_TOKEN": "correct-horse", "SHORT_TOKEN": "1", "HOME": "/home/luca"})
    assert (
        hide.text("failed for correct-horse in /home/luca at step 1") == f"failed for {HIDDEN} in /home/luca at step 1"
    )


def test_environment_shows_only_allowed_variables_and_counts_the_others() -> None:
    shown = Redaction().environment({"CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": "hf_x", "HOME": "/home/luca"})
    assert shown == ("CUDA_VISIBLE_DEVICES=0", "2 more, values withheld")


HOSTILE = [
    "a" * 1000, "Aa1" * 400, "key=" * 300, "token:" * 200, "password: " * 120, "://" * 400, "https://a:" * 120,
    "\\" * 1000, '\\"' * 500, "-----BEGIN PRIVATE KEY-----" * 40, "bearer " * 150, "curl -u " * 130, "wandb login -a " * 70,
    "eyJ" + "a" * 1000, "eyJ" * 350, "machine x login " * 70, "1234567:" * 130, "_key=" * 220, "--token " * 130, "hf_a" * 260,
    "api_key'" * 130, "xoxb-" * 220, " " * 1000, "=" * 1000, "'" * 1000, "a-" * 500, "a_" * 500, "SG." * 350, "curl " * 220,
]  # fmt: skip


@SECOND_TIER
@pytest.mark.parametrize("text", HOSTILE, ids=[text[:16] for text in HOSTILE])
def test_the_time_grows_with_the_length_of_a_line(text: str) -> None:
    edge = Redaction()
    edge.text("warm-up of the patterns token=x")

    def seconds(times: int) -> float:
        long = text * times + "!"
        best = 1e9
        for _ in range(3):
            begin = time.process_time()
            edge.text(long)
            best = min(best, time.process_time() - begin)
        return best

    short, long = seconds(8), seconds(32)
    assert long < 0.02 + 8 * short, f"{short:.4f} s, four times as long: {long:.4f} s"
