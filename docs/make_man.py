"""Writes docs/trainwatch.1, the manual page, out of the command line's own texts: ``python docs/make_man.py``.

The wheel installs it as share/man/man1/trainwatch.1; a test compares it with the parser.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from trainwatch.cli.parser import SECTIONS, verb, verbs

PAGE = Path(__file__).parent / "trainwatch.1"
HEAD = r""".\" Written by docs/make_man.py.
.TH TRAINWATCH 1 "" "trainwatch" "User Commands"
.SH NAME
trainwatch \- supervise a long training run
.SH SYNOPSIS
.B trainwatch
[\fIVERB\fR] [\fIOPTIONS\fR] [\fIRUN\fR] [\-\- \fICOMMAND\fR ...]
.SH DESCRIPTION
Launches a training, shows it, detects when it hangs or crashes, says why with evidence, and restarts it from a verified
checkpoint. The training script stays as it is. Without a verb, the screen of this project's run opens; it starts
nothing without a key press. \fBtrainwatch \-\-headless\fR does the same without a screen.
.PP
\fBtrainwatch\fR \fIVERB\fR \fB\-\-help\fR shows the options of a verb, with an example.
\fBtrainwatch \-\-on\fR \fIHOST\fR [\fIVERB\fR] does the same on another machine, through ssh.
"""
TAIL = r""".SH EXIT STATUS
.TP
.B 0
done, or healthy
.TP
.B 1
the thing asked about failed: run given up, checkpoint bad, check not passed
.TP
.B 2
usage or config error
.TP
.B 3
no such run, file or directory
.TP
.B 4
a supervisor already owns this run, the folder holds a run of this command or checkpoints of an unknown run, or another
training uses it
.TP
.B 5
no supervisor is running
.TP
.B 130
interrupted
.PP
As PID 1 of a container, and in a job of a scheduler, \fBrun\fR and \fB\-\-headless\fR end with the exit status of the
trainer.
.SH ENVIRONMENT
.TP
.B TRAINWATCH_HOME
the folder of all state (default: $XDG_STATE_HOME/trainwatch, else ~/.local/state/trainwatch)
.TP
.B NO_COLOR
plain text
.SH FILES
.TP
.I ~/.config/trainwatch/config.toml
other machines: [hosts.NAME] with ssh = "user@machine"
.TP
.I trainwatch.toml
command and settings of a project; \fBtrainwatch init\fR writes one with a comment on each key
.SH SEE ALSO
The pages of the documentation are in the package's folder \fIdocs\fR.
"""


def page() -> str:
    """The text of docs/trainwatch.1 (roff)."""
    return HEAD + "".join(_sections()) + TAIL


def _sections() -> Iterator[str]:
    yield ".SH COMMANDS\n"
    for section, (title, _) in SECTIONS.items():
        yield f".SS {_roff(title[0].upper() + title[1:])}\n"
        for name in sorted(verbs()):
            one = verb(name)
            if one.help is not None and verbs()[name][0] == section:
                example = f"trainwatch {name} {one.example}".strip()
                text = re.sub(r"\s+", " ", one.description).strip()
                yield f".TP\n.B {name}\n{_roff(text)}\n.br\nExample: {_roff(example)}\n"


def _roff(text: str) -> str:
    """The text with what roff reads as commands made plain."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
