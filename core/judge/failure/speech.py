"""What a line does: report an event, warn, say that something was handled, or speak of failures without having one.

Advice, hypotheses, prompts, samples of a data set, quotations, negations and reports of an earlier run contain the
words of every failure. Only an event, or a warning with less weight, is evidence. What was raised is an event whatever
its message says; in its message a hypothesis ("this may be caused by …") proves nothing.
"""

import re
from typing import Literal

from ...model.text.patterns import LazyPattern

Act = Literal["event", "warning", "handled", "spoken"]

_LABEL = LazyPattern(
    r"\W{0,16}+(?:(?:\w+\]? ){0,2}?(?:hint|tips?|advice|suggestion|faq|example|e\.g\.|reminder|docs|documentation|"
    r"prompt|completion|question|answer|instruction|transcript|known issues?|changelog|troubleshooting|"
    r"log of [\w ]{1,40})"
    r"|(?:\w+\] )?(?:(?:sample|example|case|turn|item|test)[ #]?\d*\W{1,3})?"
    r"(?:notes?|help|todo|response|user|assistant|human|model|bot|gpt|sample|generated|generation|input|output|text|"
    r"content|caption|q|a|ref|hyp|target|prediction|predicted|reference|source|src|tgt|title|label)"
    r"|提示|建议|注意|说明|备注|示例|样本|问题?|回答|答|ヒント|メモ|例|質問|참고|힌트|hinweis|tipp|conseil|astuce|consejo"
    r"|подсказка|совет|вопрос|ответ)"
    r"(?: ?[#\d.]+| text)?\s*(?:[\])】」]\s*|[:：>=|](?!:))",
    re.IGNORECASE,
)
"""A line begins with what it is: advice, a prompt, a sample."""
_CODE = LazyPattern(
    r"\s*(?:raise |print\(|(?:logger?|logging|self|console)\.\w+[.(]|assert |return |echo |def |class |if "
    r"|except |elif |"
    r"--?[a-z]|#(?!\d)|//|>>> |> |<\||\* |[-+•] (?!\w+(?:Error|Exception)\b))"
)
"""Source code, a comment, a quoted mail, a list of advice, a table."""
_HYPOTHESIS = LazyPattern(
    r"\b(?:if (?:you|the|this|it|your|an?|there|any|we|training|that|memory|one)\b|in case|should you|might|"
    r"may (?!not)|could (?!not|n)|can (?:also |sometimes |easily |often )?(?:be|lead|cause|result|happen"
    r"|trigger|produce)|"
    r"possib(?:ly|le)|probably|perhaps|usually|often|sometimes|typically|avoid\w*|prevent\w*"
    r"|protects? (?:you )?against|"
    r"known issues?|e\.g\.|for example|for instance|such as|look for|watch(?:es|ing)? for|search for|check(?:s"
    r"|ing)? for|"
    r"what to do|how to|when you|falls|wenn sie|möglicherweise|vermutlich|si vous|si le|peut[- ]être|puede|quizás|"
    r"если|возможно|만약|경우|"
    r"in the event of|simulat\w+|pretend\w*|reproduc\w+|most likely|"
    r"would|designed to|about \w+ errors|learn more|read more|guard(?:s|ed|ing)? against|robust (?:to|against))"
    r"|如果|如遇|若出现|若遇|假如|可能|建议|提示|避免|防止|例如|もし|場合|ヒント|回避",
    re.IGNORECASE,
)
_EARLIER = LazyPattern(
    r"\b(?:previous|last|earlier|prior|former|preceding) (?:\w+ )?(?:run|attempt|job|session|crash|failure|exit"
    r"|training|"
    r"launch|incident|time)\b|\b(?:resum|restart|recover|continu)\w* (?:\w+ ){0,3}(?:after|from|following)\b|"
    r"\b(?:used to|previously|yesterday|last (?:week|night))\b|\b(?:issue|ticket|bug) #?\d+",
    re.IGNORECASE,
)
_NOT = LazyPattern(
    r"(?:(?:^|\W)(?:no|without(?: any)?|not an?|never(?: an?)?)|(?:^|[:,(=] ?|\b(?:with|had|found|were) )(?:0"
    r"|zero))\s(?:more |further |such |any )?(?:\w+ )?$",
    re.IGNORECASE,
)
_NONE = LazyPattern(
    r"\w*['\"]?(?: \w+)?\s*[:=]\s*['\"]?(?:0|none|no|false|never|null)\b(?![.\w])(?=\W*(?:$|[,;|})\]\"'(]))",
    re.IGNORECASE,
)
"""Before and behind the words: "no CUDA error", "oom_killed: false"."""
_PLANNED = LazyPattern(
    r"\b(?:will|when|once|until|on|for|upon|after|before|handlers?|handling|trap\w*|regist\w+|install\w+"
    r"|listen\w*)\b",
    re.IGNORECASE,
)
"""Before the name of a signal or the words of an end: it has not come yet."""
_HANDLED = LazyPattern(
    r"\b(?:retry(?:ing)?(?! failed)|retried|reconnect\w*|fall(?:s|ing)?[ -]?back|fell back|fallback|skip(?:s"
    r"|ped|ping)|"
    r"ignor(?:ed|ing|es)|recover(?:ed|ing)|continuing|continues? (?:with|without|training)|resum(?:ed"
    r"|ing) normal|"
    r"(?<!\d )resolved|as expected|using (?:the )?cpu|non-?fatal|not (?:fatal|critical|serious)|harmless|benign|"
    r"suppress\w*|"
    r"reducing(?!.* may help)|halving|lower(?:ed|ing)|trying (?:again|with|another)|try(?:ing)? again(?! later)"
    r"|will try again|attempt \d+ ?(?:of|/) ?\d+|"
    r"caught and|discard(?:ed|ing)|disabled|disabling|will be (?:retried|ignored|skipped|disabled)"
    r"|not (?:an? )?problem|"
    r"warm-?up probe|rebuilding)\b|\.\.\. ?ok\b|\b(?:PASSED|passed)\W*$",
    re.IGNORECASE,
)
_GIVEN_UP = LazyPattern(
    r"\b(?:giv(?:ing|en) up|gave up|exceeded|exhausted|abort(?:ed|ing|s)?|exiting|terminat(?:ed|ing)"
    r"|fatal(?! error: retry)|"
    r"failed after|no more retries|unrecoverable|loss scale)",
    re.IGNORECASE,
)
_OWN = LazyPattern(
    r"(?:error|exception|errno|descr\w*|details?|fail(?:ed|ure)|fatal|what\(\)|err|reason|message|msg|caused by|raised|"
    r"last error|status|stderr|exit|signal|killed|lost|panicked at)\W*\w*\W*$",
    re.IGNORECASE,
)
"""Before a quotation mark: what follows are the words of the report itself."""
_QUOTES = LazyPattern(r"(?<!\w)\"[^\"]*(?:\"|$)|(?<!\w)'[^']*(?:'(?!\w)|$)|`[^`]{1,400}`|“[^”]{0,400}”|«[^»]{0,400}»")
_SENTENCE = LazyPattern(r"[.!?;]\s+(?=[A-Z\"'`(])")
EVIDENT = ("event", "warning")
"""What counts as evidence."""
_GOES_ON = LazyPattern(
    r"(?i:^\W*(?:\w+ ){0,3}?(?:retry(?:ing)?|trying (?:again|to (?:resume|reconnect|recover|continue))|reconnect\w*|"
    r"falling back|(?:will|going to) retry|resuming|recover(?:ed|ing)|attempt \d+ ?(?:of|/|\()|restarting)\b)"
)
"""A line after a failure says that the program goes on."""
PLANNED = frozenset({"killed_by_user", "success"})
"""Classes whose words are also said of what is still to come."""


def act_of(text: str, start: int, end: int, *, failure: str, level: str = "", raised: bool = False) -> Act:
    """What the line ``text`` does with the words from ``start`` to ``end``, by which a signature knows a failure.

    ``raised``: the line is the message of an exception that was raised.
    """
    begin = 0
    for stop in _SENTENCE.finditer(text, 0, start):
        begin = stop.end()
    before = text[begin:start]
    if _HYPOTHESIS.search(before) is not None:
        return "spoken"
    if raised:
        return "event"
    if failure in PLANNED and _PLANNED.search(before) is not None:
        return "spoken"
    if is_label(text) or _quoted(text, start, end):
        return "spoken"
    if (
        _EARLIER.search(before) is not None
        or _NOT.search(before) is not None
        or (end > start and _NONE.match(text, end))
    ):
        return "spoken"
    if failure != "success" and _HANDLED.search(text) is not None and _GIVEN_UP.search(text) is None:
        return "handled"
    return "warning" if level == "warning" and failure not in PLANNED else "event"


def goes_on(text: str) -> bool:
    """True for a line that says how the program goes on after what the line before it reports."""
    return _GOES_ON.match(text) is not None


def is_talk(text: str, level: str) -> bool:
    """True if the line as a whole reports no event; for lines of which only the kind of words would prove anything."""
    if _HYPOTHESIS.search(text) is not None or _EARLIER.search(text) is not None:
        return True
    return act_of(text, 0, len(text), failure="", level=level) != "event"


def is_label(text: str) -> bool:
    """True for a line that begins with what it is (advice, a prompt, a sample), or that is source code."""
    return _LABEL.match(text) is not None or _CODE.match(text) is not None


def _quoted(text: str, start: int, end: int) -> bool:
    for pair in _QUOTES.finditer(text):
        if pair.start() <= start and end <= pair.end():
            before = text[: pair.start()]
            return _OWN.search(before) is None
        if pair.start() > start:
            break
    return False
