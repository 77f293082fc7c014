"""The environment that keeps a rehearsal off the network services that log experiments and take models."""

from collections.abc import Mapping
from pathlib import Path

from ..plan.launch_plan import LaunchPlan

SILENT = frozenset({"offline", "disabled", "dryrun", "debug", "off", "local", "0", "false"})


def offline(plan: LaunchPlan, environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Variables for the trainer. ``folder``: where trackers write. One that the user switched off stays off.

    TensorBoard writes beside the run, which is the scratch folder already. The Hugging Face hub is switched off only if
    the trainer would upload to it: models and data may have to be fetched. Sources: docs.wandb.ai (WANDB_MODE),
    mlflow.org (MLFLOW_TRACKING_URI), comet.com (COMET_MODE, COMET_START_ONLINE), docs.neptune.ai (NEPTUNE_MODE),
    clear.ml (CLEARML_OFFLINE_MODE), docs.swanlab.cn (SWANLAB_MODE), huggingface.co (HF_HUB_OFFLINE).
    """
    wanted = {
        "WANDB_MODE": "offline",
        "COMET_START_ONLINE": "0",
        "NEPTUNE_MODE": "offline",
        "CLEARML_OFFLINE_MODE": "1",
        "SWANLAB_MODE": "local",
    }
    given = {**environ, **plan.spec.env}
    found = {
        name: value for name, value in wanted.items() if given.get(name, "").lower() not in SILENT or name not in given
    }
    found |= {
        "WANDB_DIR": str(folder),
        "COMET_OFFLINE_DIRECTORY": str(folder),
        "MLFLOW_TRACKING_URI": folder.joinpath("mlruns").as_uri(),
    }
    if plan.truth("push_to_hub"):
        found["HF_HUB_OFFLINE"] = "1"
    return found
