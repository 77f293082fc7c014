"""Import this before an optimizer is made: its first step imports PyTorch's compiler, as long a wait as PyTorch itself.

All that it wants there are remarks to the compiler (``graph_break``, ``disable``), which mean nothing without one.
"""

import sys
import types

import torch

_compiler = types.ModuleType("torch._dynamo")
_compiler.graph_break = lambda *_, **__: None  # type: ignore[attr-defined]
_compiler.disable = lambda function, *_, **__: function  # type: ignore[attr-defined]
sys.modules[_compiler.__name__] = _compiler
torch._dynamo = _compiler
