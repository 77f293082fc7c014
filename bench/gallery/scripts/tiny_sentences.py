"""Makes ``tiny/``: a random BERT of 32 dimensions with a pooling layer, for sentence-transformers."""

from sentence_transformers import SentenceTransformer, models
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = "[PAD] [UNK] [CLS] [SEP] red green blue warm cold soft hard fast slow old".split()
tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
).save_pretrained("bert")
config = BertConfig(
    vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
)
BertModel(config).save_pretrained("bert")
words = models.Transformer("bert", max_seq_length=16)
SentenceTransformer(modules=[words, models.Pooling(words.get_word_embedding_dimension())], device="cpu").save("tiny")
