"""Why a run ended: the evidence of its log, gathered in one pass, and ``diagnose``, which weighs it at the end.

Memory is constant: per class and kind the strongest line is kept. Evidence after which training went on is dropped (an
out-of-memory error that was caught, a retry of wandb, an earlier run in the same file).

The root cause differs from the cascade by the role of a line in the catalogue, by how much it proves, and by order:
among equals the first one counts, because launchers and other ranks report later. Known limits: a program that prints
a library's message as plain data looks like that failure; a SIGKILL by hand looks like one by the OOM killer.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ...model.shipped import Diagnosis, EvidenceLine
from ...model.text import LazyPattern
from ..progress import LineRead, ProgressState, read_progress
from ..scales import LIKELY, LINE_CHARS, LISTED, SECOND_HAND, SURE, TWICE
from ..text.lines import fold, peel, plain
from ..text.reading import PROVES, Reading
from . import evidence_state as evidence
from .catalogue import (
    NO_FAILURES,
    OWN_WEIGHT,
    SIGNALS,
    SUREST,
    Circumstances,
    CompiledCatalogue,
    Proof,
    diagnosis_of_class,
    fused,
    read_kernel_line,
    signal_of,
)
from .evidence_lines import FENCE, is_of_traceback, read_last_words, read_line
from .evidence_state import Block, DiagnosisState, Finding, RankEnd

SURVIVED_STEPS = 4
"""A failure line counts as survived once the step has moved this often. Why not once: other ranks may finish their
current step after an error."""
MEANING = " — "
"""Between the meaning of a kernel line and the line."""
LAST_LINES = 6
"""Lines from the end of a log that are read as errors if nothing else shows a cause."""
START_EVIDENCE = DiagnosisState()


def read_log(
    state: DiagnosisState,
    progress: ProgressState,
    text: str,
    catalogue: CompiledCatalogue,
    *,
    skim: bool = False,
    told: LineRead | None = None,
) -> tuple[DiagnosisState, ProgressState]:
    """Evidence and progress after ``text`` (any chunk of the log). Lines count from 1 over the whole log.

    Evidence is read from all lines after some of it (``hot``), else from those that a gate lets through. ``skim``,
    ``told``: as in ``read_progress``.
    """
    after, done = fold(state.fold, text)
    gates = catalogue.gates.among(done.text) if done.text else None
    read, before = 0, len(state.fold.rest)
    for number, line, end in done.placed() if gates is not None or state.hot else ():
        if not state.hot and (gates is None or not gates.passes(line)):
            continue
        progress = read_progress(progress, text[read : end - before], catalogue.shapes, skim=skim, told=told)
        read, state = end - before, survived(state, progress.settled)
        state = read_line(replace(state, hot=max(0, state.hot - 1)), number, line, catalogue)
    progress = read_progress(progress, text[read:], catalogue.shapes, skim=skim, told=told)
    tail = f"{'' if len(done.text) >= evidence.TAIL_CHARS else state.tail}{done.text[-evidence.TAIL_CHARS :]}"
    return replace(state, fold=after, tail=tail[-evidence.TAIL_CHARS :]), progress


def with_last_words(state: DiagnosisState, catalogue: CompiledCatalogue, *, killed: bool = False) -> DiagnosisState:
    """The state with the last lines read as errors, although no gate opened for them: for an end without a cause.

    ``killed``: by SIGKILL, so that they may be ordinary ones: only what is sure counts.
    What a launcher prints about its command is left out: its traceback says how the command was started.
    """
    told = list(state.last_lines())
    if any(FENCE in line for _, line in told):  # a quotation
        return state
    of_launcher = {each.line for each in state.cascade}
    own = [(number, line) for number, line in told if number not in of_launcher and not is_of_traceback(line)]
    least = LIKELY if killed or state.findings else 0.0
    for number, line in own[:LAST_LINES]:
        state = read_last_words(state, number, line, catalogue, least)
    return state


def at_end(state: DiagnosisState, progress: ProgressState, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The evidence at the end of the log: a process may end in the middle of a line, and has survived what it told."""
    if state.fold.rest:
        state, progress = read_log(state, progress, "\n", catalogue)
    return survived(state, progress.now)


def survived(state: DiagnosisState, now: Reading) -> DiagnosisState:
    """The state without evidence after which training went on; a NaN goes once the loss is finite again."""
    said, over = None, 0 if now.end_words is None else now.end_last
    if now.end_words is not None:
        said = Finding("success", "root", PROVES[now.end_words], now.end_line, now.end_text, over)
    state = replace(state, steps=now.heartbeats, said=said, over=over)
    if state.since is None or now.heartbeats - state.since < SURVIVED_STEPS:
        return state
    nan = [e for e in state.findings if e.failure == "nan_loss" and (now.loss_is_nan or is_late(e, state))]
    kept = tuple(each for each in state.findings if each.line == 0 or each in nan)
    lost = tuple(each for each in state.findings if each not in kept and each.role == "root")
    since = now.heartbeats if nan else None
    state = replace(state, findings=kept, survived=lost or state.survived, cascade=(), since=since, blocks=(), report=0)
    return replace(state, ranks=evidence.RankEnds())


def is_late(mine: Finding | Block, state: DiagnosisState) -> bool:
    """Whether at most one step came after it: other ranks may finish theirs."""
    return state.steps - mine.beats <= 1


def kernel_evidence(state: DiagnosisState, text: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after lines of the kernel log (any number). They count as earlier than every log line."""
    for line in text.splitlines():
        proof = read_kernel_line(line, catalogue)
        if proof is not None and proof.failure != "unknown":
            meaning = f"{proof.meaning}{MEANING}{line.strip()}"
            state = evidence.with_finding(state, Finding(proof.failure, "root", proof.weight, 0, meaning, 0))
            state = replace(state, kernel=(*state.kernel, meaning[:LINE_CHARS])[-LISTED:])
    return state


def is_news(line: str, catalogue: CompiledCatalogue) -> bool:
    """True if a line may be evidence or announces a phase: a burst of log keeps such lines."""
    line = plain(line)
    if catalogue.gates.passes(line):
        rows = catalogue.matches(line)
        if rows or (rows is not None and (evidence.find_exception(peel(line).text, catalogue) is not None)):
            return True
    return catalogue.shapes.words_of_line(line.lower())[0] is not None


UNKNOWN = Proof("unknown", 0.2)
"""What an exit status or a signal proves that the catalogue does not list."""


def diagnose(
    state: DiagnosisState,
    catalogue: CompiledCatalogue,
    *,
    exit_code: int | None = None,
    signal: int | str | None = None,
    finished_hint: bool = False,
    about: Circumstances | None = None,
) -> Diagnosis:
    """Weigh the evidence of an end that is no success.

    ``exit_code`` negative = signal, as Python has it; None = lost. ``finished_hint``: other evidence says training was
    complete. ``about``: what else was so at the end; its signal is this one.
    """
    about = replace(about or Circumstances(), signal=signal_of(exit_code, signal))
    killed = about.signal
    if not (state.survived or any(each.role != "cascade" for each in state.findings)):
        state = with_last_words(state, catalogue, killed=killed == SIGNALS["SIGKILL"])
    if killed == SIGNALS["SIGINT"]:  # what a training went on after is not why a person ended it
        late = tuple(each for each in state.findings if each.beats + 1 >= state.steps)
        state = replace(state, findings=late)
    state, who, end = _without_victims(state, catalogue)
    cause, done = root_of(state, catalogue), state.said
    lost = exit_code is None and killed is None
    if cause is not None and lost and cause.weight >= evidence.GENERIC and (finished_hint or ends_after(state, cause)):
        said = ("success", NEAR_SURE, done)
    elif (shown := _shown(state, catalogue, cause, exit_code if killed is None else -killed)) is not None and (
        shown[1] >= evidence.GENERIC
        or killed in {None, SIGNALS["SIGABRT"], SIGNALS["SIGKILL"]}
        or shown[2] is not cause
    ):
        said = shown
    elif lost and (done is not None or finished_hint):
        said = ("success", min(SECOND_HAND, done.weight) if done else LIKELY, done)
    else:
        proof = catalogue.exit_codes.get(exit_code or 0, UNKNOWN)
        proof = proof if killed is None else catalogue.signals.get(killed, UNKNOWN)
        said = (proof.failure, proof.weight, None)
    found = answer(state, catalogue, *said)
    if end is not None and found.failure == "unknown":
        lines = (*found.cascade, *([] if found.cause is None else [found.cause]))
        found = with_lines(replace(found, cause=EvidenceLine(end.line, end.text)), lines)
    found = fused(found, about, catalogue)  # its words replace the explanation; who ended first stays true
    return replace(found, explanation=f"{who} {found.explanation}") if who else found


Said = tuple[str, float, Finding | None]
"""A class, how sure it is, and the line that shows it."""


def _shown(
    state: DiagnosisState, catalogue: CompiledCatalogue, cause: Finding | None, status: int | None = 0
) -> Said | None:
    """What the log shows: its root cause, else the strongest line that follows from a failure, else a weak cause.

    ``status``: the exit code, or the signal as a negative number. A program may not have failed by what it reported if
    it went on for two steps, or if it went on at all and ended with success or by a signal from outside.
    """
    follow = _follow(state, handled=status == 0)
    if follow is not None and (cause is None or evidence.GENERIC > cause.weight < follow.weight):
        return follow.failure, follow.weight, follow
    if cause is None:
        return None
    proof, sure = catalogue.exit_codes.get(status or 0), strength(cause)
    if proof is not None and proof.failure == cause.failure:
        sure = max(sure, proof.weight)
    most = SUREST if rival_of(state, cause, catalogue) is None else NEAR_SURE
    lines = state.heard - cause.heard if status in {0, -SIGNALS["SIGKILL"], -SIGNALS["SIGTERM"]} else 0
    if cause.terminal and (lines >= TWICE or state.steps - cause.beats >= TWICE):
        most = LIKELY
    return cause.failure, min(most, sure), cause


def _without_victims(state: DiagnosisState, catalogue: CompiledCatalogue) -> tuple[DiagnosisState, str, RankEnd | None]:
    """The evidence without the errors of ranks that lost another one, a sentence about it ("" = none), its end.

    A device's error follows as well, of a rank that raised it after another one had ended by a signal or by its own
    error.
    """
    roots = [each for each in state.findings if each.role == "root"]
    classes = {each.failure: catalogue.class_of(each.failure) for each in roots}
    of_device = {name for name, class_ in classes.items() if "gpu_lost" in class_.follows_from}
    contact = {name for name, class_ in classes.items() if class_.of_other_ranks}
    first = evidence.killed_rank(state.ranks)
    killed = "" if first is None or first.rank is None else str(first.rank)
    raised = [e for e in roots if e.terminal and e.source and e.failure not in of_device | contact]

    def is_lost(mine: Finding) -> bool:
        if mine.failure in contact or not mine.source or mine.failure not in of_device:
            return mine.failure in contact
        return killed not in {"", mine.source} or any(e.source != mine.source and e.line < mine.line for e in raised)

    lost = [each for each in roots if is_lost(each)]
    victims = {each.source for each in lost}
    own = [each for each in roots if each not in lost and each.source and each.source not in victims]
    own = [each for each in own if lost and each.weight >= OF_ITS_OWN and each.failure not in NO_FAILURES]
    end: RankEnd | None = None
    if first is not None and (lost or killed) and (not killed or victims != {killed}):
        who, end = f"{first.name} ended first, by signal {-first.code}.", first
    elif own:
        who = f"Rank {min(own, key=lambda each: each.line).source} ended first, by an error of its own."
    elif (end := evidence.exited_rank(state.ranks, victims)) is not None:
        who = f"{end.name} ended first, with exit code {end.code}."
    else:
        return state, "", None
    kept = tuple(each for each in state.findings if each not in lost)
    after = " The others lost contact with it." if lost else ""
    return replace(state, findings=kept, cascade=(*state.cascade, *lost)), f"{who}{after}", end


OF_ITS_OWN = 0.3
"""Weight from which the error of one rank explains that others lost contact with it."""


def hidden_failure(
    state: DiagnosisState, catalogue: CompiledCatalogue, *, short: bool = False, about: Circumstances | None = None
) -> Diagnosis | None:
    """The failure that the last lines show although the exit status is 0 (``| tee``, ``; echo done``); None = none.

    Lines after which training went on do not count, and of the exceptions only those that a traceback ends: a logged
    one was handled. ``short``: training is known to have ended early, so that the kernel log counts, and weak evidence,
    and ``about``.
    """
    known = [e for e in state.findings if e.line and e.failure not in NO_FAILURES]
    late = [each for each in known if is_late(each, state) and not _went_on(each, state)]
    # What was only warned of was handled, and one bad batch may be skipped.
    late = [e for e in late if short or not (e.warned or (e.role == "confirmation" and e.count == 1))]
    over = any(each.failure == "success" and each.role == "root" for each in state.findings)  # it ends so
    kernel = [each for each in state.findings if each.line == 0] if short else []
    state = replace(state, findings=(*kernel, *late))
    cause = root_of(state, catalogue)
    traced = not over and any(each.line and is_late(each, state) and not _went_on(each, state) for each in state.blocks)
    if cause is not None and not (short or traced or cause.role == "confirmation"):
        gone = cause.of_a_helper and state.heard - cause.heard >= TWICE
        cause = None if gone or cause.weight < SURE else cause
    said = _shown(state, catalogue, cause)
    told = not over and any(is_late(each, state) and _NONZERO.search(each.text) for each in state.cascade)
    if said is None and not (told or traced or (short and about is not None and about.oom_kills)):
        return None
    found = answer(state, catalogue, *(said or ("unknown", UNKNOWN.weight, None)))
    return fused(found, about, catalogue) if short and about is not None else found


def _went_on(mine: Finding | Block, state: DiagnosisState) -> bool:
    """Whether words of a good end follow, and training went on between, or it is vague and was not raised."""
    vague = isinstance(mine, Finding) and not mine.terminal and mine.weight < SURE
    return ends_after(state, mine) and (vague or state.steps > mine.beats)


def ends_after(state: DiagnosisState, mine: Finding | Block) -> bool:
    """Whether words of a good end follow ``mine``."""
    return state.said is not None and state.said.weight > LIKELY and state.over > mine.over


def is_past(state: DiagnosisState) -> bool:
    """Whether the training went on after all that speaks of a failure, to a further step or to words of its end.

    What it survived before, in the same words, ends it no more the next time: a text that it prints again and again.
    """
    known = {each.text for each in state.survived}
    told = [each for each in state.findings if each.line and each.failure not in NO_FAILURES]
    texts: list[tuple[Finding | Block, str]] = [(each, each.text) for each in told]
    texts += [(each, "" if each.raised is None else each.raised.text) for each in state.blocks if each.line]
    return all(mine.beats < state.steps or mine.over < state.over or text in known for mine, text in texts)


_NONZERO = LazyPattern(
    r"(?i)\*\*\* \[.*\] Error [1-9]|CalledProcessError|Floating point exception"
    r"|(?:exit(?:ed)?|exitcode|return(?:ed)?|status|code)\b.{0,30}?\b[1-9]\d{0,2}\b|non-zero exit"
)
"""A launcher or ``make`` reports that its command failed."""


def _follow(state: DiagnosisState, *, handled: bool) -> Finding | None:
    """The strongest line that follows from a failure. ``handled``: what was only warned of was.

    A launcher ends its other processes with SIGTERM once one has failed: that is a person's doing only if no line
    says that a process failed.
    """
    found = [each for each in state.findings if each.role == "cascade" and not (handled and each.warned)]
    failed = [each for each in found if each.failure != "killed_by_user"]
    by_itself = any(_FAILED_RANK.search(each.text) for each in state.cascade)
    return max(failed if failed or by_itself else found, key=lambda each: each.weight, default=None)


_FAILED_RANK = LazyPattern(
    r"\bexitcode\s*:\s*(?!-(?:1|2|15)\b)-?[1-9]"
    r"|\btasks? [\d,-]+: (?:Exited with exit code [1-9]|Killed|Aborted|Segmentation|Bus error|Out Of Memory)"
)
"""torchrun's table of the processes that ended, or srun's line: one of them not by SIGHUP, SIGINT or SIGTERM."""


def answer(
    state: DiagnosisState, catalogue: CompiledCatalogue, failure: str, confidence: float, cause: Finding | None
) -> Diagnosis:
    """The diagnosis of this class, with the lines of the log that show it.

    Without a cause the most useful line of the log is shown, for the user to judge; none after a success.

    A line that the training survived is not shown: it would read as the cause of an end that nothing explains.
    """
    line = None if cause is None else EvidenceLine(cause.line, " ".join((cause.text, *cause.details)))
    if cause is None and failure != "success":
        told = [each for each in state.findings if each.failure not in ("success", "unknown")]
        best = max(told, key=lambda each: each.weight, default=None)
        line = None if best is None else EvidenceLine(best.line, best.text)
    at = 0 if line is None else line.line
    if failure == "unknown":  # all suspicious lines
        others = [each for each in (*state.survived, *state.findings) if each.failure != "success"]
    else:
        others = [each for each in state.findings if each.role == "root" and each.line > at]
    found = diagnosis_of_class(catalogue.class_of(failure), confidence, line, "" if cause is None else cause.text)
    found = replace(found, place="" if cause is None else cause.place)
    rival = None if cause is None or confidence > NEAR_SURE else rival_of(state, cause, catalogue)
    if rival is not None:
        near = catalogue.class_of(rival.failure).title
        found = replace(found, explanation=f"{found.explanation} Nearly as likely: {near} (line {rival.line}).")
        others = [*others, rival]
    return with_lines(found, (*state.cascade, *others))


def with_lines(found: Diagnosis, lines: Iterable[EvidenceLine | Finding], most: int = LISTED) -> Diagnosis:
    """``found`` with these lines beside its cause, in the order of the log."""
    at = 0 if found.cause is None else found.cause.line
    shown = sorted({each.line: each for each in lines if each.line != at}.values(), key=lambda each: each.line)
    return replace(found, cascade=tuple(EvidenceLine(each.line, each.text) for each in shown[:most]))


def line_of(found: Diagnosis) -> str:
    """The line that shows the failure, else its title."""
    return found.title if found.cause is None else found.cause.text.strip()


def finished(state: DiagnosisState, catalogue: CompiledCatalogue, why: str, *, sure: float) -> Diagnosis:
    """The diagnosis of a training that is over. ``why``: what shows that, or that nothing does."""
    found = answer(state, catalogue, "success", sure if state.said is None else sure + TOLD, state.said)
    return replace(found, explanation=f"{found.explanation[:-1]}: {why}." if why else found.explanation)


TOLD = 0.05
"""What words of an end add to the confidence that it was one."""


def diagnosis_as(state: DiagnosisState, catalogue: CompiledCatalogue, failure: str) -> Diagnosis:
    """The diagnosis of an end whose class other evidence shows; "unknown": nothing explains it."""
    cause = next((each for each in state.findings if each.failure == failure), None)
    sure = UNKNOWN.weight if cause is None else max(LIKELY, min(HIDDEN, cause.weight))
    return answer(state, catalogue, failure, sure, cause)


# Which finding is the root cause.
#
# What a program raised at its end outranks what was mentioned before it: a warning, and anything after which training
# went on. Of what is left the strongest counts, and among equals one with a message over one with a type alone, then
# the first: launchers and other ranks report later.

SAID = 0.64
"""Weight from which an exception that ended the program names its own cause; a vaguer one is explained by warnings."""
BY_SCHEDULER = 0.93
"""Weight from which words of an ordered end are a scheduler's own: what processes print while they end follows."""


def root_of(state: DiagnosisState, catalogue: CompiledCatalogue) -> Finding | None:
    """The cause, None without one. A printed NaN loss counts: it comes before the errors that it causes."""
    roots = [each for each in state.findings if each.role == "root" or each.failure == "nan_loss"]
    counting = [each for each in roots if not _outranked(each, roots, catalogue)]
    if not counting:
        return None
    best = max(map(strength, counting))
    bar = best if best >= OWN_WEIGHT else best - evidence.EQUAL  # a project's own pattern has no equal
    peers = [each for each in counting if strength(each) >= bar]
    told = [each for each in peers if each.told and each.terminal and strength(each) >= SURE]
    return min(
        told if told and not all(each.told for each in peers) else peers, key=lambda each: (each.line, -each.weight)
    )


NEAR_SURE = 0.7
"""Most that a cause is sure of beside a rival."""
HIDDEN = 0.75
"""Most that a line of the log is sure of a class that other evidence shows."""


def rival_of(state: DiagnosisState, cause: Finding, catalogue: CompiledCatalogue) -> Finding | None:
    """The strongest other cause that shows as much, nearly; None if there is none."""
    roots = [each for each in state.findings if each.role == "root" and each.failure not in NO_FAILURES]
    least = strength(cause) - evidence.EQUAL / 2
    near = [e for e in roots if strength(e) >= least and not _outranked(e, roots, catalogue)]
    apart = (e for e in roots if _left_behind(cause, e, catalogue) or _left_behind(e, cause, catalogue))
    near += [e for e in apart if strength(e) >= SURE or e.line > cause.line]
    return max((e for e in near if e.failure != cause.failure), key=strength, default=None)


def strength(finding: Finding) -> float:
    return finding.weight * SECOND_HAND if finding.warned else finding.weight


def _explains(cause: Finding, mine: Finding, catalogue: CompiledCatalogue) -> bool:
    """Whether ``mine`` is a known consequence: of a kill by the kernel, of a lost GPU, of another rank's own error."""
    known = catalogue.class_of(mine.failure)
    if cause.failure == mine.failure or strength(cause) < SURE or mine.weight >= OWN_WEIGHT:
        return False
    if known.of_other_ranks:
        of_others = catalogue.class_of(cause.failure).of_other_ranks
        return cause.terminal and not of_others and cause.failure not in NO_FAILURES
    return cause.failure in known.follows_from


def _outranked(mine: Finding, roots: Sequence[Finding], catalogue: CompiledCatalogue) -> bool:
    """Whether a later end of the program leaves this one without effect."""
    if mine.line == 0 or mine.weight >= OWN_WEIGHT or (mine.failure == "nan_loss" and not mine.terminal):
        return False
    if mine.failure == "killed_by_user" and mine.weight >= BY_SCHEDULER:
        return False
    if any(_explains(each, mine, catalogue) for each in roots):
        return True
    lasts = catalogue.class_of(mine.failure).waits_for  # what a restart waits for may end a later program, too
    for end in roots:
        known, steps = catalogue.class_of(end.failure), end.beats - mine.beats
        if not end.terminal or end.last <= mine.last or end.weight < SAID or known.of_other_ranks:
            continue
        if mine.failure in {end.failure, *known.follows_from}:
            continue
        told = not mine.terminal and end.told and end.weight >= SURE and end.line - mine.last > TWICE
        past = not lasts and _left_behind(mine, end, catalogue)
        if told or past or mine.warned or steps >= (TWICE if mine.terminal else 1):
            return True
    return False


def _left_behind(mine: Finding, end: Finding, catalogue: CompiledCatalogue) -> bool:
    """Whether a program went on after the report ``mine`` and ended with ``end``.

    A traceback in a text that it prints looks so, one that it caught, and one of an older run in the same file. Known
    false alarm: two ranks that print no rank, of which the second one fails of something else than lost contact.
    """
    of_mine, of_end = catalogue.class_of(mine.failure), catalogue.class_of(end.failure)
    if not (mine.terminal and end.terminal and mine.source == end.source and end.weight >= evidence.GENERIC):
        return False
    related = of_end.of_other_ranks or mine.failure in of_end.follows_from or end.failure in of_mine.follows_from
    return not related and end.heard + end.beats - mine.heard - mine.beats >= TWICE
