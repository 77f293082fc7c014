"""Makes ``model/`` (a random Llama of 64 dimensions with its tokenizer) and ``data/train.jsonl`` for fine-tuning."""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

WORDS = "the a cat dog bird fish sees likes eats finds red blue small big and or in on under".split()
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }} {{ message['content'] }} <eos> {% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)


def main(kind):
    special = ["<unk>", "<pad>", "<bos>", "<eos>", "user", "assistant", "system"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*special, *WORDS])}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", bos_token="<bos>", eos_token="<eos>"
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained("model")
    set_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=128, bos_token_id=2, eos_token_id=3, pad_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained("model")
    Path("data").mkdir(exist_ok=True)
    rows = [example(kind, number) for number in range(96)]
    if kind == "alpaca":
        Path("data/train.json").write_text(json.dumps(rows))
        Path("data/dataset_info.json").write_text(json.dumps({"tiny": {"file_name": "train.json"}}))
    else:
        Path("data/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def example(kind, number):
    text = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 9))
    if kind == "alpaca":
        return {"instruction": text, "input": "", "output": text}
    return {"text": text}


main(sys.argv[1])
