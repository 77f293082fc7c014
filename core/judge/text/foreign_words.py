"""Field names in other languages than English, put into the English that ``line_fields`` reads."""

import re

from .patterns import LatePattern

TONGUE_GATES = ("损失", "損失", "손실", "轮", "エポック", "에폭", "poca", "POCA", "érdida", "поха")
"""Fixed strings of which each line with such a field that has news has one."""

_WORDS: dict[str, str] = {
    "损失|損失|손실": " loss ",
    "学习率|學習率|学習率|학습률": " lr ",
    "验证集?|驗證|検証|검증": " val ",
    "测试集?|測試|テスト|테스트": " test ",
    "训练集?|訓練|学習|훈련|학습": " train ",
    "平均|평균": " avg ",
    "总|總|총": " total ",
    "轮次|轮|エポック|에폭": " epoch ",
    "步数|步|ステップ|스텝": " step ",
    "迭代次?数?|반복": " iter ",
    "[eé]poca|эпоха": " epoch ",
    "pérdida|потери": " loss ",
    "[：﹕]": ":",
    "[，、；]": ", ",
    "[【［（]": "[",
    "[】］）]": "]",
}
_NUMBERED = LatePattern(r"第\s*(\d+)\s*(?:/\s*(\d+)\s*)?(?:个?epoch|轮|エポック|個?回)")
_TABLE = tuple((LatePattern(pattern), word) for pattern, word in _WORDS.items())
_SPACES = LatePattern(r" {2,}")
_CHARACTERS = LatePattern(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af\u0430-\u044f]|époc|pérdida")


def in_english(low: str) -> str:
    """The lower-cased line with its field names in English; a line in Latin letters is given back as it is."""
    if low.isascii() or _CHARACTERS.search(low) is None:
        return low
    low = _NUMBERED.sub(_epoch, low)
    for pattern, word in _TABLE:
        low = pattern.sub(word, low)
    return _SPACES.sub(" ", low).strip()


def _epoch(found: re.Match[str]) -> str:
    return f" epoch {found[1]}/{found[2]} " if found[2] else f" epoch {found[1]} "
