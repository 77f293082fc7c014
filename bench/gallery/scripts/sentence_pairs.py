"""sentence-transformers: its Trainer with pairs and a ranking loss, and no option to resume."""

import sys
import time

from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss
from transformers import TrainerCallback


class Slow(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(0.2)


model = SentenceTransformer("tiny", device="cpu")
words = "red green blue warm cold soft hard fast slow old".split()
pairs = [(f"{a} {b}", f"{b} {a} {a}") for a in words for b in words] * 16
train_dataset = Dataset.from_dict({"anchor": [a for a, _ in pairs], "positive": [b for _, b in pairs]})
args = SentenceTransformerTrainingArguments(
    output_dir=sys.argv[1],
    num_train_epochs=2,
    per_device_train_batch_size=8,
    logging_steps=5,
    save_strategy="steps",
    save_steps=20,
    use_cpu=True,
    report_to="none",
    seed=sum(sys.argv[1].encode()),
)
trainer = SentenceTransformerTrainer(
    model=model, args=args, train_dataset=train_dataset, loss=MultipleNegativesRankingLoss(model), callbacks=[Slow()]
)
trainer.train()
model.save_pretrained(f"{sys.argv[1]}/final")
