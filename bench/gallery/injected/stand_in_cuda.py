"""For train.py of facebookresearch/DiT, which demands a GPU and NCCL: device 0 is the CPU, NCCL is gloo, DiT-S/8 is tiny."""

import sys

import torch
import torch.distributed
from sitecustomize import AfterImport
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode


def on_cpu(value):
    return "cpu" if type(value) is int else value


class DeviceIsCpu(TorchFunctionMode):
    def __torch_function__(self, function, _types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = on_cpu(kwargs["device"])
        if function is torch.Tensor.to:
            args = (args[0], *map(on_cpu, args[1:]))
        return function(*args, **kwargs)


def replace(owner, name, change):
    """Let ``owner.name(*args, **kwargs)`` be called with the arguments that ``change`` returns."""
    original = getattr(owner, name)

    def replaced(*args, **kwargs):
        args, kwargs = change(args, kwargs)
        return original(*args, **kwargs)

    setattr(owner, name, replaced)


def tiny(module):
    small = {"depth": 2, "hidden_size": 48, "patch_size": 8, "num_heads": 2}
    module.DiT_models["DiT-S/8"] = lambda **kwargs: module.DiT(**small, **kwargs)


torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
torch.cuda.set_device = lambda *_: None
torch.cuda.synchronize = lambda *_: None  # not the same object: torch knows its functions by identity
replace(torch.nn.Module, "to", lambda args, kwargs: ((args[0], *map(on_cpu, args[1:])), kwargs))
replace(torch.distributed, "init_process_group", lambda _args, kwargs: (("gloo",), kwargs))
replace(DistributedDataParallel, "__init__", lambda args, kwargs: (args, kwargs | {"device_ids": None}))
replace(torch.utils.data.DataLoader, "__init__", lambda args, kwargs: (args, kwargs | {"pin_memory": False}))
DeviceIsCpu().__enter__()
sys.meta_path.insert(0, AfterImport("models", tiny))
