"""Lines with an epoch and a counter side by side, mostly in brackets; tried from the top, after the bars."""

from .line_shape import LineShape, shape
from .quantities import COUNT, NUMBER

_S = r"[\s:=]*"

COUNTERS: tuple[LineShape, ...] = (
    # Evaluation lines that look like training come first.
    shape(
        "mmengine-val",
        "mmengine",
        r"(?:Epoch|Iter)\((?:val|test)\)",
        ("poch(", "Iter("),
        kind="eval",
        source="mmengine LogProcessor",
    ),
    shape(
        "bracket-epoch-iter",
        "mmcv, mmengine, DINO, torchvision, timm, Swin, DCGAN",
        rf"(?i:epoch|iter|train)(?:\(train\))?{_S}\[\s*(?P<epoch>\d+)(?:\s*/\s*(?P<epochs>\d+))?\s*\][,\s]*(?:"
        rf"(?i:step|iter|iteration|batch)s?)?{_S}"
        r"\[\s*(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*(?:\(\s*\d+%\))?\s*\]",
        ("poch", "Iter", "iter", "rain"),
        source="mmcv.TextLoggerHook; dino utils.MetricLogger; pytorch/examples imagenet",
    ),
    shape(
        "mmseg-iter",
        "mmcv/mmengine iteration based",
        r"Iter(?:\(train\))?\s*\[\s*(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*\]",
        ("Iter",),
        source="mmcv.TextLoggerHook by_epoch=False",
    ),
    shape(
        "timm",
        "timm, OpenCLIP, PyTorch MNIST",
        r"Train(?:ing)?(?: Epoch)?:?\s+(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\s+\[\s*(?P<step>\d+)/"
        r"(?P<total>\d+)\s+\(\s*[\d.]+%\)\]",
        ("rain",),
        source="timm train.py; open_clip train.py; pytorch/examples mnist",
    ),
    shape(
        "gan-brackets",
        "PyTorch-GAN, DCGAN",
        r"^\W{0,4}(?:Epoch:?\s*)?(?P<epoch>\d+)/(?P<epochs>\d+)\s*\]\s*\[\s*(?:Batch:?\s*)?(?P<step>\d+)/"
        r"(?P<total>\d+)\]",
        ("oss", "poch"),
        source="pytorch/examples dcgan; eriklindernoren/PyTorch-GAN",
    ),
    shape(
        "iteration-comma-total",
        "CenterNet, MMTracking-like scripts",
        r"(?i:epoch):? \[?(?P<epoch>\d+)\]?,? (?i:iter) \[(?P<step>\d+), (?P<total>\d+)\]",
        ("iter [", "Iter ["),
        source="scripts that print epoch, iter [step, steps]",
    ),
    shape(
        "epoch-pipe-counter",
        "Demucs and other Dora programs",
        r"(?i:epoch):? (?P<epoch>\d+)(?:/(?P<epochs>\d+))? \| "
        r"(?:(?i:batch|iter|step) )?(?P<step>\d+)/(?P<total>\d+) \|",
        ("poch ", "poch: "),
        source="dora.log.LogProgress",
    ),
    shape(
        "lerobot",
        "LeRobot",
        rf"\bstep:(?P<step>{COUNT}) smpl:\S+ ep:\S+ epch:(?P<epoch>[\d.]+) loss:(?P<loss>{NUMBER}|nan)"
        rf"(?:.*? lr:(?P<lr>{NUMBER}))?(?: updt_s:(?P<sec_per_step>[\d.]+))?",
        (" epch:",),
        source="lerobot.utils.logging_utils.MetricsTracker",
    ),
    shape(
        "counter-pair-in-brackets",
        "scripts",
        r"\[\s*(?P<epoch>\d+)\s*/\s*(?P<epochs>\d+)\s*\]\s*\[\s*(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*\](?=.*(?i:loss))",
        ("oss",),
        source="scripts that print [epoch/epochs][step/steps]",
    ),
    shape(
        "batches-of-epoch",
        "PyTorch word language model",
        r"\|\s*epoch\s+(?P<epoch>\d+)\s*\|\s*(?P<step>\d+)/\s*(?P<total>\d+) batches \|",
        (" batches",),
        source="pytorch/examples word_language_model main.py",
    ),
    shape(
        "leading-counter",
        "scripts",
        r"^\W{0,3}\[\s*(?P<step>\d{3,})\s*/\s*(?P<total>\d{3,})\s*\](?=.*(?i:loss))",
        ("oss",),
        source="scripts that print [step/steps] before the losses; two digits may be epochs",
    ),
    shape(
        "epoch-iteration-pair",
        "I-JEPA, PyTorch CIFAR tutorial",
        r"(?:^|[\s:])\[\s*(?P<epoch>\d+),\s*(?P<step>\d+)(?:\s*/\s*(?P<total>\d+))?\s*\](?!<std)\s*(?:-\s*)?(?=.*(?i:loss))",
        ("oss",),
        source="ijepa train.py; PyTorch cifar10 tutorial",
    ),
    shape(
        "fairseq-inner",
        "fairseq",
        r"epoch (?P<epoch>\d+):\s+(?P<step>\d+)(?: / (?P<total>\d+))? loss=",
        ("poch",),
        source="fairseq.logging.progress_bar.SimpleProgressBar",
    ),
    shape(
        "espnet",
        "ESPnet",
        r"(?P<epoch>\d+)epoch:train:\d+-(?P<step>\d+)batch:.*?\bloss=(?P<loss>[^,]+),.*?optim0_lr0="
        r"(?P<lr>[^,]+).*?train_time=(?P<sec_per_step>[\d.e+-]+)",
        ("poch",),
        source="espnet2.train.reporter",
    ),
    shape(
        "espnet-valid",
        "ESPnet",
        r"\d+epoch:(?:valid|plot_att)",
        ("poch",),
        kind="eval",
        source="espnet2.train.reporter",
    ),
    shape(
        "composer",
        "Composer, LLM Foundry",
        r"\[(?:epoch=(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\]\[)?batch=(?P<step>\d+)(?:/(?P<total>\d+))?\]",
        ("batch=",),
        source="composer.loggers.ConsoleLogger",
    ),
    shape(
        "glue-factory",
        "glue-factory",
        rf"\[E (?P<epoch>\d+) \| it (?P<step>\d+)\] loss \{{total (?P<loss>{NUMBER}|nan)",
        ("oss",),
        source="gluefactory.train",
    ),
    shape(
        "marian",
        "Marian NMT",
        rf"Ep\. (?P<epoch>\d+) : Up\. (?P<step>\d+) : Sen\. [\d,]+ : Cost (?P<loss>{NUMBER}|nan)",
        (": Up. ",),
        source="marian scheduler",
    ),
    shape(
        "coqui",
        "Coqui TTS",
        r"--?>? STEP: (?P<step>\d+)/(?P<total>\d+) -- GLOBAL_STEP",
        (" STEP: ",),
        source="coqui trainer ConsoleLogger",
    ),
    shape(
        "tacotron2",
        "NVIDIA tacotron2",
        rf"Train loss (?P<step>\d+) (?P<loss>{NUMBER}|nan) Grad Norm {NUMBER} (?P<sec_per_step>[\d.]+)s/it",
        ("oss",),
        source="tacotron2 train.py",
    ),
    shape(
        "wenet",
        "WeNet",
        r"\bTRAIN Batch (?P<epoch>\d+)/(?P<step>\d+) loss",
        (" Batch ",),
        source="wenet.utils.executor",
    ),
    shape("wenet-cv", "WeNet", r"\bCV Batch \d+/\d+ loss", (" Batch ",), kind="eval", source="wenet.utils.executor"),
    shape(
        "speedometer",
        "MXNet, GluonCV, GluonNLP",
        r"\[?Epoch:? ?\[?(?P<epoch>\d+)\]?[,:]? ?\[?Batch:? ?\[?(?:\d+-)?(?P<step>\d+)(?:/(?P<total>\d+))?\]",
        ("Batch",),
        source="mxnet.callback.Speedometer",
    ),
    shape(
        "epoch-then-counter",
        "SRGAN, VDSR and other scripts",
        r"(?i:epoch)\s?\[(?P<epoch>\d+)\]\s?\((?P<step>\d+)/(?P<total>\d+)\)",
        ("poch[", "poch ["),
        source="scripts that print Epoch[e](step/steps)",
    ),
    shape(
        "epoch-slash-iter",
        "FastReID",
        r"\bepoch/iter: (?P<epoch>\d+)/(?P<step>\d+)",
        ("poch/iter",),
        source="fastreid.utils.events",
    ),
    shape(
        "loss-then-counter",
        "PyTorch quickstart",
        rf"\bloss: (?P<loss>{NUMBER}|nan)\s+\[\s*(?P<step>\d+)/\s*(?P<total>\d+)\]",
        ("loss: ",),
        source="pytorch tutorials: quickstart",
    ),
    shape(
        "xla-debug",
        "PyTorch/XLA examples",
        rf"\[xla:\d+\]\s*\((?P<step>\d+)\) Loss=(?P<loss>{NUMBER}|nan)",
        ("Loss=",),
        source="torch_xla.test.test_utils",
    ),
    shape(
        "counter-before-loss",
        "scripts",
        r"^\W{0,3}\[\s*(?P<step>\d{3,})\s*\]\s*(?=(?:train|avg|total)?[_ ]?(?i:loss)\b)",
        ("oss",),
        source="scripts that print [step] loss; two digits may be a rank or an epoch",
    ),
)
