"""A usual script around transformers.Trainer: HfArgumentParser, flags or one YAML or JSON file."""

import sys
from dataclasses import dataclass, field

import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments, set_seed


@dataclass
class ModelArguments:
    n_embd: int = field(default=16)
    n_layer: int = field(default=1)


class Tokens(torch.utils.data.Dataset):
    def __init__(self, rows=96, length=16, vocabulary=64):
        generator = torch.Generator().manual_seed(0)
        self.rows = torch.randint(0, vocabulary, (rows, length), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main():
    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith((".yaml", ".yml")):
        model_args, args = parser.parse_yaml_file(sys.argv[1])
    elif len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        model_args, args = parser.parse_json_file(sys.argv[1])
    else:
        model_args, args = parser.parse_args_into_dataclasses()
    set_seed(args.seed)
    config = GPT2Config(vocab_size=64, n_positions=32, n_embd=model_args.n_embd, n_layer=model_args.n_layer, n_head=2)
    trainer = Trainer(model=GPT2LMHeadModel(config), args=args, train_dataset=Tokens(), eval_dataset=Tokens(rows=16))
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()
