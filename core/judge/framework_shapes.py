"""Frameworks with words of their own; tried from the top, after bars and counters."""

from .line_shape import LineShape, shape
from .quantities import NUMBER

FRAMEWORKS: tuple[LineShape, ...] = (
    shape(
        "pix2pix",
        "pytorch-CycleGAN-and-pix2pix",
        r"\(epoch: (?P<epoch>\d+), iters: (?P<step>\d+), time: (?P<sec_per_step>[\d.]+), data: [\d.]+\)",
        ("iter",),
        source="pytorch-CycleGAN-and-pix2pix util/visualizer.py",
    ),
    shape(
        "deepspeed-timer",
        "DeepSpeed",
        r"epoch=(?P<epoch>\d+)/micro_step=\d+/global_step=(?P<step>\d+)",
        ("tep",),
        source="deepspeed.utils.timer.ThroughputTimer",
    ),
    shape(
        "coqui-fields",
        "Coqui TTS",
        rf"\| > step_time: (?P<sec_per_step>{NUMBER})",
        ("tep",),
        source="coqui trainer ConsoleLogger",
    ),
    shape(
        "darknet",
        "darknet",
        rf"^\s*(?:\([^)]*\)\s*)?(?P<step>\d+): (?P<loss>{NUMBER}|-?nan), {NUMBER} avg(?: loss)?, "
        rf"(?P<lr>{NUMBER}) rate, (?P<sec_per_step>[\d.]+) seconds, \d+ images",
        (" images",),
        source="darknet detector.c train_detector",
    ),
    shape(
        "flax-examples",
        "HF Flax examples",
        rf"Step\.\.\. ?\((?P<step>\d+)(?:/(?P<total>\d+))? \| (?:Training )?Loss: (?P<loss>{NUMBER}|nan)",
        ("tep",),
        source="transformers/examples/flax",
    ),
    shape(
        "estimator",
        "TF Estimator",
        rf"loss = (?P<loss>{NUMBER}|nan), step = (?P<step>\d+)",
        ("oss",),
        source="tensorflow_estimator LoggingTensorHook",
    ),
    shape(
        "estimator-rate",
        "TF Estimator",
        r"global_step/sec: (?P<steps_per_sec>[\d.]+)",
        ("tep",),
        source="tensorflow StepCounterHook",
    ),
    shape(
        "caffe",
        "Caffe",
        rf"Iteration (?P<step>\d+) \((?P<steps_per_sec>[\d.e+-]+) iter/s.*?\), loss = (?P<loss>{NUMBER}|nan)",
        ("oss",),
        source="caffe solver.cpp",
    ),
    shape(
        "nerfstudio",
        "nerfstudio",
        r"^\s*(?P<step>\d+) \([\d.]+%\)\s+(?:(?P<ms_per_step>[\d.]+) ms|(?P<sec_per_step>[\d.]+) s)\b",
        ("%)",),
        source="nerfstudio.utils.writer.LocalWriter",
    ),
    shape(
        "xgboost",
        "XGBoost, LightGBM",
        r"^(?:\[[^\]]*\] )?\[(?P<step>\d+)\]\t\S*(?:train|valid|eval|test)",
        ("rain", "alid"),
        source="xgboost.callback.EvaluationMonitor",
    ),
    shape("stylegan", "StyleGAN", r"^tick (?P<step>\d+)\s+kimg [\d.]+", ("kimg",), source="stylegan3 training_loop"),
    shape(
        "fastai",
        "fastai",
        r"^\s*(?P<epoch>\d+)\s+(?P<loss>\d+\.\d+|nan)\s+(?:\d+\.\d+|nan|None)(?:\s+[\d.]+|\s+nan)*\s+\d\d:\d\d\s*$",
        ("  0.",),
        source="fastai ProgressCallback",
    ),
    shape(
        "llama-factory-json",
        "LLaMA-Factory",
        r"\"current_steps\": (?P<step>\d+), \"total_steps\": (?P<total>\d+)",
        ("tep",),
        source="llamafactory.train.callbacks",
    ),
    shape(
        "swift-dict",
        "ms-swift",
        r"'global_step/max_steps': '(?P<step>\d+)/(?P<total>\d+)'",
        ("tep",),
        source="swift trainers ProgressCallback",
    ),
    shape(
        "sb3-table",
        "Stable-Baselines3",
        r"^\|\s+total_timesteps\s+\|\s+(?P<step>\d+)\s+\|",
        ("tep",),
        source="stable_baselines3.common.logger.HumanOutputFormat",
    ),
    shape(
        "kohya-epoch",
        "kohya sd-scripts, musubi-tuner",
        r"epoch is incremented\. current_epoch: \d+, epoch: (?P<epoch>\d+)",
        ("poch",),
        source="sd-scripts library/train_util.py",
    ),
)
