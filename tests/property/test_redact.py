"""No secret leaves, wherever it stands in a text; nothing else is hidden."""

import json
import shlex
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trainwatch.core.model.fact import Note, RunCreated
from trainwatch.core.model.redact import HIDDEN, Redaction
from trainwatch.core.model.run import Evidence, Incident

ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
BODY = st.text(ALNUM, min_size=24, max_size=40)
BY_FORM = st.sampled_from(
    ["hf_{}", "sk-{}", "sk-proj-{}", "sk-ant-api03-{}", "ghp_{}", "github_pat_{}", "glpat-{}", "sk_live_{}",
     "xoxb-{}", "eyJ{}.{}.{}", "123456789:{}0123456789"]
)  # fmt: skip
BY_NAME = st.sampled_from(
    ["--api_key {}", "--api-key={}", "--token={}", "--hub_token {}", "WANDB_API_KEY={}", "export HF_TOKEN='{}'",
     "Authorization: Bearer {}", "authorization: Basic {}", '"password": "{}"', "aws_secret_access_key = {}",
     "https://ann:{}@host.example/repo", "postgres://u:{}@db/x", "https://{}@host.example/x.git", "wandb login {}",
     "https://blob.example/a?sv=1&sig={}&se=2", '--wandb_api_key "{}"', "AccountKey={}", "my_password: {}"]
)  # fmt: skip
AROUND = st.text(st.characters(codec="utf-8", exclude_characters="\\"), max_size=30).map(lambda text: f"{text} ")


@given(AROUND, st.one_of(BY_FORM, BY_NAME), BODY, AROUND)
def test_a_secret_never_leaves_wherever_it_stands(before: str, shape: str, body: str, after: str) -> None:
    assume(body not in before + after)
    shown = Redaction().text(f"{before}{shape.replace('{}', body)} {after}")
    assert body not in shown
    assert HIDDEN in shown


@given(st.one_of(BY_FORM, BY_NAME), BODY)
def test_a_secret_never_leaves_in_structures(shape: str, body: str) -> None:
    text = shape.replace("{}", body)
    words = ("python", "t.py", *(shlex.split(text) if text.startswith("--") else [text]))
    incident = Incident(
        id=1, t=0, wall=0, attempt=1, kind="crash", class_="unknown", reason=text, evidence=(Evidence(what=text),)
    )
    for value in (
        Note(text=text),
        RunCreated(run="r", name="r", command=words, cwd="/", preset="p"),
        incident,
        {"incidents": [msgspec.to_builtins(incident)], "argv": list(words), "deep": [{"token": body}]},
    ):
        shown: Any = msgspec.to_builtins(Redaction().value(value))
        assert body not in json.dumps(shown)


@given(st.text("0123456789abcdef", min_size=7, max_size=64), st.integers(1, 10**7))
def test_hashes_paths_and_numbers_are_no_secrets(digest: str, step: int) -> None:
    for text in (
        f"commit {digest}",
        f"sha256:{digest}  model.safetensors",
        f"/home/ann/.cache/huggingface/hub/models--a--b/snapshots/{digest}/model.safetensors",
        f"outputs/sk-learn-experiments-{step}/checkpoint-{step}",
        f"hf_datasets/hf_checkpoint{step}",
        f"step {step} loss=0.1 tokens: {step} pad_token: <pad> tokens_per_s: 12.5 --max_token_length {step}",
        f"git@github.com:ann/{digest}.git ssh://git@github.com/x",
    ):
        assert Redaction().text(text) == text


@pytest.mark.parametrize("value", ["correct-horse-7", "0123456789abcdef0123456789abcdef01234567"])
def test_the_value_of_a_secret_variable_is_hidden_in_any_text(value: str) -> None:
    edge = Redaction()
    assert edge.text(f"rejected: {value}") == f"rejected: {value}"
    edge.know({"MY_TOKEN": value, "HOME": "/home/ann"}, ["tgram-chat-77"])
    assert edge.text(f"rejected: {value} of /home/ann to tgram-chat-77") == (
        f"rejected: {HIDDEN} of /home/ann to {HIDDEN}"
    )
