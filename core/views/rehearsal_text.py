"""The result of a rehearsal in words, for the command line and the screen."""

from ..model.launch import Rehearsal

TOUCHED_SHOWN = 5


def rehearsal_lines(result: Rehearsal) -> list[str]:
    """For people: the proofs, what tonight will do, and the config."""
    word = {"safe": "SAFE", "unsafe": "NOT SAFE", "unknown": "UNKNOWN"}[result.verdict]
    marks = {True: "yes", False: "NO", None: "?"}
    lines = [f"tonight: {word}: {result.reason}", ""]
    if result.checkpoint is not None:
        after = "" if result.checkpoint_after_s is None else f" after {result.checkpoint_after_s:.0f} s"
        lines.append(f"checkpoint   yes  {result.checkpoint}{after}, in {result.saved_in or '?'}")
    else:
        lines.append("checkpoint   NO   none that a resume can use")
    lines.append(f"step goes on {marks[result.steps.holds]:4} {result.steps.why}")
    lines.append(f"loss goes on {marks[result.loss.holds]:4} {result.loss.why}")
    will = {"yes": "yes", "self": "by itself", "no": "NO", "unknown": "unknown"}[result.will]
    lines.append(f"resume       {will}{f': {result.how}' if result.how else ''}")
    if result.faults:
        lines += ["", "what tonight will do:"]
        wide = max(len(fault.fault) for fault in result.faults)
        for fault in result.faults:
            after = "" if fault.after_s is None else f"seen after {fault.after_s:.0f} s: "
            lines.append(f"  {fault.fault:{wide}}  {marks[fault.survives]:4} {after}{fault.then}")
    for sentence in result.advice:
        lines.append(f"change: {sentence}")
    for path in result.touched[:TOUCHED_SHOWN]:
        lines.append(f"changed meanwhile in your folder: {path}")
    return lines
