"""Secrets stay at home: by name, by shape, by value; what explains a failure stays readable."""

import pytest

from trainwatch.core.model.redact import HIDDEN, Redaction, is_secret

PLAIN = Redaction()


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


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("logging in with hf_AbCdEfGhIjKlMnOpQrSt", "AbCdEfGh"),
        ("key sk-proj-abcdefghijklmnopqrst is bad", "abcdefghij"),
        ("https://user:pa55word@host/x failed", "pa55word"),
        ("GET https://host/x?api_key=0123abcdef&size=4", "0123abcdef"),
        ("https://discord.com/api/webhooks/123456/AbC-dEf_gh", "AbC-dEf_gh"),
        ("https://hooks.slack.com/services/T0/B0/XyZ", "XyZ"),
        ("bot 123456789:AAExampleExampleExampleExampleExample12", "AAExample"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ('{"password": "hunter22"}', "hunter22"),
        ("python t.py --api-key 12ab34cd --steps 4", "12ab34cd"),
        ("WANDB_API_KEY=0123456789abcdef python t.py", "0123456789abcdef"),
        ("AKIAABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOP"),
        ("url=https://host/x?a=b&access_token=q1w2e3r4", "q1w2e3r4"),
        ("note: my_password=abc123xyz", "abc123xyz"),
    ],
)
def test_secrets_in_a_text_are_hidden(text: str, secret: str) -> None:
    shown = PLAIN.text(text)
    assert secret not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA out of memory. Tried to allocate 1.96 GiB",
        "max_token_length = 225, keep_tokens: 1, pad_token: 0, token: null",
        "https://github.com/x/y/issues/3",
        "step 10:30 eta 2:00:00, lr: 1.00e-04",
        "--tokenizer bert --max_token_length 225",
    ],
)
def test_texts_without_secrets_are_unchanged(text: str) -> None:
    assert PLAIN.text(text) == text


def test_redaction_hides_only_secret_values_in_a_command_line() -> None:
    words = ("python", "t.py", "--api-key", "s3cr3t", "--hf_token=abc123", "-v", "--token", "--steps", "4")
    assert PLAIN.words(words) == (
        "python", "t.py", "--api-key", HIDDEN, f"--hf_token={HIDDEN}", "-v", "--token", "--steps", "4"
    )  # fmt: skip


def test_values_of_secret_variables_are_hidden_in_any_text() -> None:
    hide = Redaction({"MY_TOKEN": "correct-horse", "SHORT_TOKEN": "1", "HOME": "/home/luca"})
    assert (
        hide.text("failed for correct-horse in /home/luca at step 1") == f"failed for {HIDDEN} in /home/luca at step 1"
    )


def test_environment_shows_only_allowed_variables_and_counts_the_others() -> None:
    shown = PLAIN.environment({"CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": "hf_x", "HOME": "/home/luca"})
    assert shown == ("CUDA_VISIBLE_DEVICES=0", "2 more, values withheld")
