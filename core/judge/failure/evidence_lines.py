"""One line of a log as evidence: prefixes off, then by its place in a block and by what it does.

The order of the questions: does it belong to a traceback? Does it link two of them? Does it quote code? Does it report
an exception that ended nothing? What is left is weighed by the signatures, status codes and exception types.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec.structs import replace

from ...model.text import LazyPattern
from ..scales import BLOCK_LINES, HEADED_LINES, LATE_LINES, LIKELY, LISTED, SECOND_HAND, SURE, TWICE
from ..text.lines import TRACEBACK, Carried, peel, unglued
from . import evidence_state as evidence
from .catalogue import (
    BAR,
    CHECKPOINT_READS,
    NO_FAILURES,
    OWN_WEIGHT,
    SETTING_READS,
    CompiledCatalogue,
    Match,
    Proof,
    read_kernel_line,
)
from .evidence_state import Block, DiagnosisState, Finding

KERNEL_GATES = ("Xid", "XID", "NVRM", "dxg", "blocked for more than", "oom-kill", "amdgpu", "Out of memory: Kill")
"""Texts of kernel lines, of which a trainer's log may hold some."""
TRACEBACK_SEGMENTS = 300
"""Longest traceback that is followed."""
UNTOLD = Proof("code_bug", 0.42)
"""What an exception proves of which neither the type nor the message is known."""
DETAIL_LEAST = 0.55
"""What words prove at least to count below an exception that says nothing: those of several classes do not."""
REPORTERS = frozenset(
    {"wandb", "mlflow", "comet_ml", "neptune", "clearml", "aim", "sentry_sdk", "slack_sdk", "swanlab"}
)
"""Packages that report a run. What they raise while an exception is handled is not the cause."""
_REPORTER = LazyPattern(rf"(?i:\b(?:{'|'.join(sorted(REPORTERS))}|w&b|sentry|slack|discord|telegram|webhooks?)\b)")
"""Names of such services. What they fail with just after a traceback is not the cause either."""

_SOURCE = LazyPattern(
    r"\s+(?:raise|return|assert|if|elif|except|with|for|while|from|import|print|logger?\.\w+)\b|\s*File \""
    r"|\s*[│|]?\s*[~^]+\s*$|\s*│"
)
"""Lines of a traceback that quote source code. They are not evidence."""
_COMMAND = LazyPattern(
    r"\bCommand (?:'\[.*\]'|\[.*\]|'.*')(?= (?:died|returned|timed out)\b)|\['(?:[^\[]|\[(?!'))*'\](?= exits? with)"
)
"""A command that a launcher quotes: its words are no report."""
_BOXED = LazyPattern(r"\s*[│┃|]\s(?P<sentence>[A-Z][^│┃|]*\s--?[A-Za-z][^│┃|]*?)\s*[│┃|]$")
"""A sentence about an option in a box of its own: typer and tyro."""
_UNRAISED = LazyPattern(r"Exception ignored (?:in|while)\b|Error in (?:atexit\._run_exitfuncs|sys\.\w*hook)\b")
"""Python reports an exception in a finaliser or an exit handler. It does not change what the program did before."""
FENCE = "```"
"""Around a quotation of several lines."""


def read_line(state: DiagnosisState, number: int, line: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after a plain line, which may have a bar glued before its message."""
    if any(gate in line for gate in evidence.RANK_GATES):
        state = replace(state, ranks=evidence.with_line(state.ranks, number, line))
    carried = peel(line)
    for text in carried.text.split("\n"):
        for piece in unglued(text):
            inner = Carried(piece) if piece is text else peel(piece)
            inner = Carried(inner.text, inner.source or carried.source, inner.level or carried.level)
            state = _read(state, number, inner, catalogue)
    return state


def _read(state: DiagnosisState, number: int, carried: Carried, catalogue: CompiledCatalogue) -> DiagnosisState:
    text, source = carried.text, carried.source
    block = state.block(source)
    if FENCE in text:
        return replace(state, fenced=0 if state.fenced else number)
    if state.fenced and number - state.fenced <= BLOCK_LINES:
        return state
    if TRACEBACK in text and not is_label(text):
        if state.unraised and state.unraised >= number - 1:
            return state
        state = evidence.with_block(state, evidence.begin(block, source, number), hot=TRACEBACK_SEGMENTS)
        return replace(state, since=state.steps if state.since is None else state.since)
    open_block = block if block is not None and not block.ended else None
    if open_block is None and text[:1] in " \t│" and any(word in text for word in (*SETTING_READS, *CHECKPOINT_READS)):
        return replace(state, above=(number, text.strip()))
    if open_block is not None and evidence.is_inner(text):
        return evidence.with_block(state, evidence.with_inner(open_block, text))
    raised = None if block is None or text[:1] != " " or number - block.line > TRACEBACK_SEGMENTS else block.raised
    if block is not None and raised is not None and raised.text.endswith(":"):  # Keras: "ValueError: in user code:"
        inner = replace(evidence.begin(replace(block, link="direct"), source, number), own=block.own)
        if evidence.find_exception(own := text.strip(), catalogue) is not None:
            return _weigh(state, number, carried._replace(text=own), inner, catalogue)
    if state.hot and text.strip():
        state = evidence.with_following(state, source, number, text)
    link = next((link for words, link in evidence.LINKS.items() if words in text), "")
    if link:
        known = block if block is not None and block.ended else _untraced(state, source)
        return evidence.with_block(state, replace(known, link=link))
    boxed = _BOXED.match(text) if open_block is None else None
    if boxed is not None:
        carried = carried._replace(text=boxed["sentence"])
    elif _SOURCE.match(text):
        frame = evidence.frame_of(text)
        if frame is None or frame.function:
            return state
        return replace(state, header=(number, frame.place))
    if _UNRAISED.match(text):
        return replace(state, unraised=number)
    if _GOES_ON.match(text) and not state.report:
        return evidence.without_handled(state, number)
    if evidence.OPENS_REPORT.match(text) or (state.report == number - 1 and text[:1] in " \t"):
        heard = state.heard + TWICE * text.lower().startswith("usage:")
        state = replace(state, report=number, hot=max(state.hot, LISTED), heard=heard)
    return _weigh(state, number, carried, open_block, catalogue)


def _weigh(
    state: DiagnosisState, number: int, carried: Carried, block: Block | None, catalogue: CompiledCatalogue
) -> DiagnosisState:
    """``block``: the open traceback of the same rank."""
    shown = carried.text
    text = catalogue.in_known_words(_COMMAND.sub("Command", shown))
    carried = carried._replace(text=text)
    named = evidence.find_exception(text, catalogue) or (evidence.any_exception(text) if block is not None else None)
    if named is not None and state.unraised and number - state.unraised <= TRACEBACK_SEGMENTS:
        return replace(state, unraised=0, blocks=tuple(each for each in state.blocks if each is not block))
    bare = named is not None and text.lstrip().startswith((named.type, f"{named.module}."))
    raised = named is not None and (block is not None or (bare and carried.level in ("", "fatal")))
    matches = catalogue.matches(text)
    if matches is None:
        return (
            state if block is None or named is None else evidence.with_block(state, evidence.ended(block, number, text))
        )
    weighed = list(_evidence(carried, matches, raised=raised, catalogue=catalogue))
    best = _strongest(weighed)
    if best is None and block is not None and named is not None and named.type in catalogue.consequences:
        # A type that proves nothing alone does by its place: ``EOFError in …/getpass.py:_raw_input``.
        placed = carried._replace(text=f"{named.type} in {block.last}")
        if (known_there := catalogue.matches(placed.text)) is not None:
            best = _strongest(_evidence(placed, known_there, raised=True, catalogue=catalogue))
    terminal = raised or _in_report(state, number, carried)
    if named is None:
        said = _WHAT.match(text)
        if said is not None and best is None:
            best = evidence.proof_of_message("Exception", said["message"], catalogue) or UNTOLD
        if best is None and all(each.role == "cascade" for each in weighed):
            untold = [each for each in state.findings if not each.told and each.weight < evidence.GENERIC]
            if _ERROR.match(text if not carried.level else f"{carried.level} {text}"):
                best = _worded(carried, catalogue, least=LIKELY if weighed else 0.0)
            elif any(0 < number - e.line <= LISTED and e.source == carried.source for e in untold):
                best = _worded(carried, catalogue, least=DETAIL_LEAST)  # its message may go on here
            ordinary = best is None and not weighed and block is None and carried.level in ("", "debug", "info")
            if ordinary and text.strip() and (text[0] not in " \t" or carried.level) and BAR.search(text) is None:
                return replace(state, heard=state.heard + 1)
        return _with_line(state, _finding(best, number, shown, carried.source, terminal=terminal), weighed)
    at = text.find(named.type)
    if not raised and act_of(text, at, at + len(named.type), failure="", level=carried.level) not in (
        "event",
        "warning",
    ):
        return state
    traced = max((each.line for each in state.blocks), default=0)
    if block is None and 0 < traced >= number - LISTED and _REPORTER.search(text) is not None:
        return evidence.with_cascade_line(state, number, shown)
    at, code = state.above if block is None else (number, block.code)
    code = code if number - at <= LATE_LINES else ""
    known = evidence.proof_of(named, catalogue, code, with_message=best is None)
    if known is None and named.type not in catalogue.consequences and block is not None and best is None:
        known = UNTOLD
    if known is not None and (best is None or (best.weight < evidence.GENERIC and known.weight > best.weight)):
        best = replace(known, warned=carried.level == "warning")
    mine = _finding(best, number, shown, carried.source, terminal=terminal)
    if block is not None:
        reported = named.module.split(".")[0] in REPORTERS
        return _with_raised(state, block, replace(mine, place=block.own, reported=reported), weighed)
    if named.type in catalogue.consequences:
        state = evidence.with_cascade_line(state, number, shown)
    above, place = state.header  # of a syntax error of the file that Python was to run: it has no traceback
    place = place if 0 < number - above <= HEADED_LINES else ""
    return _with_line(state, replace(mine, place=place), weighed)


def _strongest(known: Iterable[Proof]) -> Proof | None:
    return max((each for each in known if each.role == "root"), key=lambda each: each.weight, default=None)


def _finding(best: Proof | None, number: int, text: str, source: str, *, terminal: bool) -> Finding:
    """``best``: the strongest root of the line; without one the class is "": it proves nothing."""
    best = best or Proof("", 0.0)
    mine = Finding(best.failure, "root", best.weight, number, evidence.kept_text(text), number, terminal=terminal)
    return replace(mine, warned=best.warned, told=best.told, source=source)


def _untraced(state: DiagnosisState, source: str) -> Block:
    """The block of an exception whose traceback begins before the log does."""
    near = [each for each in state.findings if each.terminal and each.source == source and each.role == "root"]
    last = max(near, key=lambda each: each.line, default=None)
    return Block(source, raised=last and replace(last, told=last.weight >= SURE), ended=last is not None)


def read_last_words(
    state: DiagnosisState, number: int, line: str, catalogue: CompiledCatalogue, least: float
) -> DiagnosisState:
    """The state after a line from the end of a log without a cause: the kinds of words in it count."""
    carried = peel(unglued(line)[-1])
    text = catalogue.in_known_words(carried.text)
    matches = catalogue.matches(text)
    if matches is None or catalogue.shapes.words_of_line(text.lower())[1] is not None:
        return state
    carried = carried._replace(text=text)
    best = _strongest(_evidence(carried, matches, raised=False, catalogue=catalogue))
    if best is None and not matches:  # a line that speaks of a failure that it does not report has no further words
        best = _worded(carried, catalogue, least=least)
    if best is None or "\n" in text or (best.failure == UNTOLD.failure and _LOCATED.match(text) is None):
        return state
    return _with_line(state, _finding(best, number, line, carried.source, terminal=False), ())


_LOCATED = LazyPattern(r"(?:[\w.-]+: )?[\w./\\-]+\.\w{1,5}:\d+: ")
"""``train.lua:88: …``: without an exception, only a line with its place in the source tells of a bug."""


def is_of_traceback(line: str) -> bool:
    """True for the lines of a traceback above what was raised."""
    text = peel(line).text
    return TRACEBACK in text or evidence.is_inner(text)


def _worded(carried: Carried, catalogue: CompiledCatalogue, *, least: float = 0.0) -> Proof | None:
    """What the words of a line prove that names no exception and that no signature knows; None below ``least``."""
    level = carried.level
    sentences = _SENTENCE.split(carried.text)
    text = ". ".join(each for each in sentences if not (_HYPOTHESIS.search(each) or _EARLIER.search(each)))
    if act_of(text, 0, len(text), failure="", level=level) != "event":
        return None
    proof = evidence.proof_of_message("Exception", text, catalogue)
    sure = 0.0 if proof is None else round(proof.weight * SECOND_HAND, 3)
    return None if proof is None or sure < least else Proof(proof.failure, sure, told=True)


_WHAT = LazyPattern(r"\s*what\(\):\s+(?P<message>\S.*)")
"""libstdc++: the message of the C++ exception that ended the program."""
_ERROR = LazyPattern(
    r"(?i:(?:[\w./-]+: )?(?:fatal|error|critical|abort(?:ed|ing)?|exception|fehler|erreur|ошибка)\b|错误|エラー)"
)
"""A line that is an error by its level, or by its first word."""


def _with_raised(state: DiagnosisState, block: Block, mine: Finding, weighed: Iterable[Proof]) -> DiagnosisState:
    """The state after a traceback's end: of a chain of exceptions one counts."""
    if block.before is not None and evidence.earlier_counts(block, block.before, mine):
        kept = replace(block, raised=block.before, ended=True, link="", line=mine.line)
        return evidence.with_cascade_line(evidence.with_block(state, kept), mine.line, mine.text)
    if block.before is not None and block.before.failure:
        state = evidence.without_raised(state, block.before)
    done = replace(block, raised=mine, ended=True, link="", line=mine.line)
    state = evidence.with_block(state, done, hot=LISTED)
    return _with_line(state if mine.failure else evidence.with_cascade_line(state, mine.line, mine.text), mine, weighed)


def _with_line(state: DiagnosisState, mine: Finding, weighed: Iterable[Proof]) -> DiagnosisState:
    """The strongest root of a line counts, once; confirmations and consequences beside it if they add to it."""
    if mine.failure:
        state = evidence.with_finding(state, mine)
    for each in weighed:
        other = Finding(each.failure, each.role, each.weight, mine.line, mine.text, mine.line)
        if each.role == "confirmation" and not mine.failure:
            state = evidence.with_finding(state, other)
        elif each.role == "cascade" and not mine.failure:
            state = evidence.with_cascade_line(state, mine.line, mine.text)
            if each.failure != "unknown":
                state = evidence.with_finding(state, replace(other, warned=each.warned))
    return state


def _evidence(
    carried: Carried, matches: Iterable[Match], *, raised: bool, catalogue: CompiledCatalogue
) -> Iterator[Proof]:
    """What the signatures, status codes and kernel messages in a line prove, if the line reports an event."""
    text, level = carried.text, carried.level
    for proof, start, end, _ in (*matches, *catalogue.codes.find(text)):
        act = act_of(text, start, end, failure=proof.failure, level=level, raised=raised)
        if act == "event" or proof.weight >= OWN_WEIGHT:  # a project's pattern says itself what is an event
            yield proof
        elif act == "warning":
            yield replace(proof, warned=True)
    at = next((text.find(gate) for gate in KERNEL_GATES if gate in text), None)
    known = None if at is None else read_kernel_line(text, catalogue)
    if at is None or known is None or known.failure == "unknown":
        return
    if act_of(text, at, len(text), failure=known.failure, level="", raised=raised) == "event":
        yield Proof(known.failure, known.weight, told=True)


def _in_report(state: DiagnosisState, number: int, carried: Carried) -> bool:
    """Whether the line belongs to the details of what was raised, or to a report of a program's death."""
    if carried.level == "fatal" or (state.report and number - state.report <= HEADED_LINES):
        return True
    block = state.block(carried.source)
    return block is not None and block.raised is not None and 0 <= number - block.raised.line <= LISTED


# What a line does: report an event, warn, say that something was handled, or speak of failures without having one.
#
# Advice, hypotheses, prompts, samples of a data set, quotations, negations and reports of an earlier run contain the
# words of every failure. Only an event, or a warning with less weight, is evidence. What was raised is an event
# whatever its message says; in its message a hypothesis ("this may be caused by …") proves nothing.

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
    r"\s*(?:raise |print\(|(?:logger?|logging|self|console)\.\w+[.(]|assert |return |echo |def |class |if |except "
    r"|elif |--?[a-z]|#(?!\d)|//|>>> |> |<\||\* |[-+•] (?!\w+(?:Error|Exception)\b))"
)
"""Source code, a comment, a quoted mail, a list of advice, a table."""
_HYPOTHESIS = LazyPattern(
    r"\b(?:potential|causes (?:are|include)"
    r"|if (?:you|the|this|it|your|an?|there|any|we|training|that|memory|one)\b|in case|should you|might"
    r"|may (?!not)|could (?!not|n)|can (?:also |sometimes |easily |often )?(?:be|lead|cause|result|happen|trigger"
    r"|produce)|possib(?:ly|le)|probably|perhaps|usually|often|sometimes|typically|avoid\w*|prevent\w*"
    r"|protects? (?:you )?against|known issues?|e\.g\.|for example|for instance|such as|look for|watch(?:es|ing)? for"
    r"|search for|check(?:s|ing)? for|what to do|how to|when you|falls|wenn sie|möglicherweise|vermutlich|si vous"
    r"|si le|peut[- ]être|puede|quizás|если|возможно|만약|경우|in the event of|simulat\w+|pretend\w*|reproduc\w+"
    r"|most likely|would|designed to|about \w+ errors|learn more|read more|guard(?:s|ed|ing)? against|robust (?:to"
    r"|against))|如果|如遇|若出现|若遇|假如|可能|建议|提示|避免|防止|例如|もし|場合|ヒント|回避",
    re.IGNORECASE,
)
_EARLIER = LazyPattern(
    r"\b(?:previous|last|earlier|prior|former|preceding) (?:\w+ )?(?:run|attempt|job|session|crash|failure|exit"
    r"|training|launch|incident|time)\b|\b(?:resum|restart|recover|continu)\w* (?:\w+ ){0,3}(?:after|from|following)\b"
    r"|\b(?:used to|previously|yesterday|last (?:week|night))\b|\b(?:issue|ticket|bug) #?\d+",
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
    r"\b(?:retry(?:ing)?(?! failed)|retried|reconnect\w*|fall(?:s|ing)?[ -]?back|fell back|fallback|skip(?:s|ped"
    r"|ping)(?! iterations?:)|ignor(?:ed|ing|es)|recover(?:ed|ing)|continuing|continues? (?:with|without|training)"
    r"|resum(?:ed|ing) normal|(?<!\d )resolved|as expected|using (?:the )?cpu|non-?fatal|not (?:fatal|critical"
    r"|serious)|harmless|benign|suppress\w*|reducing(?!.* may help)|halving|lower(?:ed|ing)|trying (?:again|with"
    r"|another)|try(?:ing)? again(?! later)|will try again|attempt \d+ ?(?:of|/) ?\d+|caught and|discard(?:ed|ing)"
    r"|disabled|disabling|will be (?:retried|ignored|skipped|disabled)|not (?:an? )?problem|warm-?up probe"
    r"|rebuilding)\b|\.\.\. ?ok\b|\b(?:PASSED|passed)\W*$",
    re.IGNORECASE,
)
_GIVEN_UP = LazyPattern(
    r"\b(?:giv(?:ing|en) up|gave up|exceeded|exhausted|abort(?:ed|ing|s)?|exiting|terminat(?:ed|ing)"
    r"|fatal(?! error: retry)|failed after|no more retries|unrecoverable|loss scale)",
    re.IGNORECASE,
)
_OWN = LazyPattern(
    r"(?:error|exception|errno|descr\w*|details?|fail(?:ed|ure)|fatal|what\(\)|err|reason|message|msg|caused by|raised|"
    r"last error|status|stderr|exit|signal|killed|lost|panicked at)\W*\w*\W*$",
    re.IGNORECASE,
)
"""Before a quotation mark: what follows are the words of the report itself."""
_QUOTES = LazyPattern(r"(?<!\w)\"[^\"]*(?:\"|$)|(?<!\w)'[^']*(?:'(?!\w)|$)|`[^`]{1,400}`|“[^”]{0,400}”|«[^»]{0,400}»")
_SENTENCE = LazyPattern(r"[.!?;]\s+(?=[A-Z\"'`(])(?!\(\d\))")
"""Where a sentence ends: not within the list that it announces, "potential causes: (1) …. (2) …"."""
_GOES_ON = LazyPattern(
    r"(?i:^\W*(?:\w+ ){0,3}?(?:retry(?:ing)?|trying (?:again|to (?:resume|reconnect|recover|continue))|reconnect\w*|"
    r"falling back|(?:will|going to) retry|resuming|recover(?:ed|ing)|attempt \d+ ?(?:of|/|\()|restarting)\b)"
)
"""A line after a failure says that the program goes on."""


def act_of(text: str, start: int, end: int, *, failure: str, level: str = "", raised: bool = False) -> Act:
    """What the line ``text`` does with the words from ``start`` to ``end``, by which a signature knows a failure.

    ``raised``: the line is the message of an exception that was raised.
    """
    before = text[max((stop.end() for stop in _SENTENCE.finditer(text, 0, start)), default=0) : start]
    if _HYPOTHESIS.search(before) is not None:
        return "spoken"
    if raised:
        return "event"
    if failure in NO_FAILURES and _PLANNED.search(before) is not None:
        return "spoken"
    denied = _EARLIER.search(before) or _NOT.search(before) or (end > start and _NONE.match(text, end))
    column = text.rfind("|", 0, start) + 1  # one of several fields of a line: ``sample 4 | prompt: … | answer: …``
    if denied or is_label(text) or (column and _LABEL.match(text, column)) or _quoted(text, start, end):
        return "spoken"
    if failure != "success" and _HANDLED.search(text) is not None and _GIVEN_UP.search(text) is None:
        return "handled"
    return "warning" if level == "warning" and failure not in NO_FAILURES else "event"


def is_label(text: str) -> bool:
    """True for a line that begins with what it is (advice, a prompt, a sample), or that is source code."""
    return _LABEL.match(text) is not None or _CODE.match(text) is not None


def _quoted(text: str, start: int, end: int) -> bool:
    around = (pair.start() for pair in _QUOTES.finditer(text) if pair.start() <= start and end <= pair.end())
    at = next(around, None)
    return at is not None and _OWN.search(text[:at]) is None
