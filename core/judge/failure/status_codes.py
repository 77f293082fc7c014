"""Status codes of CUDA, HIP, NCCL, NVML, cuBLAS, cuDNN, HSA, ACL and the operating system, in any spelling.

The catalogue says which code belongs to which class; here is how programs print one: by its name, its number, or the
text that the library gives for it. Sources: CUDA Runtime and Driver API (cudaError_t, CUresult), hip_runtime_api.h,
nccl.h, nvml.h, hsa.h, CANN rt_error_codes.h, errno(3).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...model.shipped.failure import FailureClass, StatusCode
from ...model.text.patterns import LazyPattern
from ..text.lines import shape_of

_NUMBERS = {
    "cuda": LazyPattern(
        r"(?i:\b(?:cuda|hip)(?: driver| runtime| api)?[ _]?(?:error|failure"
        r"|err)(?:[:,]? (?:unspecified |unknown |error |status )*code)?)\W{0,3}(?P<a>\d{1,4})\b(?!\.\d)"
        r"|cudaSuccess \((?P<b>\d{1,3}) vs"  # glog: Check failed: error == cudaSuccess (2 vs. 0)
        r"|\berror=(?P<c>\d{1,3}) ?:"  # THC
        r"|\[(?P<d>\d{1,3})\] Call to cu\w"  # numba
        r"|\b(?:cu|cuda|hip)[A-Z]\w+(?:\(\))? (?:failed|returned)\D{0,24}?(?P<e>\d{1,3})\b"
    ),
    "errno": LazyPattern(
        r"\[Errno (?P<a>\d{1,3})\]|(?i:(?<!\[)\berrno)\W{1,3}(?P<b>\d{1,3})\b|\bos error (?P<c>\d{1,3})\b"
        r"|\bcode: -?(?P<d>\d{1,3}), (?:kind|name):"
    ),
    "winerror": LazyPattern(r"\[WinError (?P<a>\d{1,5})\]|\bos error (?P<b>\d{4,5})\b"),
    "nccl": LazyPattern(
        r"\bNCCL (?:error|failure)(?: code)?\W{1,2}(?P<a>[1-7])\b(?!\.\d)|\bncclResult\w*\W+(?P<b>[1-7])\b"
    ),
    "acl": LazyPattern(
        r"(?i:\b(?:acl\w*|npu|cann|ascend|aclrt\w*|rt\w+)\b.{0,80}?\b(?:error|ret|result)(?:[ _]?code)?(?: is)?)\W{1,3}"
        r"(?P<a>\d{6})\b"
    ),
    "nvml": LazyPattern(r"(?i:\bnvml\w* (?:error|failure|return(?:ed|s)?)(?: code)?)\W{1,2}(?P<a>\d{1,3})\b"),
    "cublas": LazyPattern(r"(?i:\bcublas(?:lt)? (?:error|failure|status))\W{1,2}(?P<a>[1-9]\d?)\b"),
    "cudnn": LazyPattern(r"(?i:\bcudnn (?:error|failure|status))\W{1,2}(?P<a>[1-9]\d{0,3})\b"),
}
"""How a number is printed, by system."""
_SAID_OF = r"(?i:\b(?:cuda|hip)\b[\w \[\]()#]{0,24}?(?:error|failure|err)?(?: code)?\W{0,3}\d{0,3}\W{1,3})"
"""Before a text that is too common to stand for itself: ``CUDA error: ``, ``Cuda failure 999 '``."""
SHAPES_KEPT = 2048
CLEAR_CHARS = 20
"""A text of this length is a library's own."""


class Coded(NamedTuple):
    """A status code in a line, and what it proves."""

    failure: str
    weight: float
    start: int
    end: int


class StatusCodes:
    """The codes of all classes, compiled for ``find``."""

    def __init__(self, classes: Iterable[FailureClass]) -> None:
        rows = [(each.name, code) for each in classes for code in each.codes]
        self._names = {name: (failure, code) for failure, code in rows for name in code.names}
        self._numbers: dict[tuple[str, int | None], tuple[str, StatusCode]]
        self._numbers = {(code.system, code.number): (failure, code) for failure, code in rows}
        self._texts = {code.text.lower(): (failure, code) for failure, code in rows if code.text}
        names = "|".join(sorted(map(re.escape, self._names), key=len, reverse=True))
        self._name = LazyPattern(rf"(?<![A-Za-z])(?:{names})(?![A-Za-z_])" if names else r"(?!)")
        clear = sorted((text for text in self._texts if len(text) >= CLEAR_CHARS), key=len, reverse=True)
        short = sorted((text for text in self._texts if len(text) < CLEAR_CHARS), key=len, reverse=True)
        spelt = [rf"(?P<clear>{'|'.join(map(re.escape, clear))})"] if clear else []
        spelt += [rf"(?:{_SAID_OF}|^\s*Error )(?P<short>{'|'.join(map(re.escape, short))})"] if short else []
        self._text = LazyPattern(rf"(?i:{'|'.join(spelt)})" if spelt else r"(?!)")

        self._kept: dict[bytes, bool] = {}

    def find(self, line: str) -> Iterator[Coded]:
        """The codes that a line names."""
        key = shape_of(line)
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) >= SHAPES_KEPT:
                self._kept.clear()
            like = key.decode(errors="surrogatepass")
            patterns = (self._name, self._text, *_NUMBERS.values())
            known = self._kept[key] = any(pattern.search(like) is not None for pattern in patterns)
        if not known:
            return
        for found in self._name.finditer(line):
            yield self._coded(self._names[found[0]], found)
        for found in self._text.finditer(line):
            yield self._coded(self._texts[(found["clear"] or found["short"]).lower()], found)
        for system, pattern in _NUMBERS.items():
            for found in pattern.finditer(line):
                number = int(found[found.lastgroup or 0])
                row = self._numbers.get((system, number)) or self._numbers.get((system, None))
                if row is not None and number:
                    yield self._coded(row, found)

    @staticmethod
    def _coded(row: tuple[str, StatusCode], found: re.Match[str]) -> Coded:
        failure, code = row
        return Coded(failure, code.weight, found.start(), found.end())
