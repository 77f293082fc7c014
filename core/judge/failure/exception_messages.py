"""What the words of a generic exception say: ``ValueError``, ``RuntimeError``, ``OSError`` and others tell nothing.

A message that a signature of the catalogue knows counts for more; these rows name kinds of words, so that a library
never met before is still understood. Their weights stay below what counts as sure.
"""

from functools import lru_cache

from ...model.failure import FailureClass
from ..text.patterns import LazyPattern

GENERIC_TYPES = frozenset(
    {
        "Exception",
        "RuntimeError",
        "ValueError",
        "OSError",
        "IOError",
        "EnvironmentError",
        "AssertionError",
        "NotImplementedError",
        "SystemError",
        "TimeoutError",
        "InternalError",
        "UnknownError",
        "XlaRuntimeError",
        "InvalidArgumentError",
        "UnimplementedError",
        "FailedPreconditionError",
        "NotFoundError",
        "EnforceNotMet",
    }
)
"""Types whose name says nothing; their message decides."""

_FILES = (
    r"(?:checkpoint|ckpt|state[_ ]?dict|safetensors|pretrained (?:model|weights)|model weights|weights? file"
    r"|optimizer state)"
)
_MEDIA = (
    r"(?:image|audio|video|frame|clip|wav|jpe?g|png|mp4|flac|media|sample|record|shard|tar(?: file)?|parquet|arrow"
    r"|h5|hdf5|npy|npz|csv)"
)
_ONE = (
    r"(?:float(?:16|32|64)|bfloat16|fp(?:8|16|32)|bf16|half|bfloat|int(?:8|16|32|64)|uint8|long|double|float|bool"
    r"|byte|int|complex)"
)
_SIZES = (
    r"(?:shapes?|dim(?:ension)?s?|sizes?|tensors?|lengths?|ind(?:ex|ices)|channels?|matri(?:x|ces)|strides?"
    r"|batch(?:es)?|axis|operands?|logits|labels?|targets?|embeddings?|heads?)"
)

_ROWS: tuple[tuple[FailureClass, float, tuple[str, ...]], ...] = (
    (
        "config_error",
        0.72,
        (
            r"environment variable", r"\benv(?:ironment)? vars?\b", r"(?:can't|cannot|can not) (?:train|combine|mix)\b",
        ),
    ),
    (
        "network_error",
        0.75,
        (
            r"internet connection", r"^connection error\b",
        ),
    ),
    (
        "cuda_oom",
        0.75,
        (
            (r"(?:not enough|insufficient|out of|exhausted|ran out of) (?:free )?(?:gpu|cuda|device|vram"
            r"|video|hbm)\b.*memory"),
            r"\b(?:gpu|cuda|vram|hbm|device)\b.*(?:not enough|insufficient|out of|exhausted) .*memory",
            r"free memory on device",
        ),
    ),
    (
        "host_oom",
        0.72,
        (
            r"\b(?:not enough|insufficient|out of|ran out of|low on) (?:system |host |cpu |free )?(?:memory|ram)\b",
            r"memory (?:allocation|limit).*(?:fail|exceed)",
            r"(?:cannot|can't|could not|failed to|unable to) (?:allocate|map) .*(?:memory|bytes)",
        ),
    ),
    (
        "gpu_lost",
        0.7,
        (
            r"\bgpu\b.*\b(?:is lost|lost|fell off|unreachable|hung|reset)\b", r"device (?:lost|removed)",
        ),
    ),
    (
        "driver_mismatch",
        0.68,
        (
            (r"\b(?:no|without (?:a )?|any) (?:nvidia |cuda |usable |available )?(?:gpus?|cuda|accelerators?"
            r"|cuda devices?)\b(?:.*(?:found|available|detected|visible))?"),
            (r"(?:cuda|gpu|driver|nvidia)\b.*(?:not (?:available|found|detected)|too old|unavailable|version"
            r" (?:mismatch|is too))"),
            r"needs? a gpu", r"requires? (?:a )?(?:cuda|gpu)", r"(?:not|n't) (?:been )?compiled with (?:cuda|gpu)",
            r"compute capability", r"cannot load \w+ (?:shared )?librar(?:y|ies)",
        ),
    ),
    (
        "nccl_timeout",
        0.7,
        (
            r"\b(?:gloo|nccl|ucx|mpi|rccl|hccl)\b(?!.*(?:built|support|available|install))",
            r"all_?(?:reduce|gather)",
            r"^connection (?:reset|closed) by peer", r"^broken pipe\W*$", r"^(?:socket|wait) time-?out",
            r"\bcollective\b", r"\brendezvous\b",
            r"\bbarrier\b",
            r"(?:other|remote) (?:rank|process|peer|worker)s?\b.*(?:fail|exit|lost|timed|respond|dead)",
            r"\branks? \d+.*(?:timed? ?out|not respond|unreachable|disconnect|failed to (?:join|connect))",
            r"waiting for .*(?:ranks?|workers?|peers?|nodes?)", r"tcpstore", r"\bpeer\b.*(?:reset|closed)",
        ),
    ),
    (
        "nan_loss",
        0.72,
        (
            (r"(?<![\w-])(?:nans?|inf|infs|infinity|infinite|non-?finite|not finite)(?![\w-])(?!.*(?:loop"
            r"|recursion|dataset|iter))"),
            r"gradient (?:explo|overflow)", r"loss (?:explo|diverg)",
        ),
    ),
    (
        "import_error",
        0.74,
        (
            r"\bpip3? install", r"\bconda install", r"(?:please|need to|must) (?:re)?-?install",
            r"(?:is|are|was|be|been) (?:not |n't )?(?:properly |correctly )?installed\b", r"not installed",
            r"""requires? (?:the )?[`'"]?[\w.-]+[`'"]? ?(?:library|package|module|>=|==|version|to be installed)""",
            r"\boperator \S+ does not exist", r"fail(?:ed|ure)? (?:to|in) import", r"undefined symbol",
            r"\bupgrade\b.*(?:version|package|transformers|torch|library)",
            r"(?:newer|older|different|incompatible|minimum|required) version of",
            r"version .*(?:is required|is too old|or (?:newer|higher|later|above))", r"found .*version",
            r"numpy\.\w+ size changed", r"\bversions? (?:are|is) (?:incompatible|not compatible|mismatched)",
        ),
    ),
    (
        "dtype_error",
        0.7,
        (
            r"\bd-?types?\b", r"scalar type",
            (rf"\b{_ONE}\b.*\b(?:but (?:got|found|expected)|instead of|mismatch|different|same (?:type|dtype)"
            rf"|not implemented for|does not match|vs\.?)\b.*(?:\b{_ONE}\b|$)"),
            rf"(?:expected|mismatch|cast|convert).*\b{_ONE}\b.*\b(?:got|found|but|to|and)\b.*\b{_ONE}\b",
            r"autocast", r"precision mismatch", r"\bsame (?:scalar |data )?types?\b", r"types? (?:do|does) not match",
        ),
    ),
    (
        "checkpoint_corrupt",
        0.72,
        (
            (rf"{_FILES}.*\b(?:corrupt|truncat|damag|incomplete|unreadable|malformed|broken|empty file"
            r"|unexpected eof|invalid (?:header|magic|data|format))"),
            rf"(?:corrupt|truncat|damag|incomplete|malformed|broken)\w* .*{_FILES}",
            r"\b(?:magic number|central directory|bad magic|invalid header|zip archive)\b",
            r"(?:deserializ|unpickl)\w*",
        ),
    ),
    (
        "checkpoint_mismatch",
        0.7,
        (
            (rf"{_FILES}.*(?:mismatch|match|incompatib|not compatible|different|unexpected|missing key"
            r"|shapes?\b|sizes?\b|was (?:trained|saved|created)|does not contain|has no|expects?"
            r"|architecture)"),
            rf"(?:mismatch|incompatib|missing keys?|unexpected keys?)\w*.*{_FILES}",
            rf"(?:does ?n[o']t|not) match\b.*{_FILES}",
            r"(?:resum|restor|load)\w*.*(?:mismatch|different (?:number|world|config))",
        ),
    ),
    (
        "config_error",
        0.68,
        (
            (rf"{_FILES}.*(?:not found|not exist|no such|cannot find|could not find|missing|empty|not a"
            r" (?:file|directory))"),
            rf"\bno {_FILES}s? (?:was |were )?(?:found|in|at)",
            r"(?:cannot|could not|couldn't|unable to|failed to) find\b", r"not found in", r"(?:does|do) not exist",
            r"no such (?:file|directory|key|option)",
            r"(?:path|folder|directory|file|dataset)\b.*(?:not found|is empty|missing|invalid)",
            r"\bempty (?:dataset|data ?set|folder|directory|train)", r"dataset is empty",
            (r"no (?:training )?(?:data|images?|files?|samples?|examples?|videos?|annotations?"
            r"|labels?)\b.*(?:found|in|left|available|provided)"),
        ),
    ),
    (
        "io_error",
        0.66,
        (
            (r"(?:fail\w* to|error(?: while| when| during| in)?|unable to|could ?n[o']t|cannot|can't) (?:\w+ ){0,2}"
            r"(?:read|open|load|decod|writ|sav|pars|stat|seek|sync|flush)(?:e|ing)?\b.*"
            rf"(?:{_MEDIA}|file|stream|disk|device|mount)"),
            rf"{_MEDIA}s?\b.*(?:truncat|corrupt|damag|broken|unreadable|cannot be (?:read|opened|decoded))",
            rf"\b(?:corrupt|truncat|broken)\w* {_MEDIA}", r"errno \d+", r"i/o", r"\bnfs\b", r"error opening",
            r"error reading", r"while decompressing", r"header check", r"short read", r"unexpected end of",
        ),
    ),
    (
        "network_error",
        0.7,
        (
            (r"\bconnect(?:ion|ing|ed)?\b.*(?:refused|reset|aborted|closed|error|fail|lost|timed? ?out|broken"
            r"|dropped|interrupt)"),
            (r"(?:fail\w*|unable|could ?n[o']t|cannot|error) .{0,20}\b(?:download|fetch|reach|connect|upload"
            r"|resolve|push)"),
            r"server (?:disconnected|error|closed)", r"\bdownload\w*\b.*(?:fail|error|timed|interrupt|incomplete)",
            r"\b(?:proxy|dns|gateway|socket|ssl|tls|hostname)\b",
            r"\bhttp(?:s|x)? ?(?:error|status|code)?:? ?(?:[45]\d\d)", r"status code:? (?:[45]\d\d)", r"rate limit",
            r"too many requests", r"\bhttps?://\S+.*(?:fail|error|timed|unreach)",
            r"\btimed? ?out\b.*(?:http|server|api|request|download|respon)",
            r"(?:request|api|server|respon\w+).*timed? ?out", r"\btransient error\b",
        ),
    ),
    (
        "code_bug",
        0.62,
        (
            (rf"\b{_SIZES}\b.*(?:mismatch|match|must|expect|\bgot\b|incompatib|invalid|out of (?:range|bounds)"
            r"|should|differ|cannot|unequal|inconsistent|not equal|not align|broadcast|same|exceed|negative"
            r"|too (?:large|small|many|long))"),
            rf"(?:mismatch|expect|inconsistent|incompatible|unequal|invalid|wrong)\w* .*\b{_SIZES}\b",
            r"not enough values to unpack", r"too many values", r"could not convert string", r"invalid literal",
            r"unpack", r"truth value", r"ambiguous", r"\bscalar\b", r"\bempty sequence\b", r"requires?_?grad",
            r"\bgrad(?:ient)?s?\b",
            r"autograd", r"backward", r"in-?place", r"already (?:exists|initialized|been)",
            r"not (?:been )?initialized", r"not callable", r"unhashable", r"iterat", r"recursion", r"index \d+",
            r"forked", r"deadlock", r"leaf", r"graph",
        ),
    ),
    (
        "config_error",
        0.62,
        (
            r"(?<![\w-])--?[a-z][\w-]{2,}",
            (r"\b(?:arg(?:ument)?s?|options?|settings?|param(?:eter)?s?|flags?|config\w*|yaml|toml|json|yml"
            r"|hyper-?parameters?|keyword|field|strategy|scheduler|optimizer|backend|precision|mode|model[_"
            r" ](?:type|name)|device_map|env(?:ironment)? var\w*|batch_size|learning[_ ]rate|num_\w+|max_\w+"
            r"|\w+_(?:path|dir|steps|epochs|size|type|name|strategy))\b.*(?:must|should|invalid|not|n't"
            r"|missing|requir|unknown|unsupport|unrecogn|expected|only|need|got|cannot|set to|positive|empty"
            r"|incompatib|either|both)"),
            (r"""(?:invalid|unknown|unsupported|unrecogni[sz]ed|missing|unexpected|illegal|bad|undefined)"""
            r""" (?:[\w`'"-]+ ){0,3}(?:arg|option|setting|param|flag|config|value|key|choice|name|type|mode"""
            r"""|field|device|task|model|optimizer|scheduler|loss|dataset|metric)"""),
            (r"must (?:be (?:specified|set|provided|given|one of|either|in |a |an |>|greater|less|positive"
            r"|between)|specify|provide|set)"),
            (r"(?:please|you (?:must|need to|should|have to|can(?:not|'t)?)) (?:only )?(?:specify|set|provide"
            r"|pass|use|check|enable|disable|select|choose|verify|make sure|define|add|accept|log ?in)"),
            (r"not (?:supported|allowed|recogni[sz]ed|a valid|permitted|implemented|available|defined"
            r"|specified|provided|set|enabled)"),
            r"unsupported", r"unrecogni[sz]ed", r"can only be used", r"\bnot used by\b",
            r"\b(?:not|already) registered\b", r"\bregistry\b",
            r"only (?:supported|supports|available|works|possible)", r"(?:expected|should be|must be) one of",
            r"choose (?:from|one|between)", r"api[_ ]?key",
            r"\btoken\b.*(?:requir|invalid|missing|expired)", r"credential", r"log ?in", r"unauthori[sz]ed",
            r"forbidden", r"(?:is|are) required", r"mutually exclusive", r"at least one",
            r"cannot be (?:used|combined|set|none|empty|both)", r"not divisible", r"divisible by",
            r"\btrust_remote_code\b", r"chat template", r"pad(?:ding)? token",
            r"\brequires? (?:an?|the|that|at least|either|both|you|to)\b",
            r"could ?n[o']t (?:infer|determine|identify)",
        ),
    ),
)  # fmt: skip
"""Class, weight, and patterns on the lower-cased words; the first row that matches wins, so narrow rows stand above."""
MESSAGES = tuple((failure, weight, LazyPattern("|".join(patterns))) for failure, weight, patterns in _ROWS)
RESTORED_KEYS = LazyPattern(
    r"""['"]?(?:\w*state_?dict|optimizer_?states?|model_ema|(?:\w+\.)+(?:weight|bias|running_mean|running_var))['"]?$"""
)
"""Keys that only a checkpoint is asked for."""
LAUNCHED_KEYS = LazyPattern(r"""['"]?(?:RANK|(?:SLURM|CUDA)_\w+|[A-Z]{2,}_[A-Z_]{2,})['"]?$""")
"""Keys in capitals are environment variables that a launcher or a person sets."""


_HUMP = LazyPattern(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=64)
def class_of_message(kind: str, message: str) -> tuple[FailureClass, float] | None:
    """What the words of an exception say, None where they say nothing. ``kind``: its type, without the module.

    Of a type that is not generic the name's own words count, too: ``ServerDisconnectedError``.
    """
    if kind == "KeyError" and " " not in message:
        if LAUNCHED_KEYS.match(message):
            return "config_error", 0.75
        return ("checkpoint_mismatch", 0.68) if RESTORED_KEYS.match(message) else None
    low = (message if kind in GENERIC_TYPES else f"{_HUMP.sub(' ', kind)}: {message}").lower()
    for failure, weight, pattern in MESSAGES:
        if pattern.search(low) is not None:
            return failure, weight
    return None
