"""Words that say what a trainer is doing when it is not stepping: one table for bars' labels and one for lines.

A row is a phase and patterns on the lower-cased text. Of lines' words the first row that matches wins, so narrow rows
stand above wide ones.
Sources are the messages of the named programs; words alone never move a step.
"""

from ...model.progress import Phase
from .patterns import LatePattern

BAR_LABELS: tuple[tuple[Phase, tuple[str, ...]], ...] = (
    (
        "train",
        (
            r"\btrain(?:ing)?\b(?!.*(?:data|set|split|loader|features|tokeniz))", r"\bsteps?\b",
            r"\biter(?:ation)?s?\b", r"\brunning step\b", r"\bfitting\b", r"\boptimi[sz]ing\b", r"\bepisode",
        ),
    ),
    (
        "eval",
        (
            r"\bsanity check", r"\bvalid", r"\bval\b", r"\bval[_ ]", r"\beval", r"\btest(?:ing)?\b", r"\bpredict",
            r"\bgenerat(?:e|ing)\b(?!.*(?:split|train))", r"\binference", r"\bmeasur", r"\bmap@?\.?5",
            r"\bclass\s+images\b", r"\bbenchmark", r"\bloglikelihood", r"\bcomputing (?:metric|fid|perplexity)",
        ),
    ),
    (
        "sample",
        (
            r"\bsampl", r"\bdenois", r"\brollout", r"\broll-out", r"\bprocessed prompts", r"\brendering",
            r"experiences?\b",
        ),
    ),
    (
        "save",
        (
            r"\bsav(?:e|ing)\b", r"\bwriting\b", r"\bupload", r"\bmerging\b", r"\bexport", r"\bpushing",
        ),
    ),
    (
        "compile",
        (
            r"\bcompil", r"\bcapturing", r"\bautotun", r"\bcuda graph", r"\bwarm-?up\b", r"\bbuilding extension",
        ),
    ),
    (
        "preprocess",
        (
            r"\bmap\b", r"\bmap \(", r"\bfilter", r"\btokeni[sz]", r"\bcach(?:e|ing)\b", r"\bpreprocess",
            r"\bprepar", r"\bprocess(?:ing)?\b", r"\bgrouping\b", r"\bpacking", r"\bgenerating .*split",
            r"\bscanning", r"\bflattening", r"\bextract", r"\bencod", r"\bconvert", r"\bpars(?:e|ing)\b",
            r"\bbucket", r"\bcollect", r"\bcomput", r"\bresiz", r"\bcasting", r"\bsort", r"\bindexing",
            r"\badding eos", r"\bapplying", r"\btruncating", r"\bformatting", r"\bdetokeniz", r"\bcaption",
            r"^\W*data(?:set|loader|s)?\b(?!.*\bepoch)",
            r"\bcreating (?:json|parquet|features|dataset)", r"\bplotting", r"\bwriting examples", r"\bsplit",
        ),
    ),
    (
        "load",
        (
            r"\bload", r"\bdownload", r"\bfetch", r"\bread(?:ing)?\b", r"\bresolving", r"\bshards?\b",
            r"\.(?:safetensors|bin|json|pt|pth|ckpt|gguf|parquet|zip|model|txt)\b", r"\bvocab", r"\binstall",
            r"\bpulling", r"\bmaterializ", r"\bimport", r"\bcopying", r"\bquantiz", r"\bopening",
        ),
    ),
)  # fmt: skip
"""What a bar's label says. "train" is here so that "training steps" is not taken for anything else."""

_UNITS: tuple[tuple[Phase, str], ...] = (
    ("load", "B iB kB KB MB GB MiB KiB GiB b bytes file files shard shards"),
    ("preprocess", "examples example ex ba tables docs doc lines rows split splits tokens records documents"),
    ("sample", "prompts toks"),
    ("eval", "task tasks"),
)
UNIT_PHASES: dict[str, Phase] = {unit: phase for phase, units in _UNITS for unit in units.split()}
"""What a bar's unit says: bytes are a download, examples are what ``datasets`` maps, tasks are mmcv's inference."""

_HEAD = r"^(?:.*[\]\-:|>] ?)?\W*"
"""The start of a message, behind whatever a logger puts before it."""

LINE_WORDS: tuple[tuple[Phase, tuple[str, ...]], ...] = (
    (
        "finish",
        (
            r"\b(?:training|(?:fine-?)?tuning|optimi[sz]ation) (?:is |has |was )?(?:completed?|finished|done)\b",
            r"\b(?:run|experiment) (?:is |has |was )?(?:completed?|finished|done)\b",
            r"\b(?:training|(?:fine-?)?tuning) (?:is |has |was )?(?:over|ended)\b",
            r"\b(?:finished|completed|done with|end of) training\b", r"'train_runtime'", r"\btrain_runtime\b",
            r"`trainer\.fit` stopped", r"\bepochs? completed in\b", r"\btotal training time\b",
            r"^\W*model saved\.?\s*$", r"\btraining succeeded\b", r"\bdone training\b", r"\btraining took\b",
            r"^\W*exits? successfully", r"process \d+ exits successfully", r"\ball done\b",
            r"\bwandb: (?:.{0,3} )?synced\b", r"\bview run .* at:",
        ),
    ),
    (
        "eval",
        (
            r"\*{3,} ?running (?:evaluation|prediction)", r"^\W*stage\.(?:eval|test)\b",
            r"^\W*(?:starting |start |running |begin )?(?:validat(?:ing|ion)|evaluat(?:ing|ion)|testing)\b",
            r"\brunning (?:validation|evaluation)", r"^\W*(?:inference|predicting)\b",
            r"\bsanity check", r"\bbegin validation", r"\bbegin on '?valid",
        ),
    ),
    (
        "train",
        (
            r"\*{3,} ?running training",
            r"\b(?:start(?:ing|ed)?|begin(?:ning)?|resum(?:e|ing)) (?:to )?(?:the )?(?:train(?:ing)?|finetun|fine-tun)",
            r"^\W*training(?:\.\.\.|…|$)", r"\brunning training\b", r"\btrain(?:ing)? start",
        ),
    ),
    (
        "sample",
        (
            r"\bgenerat(?:e|ing) (?:\d+ )?(?:validation |preview |sample )?(?:samples?|images?|videos?)\b",
            r"^\W*sampling\b", r"^\W*sample_steps: \d+\s*$", r"\bsampl(?:e|ing) (?:images?|at step)",
            r"\brunning inference",
        ),
    ),
    (
        "save",
        (
            rf"{_HEAD}(?:saving|writing)\b(?!.*\b(?:every|will|interval|directory is)\b)",
            rf"{_HEAD}(?:uploading|pushing|exporting)\b",
            r"\bsaving (?:model|checkpoint|state|current|optimizer|final|weights)",
            r"\b(?:model |checkpoint |weights )(?:is |was )?saved\b", r"\bsaved (?:model|checkpoint|state)",
            r"\bconfiguration saved in", r"\bweights saved in", r"\bsave checkpoint",
        ),
    ),
    (
        "compile",
        (
            r"\bautotune\b", r"\btorch\.compile\b(?!.*(?:disabled|not))", r"\bcompiling\b", r"\bjit[- ]?compil",
            r"\bbuilding extension module", r"\bninja: ", r"\bcapturing (?:the )?(?:cuda|model|graph)",
            r"\bxla .*compil", r"\btorch_compile", r"\binductor\b.*compil",
        ),
    ),
    (
        "preprocess",
        (
            r"\bcach(?:e|ing) (?:latents|text|the |dataset|features|images|embed)", r"\btokeni[sz]ing\b",
            rf"{_HEAD}(?:pre-?processing|preparing data|prepare dataset|make buckets|loading image sizes)\b",
            rf"{_HEAD}(?:packing|grouping texts|running tokenizer|extracting|computing|encoding|scanning)\b",
            rf"{_HEAD}building (?:the )?(?:vocab|dataset|index|indices)\b",
            r"\bbuilding (?:dataset|vocabulary|index)", r"\bgenerating .* split",
        ),
    ),
    (
        "load",
        (
            rf"{_HEAD}(?:loading|load|downloading|download|fetching|importing|instantiating|initiali[sz]ing)\b",
            rf"{_HEAD}prepar(?:e|ing) (?:tokenizers?|model|optimizer|accelerator)\b",
            rf"{_HEAD}(?:import network|using device|creating model|building model)\b",
            r"\bloading (?:model|checkpoint|weights|dataset|data|pretrained|state|vae|unet)",
            r"\bloading (?:text encoder|tokenizer|file|configuration)",
            r"\bload(?:ed|s)? (?:checkpoint|state_dict|pretrained)", r"\bresum(?:e|ing|ed) from\b",
        ),
    ),
)  # fmt: skip
"""What a whole line says."""

WORD_GATES = (
    *(
        "rain",
        "alid",
        "valuat",
        "Stage.",
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
    *("repar", "exits succ", "AUTOTUNE", "nference "),
)
"""Fixed strings of which every line with phase words has one (see ``lines_with``)."""

_BAR = tuple((phase, LatePattern("|".join(patterns))) for phase, patterns in BAR_LABELS)
_LINE = tuple((phase, LatePattern("|".join(patterns))) for phase, patterns in LINE_WORDS)


_TASK = LatePattern(r"^\W*(?:\w+: )?[a-z]{2,}ing\b(?! ?(?:epoch|step|iter|round|stage|cycle|\d))")
_LEARNING = LatePattern(
    r"\b(?:learning|pre-?training|fine-?tuning|tuning|progressing|running|working|stepping|string)\b"
)
"""Labels that begin with what is being done ("Analyzing graphs") are of another task unless that task is learning."""


def phase_of_label(label: str) -> Phase | None:
    """The phase that a bar's label names, None when it names none: the first word that says something decides.

    A label that begins with a doing ("Analyzing graphs") which is not training is preparation.
    """
    best: tuple[int, Phase] | None = None
    for phase, pattern in _BAR:
        found = pattern.search(label)
        if found is not None and (best is None or found.start() < best[0]):
            best = (found.start(), phase)
    if best is not None:
        return best[1]
    return "preprocess" if _TASK.search(label) and not _LEARNING.search(label) else None


def phase_of_line(line: str) -> Phase | None:
    """The phase that a line without step or loss announces, None when it announces none. ``line`` lower-cased."""
    for phase, pattern in _LINE:
        if pattern.search(line):
            return phase
    return None
