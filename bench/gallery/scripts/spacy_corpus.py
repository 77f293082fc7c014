"""Registered functions for spaCy's train command (--code): a corpus that is made as it is read."""

import random
import time

import spacy
from spacy.training import Example

WORDS = {"GOOD": "fine lovely nice warm".split(), "BAD": "awful cold dreary broken".split()}


@spacy.registry.readers("made_corpus")
def made_corpus(size: int, wait_s: float):
    drawn = random.Random()

    def read(nlp):
        for _ in range(size):
            time.sleep(wait_s)
            label = drawn.choice(list(WORDS))
            doc = nlp.make_doc(" ".join(drawn.choices(WORDS[label], k=6)))
            yield Example.from_dict(doc, {"cats": {name: float(name == label) for name in WORDS}})

    return read
