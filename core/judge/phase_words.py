"""Words that say what a trainer is doing when it is not stepping: one table for bars' labels and one for lines.

A row is (phase, pattern on the lower-cased text). The first row that matches wins, so narrow rows stand above wide ones.
Sources are the messages of the named programs; words alone never move a step.
"""

import re

from ..model.progress import Phase

BAR_LABELS: tuple[tuple[Phase, str], ...] = (
    (
        "train",
        r"\btrain(?:ing)?\b(?!.*(?:data|set|split|loader|features|tokeniz))|\bsteps?\b|\biter(?:ation)?s?\b|\brunning step\b|\bfitting\b|\boptimi[sz]ing\b|\bepisode",
    ),
    (
        "eval",
        r"\bsanity check|\bvalid|\bval\b|\bval[_ ]|\beval|\btest(?:ing)?\b|\bpredict|\bgenerat(?:e|ing)\b(?!.*(?:split|train))|\binference|\bmeasur|\bmap@?\.?5|\bclass\s+images\b|\bbenchmark|\bcomputing (?:metric|fid|perplexity)",
    ),
    ("sample", r"\bsampl|\bdenois|\brollout|\broll-out|\bprocessed prompts|\brendering"),
    ("save", r"\bsav(?:e|ing)\b|\bwriting\b|\bupload|\bmerging\b|\bexport|\bpushing"),
    ("compile", r"\bcompil|\bcapturing|\bautotun|\bcuda graph|\bwarm-?up\b|\bbuilding extension"),
    (
        "preprocess",
        r"\bmap\b|\bmap \(|\bfilter|\btokeni[sz]|\bcach(?:e|ing)\b|\bpreprocess|\bprepar|\bprocess(?:ing)?\b|\bgrouping\b|\bpacking|\bgenerating .*split"
        r"|\bscanning|\bflattening|\bextract|\bencod|\bconvert|\bpars(?:e|ing)\b|\bbucket|\bcollect|\bcomput|\bresiz|\bcasting|\bsort|\bindexing"
        r"|\badding eos|\bapplying|\btruncating|\bformatting|\bdetokeniz|\bcaption|\bcreating (?:json|parquet|features|dataset)|\bplotting|\bwriting examples|\bsplit",
    ),
    (
        "load",
        r"\bload|\bdownload|\bfetch|\bread(?:ing)?\b|\bresolving|\bshards?\b|\.(?:safetensors|bin|json|pt|pth|ckpt|gguf|parquet|zip|model|txt)\b|\bvocab|\binstall|\bpulling|\bmaterializ|\bimport|\bcopying|\bquantiz|\bopening",
    ),
)
"""What a bar's label says. "train" is here so that "training steps" is not taken for anything else."""

UNIT_PHASES: dict[str, Phase] = {
    **dict.fromkeys(("B", "iB", "kB", "KB", "MB", "GB", "MiB", "KiB", "GiB", "b", "bytes", "file", "files", "shard", "shards"), "load"),
    **dict.fromkeys(("examples", "example", "ex", "ba", "tables", "docs", "doc", "lines", "rows", "split", "splits", "tokens", "records", "documents"), "preprocess"),
    **dict.fromkeys(("prompts", "toks"), "sample"),
    **dict.fromkeys(("task", "tasks"), "eval"),
}  # fmt: skip
"""What a bar's unit says: bytes are a download, examples are what ``datasets`` maps, tasks are mmcv's inference."""

LINE_WORDS: tuple[tuple[Phase, str], ...] = (
    (
        "finish",
        r"\b(?:training|finetuning|fine-tuning|optimi[sz]ation|run|experiment) (?:is |has |was )?(?:complete[d]?|finished|done|over|ended)\b"
        r"|\b(?:finished|completed|done with|end of) training\b|'train_runtime'|\btrain_runtime\b|`trainer\.fit` stopped"
        r"|\bepochs? completed in\b|\btotal training time\b|^\W*model saved\.?\s*$|\btraining succeeded\b|\bdone training\b|\btraining took\b"
        r"|^\W*exits? successfully|process \d+ exits successfully|\ball done\b|\bwandb: (?:.{0,3} )?synced\b|\bview run .* at:",
    ),
    ("eval", r"\*{3,} ?running (?:evaluation|prediction)|^\W*(?:starting |start |running |begin )?(?:validat(?:ing|ion)|evaluat(?:ing|ion)|testing)\b|\brunning (?:validation|evaluation)|\bsanity check|\bbegin validation|\bbegin on '?valid"),
    ("train", r"\*{3,} ?running training|\b(?:start(?:ing|ed)?|begin(?:ning)?|resum(?:e|ing)) (?:to )?(?:the )?(?:train(?:ing)?|finetun|fine-tun)|^\W*training(?:\.\.\.|…|$)|\brunning training\b|\btrain(?:ing)? start"),
    ("sample", r"\bgenerat(?:e|ing) (?:\d+ )?(?:validation |preview |sample )?(?:samples?|images?|videos?)\b|^\W*sampling\b|\bsampl(?:e|ing) (?:images?|at step)|\brunning inference"),
    ("save", r"^(?:.*[\]\-:|>] ?)?\W*(?:saving|writing|uploading|pushing|exporting)\b(?!.*\b(?:every|will|interval|directory is)\b)|\bsaving (?:model|checkpoint|state|current|optimizer|final|weights)|\b(?:model |checkpoint |weights )(?:is |was )?saved\b|\bsaved (?:model|checkpoint|state)|\bconfiguration saved in|\bweights saved in|\bsave checkpoint"),
    ("compile", r"\bautotune\b|\btorch\.compile\b(?!.*(?:disabled|not))|\bcompiling\b|\bjit[- ]?compil|\bbuilding extension module|\bninja: |\bcapturing (?:the )?(?:cuda|model|graph)|\bxla .*compil|\btorch_compile|\binductor\b.*compil"),
    ("preprocess", r"\bcach(?:e|ing) (?:latents|text|the |dataset|features|images|embed)|\btokeni[sz]ing\b|^(?:.*[\]\-:|>] ?)?\W*(?:preprocessing|pre-processing|preparing data|prepare dataset|make buckets|loading image sizes|packing|grouping texts|running tokenizer|extracting|building (?:the )?(?:vocab|dataset|index|indices)|computing|encoding|scanning)\b|\bbuilding (?:dataset|vocabulary|index)|\bgenerating .* split"),
    ("load", r"^(?:.*[\]\-:|>] ?)?\W*(?:loading|load|downloading|download|fetching|prepare tokenizers?|preparing (?:tokenizer|model|accelerator)|prepare (?:optimizer|accelerator)|importing|import network|instantiating|initiali[sz]ing|using device|creating model|building model)\b|\bloading (?:model|checkpoint|weights|dataset|data|pretrained|state|vae|unet|text encoder|tokenizer|file|configuration)|\bload(?:ed|s)? (?:checkpoint|state_dict|pretrained)|\bresum(?:e|ing|ed) from\b"),
)  # fmt: skip
"""What a whole line says."""

WORD_GATES = (
    *(
        "rain",
        "alid",
        "valuat",
        "ampling",
        "nerat",
        "aving",
        "aved",
        "ompil",
        "aching",
        "okeniz",
        "rocessing",
        "oading",
    ),
    *("repar", "exits succ"),
)
"""Fixed strings of which every line with phase words has one (see ``lines_with``)."""

_BAR = tuple((phase, re.compile(pattern)) for phase, pattern in BAR_LABELS)
_LINE = tuple((phase, re.compile(pattern)) for phase, pattern in LINE_WORDS)


def phase_of_label(label: str) -> Phase | None:
    """The phase that a bar's label names, None when it names none: the first word that says something decides."""
    best: tuple[int, Phase] | None = None
    for phase, pattern in _BAR:
        found = pattern.search(label)
        if found is not None and (best is None or found.start() < best[0]):
            best = (found.start(), phase)
    return None if best is None else best[1]


def phase_of_line(line: str) -> Phase | None:
    """The phase that a line without step or loss announces, None when it announces none. ``line`` lower-cased."""
    for phase, pattern in _LINE:
        if pattern.search(line):
            return phase
    return None
