"""Names of calls that are known for what they do with files and with loaded values."""

WRITES_SELF = frozenset({"mkdir", "write_bytes", "write_text"})
"""Methods of a path that write to it."""
READS = frozenset({"read", "readline", "readlines", "read_bytes", "read_text"})
MOVES = frozenset({"replace", "rename", "renames", "move", "copyfile", "copy", "copy2"})
"""Calls whose last argument is written to."""
TAKES_STATE = frozenset({
    "load_state_dict", "set_state_dict", "load_from_state_dict", "set_weights", "set_state", "setstate",
    "set_rng_state", "from_bytes", "from_state_dict", "__setstate__",
})  # fmt: skip
"""Last names of calls that give what was loaded to a part of the training."""
NO_PLACES = frozenset({"map_location", "device", "weights_only", "strict", "dtype", "mode", "encoding", "key", "rank"})
"""Keywords of loads that name no file."""
LIBRARIES = frozenset(
    {"torch", "numpy", "np", "os", "json", "pickle", "yaml", "transformers", "datasets", "safetensors", "joblib"}
)
DATA_LOADS = frozenset({
    "load_dataset", "load_from_disk", "imread", "read_csv", "read_json", "read_parquet", "safe_load", "loads",
    "load_yaml", "load_json", "load_toml", "load_config", "load_dotenv", "load_metric", "load_image", "load_data",
    "load_ext", "load_module", "load_library", "load_tokenizer", "load_vocab", "loadtxt", "load_img", "load_array",
    "preload", "upload", "download", "reload_ext", "payload", "fullload", "full_load", "load_all", "workload",
    "load_extension", "load_template", "hub_load",
})  # fmt: skip
"""Reads of data, settings and code, no states of a training."""


def is_config(called: str) -> bool:
    return called.startswith(
        ("yaml.", "json.", "toml.", "tomllib.", "tomli.", "OmegaConf.", "omegaconf.", "datasets.", "ruamel.", "dotenv.")
    )
